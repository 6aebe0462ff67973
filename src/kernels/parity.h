// Rotations in another engine's float arithmetic (Rotate::angles). Slower than exact ones and off
// by what that engine is off: they are for serving a model as it was trained, and for showing the
// error.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "posenc/apply.h"
#include "posenc/plan.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"
#include "src/kernels/rotation.h"

namespace posenc::detail {

// The rotation is one that its engine has, and a float holds every position. Nothing is asked of a
// plan with exact angles.
Expected<void> check_engine(std::string_view where, const Rotate& rotate,
                            const Positions& positions);

// The angle of every pair for a token, as the engine forms it. `angle` has rotate.pairs() entries.
void engine_angles(const Rotate& rotate, const Positions& positions, std::int64_t token,
                   std::int64_t sequence, std::span<float> angle);

// cos and sin of those angles as the engine has them in float, times the amplitude (values have
// none).
void engine_row(const Rotate& rotate, const Positions& positions, std::int64_t token,
                std::int64_t sequence, Side side, std::span<float> cosine, std::span<float> sine);

// rotate() and its kin for a plan whose angles are not exact: all viewed and checked, as
// rotate_arguments() does, [batch, head, seq, head_dim].
void engine_rotated(const Rotate& rotate, const Tensor& x, const Positions& positions, Side side,
                    const Tensor& out, Action action);

}  // namespace posenc::detail
