// Rows of cos and sin that are mixtures of others, as FoPE (2412.17739) rotates by them: made in
// double, rounded to what is computed with. Included once per instruction set.
#if defined(POSENC_MIXED_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_MIXED_ROWS_INL_H
#undef POSENC_MIXED_ROWS_INL_H
#else
#define POSENC_MIXED_ROWS_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "posenc/plan.h"
#include "src/kernels/cos_sin_rows-inl.h"
#include "src/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Doubles rounded to what is computed with.
template <class C>
HWY_INLINE auto AsFloats(hn::Vec<Doubles> v) {
  if constexpr (sizeof(C) == sizeof(double)) {
    return v;
  } else {
    return hn::DemoteTo(hn::Rebind<C, Doubles>(), v);
  }
}

// Tokens whose sums are formed side by side.
constexpr std::int64_t mixed_tokens = 4;

// Sums of one vector of columns of a mixture, whose rows lie `step` apart, for up to mixed_tokens
// tokens, whose cosines, and then sines behind them by `size`, lie 2·size apart. They go to pair
// `to` of rows row_size apart.
template <class C>
HWY_INLINE void MixColumns(const double* cosine, const double* sine, std::int64_t step,
                           std::int64_t inputs, const double* base, std::int64_t size,
                           std::int64_t count, std::int64_t to, std::int64_t row_size,
                           const Apart<C>& put) {
  const Doubles d;
  const hn::Rebind<C, Doubles> dc;
  const double *const b1 = base + (count > 1 ? 2 * size : 0),
                      *const b2 = base + (count > 2 ? 4 * size : 0),
                      *const b3 = base + (count > 3 ? 6 * size : 0);
  auto c0 = hn::Zero(d), c1 = c0, c2 = c0, c3 = c0, s0 = c0, s1 = c0, s2 = c0, s3 = c0;
  for (std::int64_t u = 0; u < inputs; ++u, cosine += step, sine += step) {
    const auto by_cosine = hn::LoadU(d, cosine), by_sine = hn::LoadU(d, sine);
    c0 = hn::MulAdd(hn::Set(d, base[u]), by_cosine, c0);
    s0 = hn::MulAdd(hn::Set(d, base[size + u]), by_sine, s0);
    c1 = hn::MulAdd(hn::Set(d, b1[u]), by_cosine, c1);
    s1 = hn::MulAdd(hn::Set(d, b1[size + u]), by_sine, s1);
    c2 = hn::MulAdd(hn::Set(d, b2[u]), by_cosine, c2);
    s2 = hn::MulAdd(hn::Set(d, b2[size + u]), by_sine, s2);
    c3 = hn::MulAdd(hn::Set(d, b3[u]), by_cosine, c3);
    s3 = hn::MulAdd(hn::Set(d, b3[size + u]), by_sine, s3);
  }
  const auto write = [&](std::int64_t token, auto c, auto s) HWY_ATTR {
    if (token >= count) return;
    Apart<C>{put.cosine + token * row_size, put.sine + token * row_size}(dc, to, AsFloats<C>(c),
                                                                         AsFloats<C>(s));
  };
  write(0, c0, s0);
  write(1, c1, s1);
  write(2, c2, s2);
  write(3, c3, s3);
}

// Rows of mixtures, of `count` tokens whose own cosines and sines are `base`. What a vector writes
// beyond its columns is written again by what comes behind it.
template <class C>
HWY_NOINLINE void MixRows(const CosSinRule& rule, const double* base, std::int64_t size,
                          std::int64_t count, std::int64_t row_size, Apart<C> put) {
  const Doubles d;
  const hn::Rebind<C, Doubles> dc;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Mix& mix = *rule.mix;
  const auto rest_cosine = AsFloats<C>(hn::Set(d, rule.amplitude));
  const auto rest_sine =
      AsFloats<C>(hn::Set(d, rule.amplitude * (rule.backward ? -mix.rest_sine : mix.rest_sine)));
  Scratch scratch;
  const std::int64_t of_head = mix.inputs * mix.outputs;
  // Less than a vector of columns is made one. The last vector of more begins where it ends with
  // them.
  const bool narrow = mix.outputs < lanes;
  const std::int64_t step = narrow ? lanes : mix.outputs;
  double* const wide = narrow ? scratch.take_zeros<double>(2 * mix.inputs * step) : nullptr;
  for (std::int64_t h = 0; h < rule.mix_heads; ++h) {
    const std::int64_t head = mix.heads == 1 ? 0 : rule.mix_first + h, to = h * rule.pairs;
    const double* cosine = mix.cosine.data() + head * of_head;
    const double* sine = mix.sine.data() + head * of_head;
    if (narrow) {
      for (std::int64_t u = 0; u < mix.inputs; ++u) {
        std::copy_n(cosine + u * mix.outputs, mix.outputs, wide + u * step);
        std::copy_n(sine + u * mix.outputs, mix.outputs, wide + (mix.inputs + u) * step);
      }
      cosine = wide;
      sine = wide + mix.inputs * step;
    }
    for (std::int64_t done = 0; done < mix.outputs; done += lanes) {
      const std::int64_t i = narrow ? 0 : std::min(done, mix.outputs - lanes);
      const std::int64_t from = mix.inputs == 0 ? 0 : i;  // then there are no coefficients
      for (std::int64_t t = 0; t < count; t += mixed_tokens)
        MixColumns<C>(cosine + from, sine + from, step, mix.inputs, base + t * 2 * size, size,
                      std::min(mixed_tokens, count - t), to + i, row_size,
                      Apart<C>{put.cosine + t * row_size, put.sine + t * row_size});
    }
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t i = mix.outputs; i < rule.pairs; i += lanes)
        Apart<C>{put.cosine + t * row_size, put.sine + t * row_size}(dc, to + i, rest_cosine,
                                                                     rest_sine);
  }
}

// Rows of mixtures of the cosines and sines at positions_of(i), a number an axis.
template <class C, class PositionsOf>
HWY_NOINLINE void MakeMixedRows(CosSinRows<double>& cos_sin, std::int64_t count, double* base,
                                std::int64_t row_size, Apart<C> put,
                                const PositionsOf& positions_of) {
  const std::int64_t size = cos_sin.size;
  for (std::int64_t i = 0; i < count; ++i) {
    double* const row = base + i * 2 * size;
    MakeRow<double>(cos_sin, positions_of(i), 0, size, Apart<double>{row, row + size});
  }
  MixRows<C>(cos_sin.rule, base, size, count, row_size, put);
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
