#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <random>

#include "evidence/bench/harness/limits.h"
#include "evidence/bench/harness/machine.h"
#include "evidence/bench/harness/timing.h"
#include "posenc/apply.h"
#include "posenc/bench.h"
#include "posenc/positions.h"
#include "posenc/rekey.h"
#include "posenc/schemes.h"
#include "src/core/try.h"

namespace posenc {
namespace {

using Clock = std::chrono::steady_clock;
using detail::Action, detail::Timed, detail::median;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Memory that begins on a cache line, with values in [-1, 1) that a rotation or a sum keeps finite.
class Buffer {
 public:
  Buffer(DType dtype, std::int64_t elements)
      : memory_(static_cast<std::byte*>(::operator new(
            static_cast<std::size_t>(elements) * size_of(dtype), line, std::nothrow))) {
    if (!memory_) return;
    constexpr std::int64_t block = 4096;
    const std::int64_t first = std::min(block, elements);
    Tensor values = Tensor::dense(memory_.get(), dtype, {elements});
    std::minstd_rand random(1);
    for (std::int64_t i = 0; i < first; ++i)
      values.set(i, static_cast<double>(random() % 2001) / 1000 - 1);
    for (std::int64_t i = first; i < elements; i += block) {
      const std::int64_t count = std::min(block, elements - i);
      std::memcpy(at(dtype, i), memory_.get(), static_cast<std::size_t>(count) * size_of(dtype));
    }
  }
  explicit operator bool() const { return memory_ != nullptr; }
  void* at(DType dtype, std::int64_t element) const {
    return memory_.get() + static_cast<std::size_t>(element) * size_of(dtype);
  }

 private:
  static constexpr std::align_val_t line{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, line); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

Expected<void> check(const BenchCase& what, const BenchMachine& machine) {
  const std::pair<const char*, std::int64_t> least_one[] = {{"heads", what.heads},
                                                            {"head_dim", what.head_dim},
                                                            {"length", what.length},
                                                            {"threads", what.threads}};
  for (const auto& [name, value] : least_one)
    if (value < 1)
      return fail("bench", std::string(name) + " must be 1 or more", std::to_string(value));
  if (what.kv_heads < 0)
    return fail("bench", "kv_heads must be 0 or more", std::to_string(what.kv_heads));
  if (what.op != BenchOp::rotate && what.kv_heads > 0)
    return fail("bench", "only rotate has kv_heads", std::to_string(what.kv_heads), "leave it out");
  constexpr std::int64_t furthest = std::int64_t{1} << 53;
  if (what.first_position < 0 || what.first_position > furthest)
    return fail("bench", "position must be from 0 to 2^53", std::to_string(what.first_position));
  // The product may be beyond an integer.
  const double bytes = static_cast<double>(what.heads + what.kv_heads) *
                       static_cast<double>(what.head_dim) * static_cast<double>(what.length) *
                       static_cast<double>(size_of(what.dtype));
  if (bytes > 0.9 * static_cast<double>(machine.memory_available))
    return fail("bench", "the tensors must fit the available memory",
                number_text(std::round(bytes / 1e6) / 1e3) + " GB", "make them smaller");
  return {};
}

Positions positions_of(const BenchCase& what) {
  if (!what.decode) return Positions::range(what.first_position, what.length);
  std::minstd_rand random(1);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(what.length));
  for (std::int64_t& id : ids)
    id = what.first_position + static_cast<std::int64_t>(random() % 131072);
  return *Positions::ids(ids, 1, what.length);
}

bool turns(const BenchCase& what) {
  return what.op == BenchOp::rotate || what.op == BenchOp::rekey;
}

Expected<Plan> plan_of(const BenchCase& what) {
  if (turns(what))
    return compile(Scheme{Rope{.pairing = what.pairing}},
                   {.heads = what.heads, .kv_heads = what.kv_heads, .head_dim = what.head_dim});
  const bool apart = what.pairing == Pairing::halves;
  const Sinusoidal waves{.layout = apart ? WaveLayout::concatenated : WaveLayout::interleaved};
  return compile(Scheme{waves}, {.width = what.heads * what.head_dim});
}

// The kernel's call on the buffer: queries, then keys.
Action kernel_of(const BenchCase& what, const Plan& plan, const Positions& positions,
                 const Buffer& buffer) {
  const Threads threads{what.threads};
  const std::int64_t batch = what.decode ? what.length : 1, seq = what.decode ? 1 : what.length;
  if (!turns(what)) {
    const Tensor all = Tensor::dense(buffer.at(what.dtype, 0), what.dtype,
                                     {batch, seq, what.heads * what.head_dim});
    if (what.op == BenchOp::table)
      return [=, &plan, &positions] { return position_vectors(plan, positions, all, threads); };
    return [=, &plan, &positions] { return add(plan, all, positions, all, threads); };
  }
  const auto heads_of = [&](std::int64_t first, std::int64_t heads) {
    return Tensor::dense(buffer.at(what.dtype, first), what.dtype,
                         {batch, seq, heads, what.head_dim})
        .swapped(1, 2);
  };
  const Tensor q = heads_of(0, what.heads);
  if (what.op == BenchOp::rekey) {
    const Positions stood = Positions::range(what.first_position + 1000, what.length);
    return [=, &plan, &positions] {
      return rekey({&plan, stood}, {&plan, positions}, q, q, Side::key, threads);
    };
  }
  if (what.kv_heads == 0)
    return [=, &plan, &positions] { return rotate(plan, q, positions, Side::query, q, threads); };
  const Tensor k = heads_of(what.length * what.heads * what.head_dim, what.kv_heads);
  return [=, &plan, &positions] { return rotate(plan, q, k, positions, q, k, threads); };
}

Action limit_of(const BenchCase& what, const Plan& plan, const Positions& positions,
                const Buffer& buffer) {
  if (what.op == BenchOp::rekey) {
    BenchCase rotation = what;
    rotation.op = BenchOp::rotate;
    return kernel_of(rotation, plan, positions, buffer);
  }
  void* const data = buffer.at(what.dtype, 0);
  const auto act = what.op == BenchOp::table ? detail::fill : detail::scale_in_place;
  // A factor of one keeps the values; the kernel cannot know it.
  return
      [=, dtype = what.dtype, count = what.elements(), threads = what.threads]() -> Expected<void> {
        act(data, dtype, count, 1, threads);
        return {};
      };
}

}  // namespace

Expected<BenchRow> measure(const BenchCase& what, const BenchMachine& machine,
                           const BenchEffort& effort) {
  POSENC_CHECK(check(what, machine));
  POSENC_TRY(plan, plan_of(what));
  const Buffer buffer(what.dtype, what.elements());
  if (!buffer)
    return fail("bench", "the tensors must fit the available memory",
                std::to_string(what.working_set()) + " bytes", "make them smaller");
  const Positions positions = positions_of(what);
  const Action kernel = kernel_of(what, plan, positions, buffer),
               limit = limit_of(what, plan, positions, buffer);

  BenchRow row{.what = what, .ram = from_memory(what.working_set(), machine)};
  const detail::PeakMemory peak;
  POSENC_CHECK(kernel());
  row.peak_bytes = peak.bytes();

  const Clock::time_point start = Clock::now();
  const Timed kernel_time(kernel, what.threads), limit_time(limit, what.threads);
  std::vector<double> kernels, limits, ratios;
  constexpr std::size_t most_runs = 10000;
  const auto least = static_cast<std::size_t>(std::max(effort.least_runs, 1));
  while (kernels.size() < most_runs) {
    kernels.push_back(kernel_time.once());
    limits.push_back(limit_time.once());
    ratios.push_back(limits.back() / kernels.back());
    if (kernels.size() < least) continue;
    if (since(start) > effort.seconds || detail::error_of_median(ratios) < effort.settled) break;
  }
  row.seconds = median(kernels);
  row.limit_seconds = median(limits);
  row.runs = static_cast<int>(kernels.size());
  return row;
}

}  // namespace posenc
