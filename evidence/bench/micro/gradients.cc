// attend_backward beside attend, taken turns, by processor time of one thread: 8 heads of 64
// channels, float32. `ratio` is backward's median time over forward's. Five products of a query and
// a key are made where forward makes two.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "posenc/posenc.h"
#include "src/core/random.h"

namespace posenc::bench {
namespace {

constexpr std::int64_t heads = 8, head_dim = 64;

double processor_time() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::vector<float> random(std::int64_t count) {
  static detail::SplitMix64 engine(1);
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& value : x) value = static_cast<float>(detail::normal(engine));
  return x;
}

double median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

// A scheme, with memory for its tables and for their gradients.
struct Learned {
  std::vector<float> first, second, first_gradient, second_gradient;
  Scheme scheme;
  AttentionGradients gradients;
};

Learned learned(std::string_view name) {
  Learned made{.scheme = *make_scheme(name)};
  const auto tables = [&](auto... shape) {
    const std::int64_t count = (shape * ...);
    for (auto* numbers : {&made.first, &made.second, &made.first_gradient, &made.second_gradient}) {
      *numbers = random(count);
    }
    return [shape...](std::vector<float>& x) { return Tensor::dense(x.data(), {shape...}); };
  };
  AttentionGradients& to = made.gradients;
  if (name == "alibi") {
    to.slopes = tables(heads)(made.first_gradient);
  } else if (auto* t5 = std::get_if<T5>(&made.scheme)) {
    const auto view = tables(t5->num_buckets, heads);
    t5->table = Table::borrow(view(made.first));
    to.bias = view(made.first_gradient).swapped(0, 1);
  } else if (auto* shaw = std::get_if<Shaw>(&made.scheme)) {
    const auto view = tables(2 * shaw->max_distance + 1, head_dim);
    shaw->key = Table::borrow(view(made.first));
    shaw->value = Table::borrow(view(made.second));
    to.relative_key = view(made.first_gradient);
    to.relative_value = view(made.second_gradient);
  } else if (auto* deberta = std::get_if<Deberta>(&made.scheme)) {
    const auto view = tables(heads, 2 * deberta->position_buckets, head_dim);
    deberta->key = Table::borrow(view(made.first));
    deberta->query = Table::borrow(view(made.second));
    to.relative_key = view(made.first_gradient);
    to.relative_query = view(made.second_gradient);
  }
  return made;
}

void backward(benchmark::State& state, const std::string& scheme, bool causal,
              std::int64_t length) {
  Learned made = learned(scheme);
  const auto plan = compile(
      made.scheme, {.heads = heads, .kv_heads = heads, .head_dim = head_dim, .length = length});
  if (!plan) return state.SkipWithError(plan.error().message().c_str());
  std::vector<std::vector<float>> storage;
  for (int i = 0; i < 8; ++i) storage.push_back(random(heads * length * head_dim));
  const auto states = [&](std::size_t i) {
    return Tensor::dense(storage[i].data(), {1, heads, length, head_dim});
  };
  made.gradients.q = states(5), made.gradients.k = states(6), made.gradients.v = states(7);
  const Positions at = Positions::range(0, length);
  const Mask mask{.causal = causal};
  std::vector<double> forward_times, backward_times;
  for (auto _ : state) {
    const double start = processor_time();
    const auto forward =
        attend({states(0), states(1), states(2), at, at, mask, {.count = 1}}, *plan, states(3));
    const double middle = processor_time();
    const auto done = attend_backward({states(0), states(1), states(2), at, at, mask, {.count = 1}},
                                      *plan, states(4), made.gradients);
    const double end = processor_time();
    for (const auto* each : {&forward, &done})
      if (!*each) return state.SkipWithError(each->error().message().c_str());
    forward_times.push_back(middle - start);
    backward_times.push_back(end - middle);
    state.SetIterationTime(end - middle);
  }
  const double forward = median(forward_times), ours = median(backward_times);
  state.counters["forward_ms"] = forward * 1e3;
  state.counters["backward_ms"] = ours * 1e3;
  state.counters["ratio"] = ours / forward;
}

const bool registered = [] {
  for (const std::string scheme : {"nope", "rope", "alibi", "t5", "shaw", "deberta"}) {
    for (const bool causal : {true, false}) {
      benchmark::RegisterBenchmark(("backward/" + scheme + (causal ? "/causal" : "/open")).c_str(),
                                   backward, scheme, causal, 1024)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace posenc::bench
