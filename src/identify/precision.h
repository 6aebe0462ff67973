// In which arithmetic angles were formed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "posenc/identify.h"

namespace posenc::detail {

// Angles of one pair as they were measured, known up to full turns.
struct MeasuredAngles {
  std::int64_t pair = 0;
  std::vector<double> angle = {};  // [token]
};

// The ways of FrequencyFit that explain the angles as well as the best one does, by the names of
// posenc precision; empty where none does. `first_is_zero`: angles count from that of the first
// token.
std::vector<std::string> forms_of(const FrequencyFit& fit, std::int64_t rotary_dim,
                                  std::span<const std::int64_t> positions, bool first_is_zero,
                                  std::span<const MeasuredAngles> measured, double spread);

}  // namespace posenc::detail
