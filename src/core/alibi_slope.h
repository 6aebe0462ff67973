// ALiBi's slope of a head: of a bias by distance, and of what else takes its series (GRAPE-AP).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace posenc::detail {

// 2^(−most·h/P), P the smallest power of two not below `heads`. Where that is not `heads` itself
// the even h come first, then the odd ones.
inline double alibi_slope(std::int64_t head, std::int64_t heads, double most = 8) {
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(heads)));
  std::int64_t h = head + 1;
  if (power != heads) h = head < power / 2 ? 2 * (head + 1) : 2 * (head - power / 2) + 1;
  return std::exp2(-most * static_cast<double>(h) / static_cast<double>(power));
}

}  // namespace posenc::detail
