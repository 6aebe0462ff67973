// T5's buckets on several axes: which rows of the one table a distance has.
#include <gtest/gtest.h>

#include <vector>

#include "posenc/schemes.h"

namespace posenc {
namespace {
namespace axis_buckets {

const BiasTable& bias_of(const Plan& plan) { return std::get<BiasTable>(*plan.bias); }

TEST(AxisBuckets, AreT5sOnEachAxis) {
  const Plan plan = *compile(AxisBuckets{}, {.heads = 1, .head_dim = 64});
  const BiasTable& bias = bias_of(plan);
  ASSERT_EQ(bias.axes(), 3);
  EXPECT_EQ(bias.row_count, 32 + 2 * 64);
  for (std::int64_t distance = -1000; distance <= 1000; ++distance) {
    EXPECT_EQ(*bias.of_axis(0).at(distance), *t5_bucket(-distance, 32, 128, true));
    EXPECT_EQ(*bias.of_axis(1).at(distance), 32 + *t5_bucket(-distance, 64, 256, true));
    EXPECT_EQ(*bias.of_axis(2).at(distance), 96 + *t5_bucket(-distance, 64, 256, true));
  }
}

TEST(AxisBuckets, CutUnitsTowardsZero) {
  const Plan plan = *compile(
      AxisBuckets{.axes = 1, .axis_num_buckets = 32, .axis_max_distance = 100, .axis_unit = 20},
      {.heads = 1, .head_dim = 64});
  for (std::int64_t distance = -2500; distance <= 2500; ++distance)
    EXPECT_EQ(*bias_of(plan).of_axis(1).at(distance),
              32 + *t5_bucket(-distance / 20, 32, 100, true));
}

TEST(AxisBuckets, OfTheTextAloneAreT5sDividedByTheRoot) {
  std::vector<double> numbers;
  for (int n = 0; n < 64; ++n) numbers.push_back(n);
  const Table table = Table::borrow(Tensor::dense(numbers.data(), {32, 2}));
  const Plan plan = *compile(AxisBuckets{.axes = 0, .table = table}, {.heads = 2, .head_dim = 16}),
             t5 = *compile(T5{.bidirectional = true, .table = table}, {.heads = 2});
  EXPECT_EQ(bias_of(plan).rows, bias_of(t5).rows);
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t row = 0; row < 32; ++row) {
      const Tensor &mine = bias_of(plan).values.values, &whole = bias_of(t5).values.values;
      EXPECT_EQ(mine.get(mine.offset(head, row)), whole.get(whole.offset(head, row)) / 4);
    }
  }
}

TEST(AxisBuckets, NeedTablesOfTheirRows) {
  std::vector<double> numbers(64);
  AxisBuckets scheme{.table = Table::borrow(Tensor::dense(numbers.data(), {32, 2}))};
  EXPECT_FALSE(bias_of(*compile(scheme, {.heads = 2, .head_dim = 4})).values);  // not all given
  scheme.axis_tables = Table::borrow(Tensor::dense(numbers.data(), {1, 32, 2}));
  const auto refused = compile(scheme, {.heads = 2, .head_dim = 4});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("axis_tables"), std::string::npos);
  EXPECT_FALSE(compile(AxisBuckets{}, {.heads = 2}));  // √head_dim
  EXPECT_TRUE(compile(AxisBuckets{.divided = false}, {.heads = 2}));
  EXPECT_FALSE(compile(AxisBuckets{.axis_max_distance = 1 << 20, .axis_unit = 1 << 20},
                       {.heads = 2, .head_dim = 4}));
}

}  // namespace axis_buckets
}  // namespace
}  // namespace posenc
