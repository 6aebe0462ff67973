#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>

#include "posenc/schemes.h"

namespace posenc {
namespace {

constexpr std::int64_t y_axis = 0, x_axis = 1;  // positions are [h, w]
constexpr Geometry small{.heads = 4, .head_dim = 16};

Rotate mixed_rotate(const Mixed& scheme, const Geometry& geometry = small) {
  const auto plan = scheme.compiled(geometry);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  return plan ? *plan->rotate : Rotate{};
}

TEST(MixedScheme, HeadZeroStartsAsAxialWithTheColumnFirst) {
  const Rotate mixed = mixed_rotate({});
  const auto axial = Axial{.rope_theta = 10}.compiled(small);
  ASSERT_TRUE(axial);
  for (std::int64_t r = 0; r < 8; ++r) {
    EXPECT_NEAR(mixed.at(0, x_axis, r), axial->rotate->at(0, x_axis, r), 1e-15);
    EXPECT_NEAR(mixed.at(0, y_axis, r), axial->rotate->at(0, y_axis, r), 1e-15);
  }
}

TEST(MixedScheme, HeadsLookInDirectionsSpreadEvenly) {
  const Rotate rotate = mixed_rotate({});
  for (std::int64_t h = 0; h < 4; ++h) {
    const double phi = std::numbers::pi / 2 * static_cast<double>(h);
    EXPECT_NEAR(rotate.at(h, x_axis, 0), std::cos(phi), 1e-15);
    EXPECT_NEAR(rotate.at(h, y_axis, 0), std::sin(phi), 1e-15);
  }
}

TEST(MixedScheme, SecondHalfLooksAQuarterTurnFurther) {
  const Rotate rotate = mixed_rotate({.angles = {0.3, 0.3, 0.3, 0.3}});
  for (std::int64_t r = 0; r < 4; ++r) {
    const double magnitude = std::pow(10.0, -4.0 * static_cast<double>(r) / 16);
    EXPECT_NEAR(rotate.at(2, x_axis, 4 + r), magnitude * std::cos(0.3 + std::numbers::pi / 2),
                1e-15);
    EXPECT_NEAR(rotate.at(2, y_axis, 4 + r), magnitude * std::sin(0.3 + std::numbers::pi / 2),
                1e-15);
  }
}

TEST(MixedScheme, LearnedFrequenciesComeXFirst) {
  Mixed scheme;
  scheme.frequencies.resize(8);  // [2 heads][x, y][2 pairs]
  std::iota(scheme.frequencies.begin(), scheme.frequencies.end(), 0.0);
  const Rotate rotate = mixed_rotate(scheme, {.heads = 2, .head_dim = 4});
  EXPECT_EQ(rotate.at(0, x_axis, 1), 1);
  EXPECT_EQ(rotate.at(0, y_axis, 0), 2);
  EXPECT_EQ(rotate.at(1, x_axis, 0), 4);
  EXPECT_EQ(rotate.at(1, y_axis, 1), 7);
}

TEST(MixedScheme, RefusesListsOfAnotherLength) {
  EXPECT_EQ(
      (Mixed{.angles = {1, 2}}).compiled(small).error().message(),
      "mixed: angles must have one entry for each of 4 heads, got 2; leave them out to spread the "
      "heads evenly");
  EXPECT_EQ((Mixed{.frequencies = {1, 2}}).compiled(small).error().rule,
            "frequencies must have heads·2·pairs = 64 entries");
}

TEST(MixedScheme, RefusesKeysSharedByQueries) {
  EXPECT_FALSE((Mixed{}.compiled({.heads = 4, .kv_heads = 2, .head_dim = 16})));
  EXPECT_TRUE((Mixed{}.compiled({.heads = 4, .kv_heads = 4, .head_dim = 16})));
}

TEST(MixedScheme, NeedsHeadsAndWholePairs) {
  EXPECT_EQ(Mixed{}.compiled({.head_dim = 16}).error().rule, "heads must be known");
  EXPECT_EQ(Mixed{}.compiled({.heads = 4, .head_dim = 18}).error().rule,
            "head_dim must be divisible by 4");
}

TEST(MixedScheme, RefusesAnAbsurdTable) {
  EXPECT_FALSE((Mixed{}.compiled({.heads = INT64_MAX / 4, .head_dim = 16})));
}

}  // namespace
}  // namespace posenc
