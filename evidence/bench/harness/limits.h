// What memory and vectors allow: the same bytes as a kernel's, moved with no positions in them, in
// the instruction set and with the threads that the kernel has.
#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/tensor.h"

namespace posenc::detail {

// data[i] = data[i] · factor, computed as kernels compute: 16-bit types in float, rounded once.
void scale_in_place(void* data, DType dtype, std::int64_t count, double factor, int threads);

// data[i] = value, by plain stores: streamed past the caches a large fill is about twice as fast.
void fill(void* data, DType dtype, std::int64_t count, double value, int threads);

// Reads the memory once; of a whole number of cache lines.
void read_all(const void* data, std::int64_t bytes, int threads);

// The instruction set of these and of the kernels, "AVX2"; "" without SIMD.
std::string_view instruction_set();

}  // namespace posenc::detail
