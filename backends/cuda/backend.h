// Where kernels run: on a device (device.cu), or in a loop on the host (emulated.cc). Each function
// answers with what went wrong, or nullptr.
#pragma once

#include <cstddef>
#include <functional>

#include "backends/cuda/bias_kernel.h"
#include "backends/cuda/frequency_kernel.h"
#include "backends/cuda/rekey_kernel.h"
#include "backends/cuda/rotate_kernel.h"
#include "backends/cuda/sum_kernel.h"

namespace posenc::cuda {

struct Backend {
  const char* (*find)();  // whether there is a device that can run it
  const char* (*allocate)(std::size_t bytes, void** memory);
  void (*release)(void* memory);
  const char* (*copy_in)(void* to, const void* from, std::size_t bytes);   // from the host's memory
  const char* (*copy_out)(void* to, const void* from, std::size_t bytes);  // when all is done
  const char* (*rotate)(const RotateCall& call, void* stream);
  const char* (*sum)(const SumCall& call, void* stream);
  const char* (*bias)(const BiasCall& call, void* stream);
  const char* (*frequencies)(const FrequencyCall& call, void* stream);
  const char* (*rekey)(const RekeyCall& call, void* stream);
};
const Backend& device();
const Backend& emulated();
// For tests of the emulated grid: what a kernel before the next one does, which still runs when
// that one begins. It is done when a thread first waits for it.
void emulate_kernel_before(std::function<void()> kernel);

}  // namespace posenc::cuda
