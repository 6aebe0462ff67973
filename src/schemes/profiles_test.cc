#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "posenc/schemes.h"
#include "tests/random.h"

namespace posenc {
namespace {
namespace profile_tables {

constexpr Geometry geometry{.heads = 2, .head_dim = 4, .length = 5};

const Relative& relative(const Expected<Plan>& plan) { return *plan->relative; }

TEST(Profiles, HaveARowForEachDistanceOfTheirExtent) {
  std::vector<double> table(2 * 3);
  std::iota(table.begin(), table.end(), 0.0);
  const auto plan = compile(
      Profiles{
          .profiles = 2, .extent = 3, .table = Table::borrow(Tensor::dense(table.data(), {2, 3}))},
      geometry);
  ASSERT_TRUE(plan) << plan.error().message();
  const Relative& part = relative(plan);
  EXPECT_EQ(part.profiles, 2);
  EXPECT_TRUE(part.uses_key);
  EXPECT_FALSE(part.uses_query);
  for (const std::int64_t distance : {0, 1, 2}) EXPECT_EQ(*part.rows.at(distance), distance);
  for (const std::int64_t distance : {-100, -1, 3, 1000})
    EXPECT_EQ(*part.rows.at(distance), no_row);
  const Tensor& key = part.key.values;  // [distance][profile]
  EXPECT_EQ(key.get(key.offset(2, 1)), 5);
}

TEST(Profiles, HaveT5sBucketsAndARowOfEachHead) {
  std::vector<double> table(8 * 2 * 3);
  std::iota(table.begin(), table.end(), 0.0);
  const Profiles scheme{.curves = ProfileCurves::buckets,
                        .of_keys = true,
                        .profiles = 3,
                        .num_buckets = 8,
                        .max_distance = 6,
                        .table = Table::borrow(Tensor::dense(table.data(), {8, 6}))};
  const auto plan = compile(scheme, geometry);
  ASSERT_TRUE(plan) << plan.error().message();
  for (std::int64_t distance = -9; distance <= 9; ++distance)
    EXPECT_EQ(*relative(plan).rows.at(distance), *t5_bucket(-distance, 8, 6, true)) << distance;
  EXPECT_TRUE(relative(plan).uses_query);
  const Tensor& query = relative(plan).query.values;  // [head][bucket][profile]
  EXPECT_EQ(query.get(query.offset(1, 5, 2)), 5 * 6 + 1 * 3 + 2);
}

TEST(Profiles, OfARampFallWithTheDistance) {
  const auto plan = compile(Profiles{.curves = ProfileCurves::ramp, .profiles = 1}, geometry);
  ASSERT_TRUE(plan) << plan.error().message();
  const Tensor& key = relative(plan).key.values;
  for (std::int64_t distance = -4; distance <= 4; ++distance)
    EXPECT_EQ(key.get(key.offset(*relative(plan).rows.at(distance), 0)),
              -static_cast<double>(distance));
  EXPECT_FALSE(relative(plan).rows.at(5));
}

TEST(Profiles, RefuseWhatDoesNotFit) {
  const auto error = [](const Profiles& scheme, const Geometry& of = geometry) {
    const auto plan = compile(scheme, of);
    return plan ? std::string() : plan.error().message();
  };
  EXPECT_EQ(error({.curves = ProfileCurves::ramp, .profiles = 2}),
            "profiles: a ramp has one profile, got 2; set profiles to 1");
  EXPECT_NE(error({.curves = ProfileCurves::ramp, .profiles = 1}, {}).find("length"),
            std::string::npos);
  EXPECT_NE(error({.curves = ProfileCurves::buckets, .profiles = 1}, {}).find("heads"),
            std::string::npos);
  std::vector<double> table(6);
  EXPECT_NE(
      error(
          {.profiles = 2, .extent = 4, .table = Table::borrow(Tensor::dense(table.data(), {2, 3}))})
          .find("must have shape [2, 4]"),
      std::string::npos);
}

// A table that the scheme owned, by other axes in the plan.
TEST(Profiles, APlanKeepsWhatItsSchemeOwned) {
  constexpr Geometry of_layer{
      .heads = 2, .kv_heads = 2, .head_dim = 4, .grid_height = 2, .grid_width = 2};
  for (Scheme scheme : {Scheme{Profiles{.profiles = 2, .extent = 3}}, Scheme{T5{}},
                        Scheme{ClippedBias{.left = 1, .right = 1}}, Scheme{GridBias{}}}) {
    const std::int64_t rows = std::holds_alternative<Profiles>(scheme)      ? 2
                              : std::holds_alternative<T5>(scheme)          ? 32
                              : std::holds_alternative<ClippedBias>(scheme) ? 3
                                                                            : 9;
    const std::int64_t columns = std::holds_alternative<Profiles>(scheme) ? 3 : 2;
    Table table = Table::own(random(rows * columns), rows, columns);
    const std::weak_ptr<const std::vector<double>> numbers = table.owned;
    if (T5* t5 = std::get_if<T5>(&scheme))
      t5->table = std::move(table);
    else
      ASSERT_TRUE(set_table(scheme, "table", std::move(table)));
    table = {};
    const auto plan = compile(scheme, of_layer);
    ASSERT_TRUE(plan) << plan.error().message();
    scheme = NoPe{};
    EXPECT_FALSE(numbers.expired()) << std::to_string(rows);
  }
}

}  // namespace profile_tables
}  // namespace
}  // namespace posenc
