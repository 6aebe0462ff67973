// The device, its ordinals and its streams, by CUDA's runtime.
#include "backends/cuda/python/device.h"

namespace posenc::cuda::python {

const Backend* built_in_device() { return &device(); }

int exchange_device(int ordinal) {
  int before = ordinal;
  if (cudaGetDevice(&before) == cudaSuccess && before != ordinal) cudaSetDevice(ordinal);
  return before;
}

bool is_captured(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace posenc::cuda::python
