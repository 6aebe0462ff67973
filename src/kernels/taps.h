// The loop of convolutions whose channels stand alone: rows of weights times rows of tokens.
#pragma once

#include <cstdint>

namespace posenc::detail {

// How many taps add_taps() takes in one go: their weights stay in registers.
constexpr int most_taps = 9, fewer_taps = 3;

// to[column][i] += Σ_tap weight[tap][i] · x[tap][column][i], i < count, a multiple of row_lanes
// (rows.h); steps are in numbers from column to column. `taps` is one of the above.
void add_taps(const float* const* weight, const float* const* x, int taps, std::int64_t x_step,
              std::int64_t columns, std::int64_t count, float* to, std::int64_t to_step);
void add_taps(const double* const* weight, const double* const* x, int taps, std::int64_t x_step,
              std::int64_t columns, std::int64_t count, double* to, std::int64_t to_step);

}  // namespace posenc::detail
