// A vector of channels after the other: its sums stay in registers while its taps go by, and so do
// the tokens that the next tap reads again.
#include "src/kernels/taps.h"

#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/taps.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include "hwy/highway.h"
#include "src/kernels/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Of `rows` × `columns` taps, 0: as many as there are. Loops of known lengths become one run of
// instructions, which makes the commonest kernel, 3 × 3, a fifth quicker.
template <int tokens, int rows, int columns, class Element, class T>
HWY_INLINE void SumOf(const Taps<T>& by, TokenPlaces<Element> x, Element* to,
                      std::int64_t to_step) {
  const hn::CappedTag<T, 16> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t tall = rows ? rows : by.tall, wide = columns ? columns : by.wide;
  for (std::int64_t i = by.begin; i < by.end; i += lanes) {
    V sum[tokens], seen[tokens];
    for (int t = 0; t < tokens; ++t) sum[t] = hn::LoadU(d, by.bias + i);
    const T* weight = by.weights + i;
    for (std::int64_t row = 0; row < tall; ++row) {
      const Element* const* const reads = x.places + row * x.step;
      for (int t = 0; t + 1 < tokens; ++t) seen[t] = LoadElements(d, reads[t] + i);
      for (std::int64_t tap = 0; tap < wide; ++tap, weight += by.step) {
        seen[tokens - 1] = LoadElements(d, reads[tap + tokens - 1] + i);
        const V w = hn::LoadU(d, weight);
        for (int t = 0; t < tokens; ++t) sum[t] = hn::MulAdd(w, seen[t], sum[t]);
        for (int t = 0; t + 1 < tokens; ++t) seen[t] = seen[t + 1];
      }
    }
    for (int t = 0; t < tokens; ++t) StoreElements(sum[t], d, to + t * to_step + i);
  }
}

template <class Element, class T>
HWY_INLINE void SumTaps(const Taps<T>& taps, TokenPlaces<Element> x, int tokens, Element* to,
                        std::int64_t to_step) {
  static_assert(tile_tokens == 4);
  if (tokens == 4 && taps.tall == 3 && taps.wide == 3) return SumOf<4, 3, 3>(taps, x, to, to_step);
  if (tokens == 4) return SumOf<4, 0, 0>(taps, x, to, to_step);
  if (tokens == 3) return SumOf<3, 0, 0>(taps, x, to, to_step);
  if (tokens == 2) return SumOf<2, 0, 0>(taps, x, to, to_step);
  SumOf<1, 0, 0>(taps, x, to, to_step);
}

void SumTapsFloats(const Taps<float>& taps, TokenPlaces<float> x, int tokens, float* to,
                   std::int64_t to_step) {
  SumTaps(taps, x, tokens, to, to_step);
}
void SumTapsDoubles(const Taps<double>& taps, TokenPlaces<double> x, int tokens, double* to,
                    std::int64_t to_step) {
  SumTaps(taps, x, tokens, to, to_step);
}
void SumTapsHalves(const Taps<float>& taps, TokenPlaces<Half> x, int tokens, Half* to,
                   std::int64_t to_step) {
  SumTaps(taps, x, tokens, to, to_step);
}
void SumTapsBFloat16s(const Taps<float>& taps, TokenPlaces<BFloat16> x, int tokens, BFloat16* to,
                      std::int64_t to_step) {
  SumTaps(taps, x, tokens, to, to_step);
}

}  // namespace
}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if !POSENC_SIMD || HWY_ONCE

namespace posenc::detail {

#if POSENC_SIMD
HWY_EXPORT(SumTapsFloats);
HWY_EXPORT(SumTapsDoubles);
HWY_EXPORT(SumTapsHalves);
HWY_EXPORT(SumTapsBFloat16s);

void sum_taps(const Taps<float>& taps, TokenPlaces<float> x, int tokens, float* to,
              std::int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(SumTapsFloats)(taps, x, tokens, to, to_step);
}
void sum_taps(const Taps<double>& taps, TokenPlaces<double> x, int tokens, double* to,
              std::int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(SumTapsDoubles)(taps, x, tokens, to, to_step);
}
void sum_taps(const Taps<float>& taps, TokenPlaces<Half> x, int tokens, Half* to,
              std::int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(SumTapsHalves)(taps, x, tokens, to, to_step);
}
void sum_taps(const Taps<float>& taps, TokenPlaces<BFloat16> x, int tokens, BFloat16* to,
              std::int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(SumTapsBFloat16s)(taps, x, tokens, to, to_step);
}
#else
namespace {

template <class T>
void by_numbers(const Taps<T>& by, TokenPlaces<T> x, int tokens, T* to, std::int64_t to_step) {
  for (int t = 0; t < tokens; ++t)
    for (std::int64_t i = by.begin; i < by.end; ++i) {
      T sum = by.bias[i];
      for (std::int64_t row = 0; row < by.tall; ++row)
        for (std::int64_t tap = 0; tap < by.wide; ++tap)
          sum +=
              by.weights[(row * by.wide + tap) * by.step + i] * x.places[row * x.step + t + tap][i];
      to[t * to_step + i] = sum;
    }
}

}  // namespace

void sum_taps(const Taps<float>& taps, TokenPlaces<float> x, int tokens, float* to,
              std::int64_t to_step) {
  by_numbers(taps, x, tokens, to, to_step);
}
void sum_taps(const Taps<double>& taps, TokenPlaces<double> x, int tokens, double* to,
              std::int64_t to_step) {
  by_numbers(taps, x, tokens, to, to_step);
}
#endif

}  // namespace posenc::detail

#endif
