// posenc check-positions, run as a user does.
#include <string>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace {

using Json = nlohmann::json;
using posenc::test::has;
using posenc::test::Outcome;

class CheckPositionsCommand : public posenc::test::CommandTest {};

TEST_F(CheckPositionsCommand, ExitsWithZeroWhereTheIdsAreRight) {
  const Outcome said = posenc("check-positions '0,0,0,1;0,1,2,3' --mask '0,0,1,1;1,1,1,1'");
  EXPECT_EQ(said.code, 0) << said.out << said.err;
}

TEST_F(CheckPositionsCommand, ExitsWithOneAndNamesTheSlip) {
  const Outcome said = posenc("check-positions 0,1,2,3,4 --cu_seqlens 0,3,5 --json");
  EXPECT_EQ(said.code, 1);
  const Json found = Json::parse(said.out, nullptr, false);
  ASSERT_TRUE(found.is_object()) << said.out;
  EXPECT_EQ(found["findings"][0]["code"], "packing_ignored");
}

TEST_F(CheckPositionsCommand, ReadsWhatPositionsWrites) {
  const std::string rule = "--ids 1,151655,151655,7 --image_grid 1x2x4";
  ASSERT_EQ(posenc("positions ids.npy " + rule).code, 0);
  EXPECT_EQ(posenc("check-positions ids.npy " + rule).code, 0);
}

TEST_F(CheckPositionsCommand, KnowsTheTokensOfARankOfAZigzag) {
  EXPECT_EQ(posenc("check-positions 2,3,12,13 --zigzag 1/4").code, 0);
  EXPECT_EQ(posenc("check-positions 0,1,2,3 --zigzag 1/4").code, 1);
}

TEST_F(CheckPositionsCommand, RanksThatShareOutATextHaveItsPositions) {
  EXPECT_EQ(posenc("check-positions '0,1,6,7;2,3,4,5' --layout zigzag --ranks 2").code, 0);
  EXPECT_EQ(posenc("check-positions 2,3,4,5 --layout zigzag --ranks 2 --rank 1").code, 0);
  EXPECT_EQ(posenc("check-positions '0,3,0,1,6,7;1,2,2,3,4,5' --layout by-document --ranks 2 "
                   "--cu_seqlens 0,4,12")
                .code,
            0);
  const Outcome local = posenc("check-positions '0,1,2,3;0,1,2,3' --layout contiguous --ranks 2");
  EXPECT_EQ(local.code, 1);
  EXPECT_NE(local.out.find("rank 1, token 0: the ids are local"), std::string::npos) << local.out;
  EXPECT_EQ(posenc("check-positions 0,1,2 --layout zigzag --ranks 2").code, 2);
}

TEST_F(CheckPositionsCommand, RefusesARankBeyondTheLast) {
  const Outcome said = posenc("check-positions 0,1 --zigzag 4/4");
  EXPECT_EQ(said.code, 2);
  EXPECT_TRUE(has(said.err, "RANK/RANKS")) << said.err;
}

TEST_F(CheckPositionsCommand, RefusesSizesThatDoNotMatch) {
  EXPECT_EQ(posenc("check-positions 0,1,2 --cu_seqlens 0,2").code, 2);
}

}  // namespace
