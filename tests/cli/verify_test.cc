// posenc verify: its page, its JSON, its exit codes, and the committed docs/claims.md.
#include "cli/pages/claims_page.h"

#include <fstream>
#include <sstream>
#include <nlohmann/json.hpp>

#include "tests/claims.h"
#include "tests/cli/command.h"

namespace {

using posenc::test::has;
using posenc::test::Outcome;
namespace cli = posenc::cli;

class Verify : public posenc::test::CommandTest {
 protected:
  // The command computes every claim once, for all tests of a process.
  const Outcome& all() const {
    static const Outcome outcome = posenc("verify");
    return outcome;
  }
};

posenc::Expected<posenc::Evidence> failing() {
  return posenc::Evidence{.computed = "3 instead of 1", .measures = {{"residual", 2, 1e-12}}};
}
posenc::Expected<posenc::Evidence> holding() {
  return posenc::Evidence{.computed = "1", .measures = {{"residual", 0, 1e-12}}};
}
const posenc::Claim made_up[] = {
    {.row = 1,
     .part = 'a',
     .group = "tests",
     .statement = "One is one",
     .texts = "S0",
     .check = holding},
    {.row = 1,
     .part = 'b',
     .group = "tests",
     .statement = "Three is one",
     .texts = "S1",
     .check = failing},
};

TEST_F(Verify, AllComputationsAgree) {
  EXPECT_EQ(all().code, 0) << all().out;
  std::string page = all().out;
  std::ranges::replace(page, '\n', ' ');  // the sentence may fill more than a line
  EXPECT_TRUE(has(page, "all computations agree with these verdicts"));
}

TEST_F(Verify, NothingIsWrittenBesideThePage) { EXPECT_EQ(posenc("verify --claim 3").err, ""); }

TEST_F(Verify, TheTextsAreNamed) {
  EXPECT_TRUE(has(all().out, "S3  Positional Encoding Explained")) << all().out;
  EXPECT_TRUE(has(posenc("verify --claim 4b").out, "said by     S0, Positional Embeddings in"));
}

TEST_F(Verify, AFailingClaimExitsWithOne) { EXPECT_EQ(cli::exit_code(cli::verified(made_up)), 1); }

TEST_F(Verify, ClaimsThatHoldExitWithZero) {
  EXPECT_EQ(cli::exit_code(cli::verified(std::span(made_up).first(1))), 0);
}

TEST_F(Verify, AFailingClaimIsMarkedAndNamed) {
  const std::string page = cli::table(cli::verified(made_up), {});
  EXPECT_TRUE(has(page, "2 > 1e-12")) << page;
  EXPECT_TRUE(has(page, "true\n"));
  EXPECT_TRUE(has(page, "DISAGREES"));
  EXPECT_TRUE(has(page, "DISAGREE with the verdicts of 1b"));
}

TEST_F(Verify, APageIsAtMost100ColumnsWide) {
  std::istringstream page(all().out);
  for (std::string line; std::getline(page, line);) EXPECT_LE(cli::columns(line), 100u) << line;
}

TEST_F(Verify, OneInFullIsAtMost100ColumnsWideButForCommands) {
  std::istringstream page(posenc("verify --claim 14").out);
  for (std::string line; std::getline(page, line);) EXPECT_LE(cli::columns(line), 100u) << line;
}

TEST_F(Verify, OneInFullShowsWhatHoldsFormulaPaperAndHow) {
  const std::string page = posenc("verify --claim 5b").out;
  for (const char* part : {"what holds", "formula", "computed", "measured",
                           "https://arxiv.org/abs/1706.03762", "reproduce"})
    EXPECT_TRUE(has(page, part)) << part << "\n" << page;
}

TEST_F(Verify, ARowShowsAllItsClaims) {
  const std::string page = posenc("verify --claim 4").out;
  for (const char* number : {"4a  ", "4b  ", "4c  "}) EXPECT_TRUE(has(page, number));
}

TEST_F(Verify, TextAndGroupNarrowTheList) {
  const std::string page = posenc("verify --text s1 --group scores").out;
  EXPECT_TRUE(has(page, "1 claim: ")) << page;
}

TEST_F(Verify, AnUnknownClaimTextOrGroupIsBadInput) {
  for (const char* arguments : {"verify --claim 42", "verify --claim 4z", "verify --text S5",
                                "verify --text S", "verify --group nothing"}) {
    const Outcome outcome = posenc(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(has(outcome.err, "verify: no claim matches, got '")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "scores and offsets")) << outcome.err;
  }
}

TEST_F(Verify, JsonHasTheDocumentedKeysInOrder) {
  const auto list = nlohmann::ordered_json::parse(to_json(posenc::test::all_verified()));
  ASSERT_GE(list.size(), 41u);
  const std::vector<std::string> keys{
      "number", "row",       "group",    "texts",    "statement", "verdict",  "correct", "formula",
      "paper",  "reproduce", "computed", "measured", "machine",   "measures", "agrees",  "seconds"};
  for (const auto& claim : list) {
    std::vector<std::string> found;
    for (const auto& [key, value] : claim.items()) found.push_back(key);
    EXPECT_EQ(found, keys) << claim["number"];
  }
}

TEST_F(Verify, JsonGivesEachMeasureWithItsTolerance) {
  const auto list = nlohmann::json::parse(posenc("verify --claim 13a --json").out);
  const auto& measures = list.at(0).at("measures");
  ASSERT_EQ(measures.size(), 2u);
  EXPECT_EQ(measures[0].at("expected"), "outside");
  EXPECT_GT(measures[0].at("residual").get<double>(), measures[0].at("tolerance").get<double>());
  EXPECT_EQ(measures[1].at("expected"), "inside");
  EXPECT_EQ(measures[1].at("agrees"), true);
}

TEST_F(Verify, JsonSaysNullWhereNothingIsComputed) {
  const auto list = nlohmann::json::parse(posenc("verify --claim 33a --json").out);
  EXPECT_TRUE(list.at(0).at("computed").is_null());
  EXPECT_TRUE(list.at(0).at("agrees").is_null());
}

TEST_F(Verify, JsonAndMarkdownExcludeEachOther) {
  EXPECT_EQ(posenc("verify --json --markdown").code, 2);
}

TEST_F(Verify, TheCommittedPageIsWhatTheCommandPrints) {
  std::ifstream file(posenc::test::data_path("../../docs/claims.md"));
  std::stringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str(), to_markdown(posenc::test::all_verified()))
      << "posenc verify --markdown > docs/claims.md";
}

TEST_F(Verify, MarkdownOfOneClaimHasItsRowOfThePage) {
  const std::string page = posenc("verify --claim 5b --markdown").out;
  const auto at = page.find("| 5b |");
  ASSERT_NE(at, page.npos) << page;
  const auto row = page.substr(at, page.find('\n', at) - at);
  EXPECT_TRUE(has(to_markdown(posenc::test::all_verified()), row)) << row;
}

TEST_F(Verify, EveryCommandToReproduceRuns) {
  int commands = 0;
  for (const posenc::Claim& claim : posenc::all_claims()) {
    if (!claim.reproduce.starts_with("posenc ")) continue;
    ++commands;
    const Outcome outcome = posenc(std::string(claim.reproduce.substr(7)));
    EXPECT_EQ(outcome.code, 0) << claim.number() << ": " << outcome.err;
  }
  EXPECT_GT(commands, 20);
}

}  // namespace
