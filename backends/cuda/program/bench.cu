#include "backends/cuda/program/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace posenc::cuda {
namespace {

constexpr int runs = 21, warm_up = 2;

__global__ void scale_kernel(uint4* memory, std::size_t count) {
  const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  uint4 word = memory[i];
  for (std::uint32_t* half : {&word.x, &word.y, &word.z, &word.w}) {
    // Twice a bfloat16, by its exponent: arithmetic that takes no time, and changes what is stored.
    *half ^= 0x00800080u;
  }
  memory[i] = word;
}

__global__ void copy_kernel(uint4* to, const uint4* from, std::size_t count) {
  const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
  if (i < count) to[i] = from[i];
}

// A measurement that fails must not end as a time.
void must(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "posenc_cuda_device: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

unsigned blocks_of(std::size_t count) { return static_cast<unsigned>((count + 255) / 256); }

void copy(void* to, const void* from, std::size_t bytes, void* stream) {
  const std::size_t count = bytes / sizeof(uint4);
  copy_kernel<<<blocks_of(count), 256, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<uint4*>(to), static_cast<const uint4*>(from), count);
}

void scale(void* memory, std::size_t bytes, void* stream) {
  const std::size_t count = bytes / sizeof(uint4);
  scale_kernel<<<blocks_of(count), 256, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<uint4*>(memory), count);
}

class Stream {
 public:
  Stream() {
    must(cudaStreamCreate(&stream_)), must(cudaEventCreate(&begin_)), must(cudaEventCreate(&end_));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaEventDestroy(begin_), cudaEventDestroy(end_), cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }
  // The median of runs of `work`, each after `before`.
  template <class Before, class Work>
  double median(const Before& before, const Work& work) {
    std::vector<double> times;
    for (int i = 0; i < runs + warm_up; ++i) {
      before();
      must(cudaEventRecord(begin_, stream_));
      work();
      must(cudaEventRecord(end_, stream_));
      must(cudaEventSynchronize(end_));
      float milliseconds = 0;
      must(cudaEventElapsedTime(&milliseconds, begin_, end_));
      if (i >= warm_up) times.push_back(1000.0 * milliseconds);
    }
    std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
    return times[runs / 2];
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Twice the cache and more, written before a cold run.
constexpr std::size_t flushed = std::size_t{256} << 20;
void* flush_memory() {
  static void* memory = nullptr;
  if (memory == nullptr) must(cudaMalloc(&memory, flushed));
  return memory;
}

double in_graph(const Call& call, int calls, bool cold) {
  Stream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t work = nullptr;
  void* const memory = flush_memory();
  must(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < calls; ++i) call(i, stream.get());
  must(cudaStreamEndCapture(stream.get(), &graph));
  must(cudaGraphInstantiate(&work, graph, 0));
  const double time = stream.median(
      [&] {
        if (cold) must(cudaMemsetAsync(memory, 1, flushed, stream.get()));
      },
      [&] { must(cudaGraphLaunch(work, stream.get())); });
  must(cudaGraphExecDestroy(work));
  must(cudaGraphDestroy(graph));
  return time / calls;
}

double by_itself(const Call& call, int calls) {
  Stream stream;
  std::vector<double> times;
  for (int i = 0; i < runs + warm_up; ++i) {
    must(cudaStreamSynchronize(stream.get()));
    const auto begin = std::chrono::steady_clock::now();
    for (int c = 0; c < calls; ++c) call(c, stream.get());
    must(cudaStreamSynchronize(stream.get()));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (i >= warm_up) times.push_back(took.count() / calls);
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[runs / 2];
}

const char* device_name() {
  static cudaDeviceProp properties;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return "";
  return cudaGetDeviceProperties(&properties, device) == cudaSuccess ? properties.name : "";
}

}  // namespace

Bench device_bench() { return {device(), device_name(), in_graph, by_itself, copy, scale}; }

}  // namespace posenc::cuda
