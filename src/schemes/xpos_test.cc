#include <gtest/gtest.h>

#include <cmath>

#include "posenc/schemes.h"

namespace posenc {
namespace {

Rotate rotate_of(const XPos& scheme, const Geometry& geometry = {.head_dim = 64}) {
  const auto plan = scheme.compiled(geometry);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  return plan ? *plan->rotate : Rotate{};
}

TEST(XPosScheme, TurnsAsRope) {
  const auto rope = Rope{}.compiled({.head_dim = 64});
  ASSERT_TRUE(rope);
  EXPECT_EQ(rotate_of({}).frequencies.radians, rope->rotate->frequencies.radians);
}

TEST(XPosScheme, GrowthRisesFromTwoSeventhsTowardsOne) {
  const Rotate rotate = rotate_of({});
  ASSERT_EQ(rotate.growth()->factor.size(), 32u);
  EXPECT_DOUBLE_EQ(rotate.growth()->factor[0], 0.4 / 1.4);
  for (int r = 0; r < 32; ++r) {  // torchscale: (2r + 0.4 d)/(1.4 d)
    EXPECT_DOUBLE_EQ(rotate.growth()->factor[static_cast<std::size_t>(r)], (2 * r + 25.6) / 89.6);
  }
  EXPECT_EQ(rotate.growth()->scale, 512);
}

TEST(XPosScheme, HalfPrecisionKeysOverflowNear4532) {
  const double slowest = rotate_of({}).growth()->factor[0];
  EXPECT_LT(std::pow(slowest, -4531 / 512.0), 65504);
  EXPECT_GT(std::pow(slowest, -4533 / 512.0), 65504);
}

TEST(XPosScheme, CentreIsTheMiddleOfTheLengthUnlessGiven) {
  EXPECT_EQ(rotate_of({}, {.head_dim = 64, .length = 1025}).growth()->centre, 512);
  EXPECT_EQ(rotate_of({.centre = 7}, {.head_dim = 64, .length = 1025}).growth()->centre, 7);
  EXPECT_EQ(rotate_of({}).growth()->centre, 0);
}

TEST(XPosScheme, NeedsAnEvenHead) {
  EXPECT_EQ(XPos{}.compiled({}).error().message(),
            "xpos: head_dim must be known, got 0; set --head-dim");
  EXPECT_EQ(XPos{}.compiled({.head_dim = 63}).error().message(),
            "xpos: head_dim must be even, got 63; pad the head");
}

}  // namespace
}  // namespace posenc
