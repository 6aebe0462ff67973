// What a rotation does to one pair of channels of one token.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <variant>

#include "posenc/apply.h"
#include "posenc/plan.h"
#include "posenc/positions.h"

namespace posenc::detail {

// Which matrix rotate, rotate_transpose and rotate_inverse multiply a pair by: its own, transposed,
// or inverted. The last two differ by the square of the amplitude and of xPos' growth.
enum class Action { forward, transpose, inverse };

// What product, which is p·f rounded, lacks of it: fma(p, f, −product), which is exact, and so is
// Dekker's product of halves (1971), where no half of it underflows. Where fma is no instruction
// but a function it takes longer than the rest of a rotation.
inline double product_error(double p, double f, double product) {
#ifndef FP_FAST_FMA
  const auto in_range = [](double x) { return std::abs(x) > 0x1p-400 && std::abs(x) < 0x1p400; };
  if (in_range(p) && in_range(f)) {
    const auto high_half = [](double x) {
      const double scaled = x * (0x1p27 + 1);
      return scaled - (scaled - x);
    };
    const double p_high = high_half(p), f_high = high_half(f);
    const double p_low = p - p_high, f_low = f - f_high;
    return p_low * f_low - (((product - p_high * f_high) - p_low * f_high) - p_high * f_low);
  }
#endif
  return std::fma(p, f, -product);
}

// An angle as the unrounded sum of two doubles. A product position · frequency alone is off by half
// an ulp of itself, 1e-9 at ten million radians; kept apart, that half costs nothing.
struct Angle {
  double high = 0, low = 0;

  void add(std::int64_t position, double frequency) {
    const double p = static_cast<double>(position);
    const double product = p * frequency;
    const double sum = high + product;
    const double added = sum - high;
    low += product_error(p, frequency, product) + ((high - (sum - added)) + (product - added));
    high = sum;
  }
  void add(double radians) { low += radians; }
  struct Unit {
    double cosine, sine;
  };
  // Of a low part this small they are 1 and itself, which saves their functions.
  Unit unit() const {
    const bool tiny = std::abs(low) < 0x1p-27;
    const double c = tiny ? 1 : std::cos(low), s = tiny ? low : std::sin(low);
    const double cosine = std::cos(high), sine = std::sin(high);
    return {cosine * c - sine * s, sine * c + cosine * s};
  }
  double cosine() const { return unit().cosine; }
  double sine() const { return unit().sine; }
};

// angle[head][pair] = Σ over axes of position[axis] · frequency[head][axis][pair]
inline Angle angle(const Rotate& rotate, const Positions& positions, std::int64_t token,
                   std::int64_t sequence, std::int64_t head, std::int64_t pair) {
  Angle sum;
  for (std::int64_t axis = 0; axis < rotate.frequencies.axes; ++axis) {
    const double frequency = rotate.at(head, axis, pair);
    if (frequency != 0) sum.add(positions.at(token, sequence, axis), frequency);
  }
  return sum;
}
// That of a pair's second channel, of which each has two.
inline Angle second_angle(const Rotate& rotate, const TwoAngles& two, const Positions& positions,
                          std::int64_t token, std::int64_t sequence, std::int64_t pair) {
  Angle sum;
  for (std::int64_t axis = 0; axis < rotate.frequencies.axes; ++axis)
    sum.add(positions.at(token, sequence, axis),
            two.radians[static_cast<std::size_t>(axis * rotate.pairs() + pair)]);
  return sum;
}

// Whether the plan shifts the angles of a side.
inline bool shifts(const Rotate& rotate, Side side) {
  return rotate.phase() && side == (rotate.phase()->side == Side::key ? Side::key : Side::query);
}
inline double phase(const Rotate& rotate, Side side, std::int64_t head, std::int64_t pair) {
  if (!shifts(rotate, side)) return 0;
  const std::int64_t row = rotate.phase()->heads == 1 ? 0 : head;
  return rotate.phase()->radians[static_cast<std::size_t>(row * rotate.pairs() + pair)];
}
// How many heads of a side have rows of cos and sin of their own; 1: all share them.
inline std::int64_t heads_apart(const Rotate& rotate, Side side) {
  if (rotate.mix() && side != Side::value) return rotate.mix()->heads;
  return shifts(rotate, side) ? std::max(rotate.frequencies.heads, rotate.phase()->heads)
                              : rotate.frequencies.heads;
}

// Whether rows of cos and sin say all that the rotation does to a pair; else the reference computes
// it.
inline bool is_by_rows(const Rotate& rotate) {
  struct {
    bool operator()(const Plain&) const { return true; }
    bool operator()(const Polar&) const { return true; }
    bool operator()(const Mix&) const { return true; }
    bool operator()(const Regions&) const { return true; }
    bool operator()(const TwoAngles&) const { return false; }
    bool operator()(const HfFloat&) const { return false; }
    bool operator()(const GgmlRope&) const { return false; }
  } const by_rows;
  return std::visit(by_rows, rotate.kind);
}

// The same angles for rows that are pairs already: no channel is made one.
inline Rotate of_wide_rows(Rotate rotate) {
  if (auto* const polar = std::get_if<Polar>(&rotate.kind))
    rotate.kind = Plain{.phase = std::move(polar->phase)};
  return rotate;
}

// The length of a polar pair, and its slope.
inline double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
inline double softplus_slope(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

// What multiplies a pair besides the rotation: the amplitude, the pair's magnitude, and xPos' growth
// by the first axis.
inline double magnitude(const Rotate& rotate, Side side, std::int64_t position, std::int64_t pair) {
  if (side == Side::value) return 1;
  const auto r = static_cast<std::size_t>(pair);
  const double whole =
      rotate.magnitudes().empty() ? rotate.amplitude : rotate.amplitude * rotate.magnitudes()[r];
  if (!rotate.growth()) return whole;
  const XposDecay& growth = *rotate.growth();
  const double power = (static_cast<double>(position) - growth.centre) / growth.scale;
  return whole * std::pow(growth.factor[r], side == Side::query ? power : -power);
}

// The two channels of a pair.
struct Channels {
  std::int64_t a, b;
};
inline Channels channels(const Rotate& rotate, std::int64_t pair) {
  const std::int64_t block_pairs = rotate.pairs() / rotate.slice.blocks;
  const std::int64_t start = rotate.slice.first_dim + pair / block_pairs * 2 * block_pairs;
  const std::int64_t r = pair % block_pairs;
  if (rotate.slice.pairing == Pairing::interleaved) return {start + 2 * r, start + 2 * r + 1};
  return {start + r, start + r + block_pairs};
}

// Copies one element to a tensor of the same dtype bit for bit, NaN payloads included.
inline void copy(const Tensor& x, std::int64_t from, const Tensor& out, std::int64_t to) {
  const auto bytes = static_cast<std::int64_t>(size_of(x.dtype));
  std::memmove(static_cast<char*>(out.data) + to * bytes,
               static_cast<const char*>(x.data) + from * bytes, static_cast<std::size_t>(bytes));
}

}  // namespace posenc::detail
