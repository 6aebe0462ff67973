#include "src/core/saturating.h"

#include <gtest/gtest.h>

namespace posenc::detail {
namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

TEST(Saturating, ProductsThatFitAreExact) {
  EXPECT_EQ(product(3, 5), 15);
  EXPECT_EQ(product(saturated, 1), saturated);
  EXPECT_EQ(product(std::int64_t{1} << 31, std::int64_t{1} << 31), std::int64_t{1} << 62);
}

TEST(Saturating, ProductsThatDoNotFitAreTheLargest) {
  EXPECT_EQ(product(std::int64_t{1} << 32, std::int64_t{1} << 31), saturated);
  EXPECT_EQ(product(2, saturated), saturated);
  EXPECT_EQ(product(saturated, saturated), saturated);
}

TEST(Saturating, NothingAndLessThanNothingGiveNothing) {
  EXPECT_EQ(product(0, saturated), 0);
  EXPECT_EQ(product(saturated, 0), 0);
  EXPECT_EQ(product(8, least), 0);
  EXPECT_EQ(product(least, -1), 0);
}

TEST(Saturating, SumsEndAtTheLargest) {
  EXPECT_EQ(sum(3, 5), 8);
  EXPECT_EQ(sum(saturated, 0), saturated);
  EXPECT_EQ(sum(saturated, 1), saturated);
}

}  // namespace
}  // namespace posenc::detail
