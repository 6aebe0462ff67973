// The kernels on a device, by nvcc (C++20).
#include <cstdint>

#include "cuda/backend.h"

namespace posenc::cuda {
namespace {

const char* text_of(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// Units side by side in a block; the operands are the grid's second axis. Six blocks on a multiprocessor: for eight the registers
// of some kernels do not suffice.
template <class T, bool wide, bool interleaved>
__global__ void __launch_bounds__(128, 6)
    rotate_kernel(const __grid_constant__ RotateCall call, const __grid_constant__ Grid grid) {
  for (std::int32_t unit = threadIdx.x; unit < grid.units; unit += grid.units_at_once) {
    const Place at{unit, blockIdx.x * static_cast<std::int64_t>(grid.rows) + threadIdx.y,
                   static_cast<std::int32_t>(blockIdx.y)};
    if constexpr (wide)
      rotate_words<T, interleaved>(call, at);
    else
      rotate_elements<T>(call, at);
  }
}

template <class T>
void launch(const RotateCall& call, const Grid& grid, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.operands)),
      threads(static_cast<unsigned>(grid.units_at_once), static_cast<unsigned>(grid.rows));
  if (!call.wide)
    rotate_kernel<T, false, false><<<blocks, threads, 0, stream>>>(call, grid);
  else if (call.interleaved)
    rotate_kernel<T, true, true><<<blocks, threads, 0, stream>>>(call, grid);
  else
    rotate_kernel<T, true, false><<<blocks, threads, 0, stream>>>(call, grid);
}

const char* rotate_there(const RotateCall& call, void* stream) {
  const Grid grid = grid_of(call);
  if (grid.units == 0 || grid.blocks == 0) return nullptr;
  const auto in = static_cast<cudaStream_t>(stream);
  switch (call.number) {
    case Number::f64: launch<Double>(call, grid, in); break;
    case Number::f32: launch<Single>(call, grid, in); break;
    case Number::f16: launch<Half>(call, grid, in); break;
    case Number::bf16: launch<Bfloat16>(call, grid, in); break;
  }
  return text_of(cudaGetLastError());
}

const char* find_device() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return count > 0 ? nullptr : "no CUDA device";
}

}  // namespace

const Backend& device() {
  static constexpr Backend backend{
      find_device,
      [](std::size_t bytes, void** memory) { return text_of(cudaMalloc(memory, bytes)); },
      [](void* memory) { cudaFree(memory); },
      [](void* to, const void* from, std::size_t bytes) {
        return text_of(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
      },
      [](void* to, const void* from, std::size_t bytes) {
        return text_of(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
      },
      rotate_there};
  return backend;
}

}  // namespace posenc::cuda
