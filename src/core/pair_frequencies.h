// The frequencies of a plan as one list.
#pragma once

#include <cstdint>
#include <vector>

#include "posenc/plan.h"

namespace posenc::detail {

// Radians per position of each pair. Of several axes a pair depends on one, whichever it is.
inline std::vector<double> frequencies_of(const Rotate& rotate) {
  std::vector<double> all;
  for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
    double sum = 0;
    for (std::int64_t axis = 0; axis < rotate.frequencies.axes; ++axis)
      sum += rotate.at(0, axis, r);
    all.push_back(sum);
  }
  return all;
}

}  // namespace posenc::detail
