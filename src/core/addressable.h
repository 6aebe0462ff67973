// Whether memory can hold what a view names: hostile extents and strides fail this check before any
// offset is formed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>

#include "posenc/tensor.h"
#include "src/core/saturating.h"

namespace posenc::detail {

// Whether the view has no more elements, and its last one lies no further, than a pointer can
// reach. No extent may be negative.
inline bool addressable(const Tensor& view) {
  const std::int64_t most =
      (std::int64_t{1} << 62) / static_cast<std::int64_t>(size_of(view.dtype));
  if (view.size() > most) return false;
  std::int64_t reach = 1;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(view.rank); ++axis) {
    const std::int64_t stride = view.stride[axis];
    if (stride == std::numeric_limits<std::int64_t>::min()) return false;
    reach = sum(reach, product(view.shape[axis] - 1, std::abs(stride)));
  }
  return reach <= most;
}

// How often loops over an empty view reach the axis that is empty. 2^24 times are over before
// anyone notices; 2^40 never end, and no memory holds them back.
inline constexpr std::int64_t most_rows_of_nothing = std::int64_t{1} << 24;
inline bool ends_soon(const Tensor& empty) {
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(empty.rank); ++axis) {
    if (empty.shape[axis] == 0) return rows <= most_rows_of_nothing;
    rows = product(rows, empty.shape[axis]);
  }
  return true;
}

}  // namespace posenc::detail
