// posenc lab on a model of two layers, run as a user does.
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"
#include "tests/small_llama.h"

namespace {

using Json = nlohmann::json;
using posenc::test::has;
using posenc::test::Outcome;

class LabCommand : public posenc::test::CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    write("small.gguf", posenc::test::SmallLlamaFile().file());
    std::string text;
    for (int i = 0; i < 50; ++i) text += static_cast<char>('a' + i * i % 12);
    write("text.txt", text);
    const Outcome tried = posenc("lab perplexity small.gguf text.txt --length 2 --json");
    if (has(tried.err, "needs OpenBLAS")) GTEST_SKIP() << tried.err;
  }
  Json json(const std::string& arguments) const {
    const Outcome outcome = posenc("lab " + arguments + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
};

TEST_F(LabCommand, PerplexityHasACurveForEachScaling) {
  const Json all = json(
      "perplexity small.gguf text.txt --scalings none,linear,yarn,dynamic:3 --factor 2 --length 32 "
      "--block 8");
  EXPECT_EQ(all.at("tokens"), 50);
  EXPECT_EQ(all.at("windows"), 1);
  ASSERT_EQ(all.at("curves").size(), 4u);
  EXPECT_EQ(all.at("curves")[0].at("factor"), 1);
  EXPECT_EQ(all.at("curves")[2].at("scaling"), "yarn");
  EXPECT_EQ(all.at("curves")[3].at("factor"), 3);
  const Json& blocks = all.at("curves")[1].at("blocks");
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].at("n"), 7);
  EXPECT_EQ(blocks[3].at("from"), 24);
  EXPECT_EQ(blocks[3].at("to"), 32);
}

TEST_F(LabCommand, PerplexityAsAPageComparesWithTheFirst) {
  const Outcome page =
      posenc("lab perplexity small.gguf text.txt --scalings none,linear --length 40");
  ASSERT_EQ(page.code, 0) << page.err;
  for (const char* part :
       {"nats a token by position", "linear ×2", "minus none, with its 95 % interval"})
    EXPECT_TRUE(has(page.out, part)) << page.out;
}

TEST_F(LabCommand, PerplexityOfACacheThatForgetsSaysSo) {
  const Json all = json("perplexity small.gguf text.txt --length 40 --keep 20 --sinks 2");
  EXPECT_EQ(all.at("keep"), 20);
  EXPECT_EQ(all.at("sinks"), 2);
}

// Curves that do not stand side by side on the page stand below one another, each time beside the
// first.
TEST_F(LabCommand, PerplexityKeepsToTheWidthOfThePage) {
  setenv("COLUMNS", "80", 1);
  const Outcome page = posenc(
      "lab perplexity small.gguf text.txt --length 40 "
      "--scalings none,linear,ntk,ntk_by_parts,yarn,dynamic");
  unsetenv("COLUMNS");
  ASSERT_EQ(page.code, 0) << page.err;
  for (const std::string& line : posenc::test::lines_of(page.out))
    EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), 80) << line;
}

TEST_F(LabCommand, ReuseHasARowForEachWayAndALayerEach) {
  const std::string arguments =
      "reuse small.gguf text.txt --prefix 10 --chunk 8 --tail 6 --places 2 --anew 0,3 --moves 9";
  const Json all = json(arguments);
  EXPECT_EQ(all.at("chunks").size(), 6u);
  EXPECT_EQ(all.at("layers").size(), 2u);
  EXPECT_LT(all.at("layers")[0].at("keys"), 1e-6);
  EXPECT_EQ(all.at("bands"), (Json{1, 4, 6}));
  EXPECT_EQ(all.at("moves"), 9);
  EXPECT_EQ(all.at("drift")[2].at("dtype"), "bfloat16");
  const Outcome page = posenc("lab " + arguments);
  ASSERT_EQ(page.code, 0) << page.err;
  for (const char* part : {"alone, not moved", "elsewhere, moved", "left out", "keys off by",
                           "one by one", "bfloat16"})
    EXPECT_TRUE(has(page.out, part)) << page.out;
  for (const std::string& line : posenc::test::lines_of(page.out))
    EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), 100) << line;
  const Outcome refused = posenc("lab reuse small.gguf text.txt --prefix 40 --chunk 8 --tail 6");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "must have room")) << refused.err;
}

TEST_F(LabCommand, WatchHasACellForEachHeadOfALayer) {
  const Outcome page = posenc("lab watch small.gguf text.txt");
  ASSERT_EQ(page.code, 0) << page.err;
  EXPECT_TRUE(has(page.out, "A cell is a head")) << page.out;
  EXPECT_TRUE(has(page.out, "8 heads give it more than half")) << page.out;
}

// The ranks of mpirun read one text together, where posenc was built with an MPI.
TEST_F(LabCommand, PerplexityOverRanksIsThatOfOneProcess) {
  const std::string ranks_of = posenc::test::data_path("../../backends/distributed/run.sh");
  std::string long_text;
  for (int i = 0; i < 1100; ++i) long_text += static_cast<char>('a' + i * i % 12);
  write("long.txt", long_text);  // of two chunks
  const std::string arguments =
      "perplexity small.gguf long.txt --length 1090 --block 400 --threads 1 --scalings "
      "none,dynamic:2";
  const Json whole = json(arguments);
  for (const char* ranks : {"2", "3"}) {
    const Outcome shared = run(ranks_of + " " + ranks + " " + posenc::test::command_path() +
                               " lab " + arguments + " --json --mpi");
    const bool ran =
        has(shared.err, "posenc: rank");  // mpirun has a word on every program that failed
    if (!ran && (has(shared.err, "posenc-mpi") || has(shared.err, "mpirun")))
      GTEST_SKIP() << shared.err;
    ASSERT_EQ(shared.code, 0) << shared.err;
    const Json found = Json::parse(shared.out, nullptr, false);
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t b = 0; b < 3; ++b) {
        const Json &one = whole.at("curves")[c].at("blocks")[b],
                   &other = found.at("curves")[c].at("blocks")[b];
        EXPECT_EQ(other.at("n"), one.at("n"));
        EXPECT_NEAR(other.at("nats").get<double>(), one.at("nats").get<double>(), 2e-6) << ranks;
      }
  }
}

TEST_F(LabCommand, ShiftHasARowForEachArithmeticAndPosition) {
  const Json all =
      json("shift small.gguf text.txt --tokens 20 --at 0,1000 --angles exact,hf_float");
  ASSERT_EQ(all.at("rows").size(), 4u);
  EXPECT_EQ(all.at("rows")[0].at("most"), 0);
  EXPECT_EQ(all.at("rows")[3].at("angles"), "hf_float");
  EXPECT_EQ(all.at("rows")[3].at("first"), 1000);
}

TEST_F(LabCommand, WavesAndWatchTellOfEveryHead) {
  EXPECT_EQ(json("waves small.gguf text.txt").at("heads").size(), 8u);
  EXPECT_EQ(json("watch small.gguf text.txt").at("heads")[7].at("head"), 3);
}

TEST_F(LabCommand, TokensAreThoseOfTheVocabulary) {
  write("word.txt", "cab\n");
  EXPECT_EQ(json("tokens small.gguf word.txt").at("tokens"), (std::vector<int>{2, 0, 1}));
}

TEST_F(LabCommand, WhatIsDumpedIsIdentifiedAsTheFilesOwnRotation) {
  ASSERT_EQ(json("dump small.gguf text.txt --layer 1 --before k.npy --after r.npy").at("shape"),
            (std::vector<int>{2, 50, 4}));
  const Outcome found = posenc("identify --before k.npy --after r.npy --json");
  ASSERT_EQ(found.code, 0) << found.err;
  const Json all = Json::parse(found.out, nullptr, false);
  EXPECT_EQ(all.at("pairing"), "interleaved");
  EXPECT_NEAR(all.at("base").get<double>(), 100, 0.01);
}

TEST_F(LabCommand, APictureIsDrawnFromWhatPerplexityPrinted) {
  write(
      "r.json",
      posenc(
          "lab perplexity small.gguf text.txt --scalings none,linear --length 32 --block 4 --json")
          .out);
  const Outcome drawn = posenc("lab picture r.json r.svg");
  if (has(drawn.err, "gnuplot")) GTEST_SKIP() << drawn.err;
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_TRUE(has(text("r.svg"), "linear ×2"));
}

TEST_F(LabCommand, APictureOfAnythingElseIsRefused) {
  for (const char* text :
       {"", "[]", "{\"curves\":[]}", "{\"curves\":[{\"scaling\":\"none\",\"blocks\":[]}]}"}) {
    write("r.json", text);
    EXPECT_EQ(posenc("lab picture r.json r.svg").code, 2) << text;
  }
}

// 2405.14591, table 2: 2.7e4 for 4k and 8.4e4 for 8k, with heads of 128 channels.
TEST_F(LabCommand, LeastBasesAreThoseOfThePaper) {
  const Json all = json("base --head_dim 128 --length 4k,8k");
  EXPECT_NEAR(all.at("bases")[0].at("least_base").get<double>() / 2.7e4, 1, 0.2);
  EXPECT_NEAR(all.at("bases")[1].at("least_base").get<double>() / 8.4e4, 1, 0.2);
}

TEST_F(LabCommand, ErrorsNameWhatIsWrongAndTheCure) {
  write("empty.txt", "");
  for (const auto& [arguments, part] : std::initializer_list<std::pair<std::string, std::string>>{
           {"perplexity none.gguf text.txt", "none.gguf"},
           {"perplexity text.txt text.txt", "must be a GGUF file"},
           {"perplexity small.gguf text.txt --length 51",
            "must have as many tokens as a window, got 50 of 51"},
           {"perplexity small.gguf text.txt --scalings yarm", "--scalings: unknown name"},
           {"perplexity small.gguf text.txt --factor 0", "must be a number above 0"},
           {"perplexity small.gguf text.txt --length 40 --windows 12", "12 where 11 can begin"},
           {"perplexity small.gguf text.txt --sinks 4", "--keep"},
           {"perplexity small.gguf text.txt --keep 4 --sinks 4", "keep more"},
           {"perplexity small.gguf empty.txt", "must have tokens"},
           {"base --head_dim 63", "must be even"},
           {"perplexity small.gguf text.txt --scalings longrope", "lists of its own"},
           {"perplexity small.gguf text.txt --scalings yarn:x", "write it like dynamic:2"},
           {"perplexity small.gguf text.txt --skip 50", "must leave tokens"},
           {"shift small.gguf text.txt --tokens 20 --at 16777216 --angles hf_float", "2^24"},
           {"watch small.gguf text.txt --tokens 2", "3 to 8192 tokens"}}) {
    const Outcome outcome = posenc("lab " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(has(outcome.err, part)) << outcome.err;
  }
}

// Counts in lists as elsewhere: the example of `posenc lab --help`.
TEST_F(LabCommand, PositionsAreCountedInThousandsAndMillions) {
  const Json at = json("shift small.gguf text.txt --tokens 20 --angles exact --at 0,1e6,128k");
  std::vector<std::int64_t> first;
  for (const Json& row : at.at("rows")) first.push_back(row.at("first"));
  EXPECT_EQ(first, (std::vector<std::int64_t>{0, 1000000, 131072}));
}

TEST_F(LabCommand, ALlamaWithoutItsWeightsIsRefusedByTheTensorsName) {
  std::string file = posenc::test::SmallLlamaFile().file();
  file.replace(file.find("blk.1.ffn_up.weight"), 5, "blk.9");
  write("lacking.gguf", file);
  const Outcome outcome = posenc("lab watch lacking.gguf text.txt");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "blk.1.ffn_up.weight: is missing")) << outcome.err;
}

}  // namespace
