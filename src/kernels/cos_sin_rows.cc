// What of rows of cos and sin needs no vectors: their memory, xPos' powers, and angles beyond the
// reach of the vectors' argument reduction. cos_sin_rows-inl.h has the rest.
#include "src/kernels/cos_sin_rows.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

namespace posenc::detail {

CosSinRule CosSinRule::of(const Waves& waves) {
  return {.frequency = waves.frequency,
          .axes = waves.axes,
          .pairs = waves.pairs(),
          .backward = waves.cosine_first,
          .swapped = waves.cosine_first,
          .amplitude = waves.amplitude};
}

CosSinRule CosSinRule::of(const Rotate& rotate, Side side, Action action) {
  CosSinRule rule{.frequency = rotate.frequencies.radians,
                  .rows = rotate.mix() ? 1 : heads_apart(rotate, side),
                  .axes = rotate.frequencies.axes,
                  .pairs = rotate.pairs(),
                  .backward = action != Action::forward};
  if (side == Side::value) return rule;
  const bool inverse = action == Action::inverse;
  rule.amplitude = inverse ? 1 / rotate.amplitude : rotate.amplitude;
  rule.magnitudes = rotate.magnitudes();
  rule.divides = inverse;
  rule.growth = rotate.growth();
  rule.shrinks = (side == Side::key) != inverse;
  if (shifts(rotate, side)) rule.phase = rotate.phase()->radians;
  if (rotate.mix()) {
    rule.mix = rotate.mix();
    rule.mix_heads = rotate.mix()->heads;
  }
  return rule;
}

CosSinRule CosSinRule::of_heads(std::int64_t first, std::int64_t count) const {
  CosSinRule some = *this;
  if (mix_heads > 1) {
    some.mix_first = first;
    some.mix_heads = count;
  }
  if (rows == 1) return some;
  some.rows = count;
  const auto cut = [&](std::span<const double>& all, std::int64_t of_head) {
    if (std::ssize(all) <= of_head) return;  // shared, or none
    all = all.subspan(static_cast<std::size_t>(first * of_head),
                      static_cast<std::size_t>(count * of_head));
  };
  cut(some.frequency, axes * pairs);
  cut(some.phase, pairs);
  return some;
}

CosSinRule CosSinRule::of_angles(const Rotate& rotate, std::int64_t heads, Side side,
                                 Action action) {
  const double amplitude = side == Side::value ? 1 : rotate.amplitude;
  CosSinRule rule{.frequency = {},
                  .rows = shifts(rotate, side) ? std::max(heads, rotate.phase()->heads) : heads,
                  .axes = 0,
                  .pairs = rotate.pairs(),
                  .backward = action != Action::forward,
                  .amplitude = action == Action::inverse ? 1 / amplitude : amplitude,
                  .divides = action == Action::inverse};
  if (side != Side::value) rule.magnitudes = rotate.magnitudes();
  if (shifts(rotate, side)) rule.phase = rotate.phase()->radians;
  return rule;
}

AlignedDoubles::AlignedDoubles(std::int64_t count)
    : memory_(new (std::align_val_t{64}) double[static_cast<std::size_t>(count)]()) {}

template <class F>
CosSinRows<F>::CosSinRows(const CosSinRule& from)
    : rule(from),
      count(from.rows * from.pairs),
      size((count + lanes - 1) / lanes * lanes),
      axes(scratch_.take<Axis>(from.axes)) {
  const auto take = [this](auto*& rows, std::int64_t count) {
    rows = scratch_.take<std::remove_pointer_t<std::remove_reference_t<decltype(rows)>>>(2 * count *
                                                                                         size);
  };
  std::uninitialized_default_construct_n(axes, rule.axes);
  for (std::int64_t a = 0; a < rule.axes; ++a) {
    Axis& axis = axes[a];
    double* const frequency = scratch_.take<double>(size);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row =
          std::ssize(rule.frequency) == rule.axes * rule.pairs ? 0 : i / rule.pairs;
      const std::int64_t source = (row * rule.axes + a) * rule.pairs + i % rule.pairs;
      const double f = rule.frequency[static_cast<std::size_t>(source)];
      frequency[i] = rule.backward ? -f : f;
      axis.fastest = std::max(axis.fastest, std::abs(f));
    }
    std::fill(frequency + count, frequency + size, 0.0);
    axis.frequency = frequency;
    take(axis.base, 1);
    take(axis.coarse, 8);
    take(axis.centre, 1);
    take(axis.fine, 8);
  }
  take(all_axes, 1);
  if (sizeof(F) < sizeof(double)) take(exact, 1);
}

template <class F>
void CosSinRows<F>::scale_row(double* row, double position, bool is_base) const {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto r = static_cast<std::size_t>(i % rule.pairs);
    double m = is_base ? rule.amplitude : 1;
    if (is_base && !rule.magnitudes.empty())
      m *= rule.divides ? 1 / rule.magnitudes[r] : rule.magnitudes[r];
    if (rule.growth != nullptr) {
      const double power = position / rule.growth->scale;
      m *= std::pow(rule.growth->factor[r], rule.shrinks ? -power : power);
    }
    row[i] *= m;
    row[size + i] *= m;
  }
}

template <class F>
void CosSinRows<F>::shift_row(double* row) const {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t source = std::ssize(rule.phase) == rule.pairs ? i % rule.pairs : i;
    const double radians = rule.phase[static_cast<std::size_t>(source)];
    const double c = std::cos(radians), s = rule.backward ? -std::sin(radians) : std::sin(radians);
    const double cosine = row[i], sine = row[size + i];
    row[i] = cosine * c - sine * s;
    row[size + i] = sine * c + cosine * s;
  }
}

template <class F>
void CosSinRows<F>::swap_row(double* row) const {
  for (std::int64_t i = 0; i < size; ++i) {
    const double cosine = row[i];
    row[i] = -row[size + i];
    row[size + i] = cosine;
  }
}

template <class F>
void CosSinRows<F>::exact_row_slowly(const Axis& axis, std::int64_t position, double* row) const {
  for (std::int64_t i = 0; i < size; ++i) {
    Angle angle;
    angle.add(position, axis.frequency[i]);
    row[i] = angle.cosine();
    row[size + i] = angle.sine();
  }
}

template struct CosSinRows<double>;
template struct CosSinRows<float>;

}  // namespace posenc::detail
