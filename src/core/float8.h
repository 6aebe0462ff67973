// Floats of 8 bits as caches hold them: e4m3 of OCP's specification, a sign, four bits of exponent
// and three of mantissa. There is no infinity; 448 is the largest, 2^-9 the smallest above 0.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace posenc::detail {

constexpr float e4m3_largest = 448;

constexpr float e4m3_to_float(std::uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float sign = code & 0x80 ? -1 : 1;
  if (exponent == 15 && mantissa == 7) return std::bit_cast<float>(std::uint32_t{0x7fc00000});
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1p-9f;
  return sign *
         std::bit_cast<float>(static_cast<std::uint32_t>((exponent + 120) << 23 | mantissa << 20));
}

// To nearest, ties to even; what is larger than 448 becomes 448.
inline std::uint8_t float_to_e4m3(float value) {
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return sign | 0x7f;
  const float size = std::abs(value);
  if (size >= e4m3_largest) return sign | 0x7e;
  if (size < 0x1p-6f) return sign | static_cast<std::uint8_t>(std::nearbyint(size * 0x1p9f));
  const auto bits = std::bit_cast<std::uint32_t>(size);
  const std::uint32_t rounded = bits + 0x7ffff + (bits >> 20 & 1);
  return sign |
         static_cast<std::uint8_t>(std::min<std::uint32_t>((rounded >> 20) - (120 << 3), 0x7e));
}

}  // namespace posenc::detail
