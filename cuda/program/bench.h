// Kernels to measure against, and the device's clock (bench.cu).
#pragma once

#include <cstddef>
#include <functional>

namespace posenc::cuda {

// The name of the current device; "" without one.
const char* device_name();
// Bytes copied to other memory, and bfloat16 numbers in place multiplied by a factor: the limits of memory.
void copy_bytes(void* to, const void* from, std::size_t bytes);
void scale_in_place(void* memory, std::size_t bytes);
// Median of `runs` runs of a CUDA graph of `repeat` calls each, in microseconds a call. Calls get the stream.
double microseconds(const std::function<void(int call, void* stream)>& call, int repeat, int runs);

}  // namespace posenc::cuda
