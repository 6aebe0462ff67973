// Every kernel beside what memory allows, taken turns on the same buffer: in-place scaling for
// rotations and sums, a plain fill for tables. `ratio` is the limit's median time over the
// kernel's.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "evidence/bench/harness/limits.h"
#include "posenc/apply.h"

namespace posenc::bench {
namespace {

struct Case {
  std::string name;
  DType dtype = DType::f32;
  Pairing pairing = Pairing::halves;
  std::int64_t batch = 1, heads = 1, seq = 1, dim = 128;
  bool heads_inside = true;  // [batch, seq, head, dim] in memory
  std::int64_t start = 0;    // first position; -1: random ones, one a sequence
  int threads = 1;
};

// One thread by its own processor time, so that a busy machine's other work does not count; several
// by the clock on the wall.
double now(int threads) {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds(int threads, auto&& act) {
  const double start = now(threads);
  act();
  return now(threads) - start;
}

double median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

// Times kernel and limit in turns, each often enough in a row that the clock does not matter.
void compare(benchmark::State& state, int threads, std::int64_t bytes, auto&& kernel,
             auto&& limit) {
  kernel();
  limit();
  const double once = seconds(threads, kernel);
  const int repeats = std::max(1, static_cast<int>(2e-5 / std::max(once, 1e-9)));
  const auto often = [&](auto&& act) {
    return seconds(threads,
                   [&] {
                     for (int i = 0; i < repeats; ++i) act();
                   }) /
           repeats;
  };
  std::vector<double> kernel_times, limit_times;
  for (auto _ : state) {
    limit_times.push_back(often(limit));
    kernel_times.push_back(often(kernel));
    state.SetIterationTime(kernel_times.back());
  }
  const double ours = median(kernel_times), best = median(limit_times);
  state.counters["ratio"] = best / ours;
  state.counters["GB/s"] = static_cast<double>(bytes) / ours * 1e-9;
  state.counters["limit_GB/s"] = static_cast<double>(bytes) / best * 1e-9;
}

std::vector<double> frequencies(std::int64_t pairs) {
  std::vector<double> frequency;
  for (std::int64_t r = 0; r < pairs; ++r) {
    frequency.push_back(std::pow(10000, -static_cast<double>(r) / static_cast<double>(pairs)));
  }
  return frequency;
}

std::int64_t bytes_of(const Tensor& x) {
  return x.size() * static_cast<std::int64_t>(size_of(x.dtype));
}

void scale_in_place(const Tensor& x, double factor, int threads) {
  detail::scale_in_place(x.data, x.dtype, x.size(), factor, threads);
}
void fill(const Tensor& x, double value, int threads) {
  detail::fill(x.data, x.dtype, x.size(), value, threads);
}

// Memory on huge pages' borders, as frameworks hand out.
struct Buffer {
  explicit Buffer(std::int64_t bytes)
      : data(std::aligned_alloc(1 << 21,
                                static_cast<std::size_t>((bytes + (1 << 21) - 1) >> 21 << 21)),
             std::free) {}
  std::unique_ptr<void, decltype(&std::free)> data;
};

void rotation(benchmark::State& state, const Case& c) {
  Plan plan;
  plan.rotate = Rotate{.slice = {.pairing = c.pairing, .rotary_dim = c.dim},
                       .frequencies = {.radians = frequencies(c.dim / 2)}};
  Tensor dense = Tensor::dense(nullptr, c.dtype, {c.batch, c.heads, c.seq, c.dim});
  const Buffer buffer(bytes_of(dense));
  dense.data = buffer.data.get();
  fill(dense, 1, 1);
  Tensor x = dense;
  if (c.heads_inside) {
    x = Tensor::dense(dense.data, c.dtype, {c.batch, c.seq, c.heads, c.dim}).swapped(1, 2);
  }
  Positions positions = Positions::range(std::max<std::int64_t>(c.start, 0), c.seq);
  if (c.start < 0) {
    std::mt19937 engine(1);
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < c.batch * c.seq; ++i) ids.push_back(engine() % 131072);
    positions = *Positions::ids(ids, 1, c.batch);
  }
  const Threads threads{c.threads};
  compare(
      state, c.threads, 2 * bytes_of(x),
      [&] { static_cast<void>(rotate(plan, x, positions, Side::query, x, threads)); },
      [&] { scale_in_place(dense, -1, c.threads); });
}

void addition(benchmark::State& state, const Case& c, bool table) {
  Plan plan;
  plan.add = Add{.kind = Waves{.width = c.dim, .frequency = frequencies(c.dim / 2)}};
  Tensor x = Tensor::dense(nullptr, c.dtype, {c.batch, c.seq, c.dim});
  const Buffer buffer(bytes_of(x));
  x.data = buffer.data.get();
  fill(x, 1, 1);
  const Positions positions = Positions::range(c.start, c.seq);
  const Threads threads{c.threads};
  if (table) {
    compare(
        state, c.threads, bytes_of(x),
        [&] { static_cast<void>(position_vectors(plan, positions, x, threads)); },
        [&] { fill(x, 1, c.threads); });
  } else {
    compare(
        state, c.threads, 2 * bytes_of(x),
        [&] { static_cast<void>(add(plan, x, positions, x, threads)); },
        [&] { scale_in_place(x, -1, c.threads); });
  }
}

void enlist() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
      for (const int threads : {1, 2}) {
        // 512 MB of any type.
        const auto seq = static_cast<std::int64_t>(131072 / size_of(dtype));
        cases.push_back({"ram", dtype, pairing, 1, 32, seq, 128, true, 0, threads});
        if (dtype == DType::f32 || threads == 1) {
          cases.push_back({"ram_heads_first", dtype, pairing, 1, 32, seq, 128, false, 0, threads});
        }
        cases.push_back({"cache", dtype, pairing, 1, 8, 4096, 128, true, 0, threads});
      }
      cases.push_back({"one_head", dtype, pairing, 1, 1, 4096, 128});
      cases.push_back({"decode", dtype, pairing, 64, 32, 1, 128, true, -1});
      cases.push_back({"decode_8_heads", dtype, pairing, 64, 8, 1, 128, true, -1});
      cases.push_back({"one_token", dtype, pairing, 1, 32, 1, 128, true, 1000});
    }
  }
  cases.push_back({.name = "far_cache", .heads = 8, .seq = 4096, .start = 10000000});
  const auto label = [](const Case& c) {
    return c.name + "/" + std::string(name(c.dtype)) + "/" + std::string(name(c.pairing)) + "/" +
           std::to_string(c.threads);
  };
  for (const Case& c : cases) {
    benchmark::RegisterBenchmark(("rotate/" + label(c)).c_str(), rotation, c)->UseManualTime();
  }
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    for (const int threads : {1, 2}) {
      for (const std::int64_t start : {0, 10000000}) {
        if (start > 0 && (dtype != DType::f32 || threads > 1)) continue;
        const Case c{.name = start > 0 ? "far" : "32768x1024",
                     .dtype = dtype,
                     .seq = 32768,
                     .dim = 1024,
                     .start = start,
                     .threads = threads};
        benchmark::RegisterBenchmark(("table/" + label(c)).c_str(), addition, c, true)
            ->UseManualTime();
        benchmark::RegisterBenchmark(("add/" + label(c)).c_str(), addition, c, false)
            ->UseManualTime();
      }
    }
  }
}

}  // namespace
}  // namespace posenc::bench

int main(int argc, char** argv) {
  posenc::bench::enlist();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
