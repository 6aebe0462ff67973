// Dumps of engines whose convention is known, and of engines that are wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "src/identify/shown_test.h"

namespace posenc {
namespace {

TEST(Identify, NamesPairingSliceAndBase) {
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
    const Identified found =
        Shown{}.fill(1).rotate_by({.rope_theta = 500000, .pairing = pairing}).identified();
    EXPECT_EQ(found.verdict, Rotated::rotation);
    EXPECT_EQ(found.pairing, pairing);
    EXPECT_EQ(found.first_dim, 0);
    EXPECT_EQ(found.rotary_dim, 64);
    EXPECT_EQ(base_of(found), 500000);
    EXPECT_EQ(found.amplitude, 1);
    EXPECT_EQ(found.offset, 0);
  }
}

TEST(Identify, OneHeadIsEnough) {
  const Identified found = Shown{.heads = 1}.fill(2).rotate_by({.rope_theta = 10000}).identified();
  EXPECT_EQ(found.pairing, Pairing::halves);
  EXPECT_EQ(base_of(found), 10000);
}

TEST(Identify, KeysOfARepeatedTokenAreEnough) {
  const Identified found = Shown{}
                               .fill(3, true)
                               .rotate_by({.rope_theta = 1e6, .pairing = Pairing::interleaved})
                               .from_repeated();
  EXPECT_EQ(found.pairing, Pairing::interleaved);
  EXPECT_EQ(base_of(found), 1e6);
  EXPECT_FALSE(found.amplitude);
}

TEST(Identify, SixteenBitsAreEnough) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Identified found =
        Shown{.dtype = dtype, .tokens = 512}.fill(4).rotate_by({.rope_theta = 10000}).identified();
    EXPECT_EQ(found.rotary_dim, 64) << name(dtype);
    EXPECT_EQ(base_of(found), 10000) << name(dtype);
  }
}

TEST(Identify, AnglesInFloat16FarFromPosition0) {
  const Identified found =
      Shown{.tokens = 64, .dim = 128}.fill(4).rotate_in_float16(1e6, 1500).identified(1500);
  EXPECT_EQ(base_of(found), 1e6);
  EXPECT_EQ(found.offset, 0);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings.front().code, "angles_rounded");
  EXPECT_EQ(found.findings.front().found, "float16");
}

TEST(Identify, TellsScalingsApart) {
  const Llama3 llama3{.factor = 8, .original_max_position_embeddings = 8192};
  const Yarn yarn{.factor = 4, .original_max_position_embeddings = 32768};
  for (const Scaling& scaling : {Scaling(llama3), Scaling(yarn), Scaling(Linear{.factor = 4})}) {
    const Identified found = Shown{.tokens = 512, .dim = 128}
                                 .fill(5)
                                 .rotate_by({.rope_theta = 500000, .scaling = scaling})
                                 .identified();
    EXPECT_EQ(scaling_of(found), info(scaling).name);
    EXPECT_EQ(base_of(found), 500000) << info(scaling).name;
    ASSERT_TRUE(found.runner_up);
    EXPECT_GT(found.runner_up->misfit, 100) << info(scaling).name;
  }
}

TEST(Identify, NamesTrainedLengthAndFactor) {
  const Llama3 llama3{.factor = 8, .original_max_position_embeddings = 8192};
  const Identified found = Shown{.tokens = 512, .dim = 128}
                               .fill(6)
                               .rotate_by({.rope_theta = 500000, .scaling = llama3})
                               .identified();
  ASSERT_TRUE(found.frequencies);
  EXPECT_EQ(found.frequencies->scaling, Scaling(llama3));
}

TEST(Identify, YarnsFactorIsAnAmplitude) {
  const Yarn yarn{.factor = 4, .original_max_position_embeddings = 4096};
  const Identified found = Shown{}.fill(7).rotate_by({.scaling = yarn}).identified();
  ASSERT_TRUE(found.amplitude);
  EXPECT_NEAR(*found.amplitude, 0.1 * std::log(4.0) + 1, 1e-6);
}

TEST(Identify, PositionsThatBeginElsewhereAreAnOffset) {
  EXPECT_EQ(Shown{}.fill(8).rotate_by({}, 1).identified().offset, 1);
  EXPECT_EQ(Shown{}.fill(8).rotate_by({}, 17).identified().offset, 17);
}

TEST(Identify, BackwardsIsASign) {
  Shown shown{};
  shown.fill(9);
  const auto plan = compile(Scheme(Rope{}), {.head_dim = 64});
  ASSERT_TRUE(
      rotate_inverse(*plan, shown.before, Positions::range(0, 128), Side::key, shown.after));
  EXPECT_EQ(shown.identified().sign, -1);
}

TEST(Identify, PartOfAHead) {
  const Identified found =
      Shown{}
          .fill(10)
          .rotate_by({.pairing = Pairing::interleaved, .partial_rotary_factor = 0.5})
          .identified();
  EXPECT_EQ(found.rotary_dim, 32);
  EXPECT_EQ(base_of(found), 10000);
}

TEST(Identify, SliceAtTheEndOfAHead) {
  const Identified found = Shown{.dim = 192}
                               .fill(11)
                               .rotate_by({.rotary_dim = 64, .slice = SliceEnd::trailing})
                               .identified();
  EXPECT_EQ(found.first_dim, 128);
  EXPECT_EQ(found.rotary_dim, 64);
}

TEST(Identify, UnchangedIsNoRotation) {
  Shown shown{};
  shown.fill(12);
  shown.after_memory = shown.before_memory;
  EXPECT_EQ(shown.identified().verdict, Rotated::no_rotation);
}

// cos and sin laid out for neighbours, applied to halves: seen in several programs.
TEST(Identify, TableOfTheOtherPairingIsNoRotation) {
  Shown shown{};
  shown.fill(13);
  for (std::int64_t h = 0; h < shown.heads; ++h)
    for (std::int64_t t = 0; t < shown.tokens; ++t)
      for (std::int64_t c = 0; c < shown.dim; ++c) {
        const double angle =
            static_cast<double>(t) * std::pow(1e4, -static_cast<double>(c / 2 * 2) / 64);
        const std::int64_t half = shown.dim / 2;
        const double x = shown.before.get(shown.before.offset(h, t, c));
        const double other = c < half ? -shown.before.get(shown.before.offset(h, t, c + half))
                                      : shown.before.get(shown.before.offset(h, t, c - half));
        shown.after.set(shown.after.offset(h, t, c), x * std::cos(angle) + other * std::sin(angle));
      }
  EXPECT_EQ(shown.identified().verdict, Rotated::not_a_rotation);
}

TEST(Identify, PositionZeroTellsNothing) {
  Shown shown{.tokens = 2};
  shown.fill(15);
  const std::int64_t zeros[] = {0, 0};
  const auto found = identify(
      {.after = shown.before, .before = shown.before, .positions = *Positions::ids(zeros)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->verdict, Rotated::cannot_tell);
  EXPECT_FALSE(found->cannot_tell.empty());
}

TEST(Identify, TokensFarApartLeaveTheFrequenciesOpen) {
  Shown shown{.tokens = 8};
  shown.fill(16);
  const std::int64_t far[] = {0, 10, 20, 30, 40, 50, 60, 70};
  const auto plan = compile(Scheme(Rope{}), {.head_dim = 64});
  ASSERT_TRUE(rotate(*plan, shown.before, *Positions::ids(far), Side::key, shown.after));
  const auto found =
      identify({.after = shown.after, .before = shown.before, .positions = *Positions::ids(far)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pairing, Pairing::halves);
  EXPECT_FALSE(found->frequencies);
}

TEST(Identify, WithoutBeforeTokensMustRepeat) {
  Shown shown{};
  shown.fill(17);
  const auto found = identify({.after = shown.before, .positions = Positions::range(0, 128)});
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().cure.contains("--repeated"));
}

TEST(Identify, NumbersMustBeFinite) {
  Shown shown{};
  shown.fill(18);
  shown.before.set(7, NAN);
  EXPECT_FALSE(identify(
      {.after = shown.before, .before = shown.before, .positions = Positions::range(0, 128)}));
}

TEST(Identify, APositionForEachToken) {
  Shown shown{};
  shown.fill(19);
  EXPECT_FALSE(identify(
      {.after = shown.before, .before = shown.before, .positions = Positions::range(0, 5)}));
}

}  // namespace
}  // namespace posenc
