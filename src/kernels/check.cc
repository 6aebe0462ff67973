// Checks that every verb makes of its tensors, positions and plan, with the error that each gives.
#include "src/kernels/check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/core/addressable.h"
#include "src/core/check_plan.h"
#include "src/core/try.h"
#include "src/kernels/rotation.h"

namespace posenc::detail {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

// Whether some steps along the axes of x that are in `axes`, a bit each, no more than it has
// elements, lead `rest` elements further. The widest steps come first: in all but made-up strides
// the others together stay below one of them, so that the count is the quotient or its neighbour.
bool reaches(const Tensor& x, unsigned axes, std::int64_t rest) {
  if (axes == 0) return rest == 0;
  std::size_t widest = 0;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(x.rank); ++axis) {
    const bool better =
        !(axes >> widest & 1) || std::abs(x.stride[axis]) > std::abs(x.stride[widest]);
    if ((axes >> axis & 1) && better) widest = axis;
  }
  const unsigned others = axes & ~(1u << widest);
  const std::int64_t extent = x.shape[widest], step = std::abs(x.stride[widest]);
  if (extent <= 1 || step == 0) return reaches(x, others, rest);
  for (std::int64_t steps = rest / step - 1; steps <= rest / step + 1; ++steps) {
    if (std::abs(steps) < extent && reaches(x, others, rest - steps * step)) return true;
  }
  return false;
}

// Whether two views that differ only in where they begin share memory.
bool shares_memory(const Tensor& x, const Tensor& out) {
  std::int64_t reach = 0;  // from the lowest element to the highest
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(x.rank); ++axis) {
    if (x.shape[axis] > 1 && x.stride[axis] != out.stride[axis]) return false;
    reach += (x.shape[axis] - 1) * std::abs(x.stride[axis]);
  }
  const auto size = static_cast<std::int64_t>(size_of(x.dtype));
  const std::int64_t bytes =
      reinterpret_cast<std::intptr_t>(out.data) - reinterpret_cast<std::intptr_t>(x.data);
  if (std::abs(bytes) >= (reach + 1) * size) return false;
  if (bytes % size != 0) return true;
  return reaches(x, (1u << x.rank) - 1, bytes / size);
}

Expected<Tensor> view_of(std::string_view where, std::string_view name, const Tensor& tensor,
                         int rank) {
  if (tensor.rank < 0 || tensor.rank > rank) {
    return fail(where, std::string(name) + " must have at most " + number(rank) + " axes",
                number(tensor.rank), "see the shape in the function's comment");
  }
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.shape[static_cast<std::size_t>(axis)] < 0) {
      return fail(where, std::string(name) + " must have no negative extent", shape_text(tensor),
                  "check the shape");
    }
  }
  const Tensor view = tensor.with_rank(rank);
  if (view.size() == 0) {
    if (ends_soon(view)) return view;
    return fail(where, std::string(name) + " must have 2^24 rows or fewer where it has no numbers",
                shape_text(tensor), "check the shape");
  }
  if (!tensor)
    return fail(where, std::string(name) + " must be given", "", "pass a view of memory");
  if (!addressable(view)) {
    return fail(where, std::string(name) + " must fit in memory", shape_text(tensor),
                "check shape and strides");
  }
  return view;
}

}  // namespace

Expected<Tensor> viewed(std::string_view where, std::string_view name, const Tensor& tensor,
                        int rank) {
  if (has_8_bits(tensor.dtype))
    return fail(where, std::string(name) + " must be of 16 bits or more",
                posenc::name(tensor.dtype),
                "convert it outside: of 8 bits attend() alone takes keys and values");
  return view_of(where, name, tensor, rank);
}

Expected<Tensor> viewed_cached(std::string_view where, std::string_view name,
                               const Tensor& tensor) {
  POSENC_TRY(view, view_of(where, name, tensor, 4));
  if (view.dtype != DType::q8_0 || view.size() == 0) return view;
  const auto whole = [&](std::size_t axis) {
    return view.shape[axis] == 1 || view.stride[axis] % q8_block == 0;
  };
  if (view.stride[3] == 1 && view.shape[3] % q8_block == 0 && whole(0) && whole(1) && whole(2))
    return view;
  return fail(
      where,
      std::string(name) + " of q8_0 must have whole blocks of 32 numbers along its last axis",
      shape_text(view), "strides count numbers, 32 for each block of 34 bytes");
}

Expected<void> check_shape(std::string_view where, std::string_view name, const Tensor& tensor,
                           const Tensor& like) {
  if (tensor.rank == like.rank && tensor.shape == like.shape) return {};
  return fail(where, std::string(name) + " must have the shape " + shape_text(like),
              shape_text(tensor), "pass tensors that match");
}

Expected<void> check_distinct(std::string_view where, const Tensor& out) {
  if (out.size() == 0) return {};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(out.rank); ++axis) {
    if (out.shape[axis] > 1 && out.stride[axis] == 0) {
      return fail(where, "out must have an element of its own for each index",
                  "stride 0 on axis " + number(static_cast<std::int64_t>(axis)),
                  "broadcast inputs only");
    }
  }
  return {};
}

Expected<void> check_out(std::string_view where, const Tensor& x, const Tensor& out) {
  POSENC_CHECK(check_shape(where, "out", out, x));
  if (out.dtype != x.dtype) {
    return fail(where, "out must have the dtype " + std::string(name(x.dtype)), name(out.dtype),
                "convert outside");
  }
  POSENC_CHECK(check_distinct(where, out));
  if (out.size() == 0) return {};
  for (std::size_t axis = 0; out.data == x.data && axis < static_cast<std::size_t>(x.rank);
       ++axis) {
    if (x.shape[axis] > 1 && x.stride[axis] != out.stride[axis]) {
      return fail(where, "in place, out must be the same view as the input", "other strides",
                  "write to memory of its own");
    }
  }
  if (out.data != x.data && shares_memory(x, out)) {
    return fail(where, "out must be the input itself or memory apart from it",
                "the input's memory, further on", "write in place, or to memory of its own");
  }
  return {};
}

Expected<void> check_positions(std::string_view where, const Positions& positions,
                               std::int64_t batch, std::int64_t seq, std::int64_t axes) {
  if (positions.size() != seq) {
    return fail(where, "there must be a position for each of " + number(seq) + " tokens",
                number(positions.size()),
                "check the seq axis: shapes read [batch, head, seq, dim]");
  }
  if (positions.batch() != 1 && positions.batch() != batch) {
    return fail(where, "positions must be of one sequence or of all " + number(batch),
                number(positions.batch()), "pass positions [axis][batch][seq]");
  }
  if (positions.axes() != 1 && positions.axes() != axes) {
    return fail(where, "positions must have one axis or the " + number(axes) + " of the plan",
                number(positions.axes()), "check which plan the positions belong to");
  }
  if (positions.contiguous() && positions.size() > 0 &&
      (positions.at(0) < -furthest_position || positions.at(0) > furthest_position ||
       positions.size() > furthest_position)) {
    return fail(where, "positions must be within 2^62 of 0",
                number(positions.size()) + " from " + number(positions.at(0)),
                "check the first position");
  }
  return {};
}

Expected<Tensor> real_positions(std::string_view where, const Tensor& at_view, std::int64_t axes,
                                std::int64_t batch, std::int64_t seq) {
  POSENC_TRY(at, viewed(where, "at", at_view, 3));
  if (at.shape[0] != axes || at.shape[1] != batch || at.shape[2] != seq) {
    return fail(where,
                "at must be [" + std::to_string(axes) + " axes, " + std::to_string(batch) + ", " +
                    std::to_string(seq) + "]",
                shape_text(at_view), "pass a real position for each axis of each token");
  }
  for (std::int64_t a = 0; a < axes; ++a)
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t t = 0; t < seq; ++t)
        if (const double x = at.get(at.offset(a, b, t)); !std::isfinite(x))
          return fail(where, "positions must be finite", std::to_string(x),
                      "token " + std::to_string(t) + " on axis " + std::to_string(a));
  return at;
}

Expected<void> check_length(std::string_view where, const Plan& plan, const Positions& positions) {
  if (!plan.valid || positions.length() <= plan.valid->to) return {};
  return fail(where,
              "positions must stay below " + number(plan.valid->to) +
                  ", the longest length for which this plan holds",
              number(positions.length() - 1), "compile the scheme for a longer length");
}

Expected<void> check_rotation(std::string_view where, const Rotate& rotate, Side side,
                              std::int64_t heads, std::int64_t head_dim) {
  POSENC_CHECK(check_sizes(where, rotate));
  POSENC_CHECK(check_slice(where, rotate, head_dim));
  if (rotate.frequencies.heads != 1 && rotate.frequencies.heads != heads) {
    return fail(
        where,
        "heads must match the plan's frequencies of " + number(rotate.frequencies.heads) + " heads",
        number(heads), "repeat key heads for queries that share them");
  }
  if (rotate.mix() && rotate.mix()->heads != 1 &&
      (side == Side::key ? heads != rotate.mix()->heads : heads % rotate.mix()->heads != 0)) {
    return fail(where,
                "heads must match the mixtures of " + number(rotate.mix()->heads) + " key heads",
                number(heads), "give a mixture for each key head, or one for all");
  }
  if (shifts(rotate, side) && rotate.phase()->heads != 1 && rotate.phase()->heads != heads) {
    return fail(where,
                "heads must match the phases of " + number(rotate.phase()->heads) +
                    (side == Side::query ? " query heads" : " key heads"),
                number(heads), "give a phase for each head, or one for all");
  }
  return {};
}

}  // namespace posenc::detail
