// What every scaling promises, beyond the golden numbers of tests/conformance.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "posenc/schemes.h"

namespace posenc {
namespace {

constexpr Geometry head128{.head_dim = 128};

Scaled<double> frequencies(const Rope& rope, Geometry geometry = head128) {
  auto result = rope_frequencies<double>(rope, geometry);
  EXPECT_TRUE(result) << (result ? "" : result.error().message());
  return result ? *result : Scaled<double>{};
}

std::string error_of(const Rope& rope, Geometry geometry = head128) {
  const auto plan = compile(Scheme{rope}, geometry);
  return plan ? "" : plan.error().message();
}

TEST(Unscaled, FirstPairTurnsOneRadianPerToken) { EXPECT_EQ(frequencies({}).frequency[0], 1.0); }

TEST(Unscaled, LastWavelengthIsNotTheBase) {
  // 2π·10000^(126/128), not 2π·10000.
  EXPECT_NEAR(2 * std::numbers::pi / frequencies({}).frequency.back(), 54410, 0.5);
}

TEST(Linear, DividesByTheRatioAndNotByTheLength) {
  EXPECT_EQ(frequencies({.scaling = Linear{8}}).frequency[0], 0.125);
}

TEST(NtkAware, KeepsTheFirstPairAndDividesTheLastByExactlyTheFactor) {
  const auto plain = frequencies({}).frequency,
             stretched = frequencies({.scaling = NtkAware{8}}).frequency;
  EXPECT_EQ(stretched.front(), 1.0);
  EXPECT_NEAR(plain.back() / stretched.back(), 8, 1e-12);
}

TEST(NtkAware, RefusesASinglePair) {
  EXPECT_NE(error_of({.scaling = NtkAware{8}}, {.head_dim = 2}).find("more than one pair"),
            std::string::npos);
}

TEST(DynamicNtk, ChangesNothingUpToTheTrainedLength) {
  Geometry at = head128;
  at.length = 2048;
  EXPECT_EQ(frequencies({.scaling = DynamicNtk{2, 2048}}, at).frequency, frequencies({}).frequency);
}

TEST(DynamicNtk, HoldsForOneLengthOnlyBeyondIt) {
  Geometry at = head128;
  at.length = 4096;
  EXPECT_EQ(frequencies({.scaling = DynamicNtk{2, 2048}}, at).valid, (Lengths{4096, 4096}));
}

TEST(NtkByParts, EqualsLlama3WithItsFactors) {
  const auto parts =
      frequencies({.rope_theta = 5e5, .scaling = NtkByParts{8, 8192, 1, 4}}).frequency;
  const auto llama = frequencies({.rope_theta = 5e5, .scaling = Llama3{8, 1, 4, 8192}}).frequency;
  for (std::size_t r = 0; r < parts.size(); ++r) EXPECT_NEAR(parts[r] / llama[r], 1, 1e-14) << r;
}

TEST(NtkByParts, DiffersFromTheCodeOfYarnByUpToThreeTimes) {
  // The paper ramps by turns, the code by index: Llama-2 at s = 16.
  const auto paper = frequencies({.scaling = NtkByParts{16, 4096}}).frequency;
  const auto code =
      frequencies({.scaling = Yarn{.factor = 16, .original_max_position_embeddings = 4096}});
  double widest = 1;
  for (std::size_t r = 0; r < paper.size(); ++r)
    widest = std::max(widest, std::max(paper[r] / code.frequency[r], code.frequency[r] / paper[r]));
  EXPECT_NEAR(widest, 3.0, 0.1);
}

TEST(Yarn, LeavesFastPairsAloneAndDividesSlowOnes) {
  const auto plain = frequencies({}).frequency;
  const auto yarn =
      frequencies({.scaling = Yarn{.factor = 16, .original_max_position_embeddings = 4096}})
          .frequency;
  EXPECT_EQ(yarn.front(), plain.front());
  EXPECT_EQ(yarn.back(), plain.back() / 16);
}

TEST(Yarn, DynamicFactorFollowsTheLength) {
  Geometry at = head128;
  at.length = 16384;
  const auto dynamic =
      frequencies({.scaling = Yarn{.original_max_position_embeddings = 4096, .dynamic = true}}, at);
  const auto fixed =
      frequencies({.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 4096}});
  EXPECT_EQ(dynamic.frequency, fixed.frequency);
  EXPECT_EQ(dynamic.valid, (Lengths{16384, 16384}));
}

TEST(Yarn, ZeroBetasMeanTheirDefaults) {
  const Yarn plain{.factor = 4, .original_max_position_embeddings = 4096};
  Yarn zero = plain;
  zero.beta_fast = zero.beta_slow = 0;
  EXPECT_EQ(frequencies({.scaling = zero}).frequency, frequencies({.scaling = plain}).frequency);
}

TEST(Yarn, NeedsAFactorOrTheLengthsItFollowsFrom) {
  EXPECT_NE(error_of({.scaling = Yarn{.original_max_position_embeddings = 4096}}).find("factor"),
            std::string::npos);
}

TEST(Yarn, ScalesLogitsOnlyWhereAskedTo) {
  Yarn yarn{
      .factor = 40, .original_max_position_embeddings = 4096, .mscale = 1, .mscale_all_dim = 1};
  EXPECT_EQ(frequencies({.scaling = yarn}).logit_multiplier, 1);
  yarn.scale_logits = true;
  EXPECT_NEAR(frequencies({.scaling = yarn}).logit_multiplier, 1.8738542070926265, 1e-15);
}

TEST(LongRope, SwitchesStrictlyBeyondTheTrainedLength) {
  const std::vector<double> ones(64, 1.0), twos(64, 2.0);
  const Rope rope{.scaling = LongRope{ones, twos, 4096, 8192}};
  Geometry at = head128;
  at.length = 4096;
  EXPECT_EQ(frequencies(rope, at).frequency[0], 1.0);
  EXPECT_EQ(frequencies(rope, at).valid, (Lengths{0, 4096}));
  at.length = 4097;
  EXPECT_EQ(frequencies(rope, at).frequency[0], 0.5);
  EXPECT_EQ(frequencies(rope, at).valid->from, 4097);
}

TEST(LongRope, RefusesListsOfAnotherLength) {
  const std::vector<double> short_list(63, 1.0), long_list(64, 1.0);
  EXPECT_NE(error_of({.scaling = LongRope{short_list, long_list, 4096, 8192}}).find("64 pairs"),
            std::string::npos);
}

TEST(Llama3, EqualFactorsAreAStepWithoutNan) {
  for (const double f :
       frequencies({.rope_theta = 5e5, .scaling = Llama3{16, 1, 1, 8192}}).frequency)
    EXPECT_TRUE(std::isfinite(f));
}

TEST(Proportional, IsNotAPartialRotation) {
  const auto proportional = frequencies({.scaling = Proportional{0.25}}).frequency;
  const auto partial = frequencies({.partial_rotary_factor = 0.25}).frequency;
  EXPECT_EQ(proportional.size(), 64u);
  EXPECT_EQ(partial.size(), 16u);
  EXPECT_GT(proportional[15], partial[15] * 100);  // the exponent runs over the whole head
  EXPECT_EQ(proportional[16], 0.0);
}

// By the formula of the authors' modeling_cope.py, in Python: Llama 3's 64 pairs, of which they
// clip 20.
TEST(Clipped, FadesOutAsManyPairsAsItsAuthorsDo) {
  const Rope rope{.rope_theta = 5e5,
                  .scaling = Clipped{.original_max_position_embeddings = 8192, .clip_low_n = 20}};
  const auto clipped = frequencies(rope).frequency,
             plain = frequencies({.rope_theta = 5e5}).frequency;
  for (std::size_t r = 0; r <= 44; ++r) EXPECT_EQ(clipped[r], plain[r]) << r;
  EXPECT_NEAR(clipped[45] / 9.771021437254214e-05, 1, 1e-14);
  EXPECT_NEAR(clipped[53] / 1.032690558447331e-05, 1, 1e-14);
  EXPECT_NEAR(clipped[62] / 2.055254846212905e-08, 1, 1e-12);  // 1 + cos cancels
  EXPECT_EQ(clipped[63], 0);
}

// 10 of 32 are those that mlx-lm's pull request clips in Qwen 3.6.
TEST(Clipped, CountsThePairsOfLessThanOneTurn) {
  const Rope rope{.rope_theta = 1e7,
                  .scaling = Clipped{.original_max_position_embeddings = 262144}};
  const auto clipped = frequencies(rope, {.head_dim = 64}).frequency,
             plain = frequencies({.rope_theta = 1e7}, {.head_dim = 64}).frequency;
  for (std::size_t r = 0; r <= 22; ++r) EXPECT_EQ(clipped[r], plain[r]) << r;
  EXPECT_NEAR(clipped[23] / 9.025118604505097e-06, 1, 1e-14);
  EXPECT_NEAR(clipped[26] / 1.2050579525474324e-06, 1, 1e-14);
  EXPECT_EQ(clipped[31], 0);
}

TEST(Clipped, OnePairAloneStaysAndMoreThanThereAreAreAll) {
  const auto clipped = [](std::int64_t n) {
    return frequencies({.scaling = Clipped{.original_max_position_embeddings = 1, .clip_low_n = n}},
                       {.head_dim = 6})
        .frequency;
  };
  const auto plain = frequencies({}, {.head_dim = 6}).frequency;
  EXPECT_EQ(clipped(0), plain);
  EXPECT_EQ(clipped(1), plain);
  EXPECT_EQ(clipped(100), clipped(3));
  EXPECT_NEAR(clipped(3)[1] / plain[1], 0.5, 1e-15);
}

TEST(Explicit, TakesFrequenciesAsTheyStand) {
  const Rope rope{.scaling = Explicit{.frequencies = {1, 0, -0.5, 0.25}}};
  EXPECT_EQ(frequencies(rope, {.head_dim = 8}).frequency, (std::vector<double>{1, 0, -0.5, 0.25}));
}

TEST(Rope, OddProductOfAPartialRotation) {
  const auto plan =
      compile(Scheme{Rope{.partial_rotary_factor = 0.3}}, {.head_dim = 64});  // 19 channels
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rotate->slice.rotary_dim, 20);
  EXPECT_NEAR(plan->rotate->frequencies.radians[1], std::pow(10000, -2.0 / 19), 1e-15);
}

TEST(Rope, OddHeadDimIsRefusedWithACure) {
  EXPECT_EQ(error_of({}, {.head_dim = 63}),
            "rope: head_dim must be even, got 63; set rotary_dim or pad the head");
}

TEST(Rope, TrailingSliceStartsWhereTheUnrotatedChannelsEnd) {
  const auto plan =
      compile(Scheme{Rope{.rotary_dim = 64, .slice = SliceEnd::trailing}}, {.head_dim = 192});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rotate->slice.first_dim, 128);
}

TEST(Rope, FrequencyFactorsDivideBesideAScaling) {
  const std::vector<double> factors{1, 2, 4, 8};
  const auto with =
      frequencies({.frequency_factors = factors, .scaling = Linear{2}}, {.head_dim = 8});
  const auto without = frequencies({.scaling = Linear{2}}, {.head_dim = 8});
  for (std::size_t r = 0; r < 4; ++r)
    EXPECT_EQ(with.frequency[r], without.frequency[r] / factors[r]);
}

TEST(Mrope, SectionsMustSumToThePairs) {
  EXPECT_NE(error_of({.mrope_section = {16, 24, 20}}).find("sum to rotary_dim/2 = 64, got 60"),
            std::string::npos);
}

TEST(Mrope, SectionsTakeTheirAxesInOrder) {
  const auto plan = compile(Scheme{Rope{.mrope_section = {1, 2, 1}}}, {.head_dim = 8});
  ASSERT_TRUE(plan);
  const Rotate& rotate = *plan->rotate;
  for (std::int64_t r = 0; r < 4; ++r) {
    const std::int64_t axis = r == 0 ? 0 : r < 3 ? 1 : 2;
    for (std::int64_t a = 0; a < 3; ++a)
      EXPECT_EQ(rotate.at(0, a, r) != 0, a == axis) << r << ' ' << a;
  }
}

TEST(Mrope, InterleavedTailBelongsToTime) {
  // [24, 20, 20]: the last four of 64 pairs are time's, also 61 and 62, which ggml gives to a
  // fourth axis.
  const auto plan =
      compile(Scheme{Rope{.mrope_section = {24, 20, 20}, .mrope_interleaved = true}}, head128);
  ASSERT_TRUE(plan);
  for (const std::int64_t r : {60, 61, 62, 63}) EXPECT_NE(plan->rotate->at(0, 0, r), 0) << r;
  EXPECT_NE(plan->rotate->at(0, 1, 58), 0);
  EXPECT_NE(plan->rotate->at(0, 2, 59), 0);
}

TEST(Scalings, FloatArithmeticIsCloseToTheTruth) {
  const Rope rope{.rope_theta = 5e5, .scaling = Llama3{8, 1, 4, 8192}};
  const auto f64 = rope_frequencies<double>(rope, head128);
  const auto f32 = rope_frequencies<float>(rope, head128);
  ASSERT_TRUE(f64 && f32);
  for (std::size_t r = 0; r < 64; ++r)
    EXPECT_NEAR(static_cast<double>(f32->frequency[r]) / f64->frequency[r], 1, 1e-6) << r;
}

}  // namespace
}  // namespace posenc
