// Where public projects disagree: the choice made here, and why, one line each.
#include <numbers>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

Rope with(Scaling scaling) { return {.scaling = std::move(scaling)}; }

Scaled<double> scaled(const Rope& rope, std::int64_t head_dim, std::int64_t length = 0) {
  const auto result = rope_frequencies<double>(rope, {.head_dim = head_dim, .length = length});
  EXPECT_TRUE(result) << result.error().message();
  return result.value_or(Scaled<double>{});
}

Plan planned(const Scheme& scheme, const Geometry& geometry) {
  const auto plan = compile(scheme, geometry);
  EXPECT_TRUE(plan) << plan.error().message();
  return plan.value_or(Plan{});
}

const Yarn kYarn{.factor = 4, .original_max_position_embeddings = 4096};

// Absolute, as Hugging Face reads it: some engines multiply it onto the formula, some drop it.
TEST(Peers, YarnAttentionFactorReplacesTheFormula) {
  Yarn yarn = kYarn;
  yarn.attention_factor = 0.8;
  EXPECT_EQ(scaled(with(yarn), 64).amplitude, 0.8);
}

// Ignored without its partner, as Hugging Face does; MLX uses it.
TEST(Peers, YarnMscaleAloneIsIgnored) {
  Yarn yarn = kYarn;
  yarn.mscale = 2;
  EXPECT_EQ(scaled(with(yarn), 64).amplitude, scaled(with(kYarn), 64).amplitude);
}

// Not the logits' business: with a partial rotation only the turned channels grow.
TEST(Peers, YarnAmplitudeActsOnRotatedChannelsOnly) {
  Rope rope = with(kYarn);
  rope.partial_rotary_factor = 0.5;
  const Plan plan = planned(rope, {.head_dim = 8});
  std::vector<double> x(8, 1);
  const Tensor tensor = Tensor::dense(x.data(), {1, 1, 1, 8});
  ASSERT_TRUE(rotate(plan, tensor, Positions::range(0, 1), Side::query, tensor));
  const double a = 0.1 * std::log(4.0) + 1;
  expect_close(x, {a, a, a, a, 1, 1, 1, 1}, 1e-15);
}

// True unless the file says otherwise: the authors' code rounds; one port defaults to false.
TEST(Peers, YarnTruncatesUnlessTold) {
  Yarn rounded = kYarn, smooth = kYarn;
  rounded.truncate = true;
  smooth.truncate = false;
  EXPECT_EQ(scaled(with(kYarn), 64).frequency, scaled(with(rounded), 64).frequency);
  EXPECT_NE(scaled(with(kYarn), 64).frequency, scaled(with(smooth), 64).frequency);
}

// The ramp may end beyond the last pair, up to d − 1: one port ends it at d/2 − 1.
TEST(Peers, YarnRampEndsWithinTheChannelsNotThePairs) {
  const Yarn yarn{.factor = 4, .original_max_position_embeddings = 300000};
  const double f = std::pow(10000.0, -14.0 / 16);
  const double ramp = (7.0 - 6) / (10 - 6);  // ⌊6.35⌋ and ⌈9.36⌉
  EXPECT_NEAR(scaled(with(yarn), 16).frequency[7], f / 4 * ramp + f * (1 - ramp), 1e-18);
}

const DynamicNtk kDynamic{.factor = 2, .max_position_embeddings = 2048};

// Nothing changes up to M itself: one static base would change short texts too.
TEST(Peers, DynamicNtkIsUnchangedAtItsLimit) {
  EXPECT_EQ(scaled(with(kDynamic), 64, 2048).frequency, scaled(Rope{}, 64).frequency);
}

// Each length has its own frequencies, and the plan says so: a static base is another scaling.
TEST(Peers, DynamicNtkHoldsForOneLengthBeyondItsLimit) {
  const auto beyond = scaled(with(kDynamic), 64, 4096);
  EXPECT_NE(beyond.frequency, scaled(with(kDynamic), 64, 4097).frequency);
  EXPECT_EQ(beyond.valid, (Lengths{4096, 4096}));
}

// The base grows, not each frequency: the fastest pair is left alone, the slowest divided in full.
TEST(Peers, DynamicNtkLeavesTheFastestPairAlone) {
  const auto beyond = scaled(with(kDynamic), 64, 4096), base = scaled(Rope{}, 64);
  EXPECT_EQ(beyond.frequency.front(), 1);
  EXPECT_NEAR(base.frequency.back() / beyond.frequency.back(), 2 * 4096.0 / 2048 - 1, 1e-12);
}

const LongRope kLongRope{.short_factor = {1, 2},
                         .long_factor = {4, 8},
                         .original_max_position_embeddings = 4096,
                         .factor = 32};

// Strictly beyond L, by the text's own length: engines that look at the allocation switch too
// early.
TEST(Peers, LongRopeSwitchesBeyondTheTrainedLength) {
  EXPECT_EQ(scaled(with(kLongRope), 4, 4096).frequency[0], 1);
  EXPECT_EQ(scaled(with(kLongRope), 4, 4097).frequency[0], 0.25);
}

// The plan names the side it holds for: keys cached before the switch are stale after it.
TEST(Peers, LongRopePlanHoldsOnOneSideOfTheSwitch) {
  EXPECT_EQ(scaled(with(kLongRope), 4, 4096).valid, (Lengths{.from = 0, .to = 4096}));
  EXPECT_EQ(scaled(with(kLongRope), 4, 4097).valid, (Lengths{.from = 4097}));
}

// The same factor on both sides of the switch, as Hugging Face has it.
TEST(Peers, LongRopeAmplitudeIsTheSameOnBothSides) {
  const double want = std::sqrt(1 + std::log(32.0) / std::log(4096.0));
  EXPECT_NEAR(scaled(with(kLongRope), 4, 4096).amplitude, want, 1e-15);
  EXPECT_NEAR(scaled(with(kLongRope), 4, 4097).amplitude, want, 1e-15);
}

// With one pair f = 1, so a trained length L makes L/2π turns.
double llama3_of_one_pair(std::int64_t trained, double low, double high) {
  const Llama3 llama3{.factor = 8,
                      .low_freq_factor = low,
                      .high_freq_factor = high,
                      .original_max_position_embeddings = trained};
  return scaled(with(llama3), 2).frequency[0];
}

// Linear in turns, as Meta's code; early ports were linear in wavelength.
TEST(Peers, Llama3BlendsLinearlyInTurns) {
  const double t = (13 / (2 * std::numbers::pi) - 1) / (4 - 1);
  EXPECT_NEAR(llama3_of_one_pair(13, 1, 4), (1 - t) / 8 + t, 1e-15);
}

// Both boundaries belong to the blend, which meets its neighbours there.
TEST(Peers, Llama3BlendMeetsItsNeighbours) {
  const double turns = 13 / (2 * std::numbers::pi);
  EXPECT_NEAR(llama3_of_one_pair(13, turns, 4), 1.0 / 8, 1e-15);
  EXPECT_NEAR(llama3_of_one_pair(13, 1, turns), 1, 1e-15);
}

// Below and above the band nothing is blended.
TEST(Peers, Llama3OutsideTheBand) {
  EXPECT_EQ(llama3_of_one_pair(6, 1, 4), 1.0 / 8);
  EXPECT_EQ(llama3_of_one_pair(26, 1, 4), 1);
}

// A typed layout: both are the same rotation of permuted channels, and a bare flag hides which.
TEST(Peers, PairingsDifferByAPermutation) {
  std::vector<double> halves = {1, 2, 3, 4}, interleaved = {1, 3, 2, 4};
  for (auto* x : {&halves, &interleaved}) {
    const Rope rope{.pairing = x == &halves ? Pairing::halves : Pairing::interleaved};
    const Tensor tensor = Tensor::dense(x->data(), {1, 1, 1, 4});
    ASSERT_TRUE(rotate(planned(rope, {.head_dim = 4}), tensor, Positions::range(7, 1), Side::query,
                       tensor));
  }
  EXPECT_EQ(halves, (std::vector{interleaved[0], interleaved[2], interleaved[1], interleaved[3]}));
}

// Time, as Qwen3-VL's own code: ggml gives these two pairs to a stream that is zero for text.
TEST(Peers, InterleavedMropeGivesItsTailToTime) {
  const Rope rope{.mrope_section = {24, 20, 20}, .mrope_interleaved = true};
  const Plan plan = planned(rope, {.head_dim = 128});
  ASSERT_TRUE(plan.rotate);
  for (const std::int64_t pair : {61, 62}) {
    EXPECT_GT(plan.rotate->at(0, 0, pair), 0) << "pair " << pair;
    EXPECT_EQ(plan.rotate->at(0, 1, pair), 0) << "pair " << pair;
    EXPECT_EQ(plan.rotate->at(0, 2, pair), 0) << "pair " << pair;
  }
}

// The authors' order, as ggml and MPT: powers for eight heads, then every other slope of sixteen.
TEST(Peers, AlibiSlopesOfTwelveHeads) {
  const auto slopes = alibi_slopes(12);
  ASSERT_TRUE(slopes);
  std::vector<double> want;
  for (int h = 1; h <= 8; ++h) want.push_back(std::exp2(-h));
  for (int h = 1; h <= 7; h += 2) want.push_back(std::exp2(-h / 2.0));
  expect_relative(*slopes, want, 1e-15);
}

// −slope·distance and nothing else: others store slope·key, equal up to a constant in each row.
TEST(Peers, AlibiIsZeroAtTheQuerysOwnPosition) {
  const Plan plan = planned(Alibi{}, {.heads = 2});
  std::vector<double> out(2 * 3 * 3);
  ASSERT_TRUE(bias(plan, Positions::range(5, 3), Positions::range(5, 3),
                   Tensor::dense(out.data(), {2, 3, 3})));
  for (const std::size_t i : {0u, 4u, 8u, 9u, 13u, 17u}) EXPECT_EQ(out[i], 0) << i;
}

// The file's number, not 128 for everyone.
TEST(Peers, T5MaxDistanceIsHonoured) {
  EXPECT_EQ(t5_bucket(-200, 32, 128, false), 31);
  EXPECT_LT(t5_bucket(-200, 32, 1024, false).value_or(31), 31);
}

// As the authors' code: a causal decoder never asks, a prefix model does.
TEST(Peers, T5CausalPutsTheFutureIntoBucketZero) {
  EXPECT_EQ(t5_bucket(1, 32, 128, false), 0);
  EXPECT_EQ(t5_bucket(500, 32, 128, false), 0);
}

// 2k + 1 rows of k − q clipped to ±k, as the authors' code: row 0 is the far past.
TEST(Peers, ShawRowsRunFromTheFarPastToTheFarFuture) {
  const Plan plan = planned(Shaw{.max_distance = 3}, {.head_dim = 4});
  ASSERT_TRUE(plan.relative);
  EXPECT_EQ(plan.relative->row_count, 7);
  EXPECT_EQ(plan.relative->rows.at(100), 0);
  EXPECT_EQ(plan.relative->rows.at(0), 3);
  EXPECT_EQ(plan.relative->rows.at(-100), 6);
}

// A fixed centre keeps cached keys right: centring at half the length rescales them as it grows.
TEST(Peers, XposGrowthDoesNotDependOnTheLengthOnceCentred) {
  const XPos xpos{.centre = 100};
  EXPECT_EQ(planned(xpos, {.head_dim = 8, .length = 512}),
            planned(xpos, {.head_dim = 8, .length = 1 << 20}));
}

}  // namespace
}  // namespace posenc::golden
