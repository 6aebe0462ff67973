// What the tests of kernels rotate, add to and compare.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "posenc/tensor.h"
#include "tests/random.h"

namespace posenc::cuda {

inline constexpr DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

// What a rounding to the type, and a float's cosine, may be off.
inline double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-14;
    case DType::f32: return 1e-6;
    case DType::f16: return 0x1p-9;
    case DType::bf16: return 0x1p-6;
    case DType::e4m3:
    case DType::e5m2:
    case DType::q8_0: break;
  }
  return 0;
}

// [batch][head][token][channel] in memory of its own, in the order [batch][token][head][channel],
// with room behind each row.
struct Numbers {
  std::vector<double> memory = {};
  Tensor view = {};

  Numbers(DType dtype, std::array<std::int64_t, 4> shape, std::int64_t padding = 0,
          std::int64_t begin = 0) {
    const auto [batch, heads, tokens, dim] = shape;
    const std::int64_t row = dim + padding;
    const auto size = static_cast<std::size_t>(batch * heads * tokens * row + begin);
    memory.resize(size + 2);
    auto* data = reinterpret_cast<std::byte*>(memory.data());
    data += (16 - reinterpret_cast<std::uintptr_t>(data) % 16) % 16;
    view = {.data = data + begin * static_cast<std::int64_t>(size_of(dtype)),
            .dtype = dtype,
            .rank = 4,
            .shape = shape,
            .stride = {tokens * heads * row, row, heads * row, 1}};
  }
  Numbers(const Numbers&) = delete;

  template <class Each>
  void each(const Each& visit) const {
    for (std::int64_t b = 0; b < view.shape[0]; ++b)
      for (std::int64_t h = 0; h < view.shape[1]; ++h)
        for (std::int64_t t = 0; t < view.shape[2]; ++t)
          for (std::int64_t c = 0; c < view.shape[3]; ++c) visit(view.offset(b, h, t, c));
  }
  void fill(unsigned seed) {
    const std::vector<double> list = random(view.size(), seed);
    std::size_t i = 0;
    each([&](std::int64_t at) { view.set(at, list[i++]); });
  }
};

}  // namespace posenc::cuda
