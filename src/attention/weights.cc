// Softmax of a row and what its gradient is, in three passes: logits and their peak, exponentials and
// their sums, shares.
#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/attention/weights.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "src/attention/weights.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void FindWeights(const QueryRow<T>& row) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), scale = hn::Set(d, row.scale);
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());

  auto peaks = hidden;
  for (std::int64_t j = 0; j < row.keys; j += lanes) {
    auto x = hn::LoadU(d, row.weight + j);
    const auto bias = row.bias == nullptr ? zero : hn::LoadU(d, row.bias + j);
    x = row.bias_before_scale ? hn::Mul(hn::Add(x, bias), scale) : hn::MulAdd(x, scale, bias);
    x = hn::IfThenElse(hn::Eq(hn::LoadU(d, row.hide + j), zero), x, hidden);
    hn::StoreU(x, d, row.weight + j);
    peaks = hn::Max(peaks, x);
  }
  const auto peak = hn::MaxOfLanes(d, peaks);
  const auto least = hn::Set(d, std::log(std::numeric_limits<T>::min()));

  // Sums of so many keys at most are kept in T.
  constexpr std::int64_t run = 1024;
  double sum = 0, mean = 0;
  for (std::int64_t first = 0; first < row.keys; first += run) {
    auto sums = zero, means = zero;
    for (std::int64_t j = first; j < std::min(first + run, row.keys); j += lanes) {
      const auto x = hn::LoadU(d, row.weight + j), below = hn::Sub(x, peak);
      const auto gone = hn::Or(hn::Eq(x, hidden), hn::Lt(below, least));
      auto e = hn::IfThenElse(hn::IsNaN(below), below, hn::Exp(d, below));
      e = hn::IfThenZeroElse(gone, e);
      hn::StoreU(e, d, row.weight + j);
      sums = hn::Add(sums, e);
      // Hidden values may hold NaN.
      means = hn::Add(means, hn::IfThenZeroElse(gone, hn::Mul(e, hn::LoadU(d, row.delta + j))));
    }
    sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums)));
    mean += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, means)));
  }

  const auto share = hn::Set(d, sum == 0 ? T{0} : static_cast<T>(1 / sum));
  const auto middle = hn::Set(d, sum == 0 ? T{0} : static_cast<T>(mean / sum));
  for (std::int64_t j = 0; j < row.keys; j += lanes) {
    const auto e = hn::LoadU(d, row.weight + j);
    const auto gone = hn::Eq(e, zero);  // a NaN stays with those that see it
    const auto weight = hn::IfThenZeroElse(gone, hn::Mul(e, share));
    const auto off = hn::Sub(hn::LoadU(d, row.delta + j), middle);
    hn::StoreU(weight, d, row.weight + j);
    hn::StoreU(hn::IfThenZeroElse(gone, hn::Mul(weight, off)), d, row.delta + j);
  }
}

template <class T>
T Dot(const T* a, const T* b, std::int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d);
  std::int64_t c = 0;
  for (; c + lanes <= count; c += lanes) {
    sums = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), sums);
  }
  T sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

void FindFloats(const QueryRow<float>& row) { FindWeights(row); }
void FindDoubles(const QueryRow<double>& row) { FindWeights(row); }
float DotFloats(const float* a, const float* b, std::int64_t count) { return Dot(a, b, count); }
double DotDoubles(const double* a, const double* b, std::int64_t count) { return Dot(a, b, count); }

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(FindFloats);
HWY_EXPORT(FindDoubles);
HWY_EXPORT(DotFloats);
HWY_EXPORT(DotDoubles);

void find_weights(const QueryRow<float>& row) { HWY_DYNAMIC_DISPATCH(FindFloats)(row); }
void find_weights(const QueryRow<double>& row) { HWY_DYNAMIC_DISPATCH(FindDoubles)(row); }
float dot(const float* a, const float* b, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(DotFloats)(a, b, count);
}
double dot(const double* a, const double* b, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(DotDoubles)(a, b, count);
}

}  // namespace posenc::detail
#endif

#else  // plain loops

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/attention/weights.h"

namespace posenc::detail {
namespace {

template <class T>
void find(const QueryRow<T>& row) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  T *const x = row.weight, *const delta = row.delta;
  T peak = hidden;
  for (std::int64_t j = 0; j < row.keys; ++j) {
    const T bias = row.bias == nullptr ? 0 : row.bias[j];
    x[j] = row.bias_before_scale ? (x[j] + bias) * row.scale : x[j] * row.scale + bias;
    if (row.hide[j] != 0) x[j] = hidden;
    peak = std::max(peak, x[j]);
  }
  const T least = std::log(std::numeric_limits<T>::min());
  double sum = 0, mean = 0;
  for (std::int64_t j = 0; j < row.keys; ++j) {
    const T below = x[j] - peak;
    x[j] = x[j] == hidden || below < least ? T{0} : std::exp(below);
    if (x[j] == 0) continue;
    sum += static_cast<double>(x[j]);
    mean += static_cast<double>(x[j]) * static_cast<double>(delta[j]);
  }
  for (std::int64_t j = 0; j < row.keys; ++j) {
    x[j] = x[j] == 0 ? T{0} : static_cast<T>(static_cast<double>(x[j]) / sum);
    delta[j] = x[j] == 0 ? T{0} : x[j] * (delta[j] - static_cast<T>(mean / sum));
  }
}

template <class T>
T sum_of_products(const T* a, const T* b, std::int64_t count) {
  T sum = 0;
  for (std::int64_t c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

void find_weights(const QueryRow<float>& row) { find(row); }
void find_weights(const QueryRow<double>& row) { find(row); }
float dot(const float* a, const float* b, std::int64_t count) {
  return sum_of_products(a, b, count);
}
double dot(const double* a, const double* b, std::int64_t count) {
  return sum_of_products(a, b, count);
}

}  // namespace posenc::detail
#endif
