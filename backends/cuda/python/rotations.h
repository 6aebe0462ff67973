// Rotations on a device as Python and XLA ask for them: by a text that says their plans, so that an
// extension module that was built apart, an exported graph or a compiled function need no handle.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backends/cuda/python/device.h"
#include "posenc/cuda.h"

namespace posenc::cuda::python {

// Plans of a text that posenc.cuda.text_of writes, words with a blank between them: pairing,
// first_dim, blocks, heads, axes, pairs, plans; then of each plan its amplitude and its frequencies
// [heads][axes][pairs].
Expected<std::vector<Plan>> plans_of(std::string_view text);

// Rotations, and the device that they were brought to.
struct Brought {
  Rotations rotations;
  int ordinal = 0;
};

// Those of a text on a backend, "device" (its ordinal) or "emulated", made when they are first
// asked for. A thousand are kept, and for good what a stream records, as a CUDA graph holds the
// addresses. Errors: those of plans_of and Rotations::make, another word, no device.
Expected<std::shared_ptr<const Brought>> rotations_of(std::string_view text,
                                                      std::string_view backend, int ordinal,
                                                      void* stream);

// The thread's current device while this lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal) : before_(exchange_device(ordinal)) {}
  ~CurrentDevice() { exchange_device(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_;
};

}  // namespace posenc::cuda::python
