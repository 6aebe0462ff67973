// What the program's parts have in common: what may not fail, and memory of a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cuda/backend.h"
#include "posenc/error.h"
#include "posenc/tensor.h"

namespace posenc::cuda {

// What is refused ends the program: nothing of it may be.
template <class T>
T must(Expected<T> result) {
  if (!result) {
    std::fprintf(stderr, "posenc_cuda_device: %s\n", result.error().message().c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
inline void must(const char* error) {
  if (error == nullptr) return;
  std::fprintf(stderr, "posenc_cuda_device: %s\n", error);
  std::exit(1);
}

using Bytes = std::vector<std::byte>;

// Numbers of the type between -2 and 2, the same every time.
inline Bytes numbers(DType dtype, std::int64_t count, std::uint64_t seed) {
  Bytes bytes(static_cast<std::size_t>(count) * size_of(dtype));
  const Tensor view = Tensor::dense(bytes.data(), dtype, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    view.set(i, static_cast<double>(static_cast<std::int64_t>(seed >> 11)) * 0x1p-51 - 2);
  }
  return bytes;
}

class Memory {
 public:
  Memory(const Backend& backend, std::size_t bytes) : backend_(backend) {
    must(backend.allocate(bytes, &data_));
  }
  Memory(const Backend& backend, const Bytes& bytes) : Memory(backend, bytes.size()) {
    must(backend.copy_in(data_, bytes.data(), bytes.size()));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { backend_.release(data_); }
  void* data() const { return data_; }

 private:
  const Backend& backend_;
  void* data_ = nullptr;
};

// A list in a backend's memory, as long as its first user.
template <class T>
Memory there(const Backend& backend, const std::vector<T>& list) {
  const auto* data = reinterpret_cast<const std::byte*>(list.data());
  return Memory(backend, Bytes(data, data + list.size() * sizeof(T)));
}

}  // namespace posenc::cuda
