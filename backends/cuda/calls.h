// What calls have in common: checks in the library's words, numbers brought to a device, positions
// as the kernels have them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/backend.h"
#include "posenc/cuda.h"
#include "src/core/try.h"

namespace posenc::cuda {

inline constexpr std::string_view where = "cuda";

inline Expected<void> done(const char* error) {
  if (error == nullptr) return {};
  return fail(where, "the device must do what it is asked", error);
}

inline Expected<void> check_device(const Backend& backend) {
  const char* missing = backend.find();
  if (missing == nullptr) return {};
  return fail(where, "there must be a CUDA device", missing,
              "use the host's functions where there is none");
}

// `memory` becomes a copy of `bytes` on the device.
inline Expected<void> bring(std::shared_ptr<void>& memory, const Backend& backend, const void* from,
                            std::size_t bytes) {
  void* there = nullptr;
  POSENC_CHECK(done(backend.allocate(bytes, &there)));
  memory = std::shared_ptr<void>(there, backend.release);
  return done(backend.copy_in(there, from, bytes));
}
template <class T>
Expected<void> bring(std::shared_ptr<void>& memory, const Backend& backend,
                     const std::vector<T>& list) {
  return bring(memory, backend, list.data(), list.size() * sizeof(T));
}

// Positions of tensors of so many sequences and tokens. Errors: packed texts that are none, or in
// several sequences.
Expected<Tokens> tokens_of(const DevicePositions& positions, std::int64_t batch,
                           std::int64_t count);

// Whether a tensor's channels, or keys, can be loaded and stored by 16 bytes: those on its last
// axis lie side by side, rows begin at multiples.
bool in_words(const Tensor& x);

}  // namespace posenc::cuda
