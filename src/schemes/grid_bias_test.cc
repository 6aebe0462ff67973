// Biases and vectors of a grid: rows of tables as Swin, BEiT and LeViT count them, Swin v2's
// network, SAM's two tables.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "posenc/attention.h"
#include "posenc/schemes.h"
#include "tests/random.h"

namespace posenc {
namespace {
namespace grid_tables {

constexpr std::int64_t H = 2, W = 3;

std::int64_t row_of(const Plan& plan, std::int64_t i, std::int64_t j, bool class_token = false) {
  const GridPositions at = *grid_positions(H, W, class_token);
  const auto& bias = std::get<BiasTable>(*plan.bias);
  return *bias.rows.at(at.queries.at(i) - at.keys.at(j));
}

TEST(GridBias, HasSwinsRows) {
  const auto plan = compile(GridBias{}, {.heads = 1, .grid_height = H, .grid_width = W});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(std::get<BiasTable>(*plan->bias).row_count, 15);
  for (std::int64_t i = 0; i < H * W; ++i)
    for (std::int64_t j = 0; j < H * W; ++j)
      EXPECT_EQ(row_of(*plan, i, j), (i / W - j / W + H - 1) * 5 + i % W - j % W + W - 1);
}

TEST(GridBias, HasLevitsAbsoluteRows) {
  const auto plan =
      compile(GridBias{.absolute = true}, {.heads = 1, .grid_height = H, .grid_width = W});
  ASSERT_TRUE(plan) << plan.error().message();
  for (std::int64_t i = 0; i < H * W; ++i)
    for (std::int64_t j = 0; j < H * W; ++j)
      EXPECT_EQ(row_of(*plan, i, j), std::abs(i / W - j / W) * W + std::abs(i % W - j % W));
}

TEST(GridBias, HasBeitsRowsOfAClassToken) {
  const auto plan =
      compile(GridBias{.class_token = true}, {.heads = 1, .grid_height = H, .grid_width = W});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(std::get<BiasTable>(*plan->bias).row_count, 18);
  EXPECT_EQ(row_of(*plan, 0, 0, true), 17);
  for (std::int64_t t = 1; t <= H * W; ++t) {
    EXPECT_EQ(row_of(*plan, 0, t, true), 15);
    EXPECT_EQ(row_of(*plan, t, 0, true), 16);
    EXPECT_EQ(row_of(*plan, t, t, true), 7);
  }
}

TEST(GridBias, OfAReachHasARowForEachPatchOfANeighbourhood) {
  constexpr std::int64_t side = 6, reach = 3;
  const auto plan =
      compile(GridBias{.reach = reach}, {.heads = 1, .grid_height = side, .grid_width = side});
  ASSERT_TRUE(plan) << plan.error().message();
  const auto& bias = std::get<BiasTable>(*plan->bias);
  EXPECT_EQ(bias.row_count, 25);
  const Neighbourhood around = *neighbourhood(side, side, reach);
  for (std::int64_t patch = 0; patch < side * side; ++patch) {
    for (std::int64_t i = 0; i < around.key_count; ++i) {
      const std::int64_t key = around.keys[static_cast<std::size_t>(patch * around.key_count + i)];
      EXPECT_EQ(*bias.rows.at(around.positions.at(patch) - around.positions.at(key)),
                (patch / side - key / side + 2) * 5 + patch % side - key % side + 2);
    }
  }
}

TEST(GridBias, OfAReachIsNoLargerThanTheGrid) {
  const auto made = [](GridBias scheme) {
    return compile(scheme, {.heads = 1, .grid_height = H, .grid_width = W});
  };
  EXPECT_TRUE(made({.reach = 2}));
  EXPECT_FALSE(made({.reach = 3}));
  EXPECT_FALSE(made({.reach = -1}));
  EXPECT_FALSE(made({.absolute = true, .reach = 2}));
  EXPECT_FALSE(made({.class_token = true, .reach = 2}));
}

TEST(GridBias, NeedsAGridAndATableOfItsRows) {
  EXPECT_FALSE(compile(GridBias{}, {.heads = 1}));
  std::vector<double> table(15);
  const auto plan = compile(GridBias{.table = Table::borrow(Tensor::dense(table.data(), {5, 3}))},
                            {.heads = 1, .grid_height = H, .grid_width = W});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message().find("[15, 1]"), std::string::npos);
}

TEST(LogCpb, IsANetworkOfLogarithms) {
  std::vector<double> w1 = random(4 * 2, 1), b = random(4, 2), w2 = random(2 * 4, 3);
  LogCpb scheme{.pretrained_height = 5, .pretrained_width = 9};
  scheme.hidden_weight = Table::borrow(Tensor::dense(w1.data(), {4, 2}));
  scheme.hidden_bias = Table::borrow(Tensor::dense(b.data(), {4}));
  scheme.output_weight = Table::borrow(Tensor::dense(w2.data(), {2, 4}));
  const auto plan = compile(scheme, {.heads = 2, .grid_height = H, .grid_width = W});
  ASSERT_TRUE(plan) << plan.error().message();
  const auto& bias = std::get<BiasTable>(*plan->bias);
  const auto spaced = [](std::int64_t x, double n) {
    const double share = 8 * static_cast<double>(x) / (n - 1);
    return std::copysign(std::log2(1 + std::abs(share)) / std::log2(8.0), share);
  };
  for (std::int64_t h = 0; h < 2; ++h) {
    double sum = 0;  // of the last patch to the first: Δ = (1, 2)
    for (std::size_t k = 0; k < 4; ++k)
      sum += w2[static_cast<std::size_t>(h) * 4 + k] *
             std::max(0.0, w1[2 * k] * spaced(1, 5) + w1[2 * k + 1] * spaced(2, 9) + b[k]);
    EXPECT_NEAR(bias.values.values.get(bias.values.values.offset(h, row_of(*plan, 5, 0))),
                16 / (1 + std::exp(-sum)), 1e-14);
  }
  EXPECT_FALSE(
      compile(LogCpb{.pretrained_width = 1}, {.heads = 2, .grid_height = H, .grid_width = W}));
}

TEST(Decomposed, AddsAVectorOfRowsAndOneOfColumns) {
  std::vector<double> rows = random(3 * 4, 1), columns = random(5 * 4, 2);
  Decomposed scheme;
  scheme.row_vectors = Table::borrow(Tensor::dense(rows.data(), {3, 4}));
  scheme.column_vectors = Table::borrow(Tensor::dense(columns.data(), {5, 4}));
  const auto plan = compile(scheme, {.head_dim = 4, .grid_height = H, .grid_width = W});
  ASSERT_TRUE(plan) << plan.error().message();
  const GridPositions at = *grid_positions(H, W);
  const Relative& part = *plan->relative;
  EXPECT_EQ(part.row_count, 3 + 5);
  ASSERT_EQ(part.lists(), 2);
  const std::int64_t distance = at.queries.at(0) - at.keys.at(5);  // Δ (−1, −2)
  const Tensor& key = part.key.values;
  for (std::int64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(key.get(key.offset(*part.list(0).at(distance), c)),
              2 * rows[static_cast<std::size_t>(c)]);
    EXPECT_EQ(key.get(key.offset(*part.list(1).at(distance), c)),
              2 * columns[static_cast<std::size_t>(c)]);
  }
}

TEST(ClippedBias, SharesItsEnds) {
  const auto plan = compile(ClippedBias{.left = 3, .right = 1}, {.heads = 1});
  ASSERT_TRUE(plan) << plan.error().message();
  const auto& bias = std::get<BiasTable>(*plan->bias);
  const auto row = [&](std::int64_t key_minus_query) { return *bias.rows.at(-key_minus_query); };
  EXPECT_EQ(row(-9), 0);
  EXPECT_EQ(row(-3), 0);
  EXPECT_EQ(row(-2), 1);
  EXPECT_EQ(row(0), 3);
  EXPECT_EQ(row(1), 4);
  EXPECT_EQ(row(8), 4);
}

TEST(ShawAhead, ClipsItsTwoEndsApart) {
  const auto plan =
      compile(Shaw{.max_distance = 4, .max_ahead = 2, .use_values = false}, {.head_dim = 4});
  ASSERT_TRUE(plan) << plan.error().message();
  const Relative& part = *plan->relative;
  EXPECT_EQ(part.row_count, 7);
  EXPECT_EQ(*part.rows.at(9), 0);
  EXPECT_EQ(*part.rows.at(0), 4);
  EXPECT_EQ(*part.rows.at(-2), 6);
  EXPECT_EQ(*part.rows.at(-7), 6);
}

}  // namespace grid_tables
}  // namespace
}  // namespace posenc
