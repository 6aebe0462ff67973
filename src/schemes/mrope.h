// M-RoPE (Qwen2-VL, 2409.12191): one set of frequencies, but each pair rotates by the position of
// its own axis: time, height or width. Text has the same position on all three and behaves as plain
// RoPE.
#pragma once

#include <cstdint>
#include <vector>

#include "posenc/error.h"
#include "posenc/schemes.h"

namespace posenc::detail {

// Axis of each pair. section: pairs for each axis, summing to `pairs`.
Expected<std::vector<std::int64_t>> mrope_axes(const std::vector<std::int64_t>& section,
                                               bool interleaved, std::int64_t pairs);

// The same from whichever of a rope's fields says it.
Expected<std::vector<std::int64_t>> axis_of_each_pair(const Rope& rope, std::int64_t pairs);

// [axes][pairs]: each pair's frequency in its axis' row, zero in the others.
std::vector<double> spread_over_axes(const std::vector<double>& frequency,
                                     const std::vector<std::int64_t>& axis_of_pair,
                                     std::int64_t axes);

}  // namespace posenc::detail
