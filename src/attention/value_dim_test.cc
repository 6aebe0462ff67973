// Values that are wider or narrower than keys, and values that nobody is to see.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "posenc/attention.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"
#include "tests/random.h"

namespace posenc {
namespace {

constexpr std::int64_t heads = 4, kv_heads = 2, tokens = 70, head_dim = 24;

Plan plan_of(const std::string& scheme) {
  return compile(*make_scheme(scheme),
                 {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .length = tokens})
      .value();
}

// Queries, keys and values of a type, the latter of value_dim channels.
template <class T>
struct WideValues {
  std::int64_t value_dim;
  std::vector<T> q = random<T>(heads * tokens * head_dim, 1),
                 k = random<T>(kv_heads * tokens * head_dim, 2), v, out, expected;

  explicit WideValues(std::int64_t channels)
      : value_dim(channels),
        v(random<T>(kv_heads * tokens * channels, 3)),
        out(static_cast<std::size_t>(heads * tokens * channels)),
        expected(out) {}

  AttentionInputs inputs() {
    const Positions text = Positions::range(0, tokens);
    return {.q = Tensor::dense(q.data(), {1, heads, tokens, head_dim}),
            .k = Tensor::dense(k.data(), {1, kv_heads, tokens, head_dim}),
            .v = Tensor::dense(v.data(), {1, kv_heads, tokens, value_dim}),
            .queries = text,
            .keys = text,
            .threads = {1}};
  }
  Tensor outputs(std::vector<T>& to) {
    return Tensor::dense(to.data(), {1, heads, tokens, value_dim});
  }
};

template <class T>
void expect_reference(const std::string& scheme, std::int64_t value_dim) {
  WideValues<T> problem(value_dim);
  const Plan plan = plan_of(scheme);
  ASSERT_TRUE(attend(problem.inputs(), plan, problem.outputs(problem.out)));
  ASSERT_TRUE(attend_reference(problem.inputs(), plan, problem.outputs(problem.expected)));
  const double unit = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
  for (std::size_t i = 0; i < problem.out.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(problem.out[i]), static_cast<double>(problem.expected[i]), unit)
        << scheme << ", " << value_dim << " channels: " << i;
  }
}

TEST(ValueDim, AttentionAgreesWithPlainLoops) {
  for (const std::string scheme : {"nope", "rope", "alibi"}) {
    for (const std::int64_t value_dim : {1, 16, 40}) {
      expect_reference<float>(scheme, value_dim);
      expect_reference<double>(scheme, value_dim);
    }
  }
}

// L = Σ out · g: its slope along each input, by differences of the plain loops.
TEST(ValueDim, GradientsAreTheSlopesOfTheLoss) {
  constexpr std::int64_t value_dim = 10;
  WideValues<double> problem(value_dim);
  const Plan plan = plan_of("rope");
  std::vector<double> g = random<double>(heads * tokens * value_dim, 4), by_q(problem.q.size()),
                      by_k(problem.k.size()), by_v(problem.v.size());
  const AttentionInputs in = problem.inputs();
  const auto like = [](const Tensor& x, std::vector<double>& memory) {
    Tensor view = x;
    view.data = memory.data();
    return view;
  };
  ASSERT_TRUE(
      attend_backward(in, plan, problem.outputs(g),
                      {.q = like(in.q, by_q), .k = like(in.k, by_k), .v = like(in.v, by_v)}));
  const auto loss = [&] {
    EXPECT_TRUE(attend_reference(problem.inputs(), plan, problem.outputs(problem.out)));
    double sum = 0;
    for (std::size_t i = 0; i < g.size(); ++i) sum += g[i] * problem.out[i];
    return sum;
  };
  const auto expect_slope = [&](std::vector<double>& x, const std::vector<double>& by,
                                std::size_t i) {
    constexpr double step = 1e-5;
    const double before = x[i];
    x[i] = before + step;
    const double above = loss();
    x[i] = before - step;
    const double below = loss();
    x[i] = before;
    EXPECT_NEAR(by[i], (above - below) / (2 * step), 1e-6) << i;
  };
  for (const std::size_t i : {0u, 333u, 1000u}) {
    expect_slope(problem.q, by_q, i);
    expect_slope(problem.k, by_k, i);
    expect_slope(problem.v, by_v, i % problem.v.size());
  }
}

// What a mask hides may be memory that nobody has written.
TEST(HiddenValues, ReachNoOutput) {
  for (const float odd : {NAN, std::numeric_limits<float>::infinity()}) {
    for (const std::int64_t keys : {2, 40, 300}) {
      std::vector<float> q(16, 1), k(static_cast<std::size_t>(keys * 16), 0.5f), v(k), out(16);
      std::vector<std::uint8_t> keep(static_cast<std::size_t>(keys), 1);
      keep[0] = 0;
      for (std::size_t c = 0; c < 16; ++c) k[c] = v[c] = odd;
      const AttentionInputs in{.q = Tensor::dense(q.data(), {1, 1, 1, 16}),
                               .k = Tensor::dense(k.data(), {1, 1, keys, 16}),
                               .v = Tensor::dense(v.data(), {1, 1, keys, 16}),
                               .queries = Positions::range(keys - 1, 1),
                               .keys = Positions::range(0, keys),
                               .mask = {.keep = keep.data()}};
      ASSERT_TRUE(attend(in, Plan{}, Tensor::dense(out.data(), {1, 1, 1, 16})));
      for (const float x : out) EXPECT_NEAR(x, 0.5f, 1e-6f) << keys;
    }
  }
}

}  // namespace
}  // namespace posenc
