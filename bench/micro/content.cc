// Schemes that read the content beside the attention of no position, whose time is the limit: 8 heads
// of 64, 2048 tokens, causal, float, one thread by its own processor time. "backward" gives the gradients
// by all that they have.
#include "posenc/content.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "src/core/random.h"

namespace posenc::bench {
namespace {

constexpr std::int64_t heads = 8, seq = 2048, head_dim = 64, units = 32;

std::vector<float> normal(std::int64_t count, float scale = 1) {
  static detail::SplitMix64 engine(1);
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& number : x) number = scale * static_cast<float>(detail::normal(engine));
  return x;
}

struct Text {
  std::vector<float> numbers[7];
  Tensor q, k, v, out, dq, dk, dv;  // out is the gradient of the output, too
  Positions positions = Positions::range(0, seq);

  AttentionInputs inputs() const { return {q, k, v, positions, positions, {}, {.count = 1}}; }

  Text() {
    Tensor* const views[] = {&q, &k, &v, &out, &dq, &dk, &dv};
    for (int n = 0; n < 7; ++n) {
      numbers[n] = normal(heads * seq * head_dim);
      *views[n] = Tensor::dense(numbers[n].data(), {1, heads, seq, head_dim});
    }
  }
};

// attend(text) over and over.
void time(benchmark::State& state, const auto& attend) {
  const Text text;
  for (auto _ : state) {
    if (!attend(text)) std::abort();
    benchmark::ClobberMemory();
  }
}

void nope(benchmark::State& state) {
  time(state, [](const Text& t) { return attend(t.inputs(), {}, t.out); });
}

template <bool backward>
void fire(benchmark::State& state) {
  Fire fire{.output_bias = std::vector<double>(heads)};
  for (const float x : normal(units)) fire.hidden_weight.push_back(static_cast<double>(x));
  for (const float x : normal(units)) fire.hidden_bias.push_back(static_cast<double>(x));
  for (const float x : normal(units * heads)) fire.output_weight.push_back(static_cast<double>(x));
  Fire by = fire;
  const auto view = [](std::vector<double>& x) {
    return Tensor::dense(x.data(), {static_cast<std::int64_t>(x.size())});
  };
  time(state, [&](const Text& t) {
    if constexpr (backward) {
      return attend_backward(
          t.inputs(), fire, {}, t.out,
          {.q = t.dq,
           .k = t.dk,
           .v = t.dv,
           .hidden_weight = view(by.hidden_weight),
           .hidden_bias = view(by.hidden_bias),
           .output_weight = Tensor::dense(by.output_weight.data(), {heads, units}),
           .output_bias = view(by.output_bias),
           .c = Tensor::dense(&by.c, {}),
           .length_multiplier = Tensor::dense(&by.length_multiplier, {})});
    } else {
      return attend(t.inputs(), fire, {}, t.out);
    }
  });
}

template <bool backward>
void cope(benchmark::State& state) {
  std::vector<float> e = normal(state.range(0) * head_dim, 0.1F), gradient(e);
  const auto rows = [&](std::vector<float>& x) {
    return Tensor::dense(x.data(), {state.range(0), head_dim});
  };
  const Cope cope{.embeddings = {rows(e)}};
  time(state, [&](const Text& t) {
    return backward
               ? attend_backward(t.inputs(), cope, {}, t.out,
                                 {.q = t.dq, .k = t.dk, .v = t.dv, .embeddings = rows(gradient)})
               : attend(t.inputs(), cope, {}, t.out);
  });
}

template <bool backward>
void forgetting(benchmark::State& state) {
  std::vector<float> gates = normal(heads * seq), gradient(gates);
  for (float& x : gates) x = -std::log1p(std::exp(-x - 3));  // open for the most part
  const auto view = [](std::vector<float>& x) { return Tensor::dense(x.data(), {1, heads, seq}); };
  const Forgetting scheme{.log_gates = {view(gates)}};
  time(state, [&](const Text& t) {
    return backward
               ? attend_backward(t.inputs(), scheme, {}, t.out,
                                 {.q = t.dq, .k = t.dk, .v = t.dv, .log_gates = view(gradient)})
               : attend(t.inputs(), scheme, {}, t.out);
  });
}

template <bool backward>
void stick_breaking(benchmark::State& state) {
  time(state, [&](const Text& t) {
    return backward ? attend_backward(t.inputs(), StickBreaking{}, {}, t.out,
                                      {.q = t.dq, .k = t.dk, .v = t.dv})
                    : attend(t.inputs(), StickBreaking{}, {}, t.out);
  });
}

template <bool backward>
void wall(benchmark::State& state) {
  std::vector<float> gates = normal(heads * seq * head_dim), gradient(gates);
  for (float& x : gates) x = -std::log1p(std::exp(-x - 3));  // open for the most part
  const auto view = [](std::vector<float>& x) {
    return Tensor::dense(x.data(), {1, heads, seq, head_dim});
  };
  const Wall scheme{.channel_gates = {view(gates)}};
  time(state, [&](const Text& t) {
    return backward
               ? attend_backward(t.inputs(), scheme, {}, t.out,
                                 {.q = t.dq, .k = t.dk, .v = t.dv, .channel_gates = view(gradient)})
               : attend(t.inputs(), scheme, {}, t.out);
  });
}

template <bool backward>
void path(benchmark::State& state) {
  std::vector<float> w = normal(heads * seq * head_dim, 0.125F), beta = normal(heads * seq),
                     by_w(w), by_beta(beta);
  for (float& x : beta) x = 2 / (1 + std::exp(-x));
  const auto rows = [](std::vector<float>& x) {
    return Tensor::dense(x.data(), {1, heads, seq, head_dim});
  };
  const auto list = [](std::vector<float>& x) { return Tensor::dense(x.data(), {1, heads, seq}); };
  const Path scheme{.w = {rows(w)}, .beta = {list(beta)}};
  time(state, [&](const Text& t) {
    return backward ? attend_backward(
                          t.inputs(), scheme, {}, t.out,
                          {.q = t.dq, .k = t.dk, .v = t.dv, .w = rows(by_w), .beta = list(by_beta)})
                    : attend(t.inputs(), scheme, {}, t.out);
  });
}

BENCHMARK(nope)->Name("content/nope")->Unit(benchmark::kMillisecond);
BENCHMARK(fire<false>)->Name("content/fire")->Unit(benchmark::kMillisecond);
BENCHMARK(fire<true>)->Name("content/fire/backward")->Unit(benchmark::kMillisecond);
BENCHMARK(cope<false>)->Name("content/cope")->Arg(64)->Arg(seq + 1)->Unit(benchmark::kMillisecond);
BENCHMARK(cope<true>)
    ->Name("content/cope/backward")
    ->Arg(64)
    ->Arg(seq + 1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(wall<false>)->Name("content/wall")->Unit(benchmark::kMillisecond);
BENCHMARK(wall<true>)->Name("content/wall/backward")->Unit(benchmark::kMillisecond);
BENCHMARK(path<false>)->Name("content/path")->Unit(benchmark::kMillisecond);
BENCHMARK(path<true>)->Name("content/path/backward")->Unit(benchmark::kMillisecond);
BENCHMARK(forgetting<false>)->Name("content/forgetting")->Unit(benchmark::kMillisecond);
BENCHMARK(forgetting<true>)->Name("content/forgetting/backward")->Unit(benchmark::kMillisecond);
BENCHMARK(stick_breaking<false>)->Name("content/stick_breaking")->Unit(benchmark::kMillisecond);
BENCHMARK(stick_breaking<true>)
    ->Name("content/stick_breaking/backward")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace posenc::bench
