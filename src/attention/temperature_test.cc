// The temperatures of queries, by position and by head: from the formulae to gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "posenc/cache.h"
#include "posenc/content.h"
#include "src/attention/gradients_test.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {

class TemperatureKinds : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, TemperatureKinds, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

const Logits by_log{.temperature = Temperature::log, .beta = 0.5, .floor = 2, .offset = 1};
const Logits by_power{.temperature = Temperature::power, .beta = 0.3, .floor = 3, .offset = 1};
const Logits learned{.multiplier = 1.5,
                     .temperature = Temperature::heads,
                     .offset = 1,
                     .head_scale = {0.7, -0.4, 1.1, 0},
                     .head_bias = {0, 0.5, -0.3, 1}};

GradientProblem problem(const Logits& logits, std::int64_t tokens = 5) {
  GradientProblem p{.queries = Positions::range(0, tokens), .keys = Positions::range(0, tokens)};
  p.plan.logits = logits;
  p.plan.rotate = Rotate{.slice = {.rotary_dim = 6}, .frequencies = {.radians = {1, 0.4, 0.1}}};
  return p.filled();
}

TEST(PlanTemperature, OfALogarithmBeginsBeyondTheFloor) {
  const Logits inkling{.temperature = Temperature::log, .beta = 0.1, .floor = 128000, .offset = 1};
  EXPECT_EQ(inkling.query_scale(127999, 0), 1);
  EXPECT_DOUBLE_EQ(inkling.query_scale(255999, 0), 1 + 0.1 * std::log(2.0));
}

TEST(PlanTemperature, OfALogarithmIsTheRatioOfLogarithmsToo) {
  const Logits grok{.temperature = Temperature::log, .beta = 1 / std::log(1024.0), .floor = 1024};
  EXPECT_NEAR(grok.query_scale(8192, 0), std::log(8192.0) / std::log(1024.0), 1e-15);
  EXPECT_EQ(grok.query_scale(1000, 0), 1);
}

TEST(PlanTemperature, OfAPowerGrowsFromTheFirstToken) {
  const Logits beam{.temperature = Temperature::power, .beta = 0.1, .floor = 2048, .offset = 1};
  EXPECT_DOUBLE_EQ(beam.query_scale(0, 0), std::pow(1 + 1.0 / 2048, 0.1));
  EXPECT_DOUBLE_EQ(beam.query_scale(6143, 0), std::pow(4, 0.1));
}

TEST(PlanTemperature, OfAHeadIsItsOwn) {
  EXPECT_DOUBLE_EQ(learned.query_scale(3, 0), 1.5 * 0.7 * std::log(4.0));
  EXPECT_DOUBLE_EQ(learned.query_scale(3, 1), 1.5 * (-0.4 * std::log(4.0) + 0.5));
  EXPECT_EQ(learned.query_scale(0, 0), 0);
  EXPECT_EQ(learned.query_scale(-1, 1), 0.75);
}

TEST(PlanTemperature, NumbersOfHeadsBelongTogether) {
  Plan plan{.logits = learned};
  EXPECT_TRUE(checked(plan));
  plan.logits.head_bias.pop_back();
  EXPECT_FALSE(checked(plan));
  plan.logits = learned;
  plan.logits.temperature = Temperature::log;
  EXPECT_FALSE(checked(plan));
  plan.logits = learned;
  plan.logits.head_scale[2] = INFINITY;
  EXPECT_FALSE(checked(plan));
}

TEST_P(TemperatureKinds, AttendAsTheReference) {
  for (const Logits& logits : {by_log, by_power, learned}) {
    GradientProblem p = problem(logits, 70);
    std::vector<double> fast(p.q.size());
    ASSERT_TRUE(attend(p.inputs(), p.plan, p.tensor(fast, p.heads, p.queries)));
    p.loss();
    for (std::size_t e = 0; e < fast.size(); ++e) EXPECT_NEAR(fast[e], p.out[e], 1e-12) << e;
  }
}

TEST_P(TemperatureKinds, StandBesideTermsThatAreScaled) {
  GradientProblem p = problem(learned, 70);
  p.plan.bias = Slopes{.slope = {0.5, 0.25, 0.1, 0.7}, .before_scale = true};
  std::vector<double> fast(p.q.size());
  ASSERT_TRUE(attend(p.inputs(), p.plan, p.tensor(fast, p.heads, p.queries)));
  p.loss();
  for (std::size_t e = 0; e < fast.size(); ++e) EXPECT_NEAR(fast[e], p.out[e], 1e-12) << e;
}

TEST_P(TemperatureKinds, OfHeadsMeetContent) {
  GradientProblem p = problem(learned, 9);
  p.plan.rotate.reset();
  std::vector<double> fast(p.q.size());
  for (const ContentScheme& scheme :
       {ContentScheme{Forgetting{.gate_bias = {1}}}, ContentScheme{StickBreaking{}}}) {
    const auto done = attend(p.inputs(), scheme, p.plan, p.tensor(fast, p.heads, p.queries));
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_TRUE(attend_reference(p.inputs(), scheme, p.plan, p.tensor(p.out, p.heads, p.queries)));
    for (std::size_t e = 0; e < fast.size(); ++e) EXPECT_NEAR(fast[e], p.out[e], 1e-12) << e;
  }
}

TEST_P(TemperatureKinds, DecodeAsThePrefill) {
  GradientProblem p = problem(learned, 9);
  p.batch = 1;
  p.filled();
  ASSERT_TRUE(attend(p.inputs(), p.plan, p.tensor(p.out, p.heads, p.queries)));
  auto cache =
      KvCache::make({.kv_heads = p.kv_heads, .head_dim = gradient_dim, .dtype = DType::f64});
  ASSERT_TRUE(cache) << cache.error().message();
  const KvCache::Sequence sequence[] = {cache->add()};
  for (std::int64_t t = 0; t < 9; ++t) {
    const auto token = [&](std::vector<double>& x, std::int64_t heads) {
      Tensor one = p.tensor(x, heads, p.queries);
      one.data = x.data() + t * gradient_dim;
      one.shape[2] = 1;
      return one;
    };
    std::vector<double> out(static_cast<std::size_t>(p.heads * gradient_dim));
    ASSERT_TRUE(cache->append(sequence, token(p.k, p.kv_heads), token(p.v, p.kv_heads), p.plan));
    const auto done = cache->attend(sequence, token(p.q, p.heads), p.plan, {},
                                    Tensor::dense(out.data(), {1, p.heads, 1, gradient_dim}));
    ASSERT_TRUE(done) << done.error().message();
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t c = 0; c < gradient_dim; ++c)
        EXPECT_NEAR(out[static_cast<std::size_t>(h * gradient_dim + c)],
                    p.out[static_cast<std::size_t>((h * 9 + t) * gradient_dim + c)], 1e-12);
  }
}

TEST_P(TemperatureKinds, HaveGradients) {
  for (const Logits& logits : {by_log, by_power, learned}) {
    GradientProblem p = problem(logits);
    expect_gradients(p);
    p.plan.bias = Slopes{.slope = {0.5, 0.25, 0.1, 0.7}};
    p.plan.logits.softcap = 0.7;
    p.sinks = random(4, 12);
    p.mask = {.causal = false, .window = 2};
    expect_gradients(p);
  }
}

TEST_P(TemperatureKinds, OfHeadsHaveGradientsAlone) {
  GradientProblem p = problem(learned);
  const Gradients all(p);
  std::vector<double> scale(4);
  const Tensor weight = p.tensor(p.loss_weight, p.heads, p.queries);
  ASSERT_TRUE(attend_backward(p.inputs(), p.plan, weight,
                              {.head_scale = Tensor::dense(scale.data(), {4})}));
  EXPECT_EQ(scale, all.head_scale);
}

TEST(TemperatureErrors, LearnedNumbersMustBeGivenForEveryHead) {
  GradientProblem p = problem(learned);
  p.plan.logits.head_scale.clear();
  p.plan.logits.head_bias.clear();
  const auto done = attend(p.inputs(), p.plan, p.tensor(p.out, p.heads, p.queries));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("a number for each of 4 heads, got 0 and 0"),
            std::string::npos)
      << done.error().message();
}

TEST(TemperatureErrors, GradientsBesideTermsWithoutTheQuery) {
  GradientProblem p = problem(learned);
  p.plan.bias = Slopes{.slope = {1, 1, 1, 1}, .before_scale = true};
  std::vector<double> scale(4);
  const Tensor to = Tensor::dense(scale.data(), {4}),
               weight = p.tensor(p.loss_weight, p.heads, p.queries);
  EXPECT_FALSE(attend_backward(p.inputs(), p.plan, weight, {.head_scale = to}));
  EXPECT_TRUE(attend_backward(p.inputs(), p.plan, weight, {}));
  p.plan.bias.reset();
  p.plan.logits = by_log;
  EXPECT_FALSE(attend_backward(p.inputs(), p.plan, weight, {.head_scale = to}));
}

}  // namespace
}  // namespace posenc
