// The softcap of logits, c·tanh(z/c): after the scale, before a bias and the mask.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "posenc/content.h"
#include "src/attention/gradients_test.h"
#include "src/attention/softmax.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {

class Softcap : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, Softcap, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

GradientProblem capped_problem(double cap, std::int64_t tokens = 5) {
  GradientProblem p{.queries = Positions::range(0, tokens), .keys = Positions::range(0, tokens)};
  p.plan.logits = {.multiplier = 3, .beta = 0.2, .floor = 2, .softcap = cap};
  p.plan.rotate = Rotate{.slice = {.rotary_dim = 6}, .frequencies = {.radians = {1, 0.4, 0.1}}};
  return p.filled();
}

template <class T>
void expect_formula(double unit) {
  std::vector<T> x(128), slope(128);
  for (const T cap : {T{0.5}, T{30}}) {
    for (std::size_t j = 0; j < 128; ++j) x[j] = static_cast<T>(std::sinh((j - 64.0) / 9));
    x[3] = std::numeric_limits<T>::infinity();
    const std::vector<T> z = x;
    detail::softcap(x.data(), 128, cap, slope.data());
    for (std::size_t j = 0; j < 128; ++j) {
      const double t = std::tanh(static_cast<double>(z[j]) / static_cast<double>(cap));
      EXPECT_NEAR(x[j], static_cast<double>(cap) * t, unit * static_cast<double>(cap)) << j;
      EXPECT_NEAR(slope[j], 1 - t * t, 4 * unit) << j;
    }
  }
  x[7] = NAN;
  detail::softcap(x.data(), 128, T{1});
  for (std::size_t j = 0; j < 128; ++j) EXPECT_EQ(std::isnan(x[j]), j == 7) << j;
}

TEST_P(Softcap, IsThatOfTheFormula) {
  expect_formula<float>(5e-7);
  expect_formula<double>(1e-15);
}

TEST_P(Softcap, ActsOnScaledProductsBeforeTheBias) {
  std::vector<double> q = {2}, k = {3, -1}, v = {1, 0}, out(1), logits(2);
  const Positions last = Positions::range(1, 1), both = Positions::range(0, 2);
  Plan plan;
  plan.logits = {.multiplier = 0.5, .softcap = 2};
  plan.bias = Slopes{.slope = {0.25}};
  const AttentionInputs in{Tensor::dense(q.data(), {1, 1}), Tensor::dense(k.data(), {2, 1}),
                           Tensor::dense(v.data(), {2, 1}), last, both};
  const double first = 2 * std::tanh(3.0 / 2) - 0.25, second = 2 * std::tanh(-1.0 / 2);
  const double wanted = 1 / (1 + std::exp(second - first));
  ASSERT_TRUE(attend(in, plan, Tensor::dense(out.data(), {1, 1})));
  EXPECT_NEAR(out[0], wanted, 1e-15);
  ASSERT_TRUE(attend_reference(in, plan, Tensor::dense(out.data(), {1, 1}),
                               Tensor::dense(logits.data(), {1, 2})));
  EXPECT_NEAR(out[0], wanted, 1e-15);
  EXPECT_NEAR(logits[0], first, 1e-15);
}

TEST_P(Softcap, OfALargeNumberIsNone) {
  GradientProblem p = capped_problem(1e9, 300), none = capped_problem(0, 300);
  p.loss();
  none.loss();
  for (std::size_t e = 0; e < p.out.size(); ++e) EXPECT_NEAR(p.out[e], none.out[e], 1e-9);
}

TEST_P(Softcap, HasGradients) {
  for (const double cap : {0.7, 5.0}) {
    GradientProblem p = capped_problem(cap);
    expect_gradients(p);
    p.plan.bias = Slopes{.slope = {0.5, 0.25, 0.1, 0.7}};
    p.sinks = random(4, 12);
    expect_gradients(p);
    p.mask = {.causal = false, .window = 2};
    expect_gradients(p);
  }
}

// Of each head vectors for distances −4 to 4, as Gemma's encoders of sound have them behind a
// window.
GradientProblem capped_vectors(double cap, bool both) {
  GradientProblem p = capped_problem(cap);
  p.key = random(4 * 9 * gradient_dim, 21);
  if (both) p.query = random(4 * 9 * gradient_dim, 22);
  std::vector<std::int32_t> row(9);
  std::iota(row.begin(), row.end(), 0);
  Relative relative{.rows = {.first = -4, .row = row, .saturates = true},
                    .row_count = 9,
                    .uses_query = both,
                    .uses_key = true};
  relative.key = Table::borrow(Tensor::dense(p.key.data(), {4, 9, gradient_dim}));
  if (both) relative.query = Table::borrow(Tensor::dense(p.query.data(), {4, 9, gradient_dim}));
  p.plan.relative = relative;
  return p;
}

TEST_P(Softcap, TakesVectorsByDistanceWithTheirProducts) {
  for (const double cap : {0.7, 5.0})
    for (const bool both : {false, true}) {
      GradientProblem p = capped_vectors(cap, both);
      p.loss();
      std::vector<double> out(p.out.size());
      ASSERT_TRUE(attend(p.inputs(), p.plan, p.tensor(out, p.heads, p.queries)));
      for (std::size_t e = 0; e < out.size(); ++e) EXPECT_NEAR(out[e], p.out[e], 1e-13);
      expect_gradients(p);
      p.mask = {.window = 3};
      expect_gradients(p);
    }
}

TEST_P(Softcap, LeavesWhatIsHiddenUnread) {
  GradientProblem p = capped_problem(2);
  std::vector<std::uint8_t> keep(10, 1);
  keep[1] = keep[7] = 0;
  p.mask.keep = keep.data();
  const Gradients clean(p);
  for (const std::size_t row : {1, 6, 12, 17}) p.k[row * gradient_dim] = NAN;
  const Gradients by(p);
  EXPECT_EQ(by.q, clean.q);
  EXPECT_EQ(by.v, clean.v);
}

TEST(SoftcapErrors, WhatItCannotStandBeside) {
  GradientProblem p = capped_problem(2);
  const Tensor out = p.tensor(p.out, p.heads, p.queries);
  p.plan.bias = Slopes{.slope = {1, 1, 1, 1}, .before_scale = true};
  const auto done = attend(p.inputs(), p.plan, out);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("slopes before the scale; drop logits.softcap"),
            std::string::npos)
      << done.error().message();
  GradientProblem both = capped_vectors(2, false);
  both.plan.bias = Slopes{.slope = {1, 1, 1, 1}};
  const auto beside = attend(both.inputs(), both.plan, out);
  ASSERT_FALSE(beside);
  EXPECT_TRUE(beside.error().message().contains("vectors by distance and a bias"));
  Plan plan;
  plan.logits.softcap = 2;
  EXPECT_FALSE(attend(p.inputs(), ContentScheme{StickBreaking{}}, plan, out));
  EXPECT_TRUE(attend(p.inputs(), ContentScheme{Forgetting{.gate_bias = {1}}}, plan, out));
  plan.logits.softcap = -1;
  EXPECT_FALSE(checked(plan));
}

}  // namespace
}  // namespace posenc
