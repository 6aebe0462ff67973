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

#define POSENC_FOR_TYPE(T, Type)                                           \
  T Largest##Type(const T* x) { return LargestOf(x); }                     \
  T Exponentials##Type(T* x, T shift) { return ExponentialsOf(x, shift); } \
  void Sigmoids##Type(const T* x, T* out) { SigmoidsOf(x, out); }          \
  void SoftplusTails##Type(const T* x, T* out) { SoftplusTailsOf(x, out); }

POSENC_FOR_TYPE(float, Floats)
POSENC_FOR_TYPE(double, Doubles)
#undef POSENC_FOR_TYPE

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

#define POSENC_FOR_TYPE(T, Type)                                                               \
  HWY_EXPORT(Largest##Type);                                                                   \
  HWY_EXPORT(Exponentials##Type);                                                              \
  HWY_EXPORT(Sigmoids##Type);                                                                  \
  HWY_EXPORT(SoftplusTails##Type);                                                             \
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
