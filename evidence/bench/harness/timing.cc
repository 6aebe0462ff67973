#include "evidence/bench/harness/timing.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace posenc::detail {

double now(int threads) {
  timespec time{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double quantile(std::vector<double> numbers, double part) {
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(numbers.size() - 1) + 0.5);
  std::nth_element(numbers.begin(), numbers.begin() + at, numbers.end());
  return numbers[static_cast<std::size_t>(at)];
}

double error_of_median(const std::vector<double>& numbers) {
  const double spread = (quantile(numbers, 0.75) - quantile(numbers, 0.25)) / 1.349;
  return 1.2533 * spread / (median(numbers) * std::sqrt(static_cast<double>(numbers.size())));
}

Timed::Timed(const Action& act, int threads) : act_(act), threads_(threads) {
  constexpr double shortest = 0.5e-3;
  while (repeats_ < 1 << 20) {
    const double seconds = once() * repeats_;
    if (seconds >= shortest) break;
    repeats_ = seconds <= shortest / 16 ? repeats_ * 8 : repeats_ * 2;
  }
}

double Timed::once() const {
  const double start = now(threads_);
  for (int i = 0; i < repeats_; ++i) static_cast<void>(act_());
  return (now(threads_) - start) / repeats_;
}

}  // namespace posenc::detail
