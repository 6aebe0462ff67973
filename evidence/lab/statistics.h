// How sure a mean of few runs is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace posenc::lab {

// x with P(T <= x) = p of Student's distribution with `freedom` > 0 degrees of freedom, to 1e-9; 0
// < p < 1.
double student_quantile(double p, double freedom);

// A mean and half the width of its interval, that of Student's t: the true mean of normal numbers
// lies within mean ± half_width as often as `confidence` says. half_width is infinite of fewer than
// two numbers.
struct Interval {
  double mean = 0, half_width = 0;
  std::int64_t n = 0;
  double low() const { return mean - half_width; }
  double high() const { return mean + half_width; }
};
Interval interval_of(std::span<const double> numbers, double confidence = 0.95);

// How likely a mean as far from 0 is if the numbers are normal around 0: Student's two-sided test,
// to 1e-9. 1 of fewer than two numbers.
double t_test_p(std::span<const double> numbers);

// How likely a mean as far from 0 is if every difference might as well have the other sign: the
// exact two-sided sign-flip test over all 2^n choices, n up to 24. Six pairs can come to 1/32 at
// the least, five never below 1/16.
double sign_flip_p(std::span<const double> differences);

// Holm's step-down: p-values of claims made together, each raised to what it counts for among the
// others.
std::vector<double> holm(std::span<const double> p);

}  // namespace posenc::lab
