// What float angles cost, beside every angle formed.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/tools.h"

namespace posenc::precision_tests {
namespace {

LayerGroup group_of(std::int64_t head_dim, double theta) {
  LayerGroup group;
  group.layers = {0};
  group.geometry = {.heads = 1, .kv_heads = 1, .head_dim = head_dim};
  group.schemes = {Rope{.rope_theta = theta}};
  return group;
}

// First positions with an angle off by more than each of `least`, of all angles up to `end`.
std::vector<std::int64_t> scan(const LayerGroup& group, Angles angles, std::int64_t end,
                               const std::vector<double>& least) {
  const Plan plan = compile(group, 0, angles).value();
  const auto truth =
      rope_frequencies<long double>(std::get<Rope>(group.schemes[0]), group.geometry);
  const std::int64_t pairs = plan.rotate->pairs();
  std::vector<std::int64_t> first(least.size(), -1);
  std::vector<double> row(static_cast<std::size_t>(pairs));
  for (std::int64_t p = 0; p < end; ++p) {
    EXPECT_TRUE(
        rotation_angles(plan, Positions::range(p, 1), Tensor::dense(row.data(), {1, 1, 1, pairs})));
    for (std::size_t r = 0; r < row.size(); ++r) {
      const long double off =
          static_cast<long double>(row[r]) - static_cast<long double>(p) * truth->frequency[r];
      for (std::size_t n = 0; n < least.size(); ++n)
        if (first[n] < 0 && std::abs(static_cast<double>(off)) > least[n]) first[n] = p;
    }
  }
  return first;
}

TEST(Precision, FirstPositionsAreThoseOfAWholeScan) {
  constexpr std::int64_t end = 40000;
  for (const double theta : {500.0, 10000.0, 500000.0}) {
    for (const std::int64_t head_dim : {16, 96, 256}) {
      SCOPED_TRACE(std::to_string(theta) + ", " + std::to_string(head_dim));
      const LayerGroup group = group_of(head_dim, theta);
      const auto errors = phase_errors(group, 0, {end});
      ASSERT_TRUE(errors) << errors.error().message();
      for (const auto& [engine, angles] :
           {std::pair{1, Angles::hf_float}, std::pair{2, Angles::ggml_float}}) {
        const EngineError& found = errors->engines[static_cast<std::size_t>(engine)];
        const auto wanted = scan(group, angles, end, {half_rounding, bfloat16_rounding});
        EXPECT_EQ(found.beyond_half.value_or(-1), wanted[0]) << found.name;
        EXPECT_EQ(found.beyond_bfloat16.value_or(-1), wanted[1]) << found.name;
      }
    }
  }
}

// Of a window of positions the largest error of all pairs is the one that is said.
TEST(Precision, TheLargestErrorIsThatOfAllAngles) {
  const LayerGroup group = group_of(64, 10000);
  const Plan plan = compile(group, 0, Angles::hf_float).value();
  const auto truth =
      rope_frequencies<long double>(std::get<Rope>(group.schemes[0]), group.geometry);
  double largest = 0;
  std::vector<double> row(32);
  for (std::int64_t p = 32768 - PhaseErrors::window; p < 32768; ++p) {
    ASSERT_TRUE(
        rotation_angles(plan, Positions::range(p, 1), Tensor::dense(row.data(), {1, 1, 1, 32})));
    for (std::size_t r = 0; r < row.size(); ++r)
      largest = std::max(largest, static_cast<double>(
                                      std::abs(static_cast<long double>(row[r]) -
                                               static_cast<long double>(p) * truth->frequency[r])));
  }
  EXPECT_NEAR(phase_errors(group, 0, {32768})->engines[1].phase[0], largest, 1e-12);
}

// A head of 65,536 channels has thirty million angles in each window.
TEST(Precision, OfThousandsOfPairsLooksAtSomePositions) {
  const auto errors = phase_errors(group_of(65536, 10000), 0, {1024, 1 << 20});
  ASSERT_TRUE(errors) << errors.error().message();
  EXPECT_EQ(errors->engines[1].phase.size(), 2U);
  EXPECT_LT(errors->engines[0].phase[1], 1e-9);
  EXPECT_GT(errors->engines[1].phase[1], 1e-2);
}

}  // namespace
}  // namespace posenc::precision_tests
