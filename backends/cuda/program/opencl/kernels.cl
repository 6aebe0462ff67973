// The kernels' text as C++ for OpenCL: a third compiler of it, by macros and names of the standard
// library (std/) alone. pocl runs it on a processor (device.cc), so that its bits are compared with
// those of the host and of a CUDA device.
#pragma OPENCL FP_CONTRACT OFF

// A type in OpenCL, a name in C++.
#define half half_of
#include "backends/cuda/bias_kernel.h"
#include "backends/cuda/frequency_kernel.h"
#include "backends/cuda/rekey_kernel.h"
#include "backends/cuda/rotate_kernel.h"
#include "backends/cuda/sum_kernel.h"
#undef half

namespace posenc::cuda {

// Numbers of 16 bits in integers: not every device has a type for them. NaN is 0x7fff, as CUDA has
// it.
float real(Half x) {
  const std::uint32_t size = x.bits & 0x7fffu;
  const float value =
      size < 0x7c00u ? as_float(size << 13) * 0x1p112f : as_float(0x7f80'0000u | size << 13);
  return (x.bits & 0x8000u) != 0 ? -value : value;
}
void put(Half& out, float x) {
  const float size = x < 0 ? -x : x;
  const std::uint32_t bits = as_uint(size);
  const std::uint32_t rounded = size >= 65'520.0f ? 0x7c00u
                                : size < 0x1p-14f
                                    ? as_uint(size + 0.5f) - as_uint(0.5f)  // in steps of 2^-24
                                    : ((bits + 0xfffu + (bits >> 13 & 1u)) >> 13) - (112u << 10);
  out.bits = x == x ? rounded | (as_uint(x) >> 16 & 0x8000u) : 0x7fff;
}
float real(Bfloat16 x) { return as_float(static_cast<std::uint32_t>(x.bits) << 16); }
void put(Bfloat16& out, float x) {
  const std::uint32_t bits = as_uint(x);
  out.bits = x == x ? (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16 : 0x7fff;
}

// Kernels begin when the one before them is done.
void wait_for_kernel_before() {}

inline Place place_of(const Grid& grid, std::int32_t unit) {
  return {unit,
          static_cast<std::int64_t>(get_group_id(0)) * grid.rows +
              static_cast<std::int64_t>(get_local_id(1)),
          static_cast<std::int32_t>(get_group_id(1))};
}
inline std::int64_t unit_here() { return static_cast<std::int64_t>(get_global_id(0)); }
inline std::int64_t row_here() { return static_cast<std::int64_t>(get_global_id(1)); }

}  // namespace posenc::cuda

using namespace posenc::cuda;

// A kernel takes no struct with defaults by value, so that a call lies in memory.
#define KERNELS(T)                                                                  \
  kernel void rotate_##T(global const RotateCall* call) {                           \
    const Grid grid = grid_of(*call);                                               \
    for (auto unit = static_cast<std::int32_t>(get_local_id(0)); unit < grid.units; \
         unit += grid.units_at_once)                                                \
      rotate_at<T>(*call, place_of(grid, unit));                                    \
  }                                                                                 \
  kernel void rekey_##T(global const RekeyCall* call) {                             \
    const Grid grid = grid_of(call->rotation);                                      \
    for (auto unit = static_cast<std::int32_t>(get_local_id(0)); unit < grid.units; \
         unit += grid.units_at_once)                                                \
      rekey_at<T>(*call, place_of(grid, unit));                                     \
  }                                                                                 \
  kernel void sum_##T(global const SumCall* call) {                                 \
    sum_at<T>(*call, row_here(), static_cast<std::int32_t>(unit_here()));           \
  }                                                                                 \
  kernel void bias_##T(global const BiasCall* call) {                               \
    bias_at<T>(*call, row_here(), unit_here());                                     \
  }                                                                                 \
  kernel void part_##T(global const FrequencyCall* call) {                          \
    add_part<T>(*call, row_here(), unit_here());                                    \
  }
KERNELS(Double)
KERNELS(Single)
KERNELS(Half)
KERNELS(Bfloat16)
kernel void parts(global const FrequencyCall* call) { add_parts_up(*call, unit_here()); }
