// Keys and values of 8 bits, as an engine's cache holds them: random bytes that are no NaN.
#pragma once

#include <cstdint>
#include <vector>

#include "posenc/tensor.h"
#include "tests/random.h"

namespace posenc {

inline constexpr DType eight_bit_dtypes[] = {DType::e4m3, DType::e5m2, DType::q8_0};

struct EightBits {
  std::vector<std::uint8_t> bytes;
  Tensor shape;  // without data

  // [batch, heads, tokens, dim], of numbers of order 1.
  EightBits(DType dtype, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
            std::int64_t dim, unsigned seed)
      : shape(Tensor::dense(nullptr, dtype, {batch, heads, tokens, dim})) {
    const std::int64_t count = bytes_of(dtype, shape.size());
    const std::vector<float> chance = random<float>(count, seed);
    for (const float x : chance) {
      const auto byte = static_cast<std::uint8_t>(static_cast<int>(x * 127));
      const std::uint8_t sign = byte & 0x80U;
      bytes.push_back(dtype == DType::e4m3   ? sign | byte % 0x42
                      : dtype == DType::e5m2 ? sign | byte % 0x44
                                             : byte);
    }
    // Halves of 2^-7 to 2^-6.
    for (std::size_t at = 0; dtype == DType::q8_0 && at < bytes.size(); at += q8_block_bytes)
      bytes[at + 1] = 0x20U | (bytes[at + 1] & 3U);
  }
  Tensor view() {
    Tensor view = shape;
    view.data = bytes.data();
    return view;
  }
};

}  // namespace posenc
