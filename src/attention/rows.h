// Sums over one row in plain loops, several side by side, which the compiler makes vectors of.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace posenc::detail {

constexpr std::size_t lanes = 8;

template <class Number>
Number total(const std::array<Number, lanes>& sums) {
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// act(lane, index) for every index of [first, last).
template <class Act>
void each_lane(std::int64_t first, std::int64_t last, const Act& act) {
  std::int64_t i = first;
  for (; i + static_cast<std::int64_t>(lanes) <= last; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) act(lane, i + static_cast<std::int64_t>(lane));
  }
  for (; i < last; ++i) act(0, i);
}

template <class T>
T dot(const T* a, const T* b, std::int64_t count) {
  std::array<T, lanes> sums{};
  each_lane(0, count, [&](std::size_t lane, std::int64_t c) { sums[lane] += a[c] * b[c]; });
  return total(sums);
}

// Logits of [first, last) to weights, in place: zero for what is not seen, all zero where nothing is; NaN
// where a seen logit is.
template <class T>
void softmax(const std::uint8_t* seen, T* x, std::int64_t first, std::int64_t last) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = first; j < last; ++j) x[j] = seen[j] == 0 ? hidden : x[j];
  std::array<T, lanes> peaks;
  peaks.fill(hidden);
  each_lane(first, last, [&](std::size_t lane, std::int64_t j) {
    peaks[lane] = x[j] > peaks[lane] ? x[j] : peaks[lane];
  });
  const T peak = *std::ranges::max_element(peaks);
  // Weights that would be subnormal, as of tokens far away, cost a hundred times what others do.
  const T least = std::log(std::numeric_limits<T>::min());
  for (std::int64_t j = first; j < last; ++j) {
    const T below = x[j] - peak;
    x[j] = x[j] == hidden || below < least ? T{0} : std::exp(below);
  }
  std::array<double, lanes> sums{};
  each_lane(first, last,
            [&](std::size_t lane, std::int64_t j) { sums[lane] += static_cast<double>(x[j]); });
  const double sum = total(sums);
  if (sum == 0) return;
  const T share = static_cast<T>(1 / sum);
  for (std::int64_t j = first; j < last; ++j) {
    x[j] = x[j] == 0 ? T{0} : x[j] * share;  // a NaN stays with those that see it
  }
}

}  // namespace posenc::detail
