// Whether memory can hold what a view names: hostile extents and strides fail this check before any offset is formed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>

#include "posenc/tensor.h"
#include "src/core/saturating.h"

namespace posenc::detail {

// Whether the view has no more elements, and its last one lies no further, than a pointer can reach. No extent may be
// negative.
inline bool addressable(const Tensor& view) {
  const std::int64_t most = (std::int64_t{1} << 62) / static_cast<std::int64_t>(size_of(view.dtype));
  if (view.size() > most) return false;
  std::int64_t reach = 1;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(view.rank); ++axis) {
    const std::int64_t stride = view.stride[axis];
    if (stride == std::numeric_limits<std::int64_t>::min()) return false;
    reach = sum(reach, product(view.shape[axis] - 1, std::abs(stride)));
  }
  return reach <= most;
}

}  // namespace posenc::detail
