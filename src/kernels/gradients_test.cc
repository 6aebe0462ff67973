// Gradients of rotate and add against central differences in double.
#include "posenc/gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/random.h"

namespace posenc {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// --- rotate -------------------------------------------------------------------------------------

constexpr std::int64_t heads = 2, seq = 5, dim = 8;
const Positions tokens = Positions::range(3, seq);

Tensor states(std::vector<double>& x) { return Tensor::dense(x.data(), {1, heads, seq, dim}); }

std::vector<double> rotated(const Plan& plan, std::vector<double> x, const Positions& positions,
                            Side side) {
  EXPECT_TRUE(rotate(plan, states(x), positions, side, states(x)));
  return x;
}

Plan xpos() {
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.pairing = Pairing::interleaved, .first_dim = 2, .rotary_dim = 6},
             .frequencies = {.radians = {1, 0.3, 0.1}},
             .amplitude = 1.4,
             .kind = Plain{.growth = XposDecay{.factor = {0.4, 0.6, 0.8}, .scale = 3, .centre = 4}},
             .values = Values::rotated_and_back};
  return plan;
}

// The loss is linear in x, so that differences are exact but for rounding.
TEST(RotateGradient, ByTheInputIsTheTranspose) {
  const auto x = random(heads * seq * dim, 1), w = random(heads * seq * dim, 2);
  for (const Side side : {Side::query, Side::key, Side::value}) {
    std::vector<double> gradient = w;
    ASSERT_TRUE(rotate_transpose(xpos(), states(gradient), tokens, side, states(gradient)));
    for (std::size_t e = 0; e < x.size(); ++e) {
      std::vector<double> above = x, below = x;
      above[e] += 0.5;
      below[e] -= 0.5;
      const double slope = dot(w, rotated(xpos(), above, tokens, side)) -
                           dot(w, rotated(xpos(), below, tokens, side));
      EXPECT_NEAR(gradient[e], slope, 1e-12) << static_cast<int>(side) << " " << e;
    }
  }
}

void expect_frequency_gradient(Plan plan, const Positions& positions, Side side) {
  const auto x = random(heads * seq * dim, 1), w = random(heads * seq * dim, 2);
  std::vector<double> output = rotated(plan, x, positions, side), gradient = w;
  Rotate& part = *plan.rotate;
  std::vector<double> by(part.frequencies.radians.size());
  ASSERT_TRUE(rotate_frequency_gradient(
      plan, states(output), states(gradient), positions,
      Tensor::dense(by.data(), {part.frequencies.heads, part.frequencies.axes, part.pairs()})));
  for (std::size_t f = 0; f < by.size(); ++f) {
    const auto loss = [&](double step) {
      Plan moved = plan;
      moved.rotate->frequencies.radians[f] += step;
      return dot(w, rotated(moved, x, positions, side));
    };
    EXPECT_NEAR(by[f], (loss(1e-6) - loss(-1e-6)) / 2e-6, 1e-8 * (1 + std::abs(by[f]))) << f;
  }
}

TEST(RotateGradient, ByTheFrequenciesIsTheSlope) {
  for (const Side side : {Side::query, Side::key, Side::value}) {
    expect_frequency_gradient(xpos(), tokens, side);
  }
}

TEST(RotateGradient, ByTheFrequenciesOfEveryHeadAndAxis) {
  Plan plan;
  plan.rotate = Rotate{.slice = {.rotary_dim = 8},
                       .frequencies = {.heads = 2, .axes = 2, .radians = random(2 * 2 * 4, 3)},
                       .values = Values::rotated_and_back};
  const std::vector<std::int64_t> ids = {0, 0, 1, 1, 2, 0, 1, 0, 1, 2};
  expect_frequency_gradient(plan, *Positions::ids(ids, 2), Side::query);
  expect_frequency_gradient(plan, tokens, Side::query);  // text, of which both axes are one
}

TEST(RotateGradient, NeedsAPlanThatRotates) {
  std::vector<double> x(heads * seq * dim);
  EXPECT_FALSE(rotate_frequency_gradient({}, states(x), states(x), tokens, states(x)));
}

TEST(RotateGradient, NeedsTheShapeOfTheFrequencies) {
  std::vector<double> x(heads * seq * dim);
  EXPECT_FALSE(rotate_frequency_gradient(xpos(), states(x), states(x), tokens,
                                         Tensor::dense(x.data(), {1, 1, 4})));
}

// --- add ----------------------------------------------------------------------------------------

// Rows 1 to 5 of 6 are read, of a batch of two at different positions.
struct LearnedRows {
  std::vector<double> table = random(6 * 3, 1), x = random(2 * 3 * 3, 2), w = random(2 * 3 * 3, 3);
  Positions positions = *Positions::ids(std::vector<std::int64_t>{0, 1, 2, 2, 2, 4}, 1, 2);
  Plan plan = {};

  LearnedRows() {
    plan.add = Add{.kind = Rows{.rows = 6,
                                .width = 3,
                                .row_offset = 1,
                                .table = Table::borrow(Tensor::dense(table.data(), {6, 3}))},
                   .embedding_scale = 1.5};
  }
  double loss() {
    std::vector<double> out(x.size());
    EXPECT_TRUE(add(plan, Tensor::dense(x.data(), {2, 3, 3}), positions,
                    Tensor::dense(out.data(), {2, 3, 3})));
    return dot(w, out);
  }
  double slope(double& number) {
    const double at = number;
    number = at + 0.5;
    const double above = loss();
    number = at - 0.5;
    const double below = loss();
    number = at;
    return above - below;
  }
};

TEST(AddBackward, IsTheSlopeOfTheLoss) {
  LearnedRows rows;
  std::vector<double> by_x(rows.x.size()), by_table(rows.table.size(), NAN);
  ASSERT_TRUE(add_backward(rows.plan, rows.positions, Tensor::dense(rows.w.data(), {2, 3, 3}),
                           Tensor::dense(by_x.data(), {2, 3, 3}),
                           Tensor::dense(by_table.data(), {6, 3})));
  for (std::size_t e = 0; e < by_x.size(); ++e) EXPECT_NEAR(by_x[e], rows.slope(rows.x[e]), 1e-12);
  for (std::size_t e = 0; e < by_table.size(); ++e) {
    EXPECT_NEAR(by_table[e], rows.slope(rows.table[e]), 1e-12) << e;
  }
}

TEST(AddBackward, OfRowsOfSeveralAxesIsTheSlopeOfTheLoss) {
  LearnedRows rows;
  auto& part = std::get<Rows>(rows.plan.add->kind);
  part.row_offset = 0;
  part.axis_rows = {2, 4};
  rows.positions =
      *Positions::ids(std::vector<std::int64_t>{0, 1, 1, 0, 0, 1, 3, 0, 2, 3, 3, 1}, 2, 2);
  std::vector<double> by_table(rows.table.size(), NAN);
  ASSERT_TRUE(add_backward(rows.plan, rows.positions, Tensor::dense(rows.w.data(), {2, 3, 3}), {},
                           Tensor::dense(by_table.data(), {6, 3})));
  for (std::size_t e = 0; e < by_table.size(); ++e)
    EXPECT_NEAR(by_table[e], rows.slope(rows.table[e]), 1e-12) << e;
}

TEST(AddBackward, TheEmbeddingMayBeInPlaceAndTheTableFloat) {
  LearnedRows rows;
  std::vector<double> gradient = rows.w;
  std::vector<float> by_table(18);
  const Tensor view = Tensor::dense(gradient.data(), {2, 3, 3});
  ASSERT_TRUE(
      add_backward(rows.plan, rows.positions, view, view, Tensor::dense(by_table.data(), {6, 3})));
  EXPECT_EQ(gradient[4], 1.5 * rows.w[4]);
  EXPECT_EQ(by_table[3], static_cast<float>(rows.w[0]));  // position 0, row 1, once
}

TEST(AddBackward, AComputedEncodingHasNoTable) {
  Plan plan;
  plan.add = Add{.kind = Ramp{.width = 3}};
  std::vector<double> gradient(9, 1), table(9);
  const Tensor view = Tensor::dense(gradient.data(), {3, 3});
  EXPECT_TRUE(add_backward(plan, Positions::range(0, 3), view, view));
  const auto done =
      add_backward(plan, Positions::range(0, 3), view, view, Tensor::dense(table.data(), {3, 3}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "only learned rows have a gradient");
}

TEST(AddBackward, APositionWithoutARowIsAnErrorThatWritesNothing) {
  LearnedRows rows;
  std::vector<double> gradient(18, 1), table(18, 7);
  const Tensor view = Tensor::dense(gradient.data(), {2, 3, 3});
  EXPECT_FALSE(add_backward(rows.plan, Positions::range(3, 3), view, view,
                            Tensor::dense(table.data(), {6, 3})));
  EXPECT_EQ(table, std::vector<double>(18, 7));
  EXPECT_EQ(gradient, std::vector<double>(18, 1));
}

}  // namespace
}  // namespace posenc
