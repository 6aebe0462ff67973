// The program where there is no nvcc: its words for the emulated grid, and of a device that there
// is none.
#include "backends/cuda/program/bench.h"

namespace posenc::cuda {

const Backend& device() {
  static constexpr Backend backend{.find = []() -> const char* { return "built without CUDA"; }};
  return backend;
}
Bench device_bench() { return {device(), "", nullptr, nullptr, nullptr, nullptr}; }

}  // namespace posenc::cuda
