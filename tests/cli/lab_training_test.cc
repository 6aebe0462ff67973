// posenc lab cells, run, again, collect and report, as a user runs them.
#include <filesystem>
#include <string>

#include "tests/cli/command.h"

namespace {

using posenc::test::has;
using posenc::test::Outcome;

class LabTrainingCommand : public posenc::test::CommandTest {
 protected:
  // A cell of a few steps on ten texts of digits.
  void SetUp() override {
    CommandTest::SetUp();
    for (int file = 0; file < 10; ++file) {
      std::string text;
      for (int i = 0; i < 3000; ++i) text += static_cast<char>('0' + i * (i + file) % 10);
      write("text" + std::to_string(file) + ".txt", text);
    }
    const Outcome tried = run("rope", 1);
    if (has(tried.err, "needs OpenBLAS")) GTEST_SKIP() << tried.err;
    ASSERT_EQ(tried.code, 0) << tried.err;
  }
  Outcome run(const std::string& scheme, int seed) {
    const std::string name = scheme + std::to_string(seed) + ".json";
    write(
        "cell-" + name,
        R"({"experiment":"E1","arm":")" + scheme + R"(","scheme":")" + scheme +
            R"(","task":"text","seed":)" + std::to_string(seed) +
            R"(,"vocabulary":256,"width":16,"layers":1,"heads":1,"hidden":32,"length":16,"tied":true,"window":0,)"
            R"("without_every":0,"steps":10,"texts":4,"rate":0.01,"least":1,"most":10,"tests":[16,128],"afterwards":[]})");
    return posenc("lab run --cell cell-" + name + " --out result-" + name + " --text .");
  }
};

TEST_F(LabTrainingCommand, CellsOfAPresetAreALineEach) {
  const Outcome cells =
      posenc("lab cells --preset standard --experiment E1 --arms rope,alibi --seeds 2");
  EXPECT_EQ(cells.code, 0) << cells.err;
  EXPECT_EQ(std::ranges::count(cells.out, '\n'), 4);
  EXPECT_TRUE(
      has(posenc("lab cells --preset standard --experiment E99").err, "no such experiment"));
  EXPECT_EQ(posenc("lab cells --seeds 0").code, 2);
  EXPECT_TRUE(has(posenc("lab cells --arms rotary").err, "no cell is of these arms"));
}

TEST_F(LabTrainingCommand, AReportSaysWhatWasClaimedAndMeasured) {
  ASSERT_EQ(run("rope", 2).code, 0);
  ASSERT_EQ(run("alibi", 1).code, 0);
  const Outcome report = posenc("lab report .");
  EXPECT_EQ(report.code, 2);  // a cell is no result
  std::filesystem::create_directory(path("results"));
  for (const char* name : {"rope1.json", "rope2.json", "alibi1.json"})
    std::filesystem::copy(path(std::string("result-") + name),
                          path(std::string("results/") + name));
  const Outcome page = posenc("lab report results");
  EXPECT_EQ(page.code, 0) << page.err;
  for (const char* part : {"RoPE at 8 × its trained length", "E1: Train short, test long", "seeds"})
    EXPECT_TRUE(has(page.out, part)) << page.out;
  EXPECT_EQ(std::ranges::count(posenc("lab collect results").out, '\n'), 3);
}

TEST_F(LabTrainingCommand, AResultRunAgainIsTheSame) {
  const Outcome again = posenc("lab again result-rope1.json --text .");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(has(again.out, "12 numbers  all the same")) << again.out;
}

TEST_F(LabTrainingCommand, AResultThatDoesNotComeOutAgainIsTold) {
  std::string line = text("result-rope1.json");
  const std::size_t value = line.find("\"value\":");
  line[value + 8] = line[value + 8] == '9' ? '8' : '9';
  write("forged.json", line);
  const Outcome again = posenc("lab again forged.json --text . --tenths 1");
  EXPECT_EQ(again.code, 1) << again.err;
  EXPECT_TRUE(has(again.out, "1 numbers  one differs by")) << again.out;
}

TEST_F(LabTrainingCommand, ARunTakesEitherACellOrAPreset) {
  EXPECT_TRUE(has(posenc("lab run --out x").err, "either --cell or --preset"));
  EXPECT_TRUE(has(posenc("lab run --cell cell-rope1.json --out x --text nowhere").err,
                  "a folder of ten files"));
}

}  // namespace
