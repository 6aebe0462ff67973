// What every function on tensors asks of its arguments, so that the loops behind need ask nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/plan.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc::detail {

// The tensor seen with exactly `rank` axes. Errors: none given, more axes, negative
// extents, extents beyond the address space, or a dtype of 8 bits.
Expected<Tensor> viewed(std::string_view where, std::string_view name, const Tensor& tensor,
                        int rank);

// The same of four axes, of 8 bits too: what a cache holds. Errors of q8_0: parts of blocks.
Expected<Tensor> viewed_cached(std::string_view where, std::string_view name, const Tensor& tensor);

Expected<void> check_shape(std::string_view where, std::string_view name, const Tensor& tensor,
                           const Tensor& like);

// Every index of `out` has an element of its own to be written to.
Expected<void> check_distinct(std::string_view where, const Tensor& out);

// `out` can take what is made of `x` element by element: same shape and dtype, and either the same
// view or memory of its own. Both have been viewed with the same rank.
Expected<void> check_out(std::string_view where, const Tensor& x, const Tensor& out);

// The positions are of `seq` tokens in one or `batch` sequences, on one axis or `axes`.
Expected<void> check_positions(std::string_view where, const Positions& positions,
                               std::int64_t batch, std::int64_t seq, std::int64_t axes);

// Real positions, [axis][batch][seq] of any dtype. Errors: another shape, a number that is not
// finite.
Expected<Tensor> real_positions(std::string_view where, const Tensor& at, std::int64_t axes,
                                std::int64_t batch, std::int64_t seq);

// The positions do not run beyond the lengths for which the plan holds. Nothing is asked of their
// lower end: a part of a long text does not tell how long the whole is.
Expected<void> check_length(std::string_view where, const Plan& plan, const Positions& positions);

// The rotation's numbers are as many as it says, and it fits `heads` heads of head_dim channels of
// that side. (Of values, or where both sides are meant, no phases are counted.)
Expected<void> check_rotation(std::string_view where, const Rotate& rotate, Side side,
                              std::int64_t heads, std::int64_t head_dim);

}  // namespace posenc::detail
