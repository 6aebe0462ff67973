#include "posenc/claims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/claims.h"

namespace posenc {
namespace {

using test::verified;

const Claim& claim(const std::string& number) {
  for (const Claim& c : all_claims())
    if (c.number() == number) return c;
  ADD_FAILURE() << "no claim " << number;
  return all_claims().front();
}
std::string computed(const std::string& number) { return verified(claim(number)).finding.computed; }

void expect_said(const std::string& number, const std::string& figure) {
  const std::string text = computed(number);
  EXPECT_NE(text.find(figure), text.npos) << text;
}

class EveryClaim : public testing::TestWithParam<Claim> {};

TEST_P(EveryClaim, AgreesWithItsVerdict) {
  const Verified& result = verified(GetParam());
  EXPECT_TRUE(result.agrees) << result.finding.computed;
  for (const Measure& m : result.finding.measures)
    EXPECT_TRUE(m.agrees()) << m.what << ": " << m.residual << " against " << m.tolerance;
}

INSTANTIATE_TEST_SUITE_P(Claims, EveryClaim,
                         testing::ValuesIn(all_claims().begin(), all_claims().end()),
                         [](const auto& tested) { return tested.param.number(); });

TEST(Claims, EveryRowOfTheTableIsPresent) {
  std::set<int> rows;
  for (const Claim& c : all_claims()) rows.insert(c.row);
  ASSERT_FALSE(rows.empty());
  const int last = *rows.rbegin();
  for (int row = 1; row <= last; ++row) EXPECT_TRUE(rows.contains(row)) << row;
}

TEST(Claims, NumbersAreUniqueOrderedAndWithoutHoles) {
  const auto all = all_claims();
  for (std::size_t i = 1; i < all.size(); ++i) {
    const bool next_part = all[i].row == all[i - 1].row && all[i].part == all[i - 1].part + 1;
    const bool next_row = all[i].row == all[i - 1].row + 1 && all[i].part == 'a';
    EXPECT_TRUE(next_part || next_row) << all[i].number();
  }
}

TEST(Claims, EachSaysWhatHoldsAndHowToSeeIt) {
  for (const Claim& c : all_claims()) {
    EXPECT_FALSE(c.statement.empty()) << c.number();
    EXPECT_FALSE(c.correct.empty()) << c.number();
    EXPECT_FALSE(c.reproduce.empty()) << c.number();
    EXPECT_EQ(c.correct.find('\n'), c.correct.npos) << c.number();
  }
}

TEST(Claims, TextsAreKnown) {
  for (const Claim& c : all_claims()) {
    std::string rest(c.texts);
    for (const ClaimText& text : claim_texts())
      if (const auto at = rest.find(text.name); at != std::string::npos)
        rest.erase(at, text.name.size());
    EXPECT_EQ(rest.find_first_not_of(' '), std::string::npos) << c.number() << ": " << c.texts;
    EXPECT_FALSE(c.texts.empty()) << c.number();
  }
}

TEST(Claims, OnlyWhatTrainingAloneCanTellHasNoCheck) {
  for (const Claim& c : all_claims()) {
    const bool measured = c.verdict == Verdict::measured;
    EXPECT_EQ(c.check == nullptr, measured || c.verdict == Verdict::unchecked) << c.number();
    EXPECT_EQ(!c.measured.empty(), measured) << c.number();
  }
}

TEST(Claims, AllTakeSecondsOfTheProcessor) {
  test::all_verified();
  EXPECT_LT(test::verifying_seconds, 50);  // five by themselves; sanitizers are ten times slower
}

// --- the figures that were measured before, by other programs -----------------------------------

TEST(Claims, WavelengthsOfThreeWidths) {
  expect_said("1a", "47,117 (d = 64), 54,410 (d = 128), 60,611 (d = 512)");
}
TEST(Claims, NeighboursLie3714Apart) { expect_said("5a", "lies 3.714 from"); }
TEST(Claims, DistancesSaturateAndFall) { expect_said("5b", "12.82, 20.54, 23.34 and 22.85"); }
TEST(Claims, TwoChannelsInBfloat16Have59784Duplicates) { expect_said("4c", "59,784 repeat"); }
TEST(Claims, TheNearestRowsOfTwoChannelsAre710Apart) {
  expect_said("4a", "6.029e-05 apart with d = 2 (710 ");
}
TEST(Claims, Of1000Steps479Rise) { expect_said("16b", "479 raise"); }
TEST(Claims, ALearnedTableHas8388608Parameters) { expect_said("24a", "8,388,608"); }

TEST(Claims, ExpLogIsEightRoundingsOffAndPowOne) {
  const Verified& result = verified(claim("11b"));
  EXPECT_GT(result.finding.measures.at(0).residual, 4) << result.finding.machine;
}

// --- the runner ---------------------------------------------------------------------------------

Expected<Evidence> too_large() {
  return Evidence{.computed = "off", .measures = {{"residual", 2, 1}}};
}
Expected<Evidence> no_counter_example() {
  return Evidence{.computed = "off", .measures = {{"residual", 0, 1, false}}};
}
Expected<Evidence> not_a_number() {
  return Evidence{.computed = "off",
                  .measures = {{"residual", std::numeric_limits<double>::quiet_NaN(), 1},
                               {"residual", std::numeric_limits<double>::quiet_NaN(), 1, false}}};
}
Expected<Evidence> nothing_measured() { return Evidence{.computed = "sure"}; }
Expected<Evidence> refused() { return fail("attend", "shapes must match", "3"); }

TEST(VerifyClaim, AResidualBeyondItsToleranceDisagrees) {
  EXPECT_FALSE(verify({.check = too_large}).agrees);
}
TEST(VerifyClaim, AWrongClaimWithoutACounterExampleDisagrees) {
  EXPECT_FALSE(verify({.verdict = Verdict::wrong, .check = no_counter_example}).agrees);
}
TEST(VerifyClaim, NotANumberIsNeitherInsideNorOutside) {
  const auto finding = not_a_number();
  for (const Measure& m : finding->measures) EXPECT_FALSE(m.agrees());
}
TEST(VerifyClaim, WithoutAMeasureNothingIsSupported) {
  EXPECT_FALSE(verify({.check = nothing_measured}).agrees);
}
TEST(VerifyClaim, AnErrorOfTheLibraryDisagreesAndIsTold) {
  const Verified result = verify({.check = refused});
  EXPECT_FALSE(result.agrees);
  EXPECT_EQ(result.finding.computed, "The check failed: attend: shapes must match, got 3");
}
TEST(VerifyClaim, ATrueClaimWithoutACheckDisagrees) { EXPECT_FALSE(verify(Claim{}).agrees); }

TEST(VerifyClaim, TheSummaryNamesWhatDisagrees) {
  const Claim bad{.row = 7, .part = 'x', .check = too_large};
  const Verified results[] = {verify(bad)};
  EXPECT_EQ(summary(results), "1 claim: 1 true; computations DISAGREE with the verdicts of 7x");
}

}  // namespace
}  // namespace posenc
