// What the formats share in listing a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "posenc/files.h"

namespace posenc::detail {

// NumPy's limit; no tensor of a model has more than 5.
constexpr std::size_t most_axes = 64;

// Elements of a shape: 1 where it has no axis. Nothing where an extent is negative, or the product
// of those that are not 0 overflows.
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape);

// A dense view of the bytes. Absent where they are not aligned for the type, where there are none,
// or with more axes than a view has.
Tensor view_of(std::span<const std::byte> bytes, DType dtype, std::span<const std::int64_t> shape);

}  // namespace posenc::detail
