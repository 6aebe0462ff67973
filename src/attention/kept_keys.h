// Keys that are kept rotated (and values, where their plan rotates them), turned on from where they
// are. Angles that are a product of position and frequency can be turned by a difference, in one
// step that rounds once; the others (an engine's float angles, a growth of another centre) are
// turned back and turned anew, and 16-bit numbers are rounded twice.
#pragma once

#include <cstdint>
#include <optional>

#include "posenc/apply.h"
#include "posenc/plan.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc::detail {

using Rotation = std::optional<Rotate>;  // none: as they came

// In place, all of them checked before: keys, values [1, kv_heads, tokens, head_dim] that stand at
// `positions`, from the turn that one rotation gave them to the one that another gives.
Expected<void> change_rotation(const Rotation& from, const Rotation& to, const Tensor& keys,
                               const Tensor& values, const Positions& positions, Threads threads);

// The same tokens to positions + offset, on every axis, by the same rotation.
Expected<void> move_tokens(const Rotation& rotation, const Tensor& keys, const Tensor& values,
                           const Positions& positions, std::int64_t offset);

}  // namespace posenc::detail
