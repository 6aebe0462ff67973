// A bias by distance for an attention of one's own: a function of head, query and key, on the
// device and on the host, as variants of FlashInfer and mods of CUTLASS call it.
// posenc::cuda::Biases makes one of a plan, where its numbers lie on the device.
#pragma once

#include <cstdint>

#if defined(__CUDACC__) || defined(__HIP__)
#define POSENC_DEVICE_BIAS __host__ __device__ inline
#else
#define POSENC_DEVICE_BIAS inline
#endif

namespace posenc {
namespace cuda {

// Real is float, for an attention's inner loop, or double. By slopes (ALiBi): −slope[head] ·
// distance, of either sign or
// |distance|; a float's is within 2^-23 of itself to a distance of 2^24. By a table (T5 and its
//   kin): the value of the distance's
// row, rounded once; beyond the table the end's value where it saturates, else NaN.
template <class Real>
struct DeviceBias {
  const Real* slope = nullptr;   // [head], or:
  const Real* values = nullptr;  // [head or 1][distance from first to last]
  std::int64_t first = 0, last = -1;
  std::int64_t head_stride = 0;  // of values; 0: shared by all heads
  bool absolute = false, saturates = true;

  // distance = position of the query − position of the key
  POSENC_DEVICE_BIAS Real operator()(std::int32_t head, std::int64_t distance) const {
    if (slope != nullptr)
      return -slope[head] * static_cast<Real>(absolute && distance < 0 ? -distance : distance);
    if (values == nullptr) return 0;
    const std::int64_t held = distance < first ? first : distance > last ? last : distance;
    const Real value = values[head * head_stride + (held - first)];
    if (held == distance || saturates) return value;
    const Real infinite = static_cast<Real>(1e30f) * static_cast<Real>(1e30f) *
                          static_cast<Real>(sizeof(Real) == 8 ? 1e300 : 1);
    return infinite - infinite;
  }
};

}  // namespace cuda
}  // namespace posenc
