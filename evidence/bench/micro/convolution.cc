// Positions by convolution, one thread: 3 x 3 taps on 64 x 64 patches, each channel by itself,
// beside a copy of the same tokens; and wav2vec 2.0's 128 taps in 16 groups, in products a second.
#include "posenc/convolution.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace posenc::bench {
namespace {

constexpr Threads one{.count = 1};

// On cache lines, as PyTorch has its tensors.
struct Numbers {
  static constexpr std::size_t line = 64;
  std::vector<double> memory;
  Tensor view;
  Numbers(DType dtype, std::initializer_list<std::int64_t> shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    memory.resize(static_cast<std::size_t>(count) + line / sizeof(double));
    void* first = memory.data();
    std::size_t room = memory.size() * sizeof(double);
    std::align(line, room - line, first, room);
    view = Tensor::dense(first, dtype, shape);
    std::minstd_rand random(1);
    for (std::int64_t i = 0; i < count; ++i)
      view.set(i, static_cast<double>(random() % 2001) / 1000 - 1);
  }
  Numbers(const Numbers&) = delete;
};

void must(const Expected<void>& done) {
  if (!done) std::abort();
}

void of_a_picture(benchmark::State& state, DType dtype) {
  constexpr std::int64_t side = 64, width = 768;
  const Numbers x(dtype, {1, side * side, width}), y(dtype, {1, side * side, width}),
      weight(DType::f32, {width, 1, 3, 3});
  const PositionConvolution convolution{.weight = Table::borrow(weight.view)};
  for (auto _ : state)
    must(convolve_positions(convolution, {.x = x.view, .grid = {side, side}, .threads = one},
                            y.view));
  state.SetBytesProcessed(state.iterations() * 2 * side * side * width *
                          static_cast<std::int64_t>(size_of(dtype)));
}

void copies(benchmark::State& state, DType dtype) {
  constexpr std::int64_t count = 64 * 64 * 768;
  const Numbers x(dtype, {count}), y(dtype, {count});
  const std::size_t bytes = count * size_of(dtype);
  for (auto _ : state) {
    std::memcpy(y.view.data, x.view.data, bytes);
    benchmark::DoNotOptimize(y.view.data);
  }
  state.SetBytesProcessed(state.iterations() * 2 * static_cast<std::int64_t>(bytes));
}

void of_sound(benchmark::State& state, DType dtype) {
  constexpr std::int64_t tokens = 1500, width = 768, groups = 16, taps = 128;
  const Numbers x(dtype, {1, tokens, width}), y(dtype, {1, tokens, width}),
      weight(DType::f32, {width, width / groups, taps});
  const PositionConvolution convolution{.weight = Table::borrow(weight.view),
                                        .after = AfterConvolution::gelu};
  for (auto _ : state) must(convolve_positions(convolution, {.x = x.view, .threads = one}, y.view));
  state.counters["products"] = benchmark::Counter(
      static_cast<double>(state.iterations() * tokens * width * (width / groups) * taps),
      benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(of_a_picture, float32, DType::f32);
BENCHMARK_CAPTURE(copies, float32, DType::f32);
BENCHMARK_CAPTURE(of_a_picture, bfloat16, DType::bf16);
BENCHMARK_CAPTURE(copies, bfloat16, DType::bf16);
BENCHMARK_CAPTURE(of_sound, float32, DType::f32);
BENCHMARK_CAPTURE(of_sound, bfloat16, DType::bf16);

}  // namespace
}  // namespace posenc::bench
