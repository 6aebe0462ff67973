// The base and the scaling that may have made some frequencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/identify.h"

namespace posenc::detail {

// A frequency that was measured, of pair r of rotary_dim / 2.
struct Measured {
  std::int64_t pair = 0;
  double frequency = 0, resolution = 0;  // both positive
};

// Hypotheses by what they leave unexplained, the best first: each kind of scaling once. A simpler
// one that explains as much stands before. Frequencies that were rounded to `kept` tell their base
// less well, so that it is one of few digits.
std::vector<FrequencyFit> fit_frequencies(const std::vector<Measured>& measured,
                                          std::int64_t rotary_dim, DType kept = DType::f64);

// Significant digits, zeros at the end aside: 1 of 500000, 2 of 1.5e7.
std::size_t significant_digits(double number);

// The base of frequencies base^(−2·pair/dim) · share; nothing where none above 1 explains them.
std::optional<double> base_of(const std::vector<Measured>& measured, std::int64_t dim, double share,
                              DType kept = DType::f64);

}  // namespace posenc::detail
