// A number as a narrower type holds it.
#pragma once

#include "posenc/tensor.h"

namespace posenc::detail {

// f64 holds all of it.
inline double kept_as(DType type, double number) {
  const auto value = static_cast<float>(number);
  if (type == DType::bf16) return bfloat16_to_float(float_to_bfloat16(value));
  if (type == DType::f16) return half_to_float(float_to_half(value));
  return type == DType::f32 ? value : number;
}

}  // namespace posenc::detail
