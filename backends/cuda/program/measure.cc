// Speed beside the limits of memory: in place, backwards, and with the way to a paged cache, from
// one token to many; and the error of a cosine far out, by rotating unit vectors. A row of JSON
// each; backends/cuda/report.py reads them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "backends/cuda/program/bench.h"
#include "backends/cuda/program/memory.h"
#include "posenc/cuda.h"
#include "posenc/schemes.h"

namespace posenc::cuda {
namespace {

constexpr std::int64_t heads = 32, kv_heads = 8, head_dim = 128, page_size = 16;
constexpr int graph_calls = 20;

enum class Work { rotate, transpose, append };
constexpr const char* name_of(Work work) {
  constexpr const char* names[] = {"rotate", "transpose", "append"};
  return names[static_cast<int>(work)];
}

std::string text(DType dtype) { return std::string(name(dtype)); }

Rotations rotations_of(const Backend& backend, Pairing pairing) {
  const Plan plan = must(compile(Scheme(Rope{.pairing = pairing}),
                                 {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim}));
  return must(Rotations::make(std::span(&plan, 1), backend));
}

// The calls of one row: queries, keys and values of as many copies as a cache does not hold.
class Calls {
 public:
  Calls(const Bench& bench, Work work, DType dtype, Pairing pairing, std::int64_t tokens)
      : work_(work),
        dtype_(dtype),
        tokens_(tokens),
        rotations_(rotations_of(bench.backend, pairing)),
        ids_(bench.backend, ids_in_order(tokens)),
        slots_(bench.backend, slots_page_by_page(tokens)) {
    constexpr std::size_t more_than_a_cache = std::size_t{256} << 20;
    const std::size_t copies =
        std::clamp<std::size_t>(more_than_a_cache / bytes() + 1, 2, graph_calls);
    // A copy is what is read, and then pages for keys and values.
    for (std::size_t i = 0; i < copies; ++i)
      memory_.push_back(std::make_unique<Memory>(
          bench.backend, size(heads) + 2 * size(kv_heads) + (append() ? 2 * pages_size() : 0)));
  }

  // What a call reads; it writes as much.
  std::size_t bytes() const { return size(heads) + (append() ? 2 : 1) * size(kv_heads); }
  void* at(int call) const {
    return memory_[static_cast<std::size_t>(call) % memory_.size()]->data();
  }

  void run(int call, void* stream, bool ids_ready) const {
    auto* const begin = static_cast<std::byte*>(at(call));
    const Tensor q = view(begin, heads), k = view(begin + size(heads), kv_heads);
    const DevicePositions positions{.short_ids = static_cast<const std::int32_t*>(ids_.data())};
    RotateOptions options{.stream = stream, .ids_ready = ids_ready};
    if (work_ == Work::transpose) options.action = Action::transpose;
    if (!append()) {
      must(cuda::rotate(rotations_, q, k, positions, q, k, options));
      return;
    }
    std::byte* const v = begin + size(heads) + size(kv_heads);
    const auto pages = [&](std::byte* data) {
      return Tensor::dense(data, dtype_, {pages_of(tokens_), page_size, kv_heads, head_dim})
          .swapped(1, 2);
    };
    std::byte* const cache = v + size(kv_heads);
    must(rotate_and_append(rotations_, q, k, view(v, kv_heads), positions, q, {},
                           {.keys = pages(cache),
                            .values = pages(cache + pages_size()),
                            .slots = static_cast<const std::int64_t*>(slots_.data())},
                           options));
  }

 private:
  static std::int64_t pages_of(std::int64_t tokens) { return (tokens + page_size - 1) / page_size; }
  static Bytes bytes_of(const auto& list) {
    const auto* data = reinterpret_cast<const std::byte*>(list.data());
    return Bytes(data, data + list.size() * sizeof(list[0]));
  }
  static Bytes ids_in_order(std::int64_t tokens) {
    std::vector<std::int32_t> ids;
    for (std::int64_t t = 0; t < tokens; ++t) ids.push_back(static_cast<std::int32_t>(t));
    return bytes_of(ids);
  }
  // Pages in another order than the tokens'.
  static Bytes slots_page_by_page(std::int64_t tokens) {
    std::vector<std::int64_t> slots;
    const std::int64_t pages = pages_of(tokens);
    for (std::int64_t t = 0; t < tokens; ++t)
      slots.push_back((pages - 1 - t / page_size) * page_size + t % page_size);
    return bytes_of(slots);
  }
  bool append() const { return work_ == Work::append; }
  std::size_t size(std::int64_t count) const {
    return static_cast<std::size_t>(count * tokens_ * head_dim) * size_of(dtype_);
  }
  std::size_t pages_size() const {
    return static_cast<std::size_t>(pages_of(tokens_) * page_size * kv_heads * head_dim) *
           size_of(dtype_);
  }
  // [token][head][channel] in memory, as engines have it.
  Tensor view(std::byte* data, std::int64_t count) const {
    return Tensor::dense(data, dtype_, {1, tokens_, count, head_dim}).swapped(1, 2);
  }

  Work work_;
  DType dtype_;
  std::int64_t tokens_;
  Rotations rotations_;
  Memory ids_, slots_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

void print_row(const Bench& bench, Work work, DType dtype, Pairing pairing, std::int64_t tokens) {
  const Calls calls(bench, work, dtype, pairing, tokens);
  const std::size_t bytes = calls.bytes();
  const auto rotate = [&](int call, void* stream) { calls.run(call, stream, false); };
  const double us = bench.in_graph(rotate, graph_calls, true),
               scale = bench.in_graph(
                   [&](int call, void* stream) { bench.scale(calls.at(call), bytes, stream); },
                   graph_calls, true),
               copy = bench.in_graph(
                   [&](int call, void* stream) {
                     bench.copy(calls.at(call + 1), calls.at(call), bytes, stream);
                   },
                   graph_calls, true);
  std::printf(
      R"({"work": "%s", "dtype": "%s", "pairing": "%s", "heads": %d, "kv_heads": %d, "head_dim": %d, "tokens": %lld, )"
      R"("us": %.3f, "scale_us": %.3f, "copy_us": %.3f, "of_scale": %.3f, "gb_s": %.0f)",
      name_of(work), text(dtype).c_str(), std::string(name(pairing)).c_str(),
      static_cast<int>(heads), static_cast<int>(kv_heads), static_cast<int>(head_dim),
      static_cast<long long>(tokens), us, scale, copy, scale / us,
      2e-3 * static_cast<double>(bytes) / us);
  if (tokens <= 128) {
    // Decoding: what the step before has left in the cache, launches by the host, and angles before
    // the kernel before is done.
    const double warm = bench.in_graph([&](int, void* stream) { calls.run(0, stream, false); },
                                       graph_calls, false),
                 ready =
                     bench.in_graph([&](int call, void* stream) { calls.run(call, stream, true); },
                                    graph_calls, true),
                 eager = bench.by_itself(rotate, graph_calls);
    std::printf(R"(, "warm_us": %.3f, "ids_ready_us": %.3f, "eager_us": %.3f)", warm, ready, eager);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

// Of unit vectors, rotated: the largest error of a cosine among 41 positions around each, all
// pairs, in the tensor's type.
void print_cosines(const Bench& bench, DType dtype) {
  const Rotations rotations = rotations_of(bench.backend, Pairing::halves);
  std::printf(R"({"work": "cosines", "dtype": "%s", "cos_error": {)", text(dtype).c_str());
  const char* comma = "";
  for (int power : {3, 5, 6, 7}) {
    constexpr std::int64_t count = 41, pairs = head_dim / 2;
    const std::int64_t first = std::llround(std::pow(10.0, power)) - count / 2;
    Bytes x(static_cast<std::size_t>(count * head_dim) * size_of(dtype));
    const Tensor here = Tensor::dense(x.data(), dtype, {1, 1, count, head_dim});
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t c = 0; c < head_dim; ++c) here.set(t * head_dim + c, c < pairs ? 1 : 0);
    const Memory memory(bench.backend, x);
    const Tensor there = Tensor::dense(memory.data(), dtype, {1, 1, count, head_dim});
    must(cuda::rotate(rotations, there, {}, {.first = first}, there, {}));
    must(bench.backend.copy_out(x.data(), memory.data(), x.size()));
    double worst = 0;
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t r = 0; r < pairs; ++r) {
        const long double frequency = std::pow(
            1e4L, -2.0L * static_cast<long double>(r) / static_cast<long double>(head_dim));
        const long double exact = std::cos(std::fmod(
            static_cast<long double>(first + t) * frequency, 2 * std::numbers::pi_v<long double>));
        worst = std::max(worst, std::abs(static_cast<double>(here.get(t * head_dim + r) - exact)));
      }
    std::printf(R"(%s"1e%d": %.3g)", comma, power, worst);
    comma = ", ";
  }
  std::printf("}}\n");
}

// --- the emulated grid ---------------------------------------------------------------------------

double by_the_host(const Call& call, int calls) {
  double least = 1e300;
  for (int run = 0; run < 2; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < std::min(calls, 2); ++i) call(i, nullptr);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count() / std::min(calls, 2));
  }
  return least;
}

}  // namespace

Bench emulated_bench() {
  return {emulated(),
          "emulated grid",
          [](const Call& call, int calls, bool) { return by_the_host(call, calls); },
          by_the_host,
          [](void* to, const void* from, std::size_t bytes, void*) {
            emulated().copy_in(to, from, bytes);
          },
          [](void* memory, std::size_t bytes, void*) {
            auto* const x = static_cast<std::uint16_t*>(memory);
            for (std::size_t i = 0; i < bytes / sizeof(*x); ++i) x[i] ^= 0x80;
          }};
}

void measure(const Bench& bench, bool quick) {
  std::printf(R"({"device": "%s"})"
              "\n",
              bench.name);
  std::vector<std::int64_t> decode{1, 2, 4, 8, 16, 32, 64, 128}, many{4096, 65'536};
  if (quick) decode = {1, 3}, many = {130};
  for (const DType dtype : {DType::bf16, DType::f32})
    for (const Pairing pairing : {Pairing::halves, Pairing::interleaved})
      for (const Work work : {Work::rotate, Work::transpose, Work::append}) {
        if (work != Work::transpose)
          for (const std::int64_t tokens : decode) print_row(bench, work, dtype, pairing, tokens);
        for (const std::int64_t tokens : many) print_row(bench, work, dtype, pairing, tokens);
      }
  for (const DType dtype : {DType::bf16, DType::f32}) print_cosines(bench, dtype);
}

}  // namespace posenc::cuda
