// Arithmetic on sizes from outside, whose results may not fit 64 bits: hostile extents then fail
// checks, and never wrap. (The compiler's own checks multiply to 128 bits by a library's function,
// which clang 22 calls wrongly under WebAssembly's ABI of several values.)
#pragma once

#include <cstdint>
#include <limits>

namespace posenc::detail {

constexpr std::int64_t saturated = std::numeric_limits<std::int64_t>::max();

// a · b, at most `saturated`; 0 where one is negative, which callers refuse by itself.
constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
  if (a <= 0 || b <= 0) return 0;
  return a > saturated / b ? saturated : a * b;
}

// a + b for a, b >= 0, at most `saturated`.
constexpr std::int64_t sum(std::int64_t a, std::int64_t b) {
  return a > saturated - b ? saturated : a + b;
}

}  // namespace posenc::detail
