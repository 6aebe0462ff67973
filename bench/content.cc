// Schemes that read the content beside the attention of no position, whose time is the limit: 8 heads
// of 64, 2048 tokens, causal, float, one thread by its own processor time.
#include "posenc/content.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

namespace posenc::bench {
namespace {

constexpr std::int64_t heads = 8, seq = 2048, head_dim = 64, units = 32;

std::vector<float> normal(std::int64_t count, float scale = 1) {
  static std::mt19937 engine(1);
  std::normal_distribution<float> draw(0, scale);
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& number : x) number = draw(engine);
  return x;
}

struct Text {
  std::vector<float> numbers[4];
  Tensor q, k, v, out;
  Positions positions = Positions::range(0, seq);

  Text() {
    Tensor* const views[] = {&q, &k, &v, &out};
    for (int n = 0; n < 4; ++n) {
      numbers[n] = normal(heads * seq * head_dim);
      *views[n] = Tensor::dense(numbers[n].data(), {1, heads, seq, head_dim});
    }
  }
};

// attend(q, k, v, positions, out) over and over.
void time(benchmark::State& state, const auto& attend) {
  const Text text;
  for (auto _ : state) {
    if (!attend(text)) std::abort();
    benchmark::ClobberMemory();
  }
}

void nope(benchmark::State& state) {
  time(state, [](const Text& t) {
    return attend(t.q, t.k, t.v, {}, t.positions, t.positions, {}, t.out, {.count = 1});
  });
}

void fire(benchmark::State& state) {
  Fire fire{.output_bias = std::vector<double>(heads)};
  for (const float x : normal(units)) fire.hidden_weight.push_back(static_cast<double>(x));
  for (const float x : normal(units)) fire.hidden_bias.push_back(static_cast<double>(x));
  for (const float x : normal(units * heads)) fire.output_weight.push_back(static_cast<double>(x));
  time(state, [&](const Text& t) {
    return attend_fire(t.q, t.k, t.v, fire, {}, t.positions, t.positions, {}, t.out, {.count = 1});
  });
}

void cope(benchmark::State& state) {
  std::vector<float> e = normal(state.range(0) * head_dim, 0.1F);
  const Cope cope{.embeddings = Tensor::dense(e.data(), {state.range(0), head_dim})};
  time(state, [&](const Text& t) {
    return attend_cope(t.q, t.k, t.v, cope, {}, t.positions, t.positions, {}, t.out, {.count = 1});
  });
}

void forgetting(benchmark::State& state) {
  std::vector<float> gates = normal(heads * seq);
  for (float& x : gates) x = -std::log1p(std::exp(-x - 3));  // open for the most part
  const Forgetting scheme{.log_gates = Tensor::dense(gates.data(), {1, heads, seq})};
  time(state, [&](const Text& t) {
    return attend_forgetting(t.q, t.k, t.v, scheme, {}, t.positions, t.positions, {}, t.out,
                             {.count = 1});
  });
}

void stick_breaking(benchmark::State& state) {
  time(state, [&](const Text& t) {
    return attend_stick_breaking(t.q, t.k, t.v, {}, {}, t.positions, t.positions, {}, t.out, {},
                                 {.count = 1});
  });
}

BENCHMARK(nope)->Name("content/nope")->Unit(benchmark::kMillisecond);
BENCHMARK(fire)->Name("content/fire")->Unit(benchmark::kMillisecond);
BENCHMARK(cope)->Name("content/cope")->Arg(64)->Arg(seq + 1)->Unit(benchmark::kMillisecond);
BENCHMARK(forgetting)->Name("content/forgetting")->Unit(benchmark::kMillisecond);
BENCHMARK(stick_breaking)->Name("content/stick_breaking")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace posenc::bench
