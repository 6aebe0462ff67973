// The kernels' text for AMD's devices, as clang compiles it (hip.sh): a second opinion about the text,
// and what a port would take. No runtime and no launch: it has not run on a device.
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

#include "backends/cuda/bias_kernel.h"
#include "backends/cuda/rekey_kernel.h"
#include "backends/cuda/rotate_kernel.h"
#include "backends/cuda/sum_kernel.h"

namespace posenc::cuda {

__device__ Place place_of(const Grid& grid) {
  return {static_cast<std::int32_t>(__builtin_amdgcn_workitem_id_x()),
          static_cast<std::int64_t>(__builtin_amdgcn_workgroup_id_x()) * grid.rows +
              __builtin_amdgcn_workitem_id_y(),
          static_cast<std::int32_t>(__builtin_amdgcn_workgroup_id_y())};
}

template <class T, bool interleaved>
__global__ __attribute__((amdgpu_flat_work_group_size(1, 128))) void by_words(const RotateCall call,
                                                                              const Grid grid) {
  rotate_words<T, interleaved, false>(call, place_of(grid));
}
template <class T, bool special>
__global__ __attribute__((amdgpu_flat_work_group_size(1, 128))) void by_elements(
    const RotateCall call, const Grid grid) {
  rotate_elements<T, special>(call, place_of(grid));
}
template <class T, bool interleaved>
__global__ __attribute__((amdgpu_flat_work_group_size(1, 128))) void moved(const RekeyCall call,
                                                                           const Grid grid) {
  rekey_words<T, interleaved>(call, place_of(grid));
}
template <class T>
__global__ __attribute__((amdgpu_flat_work_group_size(1, 128))) void sum(const SumCall call) {
  sum_at<T>(call, __builtin_amdgcn_workgroup_id_y(),
            static_cast<std::int32_t>(__builtin_amdgcn_workitem_id_x()));
}
template <class T>
__global__ __attribute__((amdgpu_flat_work_group_size(1, 128))) void bias(const BiasCall call) {
  bias_at<T>(call, __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workitem_id_x());
}

#define KERNELS(T)                                                                  \
  template __global__ void by_words<T, false>(const RotateCall, const Grid);        \
  template __global__ void by_words<T, true>(const RotateCall, const Grid);         \
  template __global__ void by_elements<T, false>(const RotateCall, const Grid);     \
  template __global__ void by_elements<T, true>(const RotateCall, const Grid);      \
  template __global__ void moved<T, false>(const RekeyCall, const Grid);            \
  template __global__ void moved<T, true>(const RekeyCall, const Grid);             \
  template __global__ void sum<T>(const SumCall);                                   \
  template __global__ void bias<T>(const BiasCall);
KERNELS(Double)
KERNELS(Single)
KERNELS(Half)
KERNELS(Bfloat16)

}  // namespace posenc::cuda
