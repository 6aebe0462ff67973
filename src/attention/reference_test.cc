// attend_reference beside formulas written out for a token or two; the fast kernels are compared
// with it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "src/attention/reference_test.h"

namespace posenc {
namespace {

using namespace reference_test;

constexpr double inf = std::numeric_limits<double>::infinity();

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<double> rotated(const Plan& plan, std::vector<double> x, std::int64_t position,
                            Side side) {
  const Tensor tensor = Tensor::dense(x.data(), {1, static_cast<std::int64_t>(x.size())});
  EXPECT_TRUE(rotate(plan, tensor, Positions::range(position, 1), side, tensor));
  return x;
}

// --- the plain formula --------------------------------------------------------------------------

TEST(AttendReference, LogitIsTheScaledProduct) {
  Attention a;
  a.run(Plan{});
  EXPECT_NEAR(a.logit(1, 4, 2), dot(a.q_at(1, 4), a.k_at(2)) / 2, 1e-14);
}

TEST(AttendReference, OutputIsTheWeightedMeanOfValues) {
  Attention a;
  a.run(Plan{});
  std::vector<double> mean(4);
  const auto w = a.weights(1, 3);
  for (std::size_t j = 0; j <= 3; ++j) {
    for (std::size_t c = 0; c < 4; ++c) mean[c] += w[j] * a.v_at(static_cast<std::int64_t>(j))[c];
  }
  expect_near(a.out_at(1, 3), mean);
}

TEST(AttendReference, WeightsOfAQuerySumToOne) {
  Attention a;
  std::fill(a.v.begin(), a.v.end(), 1.0);
  a.run(sloping_plan());
  expect_near(a.out, std::vector<double>(a.out.size(), 1.0));
}

TEST(AttendReference, HugeLogitsDoNotOverflow) {
  Attention a;
  for (double& x : a.q) x *= 1e5;
  a.run(Plan{});
  for (const double x : a.out) EXPECT_TRUE(std::isfinite(x));
}

TEST(AttendReference, QueryHeadsShareTheirGroupsKeys) {
  Attention grouped{.heads = 4, .kv_heads = 2}, full{.heads = 4, .kv_heads = 4};
  full.q = grouped.q;
  full.k = full.v = {};
  for (const auto& [to, from] : {std::pair{&full.k, &grouped.k}, {&full.v, &grouped.v}}) {
    for (const std::ptrdiff_t head : {0, 0, 24, 24}) {
      to->insert(to->end(), from->begin() + head, from->begin() + head + 24);
    }
  }
  grouped.run(Plan{});
  full.run(Plan{});
  EXPECT_EQ(grouped.out, full.out);
}

TEST(AttendReference, WithoutMaskAndPositionOrderIsInvisible) {
  Attention a, b;
  for (const auto& [to, from, heads] :
       {std::tuple{&b.q, &a.q, 2}, {&b.k, &a.k, 1}, {&b.v, &a.v, 1}}) {
    for (std::ptrdiff_t h = 0; h < heads; ++h) {  // b's token t is a's token (t + 2) mod 6
      const auto first = to->begin() + h * 24;
      std::copy_n(from->begin() + h * 24, 24, first);
      std::rotate(first, first + 8, first + 24);
    }
  }
  a.run(Plan{}, no_order);
  b.run(Plan{}, no_order);
  for (std::int64_t t = 0; t < 6; ++t) expect_near(b.out_at(1, t), a.out_at(1, (t + 2) % 6));
}

TEST(AttendReference, SixteenBitOutputIsTheDoubleOneRounded) {
  std::vector<std::uint16_t> half(32);  // q, k, v, out: [2][4] each
  std::vector<double> wide(32);
  for (std::size_t i = 0; i < 24; ++i) {
    half[i] = double_to_half(std::sin(static_cast<double>(i * i)));
    wide[i] = half_to_float(half[i]);
  }
  const auto attend = [](auto* data, DType dtype) {
    const auto part = [&](int i) { return Tensor::dense(data + 8 * i, dtype, {2, 4}); };
    const Positions at = Positions::range(5, 2);
    return attend_reference({part(0), part(1), part(2), at, at}, rotating_plan(), part(3));
  };
  ASSERT_TRUE(attend(half.data(), DType::f16));
  ASSERT_TRUE(attend(wide.data(), DType::f64));
  for (std::size_t i = 24; i < 32; ++i) EXPECT_EQ(half[i], double_to_half(wide[i])) << i;
}

// --- plans --------------------------------------------------------------------------------------

TEST(AttendPlan, RotationTurnsQueryAndKey) {
  Attention a;
  a.run(rotating_plan());
  const auto q = rotated(rotating_plan(), a.q_at(1, 4), 4, Side::query),
             k = rotated(rotating_plan(), a.k_at(2), 2, Side::key);
  EXPECT_NEAR(a.logit(1, 4, 2), dot(q, k) / 2, 1e-14);
}

TEST(AttendPlan, RotationSeesOffsetsAlone) {
  Attention a, b;
  a.run(rotating_plan());
  b.run(rotating_plan(), {}, Positions::range(5000, 6));
  expect_near(a.out, b.out);
}

// o_i = Σ_j α_ij R_j v_j
TEST(AttendPlan, ValuesMayStayRotated) {
  Plan plan = rotating_plan();
  plan.rotate->values = Values::rotated;
  Attention stays, back;
  stays.run(plan);
  plan.rotate->values = Values::rotated_and_back;
  back.run(plan);
  const Tensor out = Tensor::dense(back.out.data(), {1, stays.heads, stays.seq, stays.dim});
  ASSERT_TRUE(rotate(plan, out, Positions::range(0, 6), Side::value, out));
  expect_near(stays.out, back.out);
}

// o_i = R_iᵀ Σ_j α_ij R_j v_j = Σ_j α_ij R_{j−i} v_j: a rotation by j − i, which is negative.
TEST(AttendPlan, RotatedValuesArriveRotatedByTheirOffset) {
  Plan plan = rotating_plan();
  plan.rotate->values = Values::rotated_and_back;
  Attention a;
  a.run(plan);
  const std::int64_t i = 4;
  const auto w = a.weights(0, i);
  std::vector<double> expected(4);
  for (std::int64_t j = 0; j <= i; ++j) {
    std::vector<double> v = a.v_at(j);
    const Tensor tensor = Tensor::dense(v.data(), {1, 4});
    ASSERT_TRUE(rotate_inverse(plan, tensor, Positions::range(i - j, 1), Side::value, tensor));
    for (std::size_t c = 0; c < 4; ++c) expected[c] += w[static_cast<std::size_t>(j)] * v[c];
  }
  expect_near(a.out_at(0, i), expected);
}

TEST(AttendPlan, SlopesAreAddedAfterTheScale) {
  Attention a, none;
  a.run(sloping_plan());
  none.run(Plan{});
  EXPECT_NEAR(a.logit(1, 5, 2), none.logit(1, 5, 2) - 0.25 * 3, 1e-14);
}

TEST(AttendPlan, SlopesBeforeTheScaleAreScaledToo) {
  Plan plan = sloping_plan();
  std::get<Slopes>(*plan.bias).before_scale = true;
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  EXPECT_NEAR(a.logit(1, 5, 2), none.logit(1, 5, 2) - 0.25 * 3 / 2, 1e-14);
}

TEST(AttendPlan, BiasTableIsReadByHeadAndDistance) {
  Plan plan;
  plan.bias = BiasTable{.rows = {.row = {0, 1, 2}},
                        .row_count = 3,
                        .values = Table::own({1, 2, 3, 10, 20, 30}, 2, 3)};
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  EXPECT_NEAR(a.logit(1, 3, 2), none.logit(1, 3, 2) + 20, 1e-13);
  EXPECT_NEAR(a.logit(0, 5, 0), none.logit(0, 5, 0) + 3, 1e-13);
}

// Distances −2 to 2 in rows 4 to 0: Shaw's c = clip(j − i, −2, 2) + 2.
Plan shaw(const std::vector<double>& key, const std::vector<double>& value) {
  Plan plan;
  plan.relative = Relative{.rows = {.first = -2, .row = {4, 3, 2, 1, 0}},
                           .row_count = 5,
                           .uses_value = true,
                           .key = Table::own(key, 5, 4),
                           .value = Table::own(value, 5, 4)};
  return plan;
}

TEST(AttendPlan, ShawByItsFormula) {
  const auto key = random(20, 7), value = random(20, 8);
  Attention a;
  a.run(shaw(key, value), no_order);
  const auto row = [](const std::vector<double>& table, std::int64_t i, std::int64_t j) {
    const std::int64_t c = std::clamp<std::int64_t>(j - i, -2, 2) + 2;
    return std::vector<double>(table.begin() + 4 * c, table.begin() + 4 * c + 4);
  };
  for (std::int64_t i = 0; i < 6; ++i) {
    std::vector<double> expected(4);
    const auto w = a.weights(1, i);
    for (std::int64_t j = 0; j < 6; ++j) {
      const double plain = dot(a.q_at(1, i), a.k_at(j)) + dot(a.q_at(1, i), row(key, i, j));
      EXPECT_NEAR(a.logit(1, i, j), plain / 2, 1e-13);
      for (std::size_t c = 0; c < 4; ++c) {
        expected[c] += w[static_cast<std::size_t>(j)] * (a.v_at(j)[c] + row(value, i, j)[c]);
      }
    }
    expect_near(a.out_at(1, i), expected);
  }
}

// The key meets a vector of the distance, of each head its own (DeBERTa's position to content).
TEST(AttendPlan, QueryTableMeetsTheKey) {
  auto table = random(2 * 3 * 4, 9);
  Plan plan;
  plan.relative = Relative{.rows = {.first = -1, .row = {0, 1, 2}},
                           .row_count = 3,
                           .uses_query = true,
                           .uses_key = false,
                           .query = Table::borrow(Tensor::dense(table.data(), {2, 3, 4}))};
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  const std::vector<double> past(table.begin() + (3 + 2) * 4,
                                 table.begin() + (3 + 3) * 4);  // head 1
  EXPECT_NEAR(a.logit(1, 5, 2), none.logit(1, 5, 2) + dot(a.k_at(2), past) / 2, 1e-13);
}

TEST(AttendPlan, RelativeVectorsMeetQueryAndKeyBeforeTheirTurn) {
  Plan relative = shaw(random(20, 7), random(20, 8));
  relative.relative->uses_query = true;
  relative.relative->query = Table::own(random(20, 9), 5, 4);
  Plan both = relative;
  both.rotate = rotating_plan().rotate;
  Attention a, b, c, d;
  a.run(both);
  b.run(rotating_plan());
  c.run(relative);
  d.run(Plan{});
  EXPECT_NEAR(a.logit(1, 5, 2) - b.logit(1, 5, 2), c.logit(1, 5, 2) - d.logit(1, 5, 2), 1e-13);
}

TEST(AttendPlan, LogitScaleGrowsWithTheQuery) {
  Plan plan;
  plan.logits = Logits{.multiplier = 3, .beta = 0.5, .floor = 2};
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  EXPECT_NEAR(a.logit(1, 1, 0), 3 * none.logit(1, 1, 0), 1e-13);
  EXPECT_NEAR(a.logit(1, 5, 0), 3 * (1 + 0.5 * std::log(3.0)) * none.logit(1, 5, 0), 1e-13);
}

TEST(AttendPlan, WhatWasAddedToTheEmbeddingIsNotAddedAgain) {
  Plan plan;
  plan.add = Add{.kind = Ramp{.width = 4}};
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  EXPECT_EQ(a.out, none.out);
}

// --- errors and edges ---------------------------------------------------------------------------

TEST(AttendErrors, HeadsThatDoNotDivide) {
  Attention a{.heads = 3, .kv_heads = 2};
  const auto done = a.tried(Plan{}, {}, Positions::range(0, 6));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "heads must be a multiple of kv_heads");
}

TEST(AttendErrors, LearnedVectorsNotGiven) {
  Plan plan;
  plan.relative = Relative{.rows = {.row = {0}}, .row_count = 1};
  Attention a;
  const auto done = a.tried(plan, {}, Positions::range(0, 6));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "the learned table relative.key must be given");
}

TEST(AttendErrors, DistanceBeyondATableOnlyIfItIsSeen) {
  Plan plan;
  plan.bias = BiasTable{
      .rows = {.row = {0, 0}, .saturates = false}, .row_count = 1, .values = Table::own({1}, 1, 1)};
  Attention a;
  const Positions six = Positions::range(0, 6);
  EXPECT_TRUE(a.tried(plan, {.window = 2}, six));
  EXPECT_FALSE(a.tried(plan, {.window = 3}, six));
}

TEST(AttendErrors, PositionsThatDoNotMatch) {
  EXPECT_FALSE(Attention{}.tried(Plan{}, {}, Positions::range(0, 5)));
}

TEST(AttendEdges, NoTokensAndNoHeads) {
  Attention none{.seq = 0}, headless{.heads = 0, .kv_heads = 0};
  none.run(rotating_plan());
  headless.run(rotating_plan());
}

}  // namespace
}  // namespace posenc
