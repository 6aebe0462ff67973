// Sums of tensors that are kept in float or double, and rounded once.
#pragma once

#include "posenc/tensor.h"

namespace posenc::mpi {

// What sums are kept in beside tensors of a dtype.
constexpr DType sum_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// The numbers of a dense float32 or float64 tensor, rounded once.
void round_into(const Tensor& from, const Tensor& to);
// to += from, both of one such dtype, dense and of one shape.
void add_to(const Tensor& from, const Tensor& to);

}  // namespace posenc::mpi
