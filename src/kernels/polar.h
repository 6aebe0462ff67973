// Polar rotations (PoPE, 2509.10534): channels as the lengths of pairs. Rows that are computed with
// are made wide in place, and then rotated as any other.
#pragma once

#include <cstdint>

#include "posenc/apply.h"
#include "src/kernels/arguments.h"

namespace posenc::detail {

// `count` rows of head_dim numbers, `step` apart, become wide ones, zeros behind them up to the
// next whole vector: a channel x of the slice becomes (softplus(x), 0).
void widen(const Rotate& rotate, std::int64_t head_dim, float* rows, std::int64_t step,
           std::int64_t count);
void widen(const Rotate& rotate, std::int64_t head_dim, double* rows, std::int64_t step,
           std::int64_t count);

// Gradients by wide rows become those by the rows as they came, `plain`.
void narrow_gradient(const Rotate& rotate, std::int64_t head_dim, const float* plain,
                     std::int64_t plain_step, float* rows, std::int64_t step, std::int64_t count);
void narrow_gradient(const Rotate& rotate, std::int64_t head_dim, const double* plain,
                     std::int64_t plain_step, double* rows, std::int64_t step, std::int64_t count);

// rotate() of arguments that are known to fit, each number rounded once.
void rotate_polar(const Rotate& rotate, const RotateArguments& arguments,
                  const Positions& positions, Side side, Threads threads);

}  // namespace posenc::detail
