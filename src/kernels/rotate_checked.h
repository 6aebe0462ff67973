// Rotation of arguments that are known to fit, for loops that rotate some rows of one head at a
// time.
#pragma once

#include <cstdint>

#include "posenc/apply.h"
#include "src/kernels/rotation.h"

namespace posenc::detail {

// Of a polar rotation both take rows that are wide already (polar.h).

// rotate() and its kin, x [batch, head, seq, head_dim] -> out; without a rotation x is copied.
void rotate_checked(const Rotate* rotate, const Tensor& x, const Positions& positions, Side side,
                    Action action, const Tensor& out, Threads threads);

// The same in place for some heads of those that the rotation is of, on the caller's thread: the
// first head of x is the rotation's `first_head`. Of a mixture heads are counted as key heads,
// which query heads share.
void rotate_heads(const Rotate& rotate, std::int64_t first_head, const Tensor& x,
                  const Positions& positions, Side side, Action action);

}  // namespace posenc::detail
