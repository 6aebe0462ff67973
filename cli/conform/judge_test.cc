// Each mistake of the vectors is named where its answer is given, alone and by an engine that makes
// it everywhere; right answers are never accused.
#include "cli/conform/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/paths.h"

namespace posenc::cli::conform {
namespace {

const Vectors& vectors() {
  static const Vectors all = read_vectors("").value();
  return all;
}

Numbers with(const VectorTest& test, const Numbers& wrong) {
  Numbers all = test.output;
  for (const auto& [name, values] : wrong) all[name] = values;
  return all;
}

TEST(ReadVectors, AFolderHoldsWhatTravelsWithTheCommand) {
  const auto read = read_vectors(test::data_path("../../vectors"));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->files.size(), vectors().files.size());
  EXPECT_EQ(read->mistakes.size(), vectors().mistakes.size());
}

class EveryOperation : public testing::TestWithParam<std::size_t> {
 protected:
  const VectorFile& file() const { return vectors().files[GetParam()]; }
  const Tolerance& tolerance() const { return file().of(DType::f32); }
};

TEST_P(EveryOperation, RightAnswersPass) {
  for (const VectorTest& test : file().tests)
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
      EXPECT_EQ(judge(test, file().of(dtype), {.output = test.output}).outcome, Outcome::passed)
          << test.id;
}

TEST_P(EveryOperation, EachWrongAnswerShowsItsMistake) {
  for (const VectorTest& test : file().tests)
    for (const auto& [name, wrong] : test.mistakes) {
      const JudgedTest judged = judge(test, tolerance(), {.output = with(test, wrong)});
      EXPECT_EQ(judged.outcome, Outcome::wrong) << test.id << " " << name;
      EXPECT_TRUE(judged.shows(name)) << test.id << " " << name;
    }
}

// An engine that makes one mistake wherever it shows.
TEST_P(EveryOperation, AMistakeMadeEverywhereIsNamed) {
  for (const auto& [name, mistake] : vectors().mistakes) {
    std::vector<JudgedTest> tests;
    bool made = false;
    for (const VectorTest& test : file().tests) {
      const auto wrong = test.mistakes.find(name);
      made |= wrong != test.mistakes.end();
      tests.push_back(judge(
          test, tolerance(),
          {.output = wrong == test.mistakes.end() ? test.output : with(test, wrong->second)}));
    }
    if (!made) continue;
    const JudgedFile judged = judge(file(), std::move(tests));
    ASSERT_EQ(judged.shown.size(), 1u) << name;
    EXPECT_TRUE(judged.unexplained().empty()) << name;
    EXPECT_TRUE(judged.shown.front().everywhere) << name;
    EXPECT_EQ(judged.shown.front().mistake, name);
  }
}

TEST_P(EveryOperation, AnAnswerOfAnotherSizeIsWrong) {
  for (const VectorTest& test : file().tests) {
    Numbers cut = test.output;
    cut.begin()->second.push_back(0);
    EXPECT_EQ(judge(test, tolerance(), {.output = cut}).outcome, Outcome::wrong) << test.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Conform, EveryOperation, testing::Range<std::size_t>(0, 10),
                         [](const auto& at) { return vectors().files[at.param].operation; });

TEST(Conform, TwoMistakesInTwoOutputsAreBothNamed) {
  const VectorFile& file = vectors().files.front();
  const auto test = std::ranges::find(file.tests, "yarn/rope_type", &VectorTest::id);
  ASSERT_NE(test, file.tests.end());
  Numbers answer = test->output;
  answer["inv_freq"] = test->mistakes.at("ramp_reversed").at("inv_freq");
  answer["attention_factor"] = {1};
  const JudgedFile judged = judge(file, {judge(*test, file.of(DType::f32), {.output = answer})});
  ASSERT_EQ(judged.shown.size(), 2u);
  EXPECT_EQ(judged.shown[0].mistake, "factor_dropped");
  EXPECT_EQ(judged.shown[1].mistake, "ramp_reversed");
}

TEST(Conform, WhatNoMistakeExplainsIsUnknown) {
  const VectorFile& file = vectors().files.front();
  Numbers answer = file.tests.front().output;
  for (double& f : answer["inv_freq"]) f *= 1.37;
  const JudgedFile judged =
      judge(file, {judge(file.tests.front(), file.of(DType::f32), {.output = answer})});
  EXPECT_EQ(judged.unexplained().size(), 1u);
  EXPECT_TRUE(judged.shown.empty());
}

TEST(Conform, AnAnswerWithoutTheOutputsThatAreAskedFailed) {
  const VectorTest& test = vectors().files.front().tests.front();
  const Tolerance& tolerance = vectors().files.front().of(DType::f32);
  EXPECT_EQ(judge(test, tolerance, {.output = {{"freqs", {1}}}}).outcome, Outcome::failed);
  EXPECT_EQ(judge(test, tolerance, {.error = "thrown"}).outcome, Outcome::failed);
  EXPECT_EQ(judge(test, tolerance, {.unsupported = "none"}).outcome, Outcome::unsupported);
}

TEST(Conform, EveryMistakeHasATitleAndACure) {
  for (const auto& [name, mistake] : vectors().mistakes) {
    EXPECT_FALSE(mistake.title.empty()) << name;
    EXPECT_FALSE(mistake.cure.empty()) << name;
  }
  EXPECT_GE(vectors().mistakes.size(), 30u);
}

}  // namespace
}  // namespace posenc::cli::conform
