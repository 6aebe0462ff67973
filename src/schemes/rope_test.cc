// What Rope's fields make of its plan; frequencies are tested with the scalings.
#include <gtest/gtest.h>

#include "posenc/schemes.h"

namespace posenc {
namespace {

constexpr Geometry of_four{.heads = 4, .kv_heads = 4, .head_dim = 8};

TEST(RopeScheme, FirstHeadsAloneMayRotate) {
  const auto plan = Rope{.rotated_heads = 2}.compiled(of_four), all = Rope{}.compiled(of_four);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->rotate->frequencies.heads, 4);
  for (std::int64_t h = 0; h < 4; ++h)
    for (std::int64_t r = 0; r < 4; ++r)
      EXPECT_EQ(plan->rotate->at(h, 0, r), h < 2 ? all->rotate->at(0, 0, r) : 0) << h << " " << r;
}

TEST(RopeScheme, AllHeadsThatRotateShareTheirFrequencies) {
  EXPECT_EQ(Rope{.rotated_heads = 4}.compiled(of_four), Rope{}.compiled(of_four));
}

TEST(RopeScheme, HeadsThatShareAKeyCannotRotateUnlike) {
  EXPECT_EQ(
      Rope{.rotated_heads = 1}
          .compiled({.heads = 4, .kv_heads = 2, .head_dim = 8})
          .error()
          .message(),
      "rope: rotated_heads: kv_heads must equal heads, 4, got 2; a key rotates as its query does");
}

TEST(RopeScheme, MoreHeadsThanThereAreCannotRotate) {
  EXPECT_EQ(Rope{.rotated_heads = 5}.compiled(of_four).error().rule,
            "must lie within 1 and 4 heads");
}

TEST(RopeScheme, ValuesStayOnlyWhereTheyRotate) {
  EXPECT_FALSE(compile(Rope{.values_stay = true}, of_four));
  EXPECT_TRUE(compile(Rope{.rotate_values = true, .values_stay = true}, of_four));
}

}  // namespace
}  // namespace posenc
