// Arithmetic that is no rotation of two channels, though it was meant to be one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/identify/dump.h"

namespace posenc::detail {

// The slip that explains what changed, of those that are known.
std::optional<Finding> kin_of(const Dump& dump, const std::vector<std::int64_t>& changed);

}  // namespace posenc::detail
