// posenc extend, run as a user does.
#include <string>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace {

using Json = nlohmann::json;
using posenc::test::has;
using posenc::test::Outcome;

class ExtendCommand : public posenc::test::CommandTest {};

TEST_F(ExtendCommand, PrintsOptionsAndTheRecommendedOneInTheEnginesWords) {
  const Outcome said = posenc("extend llama-2-7b --to 32k --engine llama.cpp");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "4,096 → 32,768 tokens, 8 times")) << said.out;
  EXPECT_TRUE(has(said.out, "recommended   yarn")) << said.out;
  EXPECT_TRUE(has(said.out, "--rope-scaling yarn --rope-scale 8 --yarn-orig-ctx 4096 -c 32768"))
      << said.out;
}

TEST_F(ExtendCommand, JsonHasEveryKeyOfAnOption) {
  const Json said = Json::parse(posenc("extend llama-2-7b --to 128k --json").out, nullptr, false);
  ASSERT_TRUE(said.is_object());
  EXPECT_EQ(said["recommended"], "yarn");
  EXPECT_TRUE(said["flags"].is_object());
  EXPECT_EQ(said["options"].size(), 8u);
  for (const char* key : {"name", "unavailable", "scheme", "frequencies", "unseen", "unseen_from",
                          "fastest_pair", "middle_pair", "amplitude", "logits", "rerotate"})
    EXPECT_TRUE(said["options"][0].contains(key)) << key;
}

TEST_F(ExtendCommand, ExitsWithOneWhereNoFlagsLeadThere) {
  EXPECT_EQ(posenc("extend gpt2 --to 4096").code, 1);
  EXPECT_EQ(posenc("extend phi-3.5-mini --to 256k").code, 1);
}

TEST_F(ExtendCommand, ExitsWithTwoForAnEngineWithoutAProfile) {
  EXPECT_EQ(posenc("extend llama-2-7b --to 8k --engine keras").code, 2);
}

}  // namespace
