// The command's manners: help, exit codes, errors, suggestions.
#include "tests/cli/command.h"

#include <sstream>
#include <string>

namespace {

using posenc::test::has;
using posenc::test::Outcome;

class Command : public posenc::test::CommandTest {};

constexpr const char* names[] = {
    "explain", "diff",    "identify",  "models", "schemes", "rotate", "add",       "table", "bias",
    "slopes",  "buckets", "positions", "verify", "plot",    "attend", "precision", "emit"};

TEST_F(Command, HelpListsEveryCommand) {
  const Outcome help = posenc("--help");
  EXPECT_EQ(help.code, 0);
  for (const char* name : names) EXPECT_TRUE(has(help.out, name)) << name;
}

TEST_F(Command, EveryCommandHasHelpWithExamples) {
  for (const char* name : names) {
    const Outcome help = posenc(std::string(name) + " --help");
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_EQ(help.err, "") << name;
    EXPECT_TRUE(has(help.out, "Examples:")) << name;
    EXPECT_TRUE(has(help.out, "  posenc " + std::string(name))) << name;
  }
}

TEST_F(Command, ExamplesNameModelsThatExist) {
  const std::string models = posenc("models").out;
  for (const char* name : names) {
    std::istringstream help(posenc(std::string(name) + " --help-all").out);
    for (std::string word; help >> word;) {
      if (word != "--model" || !(help >> word) || word == "MODEL" || has(word, "/")) continue;
      EXPECT_TRUE(has(models, word)) << name << ": " << word;
    }
  }
}

TEST_F(Command, ModelsAreFoundByAWordOfTheirLine) {
  const std::string found = posenc("models --search YARN").out;
  EXPECT_TRUE(has(found, "deepseek-v3") && has(found, "qwen2.5-7b-yarn4")) << found;
  EXPECT_FALSE(has(found, "gpt2")) << found;
}

TEST_F(Command, AWordThatNoModelHasIsBadInput) {
  EXPECT_EQ(posenc("models --search abacus").code, 2);
}

TEST_F(Command, ANumberThatMustBePositiveIsToldInWords) {
  for (const char* bad : {"-5", "0", "abc", "1.5"})
    EXPECT_EQ(
        posenc("explain gpt2 --at=" + std::string(bad)).err,
        "posenc: explain: --at: must be a whole number above 0, like 131072, 128k or 1e6, got '" +
            std::string(bad) + "'; see posenc explain --help\n");
}

TEST_F(Command, AnUnknownSchemeIsPointedToTheList) {
  const Outcome outcome = posenc("schemes YaRM");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "posenc schemes lists them"));
}

TEST_F(Command, HelpOfACommandHasTwoSpellings) {
  EXPECT_EQ(posenc("help rotate").out, posenc("rotate --help").out);
}

TEST_F(Command, VersionIsPrinted) {
  const Outcome version = posenc("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(has(version.out, "posenc "));
}

TEST_F(Command, NoCommandIsBadInput) { EXPECT_EQ(posenc("").code, 2); }

TEST_F(Command, AnUnknownCommandGetsASuggestion) {
  const Outcome outcome = posenc("explian x");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "posenc: explian: no such command; did you mean explain?\n");
}

TEST_F(Command, AnUnknownFlagGetsASuggestion) {
  const Outcome outcome = posenc("slopes --heds 8");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "posenc: slopes: no such flag, got --heds; did you mean --heads?\n");
}

TEST_F(Command, DashesAndUnderscoresAreTheSame) {
  EXPECT_EQ(posenc("slopes --heads 8 --max-bias 4").out,
            posenc("slopes --heads 8 --max_bias 4").out);
}

TEST_F(Command, BadNumbersAreBadInput) {
  for (const char* arguments :
       {"slopes --heads x", "slopes --heads 0", "slopes --heads -3", "slopes",
        "slopes --heads 8 --max_bias nan", "slopes --heads 99999999999999999999",
        "explain gpt2 --at 0", "explain gpt2 --at x", "explain", "explain none",
        "buckets --from=3 --to=2", "buckets --num_buckets 0", "positions",
        "positions --mask '0,1;1'", "schemes none-such", "models none-such",
        "table t.npy --scheme sinusoidal --positions 0:4",
        "table t.npy --scheme sinusoidal --width 8 --positions 0:4 --dtype f32",
        "bias b.npy --scheme rope --head_dim 8 --queries 2 --keys 2"}) {
    const Outcome outcome = posenc(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(outcome.err.starts_with("posenc: ")) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
  }
}

TEST_F(Command, NoColoursAreWrittenToAFile) {
  for (const char* arguments : {"--help", "models", "schemes", "explain gpt2"})
    EXPECT_FALSE(has(posenc(arguments).out, "\x1b[")) << arguments;
}

TEST_F(Command, AFullDiskIsNoticed) {
  const Outcome outcome = posenc("schemes > /dev/full 2>&1 ; echo $? > code; true");
  EXPECT_EQ(text("code"), "2\n");
}

TEST_F(Command, SlopesAreTheKnownOnes) {
  EXPECT_EQ(posenc("slopes --heads 8 --json").out,
            "{\"slopes\":[0.5,0.25,0.125,0.0625,0.03125,0.015625,0.0078125,0.00390625]}\n");
}

TEST_F(Command, BucketsIncludeBothEnds) {
  EXPECT_EQ(posenc("buckets --from=-3 --to=1 --json").out,
            "{\"relative\":[-3,-2,-1,0,1],\"bucket\":[3,2,1,0,0]}\n");
}

TEST_F(Command, BucketsInTwoDirectionsSplitTheTable) {
  EXPECT_EQ(posenc("buckets --bidirectional --from=-1 --to=1 --json").out,
            "{\"relative\":[-1,0,1],\"bucket\":[1,0,17]}\n");
}

TEST_F(Command, SchemesAreListedAndShown) {
  const Outcome list = posenc("schemes");
  EXPECT_EQ(list.code, 0);
  for (const char* name : {"rope", "alibi", "t5", "yarn", "llama3", "sinusoidal"})
    EXPECT_TRUE(has(list.out, name)) << name;
  const Outcome one = posenc("schemes rope");
  EXPECT_TRUE(has(one.out, "rope_theta"));
  EXPECT_TRUE(has(one.out, "2104.09864"));
  EXPECT_TRUE(has(posenc("schemes yarn").out, "beta_fast"));
  EXPECT_TRUE(has(posenc("schemes yarn").out, "gpt-oss-20b"));
}

TEST_F(Command, PaddingShiftsNoPosition) {
  EXPECT_EQ(posenc("positions --mask '0,0,1,1;1,1,1,1'").out, "0 0 0 1\n0 1 2 3\n");
  EXPECT_EQ(posenc("positions --mask '0,0,1,1;1,1,1,1' --cached 3").out, "1\n3\n");
}

TEST_F(Command, PackedSequencesStartAnew) {
  EXPECT_EQ(posenc("positions --packed 0,3,5 --json").out,
            "{\"positions\":[[[0,1,2,0,1]]],\"segments\":[0,0,0,1,1]}\n");
}

TEST_F(Command, ImagesGetThreeRows) {
  const Outcome outcome = posenc(
      "positions --ids 1,2,3,100,101,101,101,101,103,1,2 --image_token_id 101 --image_grid 1,4,4 "
      "--json");
  EXPECT_EQ(outcome.out,
            "{\"positions\":[[[0,1,2,3,4,4,4,4,6,7,8]],[[0,1,2,3,4,4,5,5,6,7,8]],"
            "[[0,1,2,3,4,5,4,5,6,7,8]]],\"delta\":-2}\n");
}

TEST_F(Command, SecondsSpaceTheFramesOfAVideo) {
  const std::string video =
      "positions --ids 1,100,102,102,102,102,102,102,102,102,102,102,102,102,103,1,2 "
      "--video_token_id 102 --video_grid 3,4,4 --json --rule ";
  EXPECT_TRUE(has(posenc(video + "qwen2_vl_2025").out, "[0,1,2,2,2,2,3,3,3,3,4,4,4,4,5,6,7]"));
  EXPECT_TRUE(has(posenc(video + "qwen2_vl").out, "[0,1,2,2,2,2,3,3,3,3,4,4,4,4,4,5,6]"));
  EXPECT_TRUE(has(posenc(video + "qwen2_5_vl").out, "[0,1,2,2,2,2,4,4,4,4,6,6,6,6,4,5,6]"));
}

TEST_F(Command, WrittenPositionsAreReadBack) {
  ASSERT_EQ(posenc("positions ids.npy --packed 0,3,5").code, 0);
  ASSERT_EQ(posenc("table a.npy --scheme sinusoidal --width 8 --positions ids.npy").code, 0);
  ASSERT_EQ(posenc("table b.npy --scheme sinusoidal --width 8 --positions 0,1,2,0,1").code, 0);
  EXPECT_EQ(text("a.npy"), text("b.npy"));
}

}  // namespace
