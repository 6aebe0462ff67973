// Sink logits: what the softmax counts beside the keys, and what has no value.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "posenc/cache.h"
#include "posenc/content.h"
#include "src/attention/gradients_test.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {

constexpr double no_sink = -std::numeric_limits<double>::infinity();

class SinkLogits : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, SinkLogits, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

GradientProblem with_sinks(std::int64_t count, std::int64_t tokens = 5) {
  GradientProblem p{.queries = Positions::range(0, tokens), .keys = Positions::range(0, tokens)};
  p.filled();
  p.sinks = random(static_cast<std::size_t>(count), 11);
  return p;
}

std::vector<double> attended(GradientProblem& p) {
  std::vector<double> out(p.out.size(), NAN);
  const auto done = attend(p.inputs(), p.plan, p.tensor(out, p.heads, p.queries));
  EXPECT_TRUE(done) << done.error().message();
  return out;
}

// A sink is a key with that logit whose value is zero.
TEST_P(SinkLogits, AreThoseOfAKeyWithoutAValue) {
  std::vector<double> v = {1, 2, 4}, zero(3), out(3), sink = {std::log(2.0)};
  const auto column = [](std::vector<double>& x) { return Tensor::dense(x.data(), {3, 1}); };
  const Positions at = Positions::range(0, 3);
  ASSERT_TRUE(attend(
      {column(zero), column(zero), column(v), at, at, {}, {}, Tensor::dense(sink.data(), {1})}, {},
      column(out)));
  EXPECT_NEAR(out[0], 1.0 / 3, 1e-15);
  EXPECT_NEAR(out[1], 3.0 / 4, 1e-15);
  EXPECT_NEAR(out[2], 7.0 / 5, 1e-15);
}

TEST_P(SinkLogits, OfMinusInfinityAreNone) {
  GradientProblem p = with_sinks(4, 300), none = p;
  p.sinks.assign(4, no_sink);
  none.sinks.clear();
  EXPECT_EQ(attended(p), attended(none));
}

TEST_P(SinkLogits, OfInfinityTakeAllWeight) {
  GradientProblem p = with_sinks(4);
  p.sinks.assign(4, -no_sink);
  EXPECT_EQ(attended(p), std::vector<double>(p.out.size()));
  p.loss();
  EXPECT_EQ(p.out, std::vector<double>(p.out.size()));
}

TEST_P(SinkLogits, OfNaNReachTheirOwnHeadAlone) {
  GradientProblem p = with_sinks(4);
  p.sinks[1] = NAN;
  const std::vector<double> out = attended(p);
  p.loss();
  for (std::size_t e = 0; e < out.size(); ++e) {
    const bool spoiled = e / (5 * gradient_dim) % 4 == 1;
    EXPECT_EQ(std::isnan(out[e]), spoiled) << e;
    EXPECT_EQ(std::isnan(p.out[e]), spoiled) << e;
  }
}

TEST_P(SinkLogits, LeaveZerosWhereNothingIsSeen) {
  GradientProblem p = with_sinks(4);
  p.sinks[2] = NAN;
  const std::vector<std::uint8_t> none(10);
  p.mask.keep = none.data();
  EXPECT_EQ(attended(p), std::vector<double>(p.out.size()));
  p.loss();
  EXPECT_EQ(p.out, std::vector<double>(p.out.size()));
  EXPECT_EQ(Gradients(p).sinks, std::vector<double>(4));
}

// Strides of their own, and a dtype that is not q's.
TEST_P(SinkLogits, AreOfAnyStridesAndDtype) {
  GradientProblem p = with_sinks(2 * 4 * 5);
  std::vector<float> turned(p.sinks.size());  // [query][head][batch]
  for (std::size_t e = 0; e < p.sinks.size(); ++e) {
    const std::size_t b = e / 20, h = e / 5 % 4, i = e % 5;
    turned[(i * 4 + h) * 2 + b] = static_cast<float>(p.sinks[e]);
    p.sinks[e] = static_cast<double>(static_cast<float>(p.sinks[e]));
  }
  const std::vector<double> wanted = attended(p);
  AttentionInputs in = p.inputs();
  in.sink_logits = Tensor::dense(turned.data(), {5, 4, 2}).swapped(0, 2);
  ASSERT_TRUE(attend(in, p.plan, p.tensor(p.out, p.heads, p.queries)));
  EXPECT_EQ(p.out, wanted);
}

TEST_P(SinkLogits, HaveGradients) {
  for (const std::int64_t count : {4, 2 * 4 * 5}) {
    GradientProblem p = with_sinks(count);
    p.plan.rotate = Rotate{.slice = {.rotary_dim = 6}, .frequencies = {.radians = {1, 0.4, 0.1}}};
    p.plan.bias = Slopes{.slope = {0.5, 0.25, 0.1, 0.7}};
    p.plan.logits = {.multiplier = 1.7, .beta = 0.3, .floor = 2, .offset = 1};
    expect_gradients(p);
    p.mask = {.causal = false, .window = 2};
    expect_gradients(p);
  }
}

// The queries of a head are cut into parts, which threads share.
TEST_P(SinkLogits, HaveTheSameGradientsForAnyNumberOfThreads) {
  GradientProblem p = with_sinks(4, 200);
  p.batch = 1;
  p.kv_heads = 1;
  p.filled();
  EXPECT_TRUE(Gradients(p, Threads{1}) == Gradients(p, Threads{3}));
}

TEST(SinkLogitsOfACache, AreThoseOfAttend) {
  GradientProblem p = with_sinks(2 * 4 * 5);
  const std::vector<double> wanted = attended(p);
  auto cache = KvCache::make(
      {.kv_heads = p.kv_heads, .head_dim = gradient_dim, .dtype = DType::f64, .page_size = 2});
  ASSERT_TRUE(cache);
  const KvCache::Sequence two[] = {cache->add(), cache->add()};
  ASSERT_TRUE(cache->append(two, p.tensor(p.k, p.kv_heads, p.keys),
                            p.tensor(p.v, p.kv_heads, p.keys), p.plan));
  const auto attend = [&](const Tensor& sinks) {
    return cache->attend(two, p.tensor(p.q, p.heads, p.queries), p.plan, p.mask,
                         p.tensor(p.out, p.heads, p.queries), {}, sinks);
  };
  ASSERT_TRUE(attend(p.sink_logits(p.sinks)));
  EXPECT_EQ(p.out, wanted);
  EXPECT_FALSE(attend(Tensor::dense(p.sinks.data(), {3})));
}

// --- schemes that read the content ---------------------------------------------------------------

void expect_content(const ContentScheme& scheme) {
  GradientProblem p = with_sinks(4);
  ASSERT_TRUE(attend_reference(p.inputs(), scheme, {}, p.tensor(p.out, p.heads, p.queries)));
  const std::vector<double> wanted = p.out;
  ASSERT_TRUE(attend(p.inputs(), scheme, {}, p.tensor(p.out, p.heads, p.queries)));
  for (std::size_t e = 0; e < wanted.size(); ++e) EXPECT_NEAR(p.out[e], wanted[e], 1e-12) << e;

  std::vector<double> by_sink(4), by_q(p.q.size());
  ASSERT_TRUE(attend_backward(p.inputs(), scheme, {}, p.tensor(p.loss_weight, p.heads, p.queries),
                              {.q = p.tensor(by_q, p.heads, p.queries),
                               .sink_logits = Tensor::dense(by_sink.data(), {4})}));
  const auto loss = [&] {
    EXPECT_TRUE(attend_reference(p.inputs(), scheme, {}, p.tensor(p.out, p.heads, p.queries)));
    double sum = 0;
    for (std::size_t e = 0; e < p.out.size(); ++e) sum += p.loss_weight[e] * p.out[e];
    return sum;
  };
  const auto slope = [&](double& number) {
    const double at = number;
    number = at + 1e-5;
    const double above = loss();
    number = at - 1e-5;
    const double below = loss();
    number = at;
    return (above - below) / 2e-5;
  };
  for (std::size_t h = 0; h < 4; ++h) EXPECT_NEAR(by_sink[h], slope(p.sinks[h]), 1e-8) << h;
  for (std::size_t e = 0; e < 60; e += 7) EXPECT_NEAR(by_q[e], slope(p.q[e]), 1e-8) << e;
}

TEST(SinkLogitsOfContent, StandBesideForgetting) { expect_content(Forgetting{.gate_bias = {1}}); }
TEST(SinkLogitsOfContent, StandBesideFire) {
  expect_content(Fire{.hidden_weight = {1, -1},
                      .hidden_bias = {0.1, 0.5},
                      .output_weight = {1, 2, 3, 4, -1, -2, 0.5, 1},
                      .output_bias = {0, 1, 2, 3},
                      .initial_length = 2});
}

TEST(SinkLogitsOfContent, AreRefusedWhereKeysAreCounted) {
  GradientProblem p = with_sinks(4);
  const Tensor out = p.tensor(p.out, p.heads, p.queries);
  for (const ContentScheme& scheme : {ContentScheme{Cope{}}, ContentScheme{StickBreaking{}}}) {
    for (const auto& done :
         {attend(p.inputs(), scheme, {}, out), attend_reference(p.inputs(), scheme, {}, out),
          attend_backward(p.inputs(), scheme, {}, out, {})}) {
      ASSERT_FALSE(done);
      EXPECT_NE(done.error().message().find("takes no sink logits, got [4]; drop them"),
                std::string::npos)
          << done.error().message();
    }
  }
}

// --- errors --------------------------------------------------------------------------------------

TEST(SinkLogitsErrors, AnotherShape) {
  GradientProblem p = with_sinks(2 * 4 * 5);
  AttentionInputs in = p.inputs();
  const Tensor out = p.tensor(p.out, p.heads, p.queries);
  in.sink_logits = Tensor::dense(p.sinks.data(), {3});
  const auto done = attend(in, {}, out);
  ASSERT_FALSE(done);
  EXPECT_EQ(
      done.error().message(),
      "attend: sink_logits must be [4], or [2, 4, 5], got [3]; one for each query head, or for "
      "each query of each");
  in.sink_logits = Tensor::dense(p.sinks.data(), {2, 4});
  EXPECT_FALSE(attend(in, {}, out));
  in.sink_logits = Tensor::dense(p.sinks.data(), {2, 5, 4});
  EXPECT_FALSE(attend_reference(in, {}, out));
}

TEST(SinkLogitsErrors, AGradientWithoutThem) {
  GradientProblem p = with_sinks(4);
  AttentionInputs in = p.inputs();
  in.sink_logits = {};
  std::vector<double> by_sink(4);
  const auto done = attend_backward(in, {}, p.tensor(p.loss_weight, p.heads, p.queries),
                                    {.sink_logits = Tensor::dense(by_sink.data(), {4})});
  ASSERT_FALSE(done);
  EXPECT_EQ(
      done.error().message(),
      "attend_backward: the gradient of the sink logits needs such logits, got none; leave the "
      "gradient absent");
}

}  // namespace
}  // namespace posenc
