#include "backends/cuda/fixed_point.h"

#include <array>
#include <bit>
#include <cmath>

namespace posenc::cuda {
namespace {

constexpr int words = 8;
using Long = std::array<std::uint64_t, words>;  // the lowest word first

// 1/2π, 448 bits behind the point.
constexpr Long inverse_of_turn = {
    0x3f877ac72c4a69cf, 0x01924bba82746487, 0x6dc91b8e909374b8, 0x7f9458eaf7aef158,
    0x36d8a5664f10e410, 0x7f09d5f47d4d3770, 0x28be60db9391054a, 0};

Long product(const Long& a, std::uint64_t b) {
  Long out{};
  Uint128 carry = 0;
  for (int i = 0; i < words; ++i) {
    carry += static_cast<Uint128>(a[static_cast<std::size_t>(i)]) * b;
    out[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  return out;
}

// 64 bits of a number from `bit` on; 0 beyond its ends.
std::uint64_t bits_from(const Long& a, int bit) {
  const auto word = [&](int i) { return i < 0 || i >= words ? 0 : a[static_cast<std::size_t>(i)]; };
  const int at = bit >> 6, shift = bit & 63;  // rounds down, below 0 too
  return shift == 0 ? word(at) : word(at) >> shift | word(at + 1) << (64 - shift);
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

}  // namespace posenc::cuda
