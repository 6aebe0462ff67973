// In place of device.cu where there is no nvcc: the emulated grid is all that the module has.
#include "backends/cuda/python/device.h"

namespace posenc::cuda::python {

const Backend* built_in_device() { return nullptr; }
int exchange_device(int ordinal) { return ordinal; }
bool is_captured(void* /*stream*/) { return false; }

}  // namespace posenc::cuda::python
