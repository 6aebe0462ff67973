#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

#include "posenc/schemes.h"

namespace posenc {
namespace {

Rotate rotate_of(const Scheme& scheme, const Geometry& geometry) {
  const auto plan = compile(scheme, geometry);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  return plan ? *plan->rotate : Rotate{};
}
std::string refused(const Scheme& scheme, const Geometry& geometry) {
  const auto plan = compile(scheme, geometry);
  return plan ? "" : plan.error().message();
}

TEST(PopeScheme, EveryChannelHasAFrequencyOfItsOwn) {
  const Rotate rotate = rotate_of(Pope{.rope_theta = 100}, {.head_dim = 5});
  ASSERT_EQ(rotate.pairs(), 5);
  EXPECT_EQ(rotate.widening(), 5);
  for (std::int64_t c = 0; c < 5; ++c)
    EXPECT_DOUBLE_EQ(rotate.at(0, 0, c), std::pow(100, -static_cast<double>(c) / 5));
}

TEST(PopeScheme, PhasesOfTheKeysAreClampedToATurn) {
  const Rotate rotate = rotate_of(Pope{.phases = {-7, -1, 0.5, -3, 0, -6}},
                                  {.heads = 4, .kv_heads = 3, .head_dim = 2});
  ASSERT_TRUE(rotate.phase());
  EXPECT_TRUE(rotate.phase()->side == Side::key);
  EXPECT_EQ(rotate.phase()->heads, 3);
  EXPECT_EQ(rotate.phase()->radians,
            (std::vector<double>{-2 * std::numbers::pi, -1, 0, -3, 0, -6}));
}

TEST(PopeScheme, OnePhaseAChannelServesAllHeads) {
  EXPECT_EQ(rotate_of(Pope{.phases = {-1, -2}}, {.heads = 4, .head_dim = 2}).phase()->heads, 1);
}

TEST(PopeScheme, RefusesWhatDoesNotFit) {
  EXPECT_NE(refused(Pope{.rotary_dim = 9}, {.head_dim = 8}).find("within head_dim 8"),
            std::string::npos);
  EXPECT_NE(refused(Pope{.phases = {1, 2, 3}}, {.heads = 2, .head_dim = 2}).find("got 3 numbers"),
            std::string::npos);
  const auto engine = compile(Pope{}, {.head_dim = 8}, Angles::hf_float);
  EXPECT_FALSE(engine);
}

TEST(ImaginaryHeads, AreAQuarterBehind) {
  const double quarter = -std::numbers::pi / 2;
  const Geometry four{.heads = 4, .head_dim = 2};
  const auto phases = [&](ImaginaryHeads which) {
    return rotate_of(Rope{.imaginary_heads = which}, four).phase()->radians;
  };
  EXPECT_EQ(phases(ImaginaryHeads::alternating), (std::vector<double>{0, quarter, 0, quarter}));
  EXPECT_EQ(phases(ImaginaryHeads::second_half), (std::vector<double>{0, 0, quarter, quarter}));
  EXPECT_EQ(phases(ImaginaryHeads::all), (std::vector<double>{quarter}));
  EXPECT_FALSE(rotate_of(Rope{}, four).phase());
}

TEST(ImaginaryHeads, AreHalfOfAnEvenNumber) {
  const Rope half{.imaginary_heads = ImaginaryHeads::second_half};
  EXPECT_NE(refused(half, {.heads = 3, .head_dim = 2}).find("3 heads"), std::string::npos);
  EXPECT_NE(refused(half, {.head_dim = 2}).find("heads"), std::string::npos);
}

}  // namespace
}  // namespace posenc
