#include "backends/distributed/rounding.h"

#include <cstdint>

namespace posenc::mpi {
namespace {

template <class T, class Round>
void round_rows(const T* from, const Tensor& to, const Round& round) {
  using Number = decltype(round(*from));
  for (std::int64_t b = 0; b < to.shape[0]; ++b)
    for (std::int64_t h = 0; h < to.shape[1]; ++h)
      for (std::int64_t t = 0; t < to.shape[2]; ++t) {
        Number* const row = static_cast<Number*>(to.data) + to.offset(b, h, t);
        for (std::int64_t c = 0; c < to.shape[3]; ++c) row[c * to.stride[3]] = round(*from++);
      }
}

template <class T>
void round_as(const T* from, const Tensor& to) {
  switch (to.dtype) {
    case DType::f64: return round_rows(from, to, [](T x) { return static_cast<double>(x); });
    case DType::f32: return round_rows(from, to, [](T x) { return static_cast<float>(x); });
    case DType::f16:
      return round_rows(from, to, [](T x) {
        if constexpr (sizeof(T) == sizeof(double))
          return double_to_half(x);
        else
          return float_to_half(x);
      });
    case DType::bf16:
      return round_rows(from, to, [](T x) {
        if constexpr (sizeof(T) == sizeof(double))
          return double_to_bfloat16(x);
        else
          return float_to_bfloat16(x);
      });
    case DType::e4m3:
    case DType::e5m2:
    case DType::q8_0: break;  // no output has 8 bits
  }
}

template <class T>
void add_numbers(const Tensor& from, const Tensor& to) {
  T* const sums = static_cast<T*>(to.data);
  const T* const numbers = static_cast<const T*>(from.data);
  for (std::int64_t n = 0; n < to.size(); ++n) sums[n] += numbers[n];
}

}  // namespace

void round_into(const Tensor& from, const Tensor& to) {
  from.dtype == DType::f64 ? round_as(static_cast<const double*>(from.data), to)
                           : round_as(static_cast<const float*>(from.data), to);
}

void add_to(const Tensor& from, const Tensor& to) {
  to.dtype == DType::f64 ? add_numbers<double>(from, to) : add_numbers<float>(from, to);
}

}  // namespace posenc::mpi
