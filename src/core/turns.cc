// Turns of frequencies: a product with 1/2π in words of 32 bits, which every machine has.
#include "posenc/turns.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace posenc {
namespace {

constexpr int words = 16;
using Long = std::array<std::uint32_t, words>;  // the lowest word first

// 1/2π, 448 bits behind the point.
constexpr Long inverse_of_turn = {
    0x2c4a69cf, 0x3f877ac7, 0x82746487, 0x01924bba, 0x909374b8, 0x6dc91b8e, 0xf7aef158, 0x7f9458ea,
    0x4f10e410, 0x36d8a566, 0x7d4d3770, 0x7f09d5f4, 0x9391054a, 0x28be60db, 0,          0};

Long product(const Long& a, std::uint64_t b) {
  Long out{};
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint64_t factor = b >> (32 * half) & 0xffffffff;
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i + half < words; ++i) {
      carry += out[i + half] + a[i] * factor;
      out[i + half] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  return out;
}

// 64 bits of a number from `bit` on; 0 beyond its ends.
std::uint64_t bits_from(const Long& a, int bit) {
  const int at = bit >> 5, shift = bit & 31;  // rounds down, below 0 too
  const auto word = [&](int i) -> std::uint64_t {
    return i < 0 || i >= words ? 0 : a[static_cast<std::size_t>(i)];
  };
  const std::uint64_t low = word(at) | word(at + 1) << 32;
  return shift == 0 ? low : low >> shift | word(at + 2) << (64 - shift);
}

}  // namespace

Turns turns_of(double frequency) {
  int exponent = 0;
  const double fraction = std::frexp(std::abs(frequency), &exponent);
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  // The bit of the product that is worth 2^-128.
  const int last = 448 - 128 - (exponent - 53);
  const Long whole = product(inverse_of_turn, mantissa);
  Turns turns{bits_from(whole, last + 64), bits_from(whole, last)};
  const std::uint64_t rounding = bits_from(whole, last - 1) & 1;
  turns.low += rounding;
  if (rounding != 0 && turns.low == 0) ++turns.high;
  if (frequency < 0) {
    turns.low = 0 - turns.low;
    turns.high = ~turns.high + (turns.low == 0 ? 1 : 0);
  }
  return turns;
}

}  // namespace posenc
