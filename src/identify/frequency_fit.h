// The base and the scaling that may have made some frequencies.
#pragma once

#include <cstdint>
#include <vector>

#include "posenc/identify.h"

namespace posenc::detail {

// A frequency that was measured, of pair r of rotary_dim / 2.
struct Measured {
  std::int64_t pair = 0;
  double frequency = 0, resolution = 0;  // both positive
};

// Hypotheses by what they leave unexplained, the best first: each kind of scaling once. A simpler one that explains as much
// stands before.
std::vector<FrequencyFit> fit_frequencies(const std::vector<Measured>& measured,
                                          std::int64_t rotary_dim);

}  // namespace posenc::detail
