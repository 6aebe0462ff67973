// What a kernel computes with: double for double, float for all others.
#pragma once

#include <cassert>
#include <cstdint>

#include "posenc/tensor.h"

namespace posenc::detail {

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

template <class T>
struct ComputeType {
  using type = float;
};
template <>
struct ComputeType<double> {
  using type = double;
};
template <class T>
using Compute = ComputeType<T>::type;

// Vectors that nobody has read yet are written past the caches where there are more bytes of them
// than a core's share of the last one.
constexpr std::int64_t streamed_bytes = 32 << 20;

constexpr bool computes_in_double(DType dtype) { return dtype == DType::f64; }

// Calls act with a null pointer of the dtype's element type, of the four that are computed with.
template <class Act>
decltype(auto) with_element(DType dtype, const Act& act) {
  switch (dtype) {
    case DType::f64: return act(static_cast<double*>(nullptr));
    case DType::f32: return act(static_cast<float*>(nullptr));
    case DType::f16: return act(static_cast<Half*>(nullptr));
    case DType::bf16: break;
    case DType::e4m3:
    case DType::e5m2:
    case DType::q8_0: assert(!"viewed() refuses them");
  }
  return act(static_cast<BFloat16*>(nullptr));
}

}  // namespace posenc::detail
