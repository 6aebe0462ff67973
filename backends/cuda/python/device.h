// What the module asks of CUDA itself: device.cu answers, or without_device.cc where the module is
// built without.
#pragma once

#include "backends/cuda/backend.h"

namespace posenc::cuda::python {

// nullptr where the module was built without.
const Backend* built_in_device();
// Makes a device the thread's current one; answers with the one before.
int exchange_device(int ordinal);
// Whether calls in a stream are recorded for a CUDA graph, which keeps their addresses.
bool is_captured(void* stream);

}  // namespace posenc::cuda::python
