// Schemes that read the content beside the attention of no position, whose time is the limit: 8
// heads of 64, 2048 tokens, causal, float, one thread by its own processor time. "backward" gives
// the gradients by all that they have.
#include "posenc/content.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/random.h"

namespace posenc::bench {
namespace {

constexpr std::int64_t heads = 8, seq = 2048, head_dim = 64;

std::vector<float> normal(std::int64_t count) {
  static detail::SplitMix64 engine(1);
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& number : x) number = static_cast<float>(detail::normal(engine));
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

// A scheme with random numbers, and room for the gradients of what it learns.
struct Task {
  ContentScheme scheme;
  ContentGradients gradients;
  std::deque<std::vector<double>> memory;

  Task(std::string_view name, std::int64_t positions) : scheme(*make_content_scheme(name)) {
    randomize(scheme, {.seed = 1,
                       .heads = heads,
                       .length = seq,
                       .head_dim = head_dim,
                       .hidden = 32,
                       .positions = positions,
                       .columns = 8,
                       .open = 3});
    for (const auto& [part, shape] : learned(scheme)) {
      Tensor view{.dtype = DType::f64, .rank = static_cast<int>(shape.size())};
      std::int64_t size = 1;
      for (std::size_t axis = shape.size(); axis-- > 0; size *= shape[axis])
        view.shape[axis] = shape[axis], view.stride[axis] = size;
      view.data = memory.emplace_back(static_cast<std::size_t>(size)).data();
      gradients.*gradient_named(part) = view;
    }
  }
};

// positions: of a scheme that has a table of them.
void measure(const SchemeInfo& of, std::int64_t positions) {
  const std::string name = "content/" + std::string(of.name),
                    at = positions != 0 ? "/" + std::to_string(positions) : "";
  benchmark::RegisterBenchmark((name + at).c_str(), [=](benchmark::State& state) {
    const Task task(of.name, positions);
    time(state, [&](const Text& t) { return attend(t.inputs(), task.scheme, {}, t.out); });
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark((name + "/backward" + at).c_str(), [=](benchmark::State& state) {
    Task task(of.name, positions);
    time(state, [&](const Text& t) {
      task.gradients.q = t.dq, task.gradients.k = t.dk, task.gradients.v = t.dv;
      return attend_backward(t.inputs(), task.scheme, {}, t.out, task.gradients);
    });
  })->Unit(benchmark::kMillisecond);
}

BENCHMARK(nope)->Name("content/nope")->Unit(benchmark::kMillisecond);
const bool all = [] {
  for (const SchemeInfo& scheme : all_content_schemes()) {
    const bool counts = std::ranges::any_of(
        scheme.tables, [](const TableInfo& table) { return table.holds.axes.has(Axis::row); });
    for (const std::int64_t positions :
         counts ? std::vector{std::int64_t{64}, seq + 1} : std::vector{std::int64_t{0}})
      measure(scheme, positions);
  }
  return true;
}();

}  // namespace
}  // namespace posenc::bench
