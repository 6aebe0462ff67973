#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "posenc/schemes.h"

namespace posenc {
namespace {

Relative relative_of(const Shaw& scheme, const Geometry& geometry = {}) {
  const auto plan = scheme.compiled(geometry);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  return plan ? *plan->relative : Relative{};
}

TEST(ShawScheme, RowZeroHoldsTheFarPast) {
  const Relative relative = relative_of({.max_distance = 2});
  EXPECT_EQ(relative.rows.first, -2);
  EXPECT_EQ(relative.rows.row, (std::vector<std::int32_t>{4, 3, 2, 1, 0}));  // of i − j = −2 .. 2
  EXPECT_EQ(relative.row_count, 5);
}

TEST(ShawScheme, BertCountsTheOtherWay) {
  const Relative relative =
      relative_of({.max_distance = 2, .row_order = RowOrder::query_minus_key});
  EXPECT_EQ(relative.rows.row, (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
}

TEST(ShawScheme, ClipsDistances) {
  const Relative relative = relative_of({.max_distance = 2});
  EXPECT_EQ(*relative.rows.at(1000), 0);
  EXPECT_EQ(*relative.rows.at(-1000), 4);
}

TEST(ShawScheme, VectorsMayEndInsteadOfBeingClipped) {
  const Relative relative = relative_of({.max_distance = 2, .max_ahead = 1, .zero_beyond = true});
  EXPECT_EQ(relative.row_count, 4);
  for (const std::int64_t beyond : {-1000, -2, 3, 1000})
    EXPECT_EQ(*relative.rows.at(beyond), no_row);
  for (std::int64_t distance = -1; distance <= 2; ++distance)
    EXPECT_EQ(*relative.rows.at(distance), 2 - distance);
}

TEST(ShawScheme, DistanceZeroAloneIsOneRow) {
  EXPECT_EQ(relative_of({.max_distance = 0}).rows.row, std::vector<std::int32_t>{0});
}

TEST(ShawScheme, SaysWhichProductsItHas) {
  const Relative shaw = relative_of({}),
                 bert = relative_of({.use_values = false, .use_keys = true});
  EXPECT_TRUE(shaw.uses_key && shaw.uses_value && !shaw.uses_query);
  EXPECT_TRUE(bert.uses_key && !bert.uses_value && bert.uses_query);
}

TEST(ShawScheme, OneTableServesBothProductsWhereOnlyOneIsGiven) {
  std::array<float, 12> numbers{};
  Shaw scheme{.max_distance = 1, .use_keys = true};
  scheme.key = Table::borrow(Tensor::dense(numbers.data(), {3, 4}));
  EXPECT_EQ(relative_of(scheme).query, scheme.key);
}

TEST(ShawScheme, RefusesATableOfAnotherShape) {
  std::array<float, 12> numbers{};
  Shaw scheme{.max_distance = 1};
  scheme.value = Table::borrow(Tensor::dense(numbers.data(), {3, 4}));
  EXPECT_EQ(
      scheme.compiled({.head_dim = 8}).error().message(),
      "shaw: value table: must have shape [3, 8], got [3, 4]; check the rows and the geometry");
}

TEST(ShawScheme, RefusesAnAbsurdDistance) {
  EXPECT_FALSE((Shaw{.max_distance = INT64_MAX}.compiled({})));
  EXPECT_FALSE((Shaw{.max_distance = -1}.compiled({})));
}

}  // namespace
}  // namespace posenc
