// Loading, storing and scanning rows of head_dim, for every dtype and both numbers that are
// computed with.
#include "src/kernels/rows.h"

#include "src/kernels/elements.h"

#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/rows.cc"
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

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(Tag<T>()));

template <class T>
void Load(const Tensor& x, std::int64_t from, std::int64_t rows, T* to, std::int64_t to_step) {
  const std::int64_t step = x.stride[2], inner = x.stride[3], head_dim = x.shape[3];
  with_element(x.dtype, [&]<class Element>(Element*) HWY_ATTR {
    const Element* row = static_cast<const Element*>(x.data) + from;
    for (std::int64_t t = 0; t < rows; ++t, row += step, to += to_step) {
      std::int64_t c = 0;
      if constexpr (std::is_same_v<Compute<Element>, T>) {
        const Tag<T> d;
        const hn::CappedTag<T, 1> one;
        for (; inner == 1 && c + lanes<T> <= head_dim; c += lanes<T>)
          hn::StoreU(LoadElements(d, row + c), d, to + c);
        for (; c < head_dim; ++c) hn::StoreU(LoadElements(one, row + c * inner), one, to + c);
      } else {
        for (; c < head_dim; ++c) to[c] = static_cast<T>(x.get(from + t * step + c * inner));
      }
      std::fill(to + c, to + padded(head_dim), T{0});
    }
  });
}

template <class T>
void Store(const T* from, std::int64_t from_step, std::int64_t rows, T factor, const Tensor& x,
           std::int64_t to) {
  const std::int64_t step = x.stride[2], inner = x.stride[3], head_dim = x.shape[3];
  with_element(x.dtype, [&]<class Element>(Element*) HWY_ATTR {
    Element* row = static_cast<Element*>(x.data) + to;
    for (std::int64_t t = 0; t < rows; ++t, row += step, from += from_step) {
      std::int64_t c = 0;
      if constexpr (std::is_same_v<Compute<Element>, T>) {
        const Tag<T> d;
        const hn::CappedTag<T, 1> one;
        const auto times = hn::Set(d, factor);
        const auto once = hn::Set(one, factor);
        for (; inner == 1 && c + lanes<T> <= head_dim; c += lanes<T>)
          StoreElements(hn::Mul(hn::LoadU(d, from + c), times), d, row + c);
        for (; c < head_dim; ++c)
          StoreElements(hn::Mul(hn::LoadU(one, from + c), once), one, row + c * inner);
      } else {
        for (; c < head_dim; ++c)
          x.set(to + t * step + c * inner, static_cast<double>(from[c] * factor));
      }
    }
  });
}

template <class T>
void Scale(T* x, std::int64_t columns, T factor) {
  const Tag<T> d;
  const auto times = hn::Set(d, factor);
  std::int64_t c = 0;
  for (; c + lanes<T> <= columns; c += lanes<T>)
    hn::StoreU(hn::Mul(hn::LoadU(d, x + c), times), d, x + c);
  for (; c < columns; ++c) x[c] *= factor;
}

template <class T>
bool AllFinite(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns) {
  const Tag<T> d;
  T rest = 0;
  auto sum = hn::Zero(d);
  for (std::int64_t t = 0; t < rows; ++t) {
    const T* const row = x + t * step;
    std::int64_t c = 0;
    for (; c + lanes<T> <= columns; c += lanes<T>)
      sum = hn::MulAdd(hn::LoadU(d, row + c), hn::Zero(d), sum);  // 0 · ∞ and 0 · NaN are NaN
    for (; c < columns; ++c) rest += row[c] * T{0};
  }
  return hn::GetLane(hn::SumOfLanes(d, sum)) + rest == 0;
}

template <class T>
void AddProducts(const T* a, const T* b, std::int64_t count, T* to) {
  const Tag<T> d;
  const hn::CappedTag<T, 1> one;  // rounds as vectors do
  std::int64_t i = 0;
  for (; i + lanes<T> <= count; i += lanes<T>)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, to + i)), d,
               to + i);
  for (; i < count; ++i)
    hn::StoreU(hn::MulAdd(hn::LoadU(one, a + i), hn::LoadU(one, b + i), hn::LoadU(one, to + i)),
               one, to + i);
}

template <class T>
HWY_INLINE T Dot(const T* a, const T* b, std::int64_t count) {
  const Tag<T> d;
  auto sum = hn::Zero(d), other = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * lanes<T> <= count; i += 2 * lanes<T>) {
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
    other = hn::MulAdd(hn::LoadU(d, a + i + lanes<T>), hn::LoadU(d, b + i + lanes<T>), other);
  }
  for (; i + lanes<T> <= count; i += lanes<T>)
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  T total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, other)));
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

template <class T>
void Dots(const T* q, const T* k, std::int64_t k_step, std::int64_t keys, std::int64_t head_dim,
          const T* values, std::int64_t v_step, T* to) {
  constexpr std::int64_t line = 64 / sizeof(T), rows_ahead = 8;
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t c = 0; c < head_dim && values != nullptr; c += line) {
      Fetch(k + (j + rows_ahead) * k_step + c);
      Fetch(values + j * v_step + c);
    }
    to[j] = Dot(q, k + j * k_step, head_dim);
  }
}

HWY_INLINE hn::Vec<Tag<double>> LoadDoubles(const double* x) { return hn::LoadU(Tag<double>(), x); }
HWY_INLINE hn::Vec<Tag<double>> LoadDoubles(const float* x) {
  return hn::PromoteTo(Tag<double>(), hn::LoadU(hn::Rebind<float, Tag<double>>(), x));
}
HWY_INLINE void StoreDoubles(hn::Vec<Tag<double>> v, double* to) {
  hn::StoreU(v, Tag<double>(), to);
}
HWY_INLINE void StoreDoubles(hn::Vec<Tag<double>> v, float* to) {
  const hn::Rebind<float, Tag<double>> half;
  hn::StoreU(hn::DemoteTo(half, v), half, to);
}

template <class T>
void AddToDoubles(const T* x, std::int64_t count, double* sum) {
  std::int64_t i = 0;
  for (; i + lanes<double> <= count; i += lanes<double>)
    StoreDoubles(hn::Add(LoadDoubles(x + i), LoadDoubles(sum + i)), sum + i);
  for (; i < count; ++i) sum[i] += static_cast<double>(x[i]);
}

HWY_INLINE hn::Vec<Tag<float>> Entries(const float* numbers,
                                       hn::Vec<hn::RebindToSigned<Tag<float>>> at) {
  return hn::GatherIndex(Tag<float>(), numbers, at);
}
HWY_INLINE hn::Vec<Tag<double>> Entries(const double* numbers,
                                        hn::Vec<hn::Rebind<std::int32_t, Tag<double>>> at) {
  return hn::GatherIndex(Tag<double>(), numbers,
                         hn::PromoteTo(hn::RebindToSigned<Tag<double>>(), at));
}

template <class T>
void AddEntries(const T* numbers, std::int32_t last, const std::int32_t* at, std::int32_t start,
                std::int64_t count, T* to) {
  const Tag<T> d;
  const hn::Rebind<std::int32_t, Tag<T>> places;
  const auto zero = hn::Zero(places), most = hn::Set(places, last), first = hn::Set(places, start);
  std::int64_t i = 0;
  for (; i + lanes<T> <= count; i += lanes<T>) {
    const auto place = hn::Min(hn::Max(hn::Add(hn::LoadU(places, at + i), first), zero), most);
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), Entries(numbers, place)), d, to + i);
  }
  for (; i < count; ++i) to[i] += numbers[std::clamp(at[i] + start, std::int32_t{0}, last)];
}

template <class T>
void LineOfDoubles(const double* x, double slope, double offset, std::int64_t count, T* to) {
  const Tag<double> d;
  const auto rise = hn::Set(d, slope), start = hn::Set(d, offset);
  std::int64_t i = 0;
  for (; i + lanes<double> <= count; i += lanes<double>)
    StoreDoubles(hn::MulAdd(rise, LoadDoubles(x + i), start), to + i);
  for (; i < count; ++i) to[i] = static_cast<T>(slope * x[i] + offset);
}

template <class T>
Moments MomentsOf(const T* w, const double* x, const double* y, std::int64_t count) {
  const Tag<double> d;
  auto sum = hn::Zero(d), by_x = sum, by_y = sum;
  std::int64_t i = 0;
  for (; i + lanes<double> <= count; i += lanes<double>) {
    const auto weight = LoadDoubles(w + i);
    sum = hn::Add(sum, weight);
    by_x = hn::MulAdd(weight, LoadDoubles(x + i), by_x);
    by_y = hn::MulAdd(weight, LoadDoubles(y + i), by_y);
  }
  Moments all{hn::GetLane(hn::SumOfLanes(d, sum)), hn::GetLane(hn::SumOfLanes(d, by_x)),
              hn::GetLane(hn::SumOfLanes(d, by_y))};
  for (; i < count; ++i) {
    const auto weight = static_cast<double>(w[i]);
    all.sum += weight;
    all.by_x += weight * x[i];
    all.by_y += weight * y[i];
  }
  return all;
}

}  // namespace

#define POSENC_FOR_TYPE(T, Type)                                                                 \
  void Load##Type(const Tensor& x, std::int64_t from, std::int64_t rows, T* to,                  \
                  std::int64_t to_step) {                                                        \
    Load(x, from, rows, to, to_step);                                                            \
  }                                                                                              \
  void Store##Type(const T* from, std::int64_t from_step, std::int64_t rows, T factor,           \
                   const Tensor& x, std::int64_t to) {                                           \
    Store(from, from_step, rows, factor, x, to);                                                 \
  }                                                                                              \
  void Scale##Type(T* x, std::int64_t columns, T factor) { Scale(x, columns, factor); }          \
  bool AllFinite##Type(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns) { \
    return AllFinite(x, step, rows, columns);                                                    \
  }                                                                                              \
  void AddProducts##Type(const T* a, const T* b, std::int64_t count, T* to) {                    \
    AddProducts(a, b, count, to);                                                                \
  }                                                                                              \
  T Dot##Type(const T* a, const T* b, std::int64_t count) { return Dot(a, b, count); }           \
  void Dots##Type(const T* q, const T* k, std::int64_t k_step, std::int64_t keys,                \
                  std::int64_t head_dim, const T* values, std::int64_t v_step, T* to) {          \
    Dots(q, k, k_step, keys, head_dim, values, v_step, to);                                      \
  }                                                                                              \
  void AddEntries##Type(const T* numbers, std::int32_t last, const std::int32_t* at,             \
                        std::int32_t start, std::int64_t count, T* to) {                         \
    AddEntries(numbers, last, at, start, count, to);                                             \
  }                                                                                              \
  void AddToDoubles##Type(const T* x, std::int64_t count, double* sum) {                         \
    AddToDoubles(x, count, sum);                                                                 \
  }                                                                                              \
  void LineOfDoubles##Type(const double* x, double slope, double offset, std::int64_t count,     \
                           T* to) {                                                              \
    LineOfDoubles(x, slope, offset, count, to);                                                  \
  }                                                                                              \
  Moments Moments##Type(const T* w, const double* x, const double* y, std::int64_t count) {      \
    return MomentsOf(w, x, y, count);                                                            \
  }

POSENC_FOR_TYPE(float, Floats)
POSENC_FOR_TYPE(double, Doubles)
#undef POSENC_FOR_TYPE

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

#define POSENC_FOR_TYPE(T, Type)                                                                   \
  HWY_EXPORT(Load##Type);                                                                          \
  HWY_EXPORT(Store##Type);                                                                         \
  HWY_EXPORT(Scale##Type);                                                                         \
  HWY_EXPORT(AllFinite##Type);                                                                     \
  HWY_EXPORT(AddProducts##Type);                                                                   \
  HWY_EXPORT(Dot##Type);                                                                           \
  HWY_EXPORT(Dots##Type);                                                                          \
  HWY_EXPORT(AddEntries##Type);                                                                    \
  HWY_EXPORT(AddToDoubles##Type);                                                                  \
  HWY_EXPORT(LineOfDoubles##Type);                                                                 \
  HWY_EXPORT(Moments##Type);                                                                       \
  void load_rows(const Tensor& x, std::int64_t from, std::int64_t rows, T* to,                     \
                 std::int64_t to_step) {                                                           \
    HWY_DYNAMIC_DISPATCH(Load##Type)(x, from, rows, to, to_step);                                  \
  }                                                                                                \
  void store_rows(const T* from, std::int64_t from_step, std::int64_t rows, T factor,              \
                  const Tensor& x, std::int64_t to) {                                              \
    HWY_DYNAMIC_DISPATCH(Store##Type)(from, from_step, rows, factor, x, to);                       \
  }                                                                                                \
  void scale_row(T* x, std::int64_t columns, T factor) {                                           \
    HWY_DYNAMIC_DISPATCH(Scale##Type)(x, columns, factor);                                         \
  }                                                                                                \
  void add_products(const T* a, const T* b, std::int64_t count, T* to) {                           \
    HWY_DYNAMIC_DISPATCH(AddProducts##Type)(a, b, count, to);                                      \
  }                                                                                                \
  bool all_finite(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns) {        \
    return HWY_DYNAMIC_DISPATCH(AllFinite##Type)(x, step, rows, columns);                          \
  }                                                                                                \
  T dot(const T* a, const T* b, std::int64_t count) {                                              \
    return HWY_DYNAMIC_DISPATCH(Dot##Type)(a, b, count);                                           \
  }                                                                                                \
  void dots(const T* q, const T* k, std::int64_t k_step, std::int64_t keys, std::int64_t head_dim, \
            const T* values, std::int64_t v_step, T* to) {                                         \
    HWY_DYNAMIC_DISPATCH(Dots##Type)(q, k, k_step, keys, head_dim, values, v_step, to);            \
  }                                                                                                \
  void add_entries(const T* numbers, std::int32_t last, const std::int32_t* at,                    \
                   std::int32_t start, std::int64_t count, T* to) {                                \
    HWY_DYNAMIC_DISPATCH(AddEntries##Type)(numbers, last, at, start, count, to);                   \
  }                                                                                                \
  void add_to_doubles(const T* x, std::int64_t count, double* sum) {                               \
    HWY_DYNAMIC_DISPATCH(AddToDoubles##Type)(x, count, sum);                                       \
  }                                                                                                \
  void line_of_doubles(const double* x, double slope, double offset, std::int64_t count, T* to) {  \
    HWY_DYNAMIC_DISPATCH(LineOfDoubles##Type)(x, slope, offset, count, to);                        \
  }                                                                                                \
  Moments moments(const T* w, const double* x, const double* y, std::int64_t count) {              \
    return HWY_DYNAMIC_DISPATCH(Moments##Type)(w, x, y, count);                                    \
  }

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
void load(const Tensor& x, std::int64_t from, std::int64_t rows, T* to, std::int64_t to_step) {
  for (std::int64_t t = 0; t < rows; ++t, from += x.stride[2], to += to_step) {
    for (std::int64_t c = 0; c < x.shape[3]; ++c)
      to[c] = static_cast<T>(x.get(from + c * x.stride[3]));
    std::fill(to + x.shape[3], to + padded(x.shape[3]), T{0});
  }
}

template <class T>
void store(const T* from, std::int64_t from_step, std::int64_t rows, T factor, const Tensor& x,
           std::int64_t to) {
  for (std::int64_t t = 0; t < rows; ++t, from += from_step, to += x.stride[2]) {
    for (std::int64_t c = 0; c < x.shape[3]; ++c)
      x.set(to + c * x.stride[3], static_cast<double>(from[c] * factor));
  }
}

template <class T>
bool finite(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t t = 0; t < rows; ++t) {
    if (!std::all_of(x + t * step, x + t * step + columns, [](T v) { return std::isfinite(v); }))
      return false;
  }
  return true;
}

template <class T>
T sum_of_products(const T* a, const T* b, std::int64_t count) {
  T sum = 0;
  for (std::int64_t c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

#define POSENC_FOR_TYPE(T)                                                                         \
  void load_rows(const Tensor& x, std::int64_t from, std::int64_t rows, T* to,                     \
                 std::int64_t to_step) {                                                           \
    load(x, from, rows, to, to_step);                                                              \
  }                                                                                                \
  void store_rows(const T* from, std::int64_t from_step, std::int64_t rows, T factor,              \
                  const Tensor& x, std::int64_t to) {                                              \
    store(from, from_step, rows, factor, x, to);                                                   \
  }                                                                                                \
  void scale_row(T* x, std::int64_t columns, T factor) {                                           \
    for (std::int64_t c = 0; c < columns; ++c) x[c] *= factor;                                     \
  }                                                                                                \
  bool all_finite(const T* x, std::int64_t step, std::int64_t rows, std::int64_t columns) {        \
    return finite(x, step, rows, columns);                                                         \
  }                                                                                                \
  void add_products(const T* a, const T* b, std::int64_t count, T* to) {                           \
    for (std::int64_t i = 0; i < count; ++i) to[i] += a[i] * b[i];                                 \
  }                                                                                                \
  T dot(const T* a, const T* b, std::int64_t count) { return sum_of_products(a, b, count); }       \
  void dots(const T* q, const T* k, std::int64_t k_step, std::int64_t keys, std::int64_t head_dim, \
            const T*, std::int64_t, T* to) {                                                       \
    for (std::int64_t j = 0; j < keys; ++j) to[j] = dot(q, k + j * k_step, head_dim);              \
  }                                                                                                \
  void add_entries(const T* numbers, std::int32_t last, const std::int32_t* at,                    \
                   std::int32_t start, std::int64_t count, T* to) {                                \
    for (std::int64_t i = 0; i < count; ++i)                                                       \
      to[i] += numbers[std::clamp(at[i] + start, std::int32_t{0}, last)];                          \
  }                                                                                                \
  void add_to_doubles(const T* x, std::int64_t count, double* sum) {                               \
    for (std::int64_t i = 0; i < count; ++i) sum[i] += static_cast<double>(x[i]);                  \
  }                                                                                                \
  void line_of_doubles(const double* x, double slope, double offset, std::int64_t count, T* to) {  \
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(slope * x[i] + offset);        \
  }                                                                                                \
  Moments moments(const T* w, const double* x, const double* y, std::int64_t count) {              \
    Moments all;                                                                                   \
    for (std::int64_t i = 0; i < count; ++i) {                                                     \
      const auto weight = static_cast<double>(w[i]);                                               \
      all.sum += weight;                                                                           \
      all.by_x += weight * x[i];                                                                   \
      all.by_y += weight * y[i];                                                                   \
    }                                                                                              \
    return all;                                                                                    \
  }

POSENC_FOR_TYPE(float)
POSENC_FOR_TYPE(double)
#undef POSENC_FOR_TYPE

}  // namespace posenc::detail

#endif
