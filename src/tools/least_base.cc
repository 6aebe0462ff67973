// Base after base on a grid, distances from the far end on: a base that is too small fails there,
// after a few.
#include "src/tools/least_base.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace posenc::detail {
namespace {

constexpr std::int64_t most_cosines = std::int64_t{1} << 27;
constexpr double largest_base = 1e12;
constexpr int grid = 16;

// Whether the sum stays at or above zero. cos and sin go from distance to distance by one complex
// product a pair; every 4096 they are computed anew.
bool holds(const RotatedHead& head, double base, std::int64_t length) {
  const auto pairs = static_cast<std::size_t>(head.rotating);
  const double still = static_cast<double>(std::max(head.channels, 2 * head.pairs)) / 2 -
                       static_cast<double>(head.rotating);
  std::vector<double> f(pairs), cos(pairs), sin(pairs), step_cos(pairs), step_sin(pairs);
  for (std::size_t r = 0; r < pairs; ++r) {
    f[r] = std::pow(base, -static_cast<double>(r) / static_cast<double>(head.pairs));
    step_cos[r] = std::cos(f[r]);
    step_sin[r] = std::sin(f[r]);
  }
  for (std::int64_t m = length - 1; m >= 0; --m) {
    if ((length - 1 - m) % 4096 == 0) {
      for (std::size_t r = 0; r < pairs; ++r) {
        cos[r] = std::cos(f[r] * static_cast<double>(m));
        sin[r] = std::sin(f[r] * static_cast<double>(m));
      }
    }
    double sum = still;
    for (std::size_t r = 0; r < pairs; ++r) {
      sum += cos[r];
      const double c = cos[r] * step_cos[r] + sin[r] * step_sin[r];
      sin[r] = sin[r] * step_cos[r] - cos[r] * step_sin[r];
      cos[r] = c;
    }
    if (sum < 0) return false;
  }
  return true;
}

}  // namespace

std::optional<double> least_base(const RotatedHead& head, std::int64_t length) {
  if (head.rotating <= 0 || length <= 0 || length > most_cosines / head.rotating) return {};
  if (holds(head, 2, length)) return {};
  for (int i = 1;; ++i) {
    const double base = std::exp2(1 + static_cast<double>(i) / grid);
    if (base > largest_base) return {};
    if (holds(head, base, length)) return base;
  }
}

}  // namespace posenc::detail
