#include "src/kernels/cached_rows.h"

#include "src/kernels/elements.h"
#include "src/kernels/rows.h"

#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/cached_rows.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"
#include "src/kernels/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, row_lanes>;
constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(Floats()));
// Rows whose sums stay in registers together, with those of four keys or of four vectors.
constexpr int at_once = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 4 : 2;

// The sums of four vectors' lanes, to four numbers.
HWY_INLINE void StoreSums(const hn::Vec<Floats> (&v)[4], float* to) {
  const Floats d;
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) to[i] = hn::GetLane(hn::SumOfLanes(d, v[i]));
#else
  // Woven into each other by blocks of four lanes, first single lanes and then pairs.
  const hn::Repartition<std::uint64_t, Floats> pairs;
  const auto one = hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1]));
  const auto two = hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3]));
  const auto first = hn::BitCast(pairs, one), second = hn::BitCast(pairs, two);
  const auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, first, second)),
                            hn::BitCast(d, hn::InterleaveUpper(pairs, first, second)));
  if constexpr (lanes == 16) {
    const hn::Half<Floats> half;
    const hn::Half<decltype(half)> quarter;
    const auto halves = hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums));
    hn::StoreU(hn::Add(hn::LowerHalf(quarter, halves), hn::UpperHalf(quarter, halves)), quarter,
               to);
  } else if constexpr (lanes == 8) {
    const hn::Half<Floats> half;
    hn::StoreU(hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums)), half, to);
  } else {
    hn::StoreU(sums, d, to);
  }
#endif
}

// `keys` dots of `rows` rows, of four keys at a time.
template <int rows, class Element>
HWY_INLINE void Dots(const Element* k, std::int64_t step, std::int64_t keys, std::int64_t width,
                     const float* q, std::int64_t q_step, float* to, std::int64_t to_step,
                     const CachedRows* values) {
  const Floats d;
  constexpr std::int64_t ahead = 16, line = 64 / sizeof(Element);
  for (std::int64_t j = 0; j < keys; j += 4, k += 4 * step) {
    const std::int64_t count = std::min<std::int64_t>(keys - j, 4);
    const auto* const value =
        values == nullptr ? nullptr : static_cast<const Element*>(values->from(j).first);
    hn::Vec<Floats> sum[rows][4];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int i = 0; i < 4; ++i) sum[r][i] = hn::Zero(d);
    }
    // Behind the last key it is read again.
    const Element* const key[4] = {k, k + std::min<std::int64_t>(1, count - 1) * step,
                                   k + std::min<std::int64_t>(2, count - 1) * step,
                                   k + (count - 1) * step};
    for (std::int64_t c = 0; c < width; c += lanes) {
      if (value != nullptr && c % line == 0) {
        for (int i = 0; i < 4; ++i) {
          __builtin_prefetch(key[i] + ahead * step + c);
          __builtin_prefetch(value + i * values->step + c);
        }
      }
      hn::Vec<Floats> x[4];
#pragma GCC unroll 8
      for (int i = 0; i < 4; ++i) x[i] = LoadElements(d, key[i] + c);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const auto query = hn::LoadU(d, q + r * q_step + c);
#pragma GCC unroll 8
        for (int i = 0; i < 4; ++i) sum[r][i] = hn::MulAdd(x[i], query, sum[r][i]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      float four[4];
      StoreSums(sum[r], count == 4 ? to + r * to_step + j : four);
      if (count < 4) std::copy_n(four, count, to + r * to_step + j);
    }
  }
}

// A part of the columns, `vectors` vectors of them, of `rows` rows.
template <int rows, int vectors, class Element>
HWY_INLINE void Add(const Element* v, std::int64_t step, std::int64_t keys, const float* weights,
                    std::int64_t weights_step, float* sums, std::int64_t sums_step) {
  const Floats d;
  hn::Vec<Floats> sum[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) sum[r][i] = hn::LoadU(d, sums + r * sums_step + i * lanes);
  }
  for (std::int64_t j = 0; j < keys; ++j, v += step) {
    hn::Vec<Floats> x[vectors];
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) x[i] = LoadElements(d, v + i * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const auto weight = hn::Set(d, weights[r * weights_step + j]);
#pragma GCC unroll 8
      for (int i = 0; i < vectors; ++i) sum[r][i] = hn::MulAdd(weight, x[i], sum[r][i]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) hn::StoreU(sum[r][i], d, sums + r * sums_step + i * lanes);
  }
}

// Calls act of at_once rows, then of two and of one.
template <class Act>
HWY_INLINE void ByRows(std::int64_t rows, const Act& act) {
  std::int64_t row = 0;
  for (; row + at_once <= rows; row += at_once) act(std::integral_constant<int, at_once>(), row);
  if (at_once > 2 && row + 2 <= rows) act(std::integral_constant<int, 2>(), row), row += 2;
  if (row < rows) act(std::integral_constant<int, 1>(), row);
}

template <class Element>
HWY_NOINLINE void DotsOf(const CachedRows& k, std::int64_t keys, std::int64_t width, const float* q,
                         std::int64_t q_step, std::int64_t rows, float* to, std::int64_t to_step,
                         const CachedRows* values) {
  ByRows(rows, [&]<int count>(std::integral_constant<int, count>, std::int64_t row) HWY_ATTR {
    Dots<count>(static_cast<const Element*>(k.first), k.step, keys, width, q + row * q_step, q_step,
                to + row * to_step, to_step, row == 0 ? values : nullptr);
  });
}

template <class Element>
HWY_NOINLINE void AddOf(const CachedRows& v, std::int64_t keys, std::int64_t width,
                        const float* weights, std::int64_t weights_step, std::int64_t rows,
                        float* sums, std::int64_t sums_step) {
  constexpr int vectors = static_cast<int>(64 / lanes);
  const auto* const first = static_cast<const Element*>(v.first);
  ByRows(rows, [&]<int count>(std::integral_constant<int, count>, std::int64_t row) HWY_ATTR {
    const float* const w = weights + row * weights_step;
    float* const to = sums + row * sums_step;
    std::int64_t c = 0;
    if constexpr (vectors <= 4)
      for (; c + vectors * lanes <= width; c += vectors * lanes)
        Add<count, vectors>(first + c, v.step, keys, w, weights_step, to + c, sums_step);
    for (; c < width; c += lanes)
      Add<count, 1>(first + c, v.step, keys, w, weights_step, to + c, sums_step);
  });
}

}  // namespace

void CachedDots(const CachedRows& k, std::int64_t keys, std::int64_t width, const float* q,
                std::int64_t q_step, std::int64_t rows, float* to, std::int64_t to_step,
                const CachedRows* values) {
  with_element(k.dtype, [&]<class Element>(Element*) {
    if constexpr (!std::is_same_v<Element, double>)
      DotsOf<Element>(k, keys, width, q, q_step, rows, to, to_step, values);
  });
}

void AddCached(const CachedRows& v, std::int64_t keys, std::int64_t width, const float* weights,
               std::int64_t weights_step, std::int64_t rows, float* sums, std::int64_t sums_step) {
  with_element(v.dtype, [&]<class Element>(Element*) {
    if constexpr (!std::is_same_v<Element, double>)
      AddOf<Element>(v, keys, width, weights, weights_step, rows, sums, sums_step);
  });
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(CachedDots);
HWY_EXPORT(AddCached);

void cached_dots(const CachedRows& k, std::int64_t keys, std::int64_t width, const float* q,
                 std::int64_t q_step, std::int64_t rows, float* to, std::int64_t to_step,
                 const CachedRows* values) {
  HWY_DYNAMIC_DISPATCH(CachedDots)
  (k, keys, width, q, q_step, rows, to, to_step, values);
}
void add_cached(const CachedRows& v, std::int64_t keys, std::int64_t width, const float* weights,
                std::int64_t weights_step, std::int64_t rows, float* sums, std::int64_t sums_step) {
  HWY_DYNAMIC_DISPATCH(AddCached)(v, keys, width, weights, weights_step, rows, sums, sums_step);
}

bool has_cached_rows(const Tensor& x) {
  return x.dtype != DType::f64 && x.stride[3] == 1 && x.shape[3] % row_lanes == 0;
}

}  // namespace posenc::detail
#endif

#else

namespace posenc::detail {

bool has_cached_rows(const Tensor&) { return false; }  // nothing is gained by plain loops
void cached_dots(const CachedRows&, std::int64_t, std::int64_t, const float*, std::int64_t,
                 std::int64_t, float*, std::int64_t, const CachedRows*, std::int64_t) {}
void add_cached(const CachedRows&, std::int64_t, std::int64_t, const float*, std::int64_t,
                std::int64_t, float*, std::int64_t) {}

}  // namespace posenc::detail
#endif
