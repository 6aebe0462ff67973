#include "src/kernels/ahead.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#ifndef __wasm__
#include <ctime>
#endif

namespace posenc::detail {
namespace {

// So many parts each way, of so many bytes: 12 MiB in all.
constexpr std::size_t ways = 3, parts_each = 8;
constexpr std::int64_t part_bytes = 512 << 10;

// One thread at a time tries; what it has is kept for the next call.
struct Trial {
  std::atomic<bool> busy = false;
  std::atomic<int> chosen = -1;  // an Ask
  std::atomic<double> gain = 1;
  std::size_t count = 0;
  std::array<std::array<double, parts_each>, ways> seconds_a_byte = {};
};
Trial& trial(Loop loop) {
  static std::array<Trial, static_cast<std::size_t>(Loop::convolution) + 1> all;
  return all[static_cast<std::size_t>(loop)];
}

// The thread's own time, in which no other program has a part.
#ifdef __wasm__
constexpr bool can_ask = false;
double now() { return 0; }
#else
constexpr bool can_ask = true;
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
#endif

double median(std::array<double, parts_each> numbers) {
  std::nth_element(numbers.begin(), numbers.begin() + parts_each / 2, numbers.end());
  return numbers[parts_each / 2];
}

}  // namespace

Ahead::Ahead(Loop loop, std::int64_t bytes) : loop_(loop) {
  if (bytes < least_bytes || !can_ask) return;
  Trial& all = trial(loop);
  const int chosen = all.chosen.load(std::memory_order_relaxed);
  ask_ = chosen < 0 ? Ask::first : static_cast<Ask>(chosen);
  if (chosen >= 0 || all.busy.exchange(true, std::memory_order_acquire)) return;
  trying_ = all.chosen.load(std::memory_order_relaxed) < 0;
  if (!trying_) all.busy.store(false, std::memory_order_release);
}

Ahead::~Ahead() {
  if (trying_) trial(loop_).busy.store(false, std::memory_order_release);
}

Ask Ahead::tried(std::int64_t bytes) {
  Trial& all = trial(loop_);
  if (bytes_ == 0) start_ = now();
  if (bytes_ >= part_bytes) {
    const double end = now();
    all.seconds_a_byte[all.count % ways][all.count / ways] =
        (end - start_) / static_cast<double>(bytes_);
    start_ = end;
    bytes_ = 0;
    if (++all.count == ways * parts_each) {
      const double times[ways] = {median(all.seconds_a_byte[0]), median(all.seconds_a_byte[1]),
                                  median(all.seconds_a_byte[2])};
      const double asking = std::min(times[1], times[2]), best = std::min(times[0], asking);
      const int chosen = best == times[0] ? 0 : best == times[1] ? 1 : 2;
      ask_ = static_cast<Ask>(chosen);
      all.gain.store((chosen == 0 ? asking : times[0]) / best, std::memory_order_relaxed);
      all.chosen.store(chosen, std::memory_order_relaxed);
      all.busy.store(false, std::memory_order_release);
      trying_ = false;
      return ask_;
    }
  }
  bytes_ += bytes;
  return static_cast<Ask>(all.count % ways);
}

AheadChoice chosen_ahead(Loop loop) {
  const Trial& all = trial(loop);
  const int chosen = all.chosen.load(std::memory_order_relaxed);
  return {.known = chosen >= 0,
          .ask = chosen < 0 ? Ask::first : static_cast<Ask>(chosen),
          .gain = all.gain.load(std::memory_order_relaxed)};
}

}  // namespace posenc::detail
