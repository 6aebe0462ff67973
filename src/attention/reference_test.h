// attend_reference on a few random tokens, and what it gave of them: for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "posenc/attention.h"
#include "tests/random.h"

namespace posenc::reference_test {

inline const Mask no_order{.causal = false};

// Two query heads over one key head, head_dim 4; as many keys as queries.
struct Attention {
  std::int64_t heads = 2, kv_heads = 1, seq = 6, dim = 4, batch = 1;
  std::vector<double> q = random(batch * heads * seq * dim, 1);
  std::vector<double> k = random(batch * kv_heads * seq * dim, 2);
  std::vector<double> v = random(batch * kv_heads * seq * dim, 3);
  std::vector<double> out = std::vector<double>(q.size(), NAN);
  std::vector<double> logits =
      std::vector<double>(static_cast<std::size_t>(batch * heads * seq * seq), NAN);

  Expected<void> tried(const Plan& plan, const Mask& mask, const Positions& positions) {
    const auto dense = [&](std::vector<double>& x, std::int64_t n, std::int64_t last) {
      return Tensor::dense(x.data(), {batch, n, seq, last});
    };
    return attend_reference({dense(q, heads, dim), dense(k, kv_heads, dim), dense(v, kv_heads, dim),
                             positions, positions, mask},
                            plan, dense(out, heads, dim), dense(logits, heads, seq));
  }
  void run(const Plan& plan, const Mask& mask, const Positions& positions) {
    const auto done = tried(plan, mask, positions);
    ASSERT_TRUE(done) << done.error().message();
  }
  void run(const Plan& plan, const Mask& mask = {}) { run(plan, mask, Positions::range(0, seq)); }

  using Token = std::vector<double>;
  Token token(const std::vector<double>& x, std::int64_t h, std::int64_t t) const {
    const auto start = x.begin() + (h * seq + t) * dim;
    return {start, start + dim};
  }
  Token q_at(std::int64_t h, std::int64_t t) const { return token(q, h, t); }
  Token k_at(std::int64_t t) const { return token(k, 0, t); }
  Token v_at(std::int64_t t) const { return token(v, 0, t); }
  Token out_at(std::int64_t h, std::int64_t t) const { return token(out, h, t); }
  double logit(std::int64_t h, std::int64_t i, std::int64_t j) const {
    return logits[static_cast<std::size_t>((h * seq + i) * seq + j)];
  }
  // Weights of a query over the keys, from its logits.
  std::vector<double> weights(std::int64_t h, std::int64_t i) const {
    std::vector<double> w;
    for (std::int64_t j = 0; j < seq; ++j) w.push_back(std::exp(logit(h, i, j)));
    const double sum = std::accumulate(w.begin(), w.end(), 0.0);
    for (double& x : w) x /= sum;
    return w;
  }
};

inline void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << "element " << i;
}

inline Plan rotating_plan() {
  Plan plan;
  plan.rotate = Rotate{.slice = {.rotary_dim = 4}, .frequencies = {.radians = {1, 0.1}}};
  return plan;
}

inline Plan sloping_plan() {
  Plan plan;
  plan.bias = Slopes{.slope = {0.5, 0.25}};
  return plan;
}

}  // namespace posenc::reference_test
