// The kernels on a device, by nvcc (C++20).
#include <cstdint>

#include "backends/cuda/backend.h"

namespace posenc::cuda {
namespace {

const char* text_of(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// Rotation: units side by side in a block; the operands are the grid's second axis. Four blocks on a
// multiprocessor: for five the registers of two heads and eight pairs do not suffice.
enum class Text { by_words, by_alternating_words, by_elements, special };
template <class T, Text text, bool early = false>
__global__ void __launch_bounds__(128, 4)
    rotate_kernel(const __grid_constant__ RotateCall call, const __grid_constant__ Grid grid) {
  for (std::int32_t unit = threadIdx.x; unit < grid.units; unit += grid.units_at_once) {
    const Place at{unit, blockIdx.x * static_cast<std::int64_t>(grid.rows) + threadIdx.y,
                   static_cast<std::int32_t>(blockIdx.y)};
    if constexpr (text == Text::by_words || text == Text::by_alternating_words)
      rotate_words<T, text == Text::by_alternating_words, early>(call, at);
    else
      rotate_elements<T, text == Text::special>(call, at);
  }
}

// Whether the current device can begin a kernel before the one before it is done.
bool begins_early() {
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major >= 9;
}
template <class T, Text text>
void launch_early(dim3 blocks, dim3 threads, cudaStream_t stream, const RotateCall& call,
                  const Grid& grid) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how{};
  how.gridDim = blocks;
  how.blockDim = threads;
  how.stream = stream;
  how.attrs = &early;
  how.numAttrs = 1;
  cudaLaunchKernelEx(&how, rotate_kernel<T, text, true>, call, grid);
}

const char* rotate_there(const RotateCall& call, void* stream) {
  const Grid grid = grid_of(call);
  if (grid.units == 0 || grid.blocks == 0) return nullptr;
  const dim3 blocks(static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.operands)),
      threads(static_cast<unsigned>(grid.units_at_once), static_cast<unsigned>(grid.rows));
  const auto in = static_cast<cudaStream_t>(stream);
  const bool early = call.early && call.wide && begins_early();
  with_number(call.number, [&]<class T>(T) {
    if (early && call.interleaved)
      launch_early<T, Text::by_alternating_words>(blocks, threads, in, call, grid);
    else if (early)
      launch_early<T, Text::by_words>(blocks, threads, in, call, grid);
    else if (call.special.any)
      rotate_kernel<T, Text::special><<<blocks, threads, 0, in>>>(call, grid);
    else if (!call.wide)
      rotate_kernel<T, Text::by_elements><<<blocks, threads, 0, in>>>(call, grid);
    else if (call.interleaved)
      rotate_kernel<T, Text::by_alternating_words><<<blocks, threads, 0, in>>>(call, grid);
    else
      rotate_kernel<T, Text::by_words><<<blocks, threads, 0, in>>>(call, grid);
  });
  return text_of(cudaGetLastError());
}

template <class T, Text text>
__global__ void __launch_bounds__(128, 6)
    rekey_kernel(const __grid_constant__ RekeyCall call, const __grid_constant__ Grid grid) {
  for (std::int32_t unit = threadIdx.x; unit < grid.units; unit += grid.units_at_once) {
    const Place at{unit, blockIdx.x * static_cast<std::int64_t>(grid.rows) + threadIdx.y, 0};
    if constexpr (text == Text::by_elements)
      rekey_elements<T>(call, at);
    else
      rekey_words<T, text == Text::by_alternating_words>(call, at);
  }
}

const char* rekey_there(const RekeyCall& call, void* stream) {
  const Grid grid = grid_of(call.rotation);
  if (grid.units == 0 || grid.blocks == 0) return nullptr;
  const dim3 blocks(static_cast<unsigned>(grid.blocks)),
      threads(static_cast<unsigned>(grid.units_at_once), static_cast<unsigned>(grid.rows));
  const auto in = static_cast<cudaStream_t>(stream);
  with_number(call.rotation.number, [&]<class T>(T) {
    if (!call.rotation.wide)
      rekey_kernel<T, Text::by_elements><<<blocks, threads, 0, in>>>(call, grid);
    else if (call.rotation.interleaved)
      rekey_kernel<T, Text::by_alternating_words><<<blocks, threads, 0, in>>>(call, grid);
    else
      rekey_kernel<T, Text::by_words><<<blocks, threads, 0, in>>>(call, grid);
  });
  return text_of(cudaGetLastError());
}

// The others: a thread a unit, rows one after another where there are more than a grid has.
constexpr int unit_threads = 128;
unsigned threads_of(std::int64_t units) {
  return units < unit_threads ? static_cast<unsigned>((units + 31) / 32 * 32) : unit_threads;
}
dim3 blocks_of(std::int64_t units, std::int64_t rows) {
  constexpr std::int64_t most = 65'535;
  const std::int64_t threads = threads_of(units);
  return dim3(static_cast<unsigned>((units + threads - 1) / threads),
              static_cast<unsigned>(rows < most ? rows : most));
}
__device__ std::int64_t unit_here() {
  return blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
}

template <class T>
__global__ void __launch_bounds__(unit_threads, 6)
    sum_kernel(const __grid_constant__ SumCall call) {
  const std::int64_t unit = unit_here();
  if (unit >= units_of(call)) return;
  for (std::int64_t row = blockIdx.y; row < rows_of(call); row += gridDim.y)
    sum_at<T>(call, row, static_cast<std::int32_t>(unit));
}
template <class T>
__global__ void __launch_bounds__(unit_threads, 6)
    bias_kernel(const __grid_constant__ BiasCall call) {
  const std::int64_t unit = unit_here();
  if (unit >= units_of(call)) return;
  for (std::int64_t query = blockIdx.y; query < call.queries.count; query += gridDim.y)
    bias_at<T>(call, query, unit);
}
template <class T>
__global__ void __launch_bounds__(unit_threads, 6)
    part_kernel(const __grid_constant__ FrequencyCall call) {
  for (std::int64_t part = blockIdx.y; part < call.parts; part += gridDim.y)
    add_part<T>(call, part, unit_here());
}
__global__ void __launch_bounds__(unit_threads, 6)
    parts_kernel(const __grid_constant__ FrequencyCall call) {
  add_parts_up(call, unit_here());
}

const char* sum_there(const SumCall& call, void* stream) {
  const dim3 blocks = blocks_of(units_of(call), rows_of(call));
  const unsigned threads = threads_of(units_of(call));
  with_number(call.number, [&]<class T>(T) {
    sum_kernel<T><<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(call);
  });
  return text_of(cudaGetLastError());
}
const char* bias_there(const BiasCall& call, void* stream) {
  const dim3 blocks = blocks_of(units_of(call), call.queries.count);
  const unsigned threads = threads_of(units_of(call));
  with_number(call.number, [&]<class T>(T) {
    bias_kernel<T><<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(call);
  });
  return text_of(cudaGetLastError());
}
const char* frequencies_there(const FrequencyCall& call, void* stream) {
  const auto in = static_cast<cudaStream_t>(stream);
  const std::int64_t count = frequencies_of(call);
  with_number(call.rotation.number, [&]<class T>(T) {
    part_kernel<T><<<blocks_of(count, call.parts), threads_of(count), 0, in>>>(call);
  });
  parts_kernel<<<blocks_of(count, 1), threads_of(count), 0, in>>>(call);
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
      rotate_there,
      sum_there,
      bias_there,
      frequencies_there,
      rekey_there};
  return backend;
}

}  // namespace posenc::cuda
