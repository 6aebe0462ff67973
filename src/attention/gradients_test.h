// A loss of an attention in double, and its gradients against differences of it: for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "posenc/gradients.h"
#include "tests/hidden_memory.h"
#include "tests/random.h"

namespace posenc {

inline constexpr std::int64_t gradient_dim = 6;

// A loss Σ weight·out of an attention, and whatever it may be differentiated by.
struct GradientProblem {
  std::int64_t batch = 2, heads = 4, kv_heads = 2;
  Positions queries = Positions::range(0, 5), keys = Positions::range(0, 5);
  Plan plan = {};
  Mask mask = {};
  std::vector<double> q = {}, k = {}, v = {}, loss_weight = {}, bias = {}, query = {}, key = {},
                      value = {};
  std::vector<double> sinks = {};  // [heads], or [batch][heads][queries]
  std::vector<double> query_profiles = {}, key_profiles = {};  // [batch][heads][token][profile]
  std::vector<double> out = {};

  Tensor sink_logits(std::vector<double>& x) const {
    if (x.empty()) return {};
    return std::ssize(x) == heads ? Tensor::dense(x.data(), {heads})
                                  : Tensor::dense(x.data(), {batch, heads, queries.size()});
  }

  Tensor tensor(std::vector<double>& x, std::int64_t h, const Positions& tokens) const {
    return Tensor::dense(x.data(), {batch, h, tokens.size(), gradient_dim});
  }
  Tensor profile(std::vector<double>& x, const Positions& tokens) const {
    if (x.empty()) return {};
    return Tensor::dense(x.data(), {batch, heads, tokens.size(), plan.relative->profiles});
  }
  AttentionInputs inputs(Threads threads = {}) {
    return {tensor(q, heads, queries),
            tensor(k, kv_heads, keys),
            tensor(v, kv_heads, keys),
            queries,
            keys,
            mask,
            threads,
            sink_logits(sinks),
            {profile(query_profiles, queries), profile(key_profiles, keys)}};
  }
  GradientProblem& filled() {
    q = random(batch * heads * queries.size() * gradient_dim, 1);
    k = random(batch * kv_heads * keys.size() * gradient_dim, 2);
    v = random(batch * kv_heads * keys.size() * gradient_dim, 3);
    loss_weight = random(batch * heads * queries.size() * gradient_dim, 4);
    out.resize(q.size());
    if (plan.relative && plan.relative->profiles > 0) {
      const std::int64_t each = batch * heads * plan.relative->profiles;
      if (plan.relative->uses_key) query_profiles = random(each * queries.size(), 11);
      if (plan.relative->uses_query) key_profiles = random(each * keys.size(), 12);
    }
    spoil_hidden(inputs());
    return *this;
  }

  double loss() {
    const auto done = attend_reference(inputs(), plan, tensor(out, heads, queries));
    EXPECT_TRUE(done) << done.error().message();
    double sum = 0;
    for (std::size_t e = 0; e < out.size(); ++e) sum += loss_weight[e] * out[e];
    return sum;
  }
};

// The gradients by everything that the problem has, each as its numbers lie.
struct Gradients {
  std::vector<double> q, k, v, slopes, bias, query, key, value, frequency, phase, mix_cosine,
      mix_sine, sinks, head_scale, head_bias, query_profiles, key_profiles;
  bool operator==(const Gradients&) const = default;

  static Tensor sized(std::vector<double>& to, const Tensor& like) {
    to.assign(static_cast<std::size_t>(like.size()), NAN);
    Tensor dense = like;
    dense.data = to.data();
    return dense;
  }
  explicit Gradients(GradientProblem& p, Threads threads = {}) {
    AttentionGradients to{.q = sized(q, p.tensor(p.q, p.heads, p.queries)),
                          .k = sized(k, p.tensor(p.k, p.kv_heads, p.keys)),
                          .v = sized(v, p.tensor(p.v, p.kv_heads, p.keys))};
    if (p.plan.bias) {
      if (const auto* part = std::get_if<Slopes>(&*p.plan.bias)) {
        slopes.resize(part->slope.size());
        to.slopes = Tensor::dense(slopes.data(), {p.heads});
      } else {
        to.bias = sized(bias, std::get<BiasTable>(*p.plan.bias).values.values);
      }
    }
    if (p.plan.relative) {
      const Relative& part = *p.plan.relative;
      if (part.uses_query) to.relative_query = sized(query, part.query.values);
      if (part.uses_key) to.relative_key = sized(key, part.key.values);
      if (part.uses_value) to.relative_value = sized(value, part.value.values);
    }
    if (p.plan.rotate) {
      const Rotate& part = *p.plan.rotate;
      if (!part.regions()) {
        frequency.resize(part.frequencies.radians.size());
        to.rotation_frequency = Tensor::dense(
            frequency.data(), {part.frequencies.heads, part.frequencies.axes, part.pairs()});
      }
      if (part.phase()) {
        phase.resize(part.phase()->radians.size());
        to.rotation_phase = Tensor::dense(phase.data(), {part.phase()->heads, part.pairs()});
      }
      if (part.mix()) {
        const Mix& mix = *part.mix();
        mix_cosine.resize(mix.cosine.size());
        mix_sine.resize(mix.sine.size());
        to.mix_cosine = Tensor::dense(mix_cosine.data(), {mix.heads, mix.inputs, mix.outputs});
        to.mix_sine = Tensor::dense(mix_sine.data(), {mix.heads, mix.inputs, mix.outputs});
      }
    }
    if (p.plan.logits.temperature == Temperature::heads) {
      to.head_scale = sized(head_scale, Tensor::dense(p.plan.logits.head_scale.data(), {p.heads}));
      to.head_bias = sized(head_bias, Tensor::dense(p.plan.logits.head_bias.data(), {p.heads}));
    }
    if (!p.query_profiles.empty())
      to.profiles.query = sized(query_profiles, p.profile(p.query_profiles, p.queries));
    if (!p.key_profiles.empty())
      to.profiles.key = sized(key_profiles, p.profile(p.key_profiles, p.keys));
    if (!p.sinks.empty()) to.sink_logits = sized(sinks, p.sink_logits(p.sinks));
    const auto done =
        attend_backward(p.inputs(threads), p.plan, p.tensor(p.loss_weight, p.heads, p.queries), to);
    EXPECT_TRUE(done) << done.error().message();
  }
};

// Five points with a step h are off by h⁴/30 of the fifth derivative, which is below 1e12 even by a
// frequency at distance 70, and by rounding, 1e-16/h of losses near 100.
inline void expect_slopes(GradientProblem& p, std::vector<double>& numbers,
                          const std::vector<double>& gradient, const std::string& name) {
  constexpr double step = 2e-5;
  ASSERT_EQ(numbers.size(), gradient.size()) << name;
  const std::size_t stride = std::max<std::size_t>(1, numbers.size() / 16);
  for (std::size_t e = 0; e < numbers.size(); e += stride) {
    const double at = numbers[e];
    const auto loss = [&](double steps) {
      numbers[e] = at + steps * step;
      return p.loss();
    };
    const double slope = (8 * (loss(1) - loss(-1)) - (loss(2) - loss(-2))) / (12 * step);
    numbers[e] = at;
    EXPECT_NEAR(gradient[e], slope, 1e-8 * (1 + std::abs(slope))) << name << " " << e;
  }
}

inline void expect_gradients(GradientProblem& p) {
  const Gradients by(p);
  expect_slopes(p, p.q, by.q, "q");
  expect_slopes(p, p.k, by.k, "k");
  expect_slopes(p, p.v, by.v, "v");
  if (!by.slopes.empty())
    expect_slopes(p, std::get<Slopes>(*p.plan.bias).slope, by.slopes, "slope");
  if (!by.bias.empty()) expect_slopes(p, p.bias, by.bias, "bias");
  if (!by.query.empty()) expect_slopes(p, p.query, by.query, "relative.query");
  if (!by.key.empty()) expect_slopes(p, p.key, by.key, "relative.key");
  if (!by.value.empty()) expect_slopes(p, p.value, by.value, "relative.value");
  if (!by.frequency.empty())
    expect_slopes(p, p.plan.rotate->frequencies.radians, by.frequency, "frequency");
  if (!by.phase.empty()) {
    auto* const polar = std::get_if<Polar>(&p.plan.rotate->kind);
    Phase& phase = polar ? *polar->phase : *std::get<Plain>(p.plan.rotate->kind).phase;
    expect_slopes(p, phase.radians, by.phase, "phase");
  }
  if (!by.mix_cosine.empty()) {
    Mix& mix = std::get<Mix>(p.plan.rotate->kind);
    expect_slopes(p, mix.cosine, by.mix_cosine, "mix.cosine");
    expect_slopes(p, mix.sine, by.mix_sine, "mix.sine");
  }
  if (!by.sinks.empty()) expect_slopes(p, p.sinks, by.sinks, "sink_logits");
  if (!by.query_profiles.empty())
    expect_slopes(p, p.query_profiles, by.query_profiles, "profiles.query");
  if (!by.key_profiles.empty()) expect_slopes(p, p.key_profiles, by.key_profiles, "profiles.key");
  if (!by.head_scale.empty()) {
    expect_slopes(p, p.plan.logits.head_scale, by.head_scale, "head_scale");
    expect_slopes(p, p.plan.logits.head_bias, by.head_bias, "head_bias");
  }
}

}  // namespace posenc
