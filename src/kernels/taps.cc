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

// Asks for channels from i on of what the next tile is the first to read, and of what it writes.
template <int tokens, class Element>
HWY_INLINE void FetchNextTile(TokenPlaces<Element> x, std::int64_t i, const Element* to,
                              std::int64_t to_step) {
  if (!x.next || x.ask == Ask::no) return;
  for (int t = 0; t < tokens; ++t) {
    const Element *const read = x.next[t] + i, *const written = to + (tokens + t) * to_step + i;
    if (x.ask == Ask::second) {
      FetchToSecond(read);
      FetchToSecond(written);
    } else {
      Fetch(read);
      Fetch(written);
    }
  }
}

// Of bfloat16, 2 lanes' worth of channels from i on: the even ones and the odd ones apart, as a load
// without shuffles has them and as pair_channels() orders weights.
#if HWY_TARGET != HWY_SCALAR
template <int tokens, class D>
HWY_INLINE void SumPairs(D d, const Taps<float>& by, std::int64_t tall, std::int64_t wide,
                         TokenPlaces<BFloat16> x, std::int64_t i, BFloat16* to,
                         std::int64_t to_step) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V even[tokens], odd[tokens], seen_even[tokens], seen_odd[tokens];
  FetchNextTile<tokens>(x, i, to, to_step);
  for (int t = 0; t < tokens; ++t) {
    even[t] = hn::LoadU(d, by.bias + i);
    odd[t] = hn::LoadU(d, by.bias + i + lanes);
  }
  const float* weight = by.weights + i;
  for (std::int64_t row = 0; row < tall; ++row) {
    const BFloat16* const* const reads = x.places + row * x.step;
    for (int t = 0; t + 1 < tokens; ++t) LoadPairs(d, reads[t] + i, seen_even[t], seen_odd[t]);
    for (std::int64_t tap = 0; tap < wide; ++tap, weight += by.step) {
      LoadPairs(d, reads[tap + tokens - 1] + i, seen_even[tokens - 1], seen_odd[tokens - 1]);
      const V w_even = hn::LoadU(d, weight), w_odd = hn::LoadU(d, weight + lanes);
      for (int t = 0; t < tokens; ++t) {
        even[t] = hn::MulAdd(w_even, seen_even[t], even[t]);
        odd[t] = hn::MulAdd(w_odd, seen_odd[t], odd[t]);
      }
      for (int t = 0; t + 1 < tokens; ++t) {
        seen_even[t] = seen_even[t + 1];
        seen_odd[t] = seen_odd[t + 1];
      }
    }
  }
  for (int t = 0; t < tokens; ++t) StorePairs(even[t], odd[t], d, to + t * to_step + i);
}
#endif

void PairChannels(float* row, std::int64_t step) {
#if HWY_TARGET == HWY_SCALAR
  (void)row, (void)step;
#else
  const hn::CappedTag<float, row_lanes> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i + 2 * lanes <= step; i += 2 * lanes) {
    const auto first = hn::LoadU(d, row + i), second = hn::LoadU(d, row + i + lanes);
    hn::StoreU(hn::ConcatEven(d, second, first), d, row + i);
    hn::StoreU(hn::ConcatOdd(d, second, first), d, row + i + lanes);
  }
#endif
}

// Of `rows` × `columns` taps, 0: as many as there are. Loops of known lengths become one run of
// instructions, which makes the commonest kernel, 3 × 3, a fifth quicker.
template <int tokens, int rows, int columns, class Element, class T>
HWY_INLINE void SumOf(const Taps<T>& by, TokenPlaces<Element> x, Element* to,
                      std::int64_t to_step) {
  const hn::CappedTag<T, row_lanes> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t tall = rows ? rows : by.tall, wide = columns ? columns : by.wide;
  std::int64_t i = by.begin;
  if constexpr (words_are_pairs<Element>)
    for (; i + 2 * lanes <= by.end; i += 2 * lanes)
      SumPairs<tokens>(d, by, tall, wide, x, i, to, to_step);
  for (; i < by.end; i += lanes) {
    V sum[tokens], seen[tokens];
    FetchNextTile<tokens>(x, i, to, to_step);
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
HWY_EXPORT(PairChannels);

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
void pair_channels(float* row, std::int64_t step) { HWY_DYNAMIC_DISPATCH(PairChannels)(row, step); }
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
