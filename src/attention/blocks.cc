#include "src/attention/blocks.h"

#if POSENC_SIMD

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/attention/blocks.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// A row of head_dim is a whole number of vectors.
template <class T>
using Tag = hn::CappedTag<T, static_cast<std::size_t>(row_lanes)>;

// The sums of a row are formed in one order however many rows go together.
template <int rows, class T>
HWY_INLINE void ProductsOfRows(const T* q, const T* kt, std::int64_t dim, T* scores) {
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t key = 0; key < block_keys; key += 2 * lanes) {
    hn::Vec<Tag<T>> low[rows], high[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) low[r] = high[r] = hn::Zero(d);
    for (std::int64_t c = 0; c < dim; ++c) {
      const auto k0 = hn::LoadU(d, kt + c * block_keys + key);
      const auto k1 = hn::LoadU(d, kt + c * block_keys + key + lanes);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const auto x = hn::Set(d, q[r * dim + c]);
        low[r] = hn::MulAdd(x, k0, low[r]);
        high[r] = hn::MulAdd(x, k1, high[r]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      hn::StoreU(low[r], d, scores + r * block_keys + key);
      hn::StoreU(high[r], d, scores + r * block_keys + key + lanes);
    }
  }
}

template <class T>
HWY_INLINE void ProductsOf(const T* q, const T* kt, std::int64_t rows, std::int64_t dim,
                           T* scores) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) ProductsOfRows<4>(q + r * dim, kt, dim, scores + r * block_keys);
  for (; r < rows; ++r) ProductsOfRows<1>(q + r * dim, kt, dim, scores + r * block_keys);
}

template <int rows, class T>
HWY_INLINE void AccumulateRows(const T* weights, const T* v, std::int64_t dim, T* out) {
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = 0;
  for (; c + 2 * lanes <= dim; c += 2 * lanes) {
    hn::Vec<Tag<T>> low[rows], high[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      low[r] = hn::LoadU(d, out + r * dim + c);
      high[r] = hn::LoadU(d, out + r * dim + c + lanes);
    }
    for (std::int64_t key = 0; key < block_keys; ++key) {
      const auto v0 = hn::LoadU(d, v + key * dim + c);
      const auto v1 = hn::LoadU(d, v + key * dim + c + lanes);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const auto w = hn::Set(d, weights[r * block_keys + key]);
        low[r] = hn::MulAdd(w, v0, low[r]);
        high[r] = hn::MulAdd(w, v1, high[r]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      hn::StoreU(low[r], d, out + r * dim + c);
      hn::StoreU(high[r], d, out + r * dim + c + lanes);
    }
  }
  for (; c < dim; c += lanes) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      auto sum = hn::LoadU(d, out + r * dim + c);
      for (std::int64_t key = 0; key < block_keys; ++key) {
        sum = hn::MulAdd(hn::Set(d, weights[r * block_keys + key]), hn::LoadU(d, v + key * dim + c),
                         sum);
      }
      hn::StoreU(sum, d, out + r * dim + c);
    }
  }
}

template <class T>
HWY_INLINE void AccumulateOf(const T* weights, const T* v, std::int64_t rows, std::int64_t dim,
                             T* out) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) AccumulateRows<4>(weights + r * block_keys, v, dim, out + r * dim);
  for (; r < rows; ++r) AccumulateRows<1>(weights + r * block_keys, v, dim, out + r * dim);
}

template <class T>
HWY_INLINE T LargestOf(const T* x) {
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto most = hn::LoadU(d, x);
  for (std::int64_t i = lanes; i < block_keys; i += lanes)
    most = hn::Max(most, hn::LoadU(d, x + i));
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// Highway's own turns NaN into 0.
template <class D, class V>
HWY_INLINE V Exponential(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

template <class T>
HWY_INLINE T ExponentialsOf(T* x, T shift) {
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto least = hn::Set(d, shift);
  const auto smallest = hn::Set(d, std::numeric_limits<T>::min());
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < block_keys; i += lanes) {
    auto e = Exponential(d, hn::Sub(hn::LoadU(d, x + i), least));
    // Weights below the normal numbers add nothing, and would make the sums many times slower.
    e = hn::IfThenElse(hn::Lt(e, smallest), hn::Zero(d), e);
    hn::StoreU(e, d, x + i);
    sum = hn::Add(sum, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
HWY_INLINE void SigmoidsOf(const T* x, T* out) {
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, T{1});
  for (std::int64_t i = 0; i < block_keys; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto e = Exponential(d, hn::Neg(hn::Abs(v)));
    const auto top = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), e, one);
    hn::StoreU(hn::Div(top, hn::Add(one, e)), d, out + i);
  }
}

template <class T>
HWY_INLINE void SoftplusTailsOf(const T* x, T* out) {
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < block_keys; i += lanes) {
    const auto e = Exponential(d, hn::Neg(hn::Abs(hn::LoadU(d, x + i))));
    hn::StoreU(hn::IfThenElse(hn::IsNaN(e), e, hn::Log1p(d, e)), d, out + i);
  }
}

}  // namespace

#define POSENC_FOR_TYPE(T, Type)                                                                 \
  void Products##Type(const T* q, const T* kt, std::int64_t rows, std::int64_t dim, T* scores) { \
    ProductsOf(q, kt, rows, dim, scores);                                                        \
  }                                                                                              \
  void Accumulate##Type(const T* w, const T* v, std::int64_t rows, std::int64_t dim, T* out) {   \
    AccumulateOf(w, v, rows, dim, out);                                                          \
  }                                                                                              \
  T Largest##Type(const T* x) { return LargestOf(x); }                                           \
  T Exponentials##Type(T* x, T shift) { return ExponentialsOf(x, shift); }                       \
  void Sigmoids##Type(const T* x, T* out) { SigmoidsOf(x, out); }                                \
  void SoftplusTails##Type(const T* x, T* out) { SoftplusTailsOf(x, out); }

POSENC_FOR_TYPE(float, Floats)
POSENC_FOR_TYPE(double, Doubles)
#undef POSENC_FOR_TYPE

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

#define POSENC_FOR_TYPE(T, Type)                                                               \
  HWY_EXPORT(Products##Type);                                                                  \
  HWY_EXPORT(Accumulate##Type);                                                                \
  HWY_EXPORT(Largest##Type);                                                                   \
  HWY_EXPORT(Exponentials##Type);                                                              \
  HWY_EXPORT(Sigmoids##Type);                                                                  \
  HWY_EXPORT(SoftplusTails##Type);                                                             \
  void products(const T* q, const T* kt, std::int64_t rows, std::int64_t dim, T* scores) {     \
    HWY_DYNAMIC_DISPATCH(Products##Type)(q, kt, rows, dim, scores);                            \
  }                                                                                            \
  void accumulate(const T* weights, const T* v, std::int64_t rows, std::int64_t dim, T* out) { \
    HWY_DYNAMIC_DISPATCH(Accumulate##Type)(weights, v, rows, dim, out);                        \
  }                                                                                            \
  T largest(const T* x) { return HWY_DYNAMIC_DISPATCH(Largest##Type)(x); }                     \
  T exponentials(T* x, T shift) { return HWY_DYNAMIC_DISPATCH(Exponentials##Type)(x, shift); } \
  void sigmoids(const T* x, T* out) { HWY_DYNAMIC_DISPATCH(Sigmoids##Type)(x, out); }          \
  void softplus_tails(const T* x, T* out) { HWY_DYNAMIC_DISPATCH(SoftplusTails##Type)(x, out); }

POSENC_FOR_TYPE(float, Floats)
POSENC_FOR_TYPE(double, Doubles)
#undef POSENC_FOR_TYPE

}  // namespace posenc::detail
#endif

#else  // the same in plain loops

#include <algorithm>
#include <cmath>

namespace posenc::detail {
namespace {

template <class T>
void plain_products(const T* q, const T* kt, std::int64_t rows, std::int64_t dim, T* scores) {
  std::fill_n(scores, rows * block_keys, T{0});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < dim; ++c) {
      for (std::int64_t key = 0; key < block_keys; ++key) {
        scores[r * block_keys + key] += q[r * dim + c] * kt[c * block_keys + key];
      }
    }
  }
}

template <class T>
void plain_accumulate(const T* weights, const T* v, std::int64_t rows, std::int64_t dim, T* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t key = 0; key < block_keys; ++key) {
      for (std::int64_t c = 0; c < dim; ++c) {
        out[r * dim + c] += weights[r * block_keys + key] * v[key * dim + c];
      }
    }
  }
}

template <class T>
T plain_exponentials(T* x, T shift) {
  T sum = 0;
  for (std::int64_t i = 0; i < block_keys; ++i) sum += x[i] = std::exp(x[i] - shift);
  return sum;
}

template <class T>
T sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

}  // namespace

#define POSENC_FOR_TYPE(T)                                                                        \
  void products(const T* q, const T* kt, std::int64_t rows, std::int64_t dim, T* scores) {        \
    plain_products(q, kt, rows, dim, scores);                                                     \
  }                                                                                               \
  void accumulate(const T* weights, const T* v, std::int64_t rows, std::int64_t dim, T* out) {    \
    plain_accumulate(weights, v, rows, dim, out);                                                 \
  }                                                                                               \
  T largest(const T* x) { return *std::max_element(x, x + block_keys); }                          \
  T exponentials(T* x, T shift) { return plain_exponentials(x, shift); }                          \
  void sigmoids(const T* x, T* out) { std::transform(x, x + block_keys, out, sigmoid<T>); }       \
  void softplus_tails(const T* x, T* out) {                                                       \
    for (std::int64_t i = 0; i < block_keys; ++i) out[i] = std::log1p(std::exp(-std::abs(x[i]))); \
  }

POSENC_FOR_TYPE(float)
POSENC_FOR_TYPE(double)
#undef POSENC_FOR_TYPE

}  // namespace posenc::detail

#endif
