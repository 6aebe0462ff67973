// A vector of channels after the other, so that its weights stay in registers while the row of
// tokens goes by, and the few rows that it reads stay in the first cache.
#include "src/kernels/taps.h"

#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/taps.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <int taps, class T>
HWY_INLINE void AddSome(const T* const* weight, const T* const* x, std::int64_t x_step,
                        std::int64_t columns, std::int64_t count, T* to, std::int64_t to_step) {
  const hn::CappedTag<T, 16> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += lanes) {
    hn::Vec<decltype(d)> w[taps];
    for (int tap = 0; tap < taps; ++tap) w[tap] = hn::LoadU(d, weight[tap] + i);
    for (std::int64_t column = 0; column < columns; ++column) {
      T* const sum = to + column * to_step + i;
      auto s = hn::LoadU(d, sum);
      for (int tap = 0; tap < taps; ++tap)
        s = hn::MulAdd(w[tap], hn::LoadU(d, x[tap] + column * x_step + i), s);
      hn::StoreU(s, d, sum);
    }
  }
}

template <class T>
HWY_INLINE void AddTaps(const T* const* weight, const T* const* x, int taps, std::int64_t x_step,
                        std::int64_t columns, std::int64_t count, T* to, std::int64_t to_step) {
  if (taps == most_taps)
    AddSome<most_taps>(weight, x, x_step, columns, count, to, to_step);
  else
    AddSome<fewer_taps>(weight, x, x_step, columns, count, to, to_step);
}

void AddTapsFloats(const float* const* weight, const float* const* x, int taps, std::int64_t x_step,
                   std::int64_t columns, std::int64_t count, float* to, std::int64_t to_step) {
  AddTaps(weight, x, taps, x_step, columns, count, to, to_step);
}
void AddTapsDoubles(const double* const* weight, const double* const* x, int taps,
                    std::int64_t x_step, std::int64_t columns, std::int64_t count, double* to,
                    std::int64_t to_step) {
  AddTaps(weight, x, taps, x_step, columns, count, to, to_step);
}

}  // namespace
}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if !POSENC_SIMD || HWY_ONCE

namespace posenc::detail {

#if POSENC_SIMD
HWY_EXPORT(AddTapsFloats);
HWY_EXPORT(AddTapsDoubles);

void add_taps(const float* const* weight, const float* const* x, int taps, std::int64_t x_step,
              std::int64_t columns, std::int64_t count, float* to, std::int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(AddTapsFloats)(weight, x, taps, x_step, columns, count, to, to_step);
}
void add_taps(const double* const* weight, const double* const* x, int taps, std::int64_t x_step,
              std::int64_t columns, std::int64_t count, double* to, std::int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(AddTapsDoubles)(weight, x, taps, x_step, columns, count, to, to_step);
}
#else
namespace {

template <class T>
void by_numbers(const T* const* weight, const T* const* x, int taps, std::int64_t x_step,
                std::int64_t columns, std::int64_t count, T* to, std::int64_t to_step) {
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t i = 0; i < count; ++i)
      for (int tap = 0; tap < taps; ++tap)
        to[column * to_step + i] += weight[tap][i] * x[tap][column * x_step + i];
}

}  // namespace

void add_taps(const float* const* weight, const float* const* x, int taps, std::int64_t x_step,
              std::int64_t columns, std::int64_t count, float* to, std::int64_t to_step) {
  by_numbers(weight, x, taps, x_step, columns, count, to, to_step);
}
void add_taps(const double* const* weight, const double* const* x, int taps, std::int64_t x_step,
              std::int64_t columns, std::int64_t count, double* to, std::int64_t to_step) {
  by_numbers(weight, x, taps, x_step, columns, count, to, to_step);
}
#endif

}  // namespace posenc::detail

#endif
