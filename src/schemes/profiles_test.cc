#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "posenc/schemes.h"

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

}  // namespace profile_tables
}  // namespace
}  // namespace posenc
