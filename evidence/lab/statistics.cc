#include "evidence/lab/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace posenc::lab {
namespace {

// P(0 <= T <= x) by Simpson's rule over φ with x = √freedom·tan φ, in which the density is
// c·cos(φ)^(freedom − 1).
double student_half(double x, double freedom) {
  constexpr int steps = 2000;
  const double constant = std::exp(std::lgamma((freedom + 1) / 2) - std::lgamma(freedom / 2)) /
                          std::sqrt(std::numbers::pi);
  const double end = std::atan(x / std::sqrt(freedom));
  const auto at = [&](int i) { return std::pow(std::cos(end * i / steps), freedom - 1); };
  double sum = at(0) + at(steps);
  for (int i = 1; i < steps; ++i) sum += (i % 2 == 1 ? 4 : 2) * at(i);
  return constant * sum * end / steps / 3;
}

}  // namespace

double student_quantile(double p, double freedom) {
  if (p < 0.5) return -student_quantile(1 - p, freedom);
  double low = 0, high = 1;
  while (student_half(high, freedom) < p - 0.5) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_half(middle, freedom) < p - 0.5 ? low : high) = middle;
  }
  return (low + high) / 2;
}

Interval interval_of(std::span<const double> numbers, double confidence) {
  const auto n = static_cast<double>(numbers.size());
  Interval made{.half_width = std::numeric_limits<double>::infinity(), .n = std::ssize(numbers)};
  if (numbers.empty()) return made;
  made.mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / n;
  if (numbers.size() < 2) return made;
  double squares = 0;
  for (const double x : numbers) squares += (x - made.mean) * (x - made.mean);
  made.half_width =
      student_quantile((1 + confidence) / 2, n - 1) * std::sqrt(squares / (n - 1) / n);
  return made;
}

double t_test_p(std::span<const double> numbers) {
  const Interval interval = interval_of(numbers);
  if (interval.n < 2) return 1;
  const auto freedom = static_cast<double>(interval.n - 1);
  const double error = interval.half_width / student_quantile(0.975, freedom);
  if (error == 0) return interval.mean == 0 ? 1 : 0;
  return std::max(0.0, 1 - 2 * student_half(std::abs(interval.mean) / error, freedom));
}

double sign_flip_p(std::span<const double> differences) {
  const std::size_t n = differences.size();
  double given = 0, whole = 0;
  for (const double x : differences) {
    given += x;
    whole += std::abs(x);
  }
  const double enough =
      std::abs(given) - 1e-12 * whole;  // sums of the same numbers may round otherwise
  std::uint64_t as_far = 0;
  for (std::uint64_t signs = 0; signs < std::uint64_t{1} << n; ++signs) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i)
      sum += (signs >> i & 1) != 0 ? -differences[i] : differences[i];
    as_far += std::abs(sum) >= enough ? 1 : 0;
  }
  return static_cast<double>(as_far) / static_cast<double>(std::uint64_t{1} << n);
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> adjusted(p.size());
  double reached = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    reached = std::max(reached, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    adjusted[order[i]] = reached;
  }
  return adjusted;
}

}  // namespace posenc::lab
