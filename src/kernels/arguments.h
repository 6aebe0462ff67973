// What the verbs of apply.h ask of their arguments, the same before every kernel.
#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/features.h"
#include "posenc/plan.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"
#include "src/kernels/rotation.h"

namespace posenc::detail {

struct AddArguments {
  Tensor x, out;  // [batch, seq, width]; x is absent where only the vectors are wanted
};

// `embedding` is null where only the vectors are wanted. Learned rows are all within their table.
Expected<AddArguments> add_arguments(const Plan& plan, const Tensor* embedding,
                                     const Positions& positions, const Tensor& out);

// The same at real positions, `at` [axis][batch][seq].
struct RealAddArguments {
  AddArguments tensors;
  Tensor at;
};
Expected<RealAddArguments> add_arguments(const Plan& plan, const Tensor* embedding,
                                         const Tensor& at, const Tensor& out);

// The row that a position on an axis reads. Errors: it does not fit 64 bits, or is not in a learned
// table.
Expected<std::int64_t> row_at(const Waves& waves, std::int64_t position, std::int64_t axis = 0);
Expected<std::int64_t> row_at(const Rows& rows, std::int64_t position, std::int64_t axis = 0);
// The first row of an axis, of rows that have several.
std::int64_t first_row(const Rows& rows, std::int64_t axis);

struct RotateArguments {
  Tensor x, out;  // [batch, head, seq, head_dim]
  bool rotates;   // the plan rotates this side; otherwise x is copied
};

// With a polar rotation out is wider than x.
Expected<RotateArguments> rotate_arguments(const Room& room, const Plan& plan, const Tensor& x,
                                           const Positions& positions, Side side,
                                           const Tensor& out);

}  // namespace posenc::detail
