// Rotated keys (and values, where their plan rotates them) rotated further from where they are.
// Angles that are a product of position and frequency differ by a product too, so one step that
// rounds once is enough; the others (an engine's float angles, a growth of another centre) are
// rotated back and then anew, which rounds 16-bit numbers twice.
#pragma once

#include <cstdint>
#include <optional>

#include "posenc/plan.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"
#include "src/kernels/rotate_checked.h"

namespace posenc::detail {

using Rotation = std::optional<Rotate>;  // none: as they came

// In place, with arguments that have been checked: keys, values [1, kv_heads, tokens, head_dim] at
// `positions`, from the angles of one rotation to those of another.
void change_rotation(const Rotation& from, const Rotation& to, const Tensor& keys,
                     const Tensor& values, const Positions& positions, Threads threads);

// What keys of a rotation that move on are rotated by, once, at the difference of their positions:
// amplitude and phases are in them already, and the centre of a growth too.
Rotate move_of(const Rotate& rotation);

// The same tokens from `positions` to `moved`, which are `offset` further on every axis, by the
// same rotation.
void move_tokens(const Rotation& rotation, const Tensor& keys, const Tensor& values,
                 const Positions& positions, const Positions& moved, std::int64_t offset);

}  // namespace posenc::detail
