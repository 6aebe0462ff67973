// A clock for calls on a device, kernels to measure against (bench.cu), and the rows of a
// measurement (measure.cc).
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "backends/cuda/backend.h"

namespace posenc::cuda {

using Call = std::function<void(int call, void* stream)>;

// How long calls take, and the limits of memory. Times are medians, in microseconds a call.
struct Bench {
  const Backend& backend;
  const char* name;  // of the device
  // Calls in a CUDA graph; `cold`: what they touch has been driven out of the device's cache, if
  // every call has memory of its own.
  double (*in_graph)(const Call& call, int calls, bool cold);
  double (*by_itself)(const Call& call, int calls);  // launched one after another by the host
  // Bytes copied to other memory, and read, changed and written where they are.
  void (*copy)(void* to, const void* from, std::size_t bytes, void* stream);
  void (*scale)(void* memory, std::size_t bytes, void* stream);
};
Bench device_bench();
// Goes through everything on the emulated grid: rows as a device's, times that say nothing.
Bench emulated_bench();

// The table of speeds and of errors as JSON lines on standard output; `quick`: few tokens.
void measure(const Bench& bench, bool quick);
// The error of a cosine by position for the ways to form an angle, as CSV (docs/cuda.md has its
// picture).
void print_errors();

}  // namespace posenc::cuda
