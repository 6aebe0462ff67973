// What memory allows: the limits that kernels are measured against, by the same vectors and threads.
#pragma once

#include "posenc/apply.h"
#include "posenc/tensor.h"

namespace posenc::bench {

// Both take dense tensors. Scaling reads, multiplies in the kernels' arithmetic and writes back.
void scale_in_place(const Tensor& x, double factor, Threads threads);
void fill(const Tensor& x, double value, Threads threads);

}  // namespace posenc::bench
