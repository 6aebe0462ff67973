// The kernels of kernels.cl by OpenCL, on a device that shares the host's memory: pocl's processor.
// The program is LLVM's bitcode (cl_khr_spir), as no driver compiles C++ for OpenCL itself.
#include <CL/cl.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/program/bench.h"

namespace posenc::cuda {
namespace {

struct OpenCl {
  const char* missing = nullptr;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;

  OpenCl() { missing = open(); }

 private:
  const char* open() {
    cl_platform_id platform = nullptr;
    if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
      return "no OpenCL device";
    cl_device_svm_capabilities shares = 0;
    clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof shares, &shares, nullptr);
    if ((shares & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) == 0)
      return "the OpenCL device does not share the host's memory";
    std::FILE* file = std::fopen(POSENC_OPENCL_KERNELS, "rb");
    if (file == nullptr) return "cannot open " POSENC_OPENCL_KERNELS;
    std::vector<unsigned char> bytes(std::size_t{1} << 22);
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
    std::fclose(file);

    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    queue = clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
    const unsigned char* from = bytes.data();
    const std::size_t size = bytes.size();
    program = clCreateProgramWithBinary(context, 1, &device, &size, &from, nullptr, nullptr);
    if (clBuildProgram(program, 1, &device, "-x spir -spir-std=1.2", nullptr, nullptr) !=
        CL_SUCCESS)
      return "the OpenCL device cannot build the kernels";
    return nullptr;
  }
};
OpenCl& opencl() {
  static OpenCl one;
  return one;
}

const char* type_name(Number number) {
  switch (number) {
    case Number::f64: return "Double";
    case Number::f32: return "Single";
    case Number::f16: return "Half";
    case Number::bf16: return "Bfloat16";
  }
  return "";
}

// Runs a kernel on a call, [units][rows] of threads, and waits for it.
template <class Call>
const char* run(const std::string& name, const Call& call, std::size_t units, std::size_t rows,
                const std::size_t* block = nullptr) {
  const OpenCl& cl = opencl();
  if (units == 0 || rows == 0) return nullptr;
  void* there = clSVMAlloc(cl.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                           sizeof call, alignof(Call));
  if (there == nullptr) return "out of memory";
  std::memcpy(there, &call, sizeof call);
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(cl.program, name.c_str(), &error);
  const std::size_t threads[2] = {units, rows};
  if (error == CL_SUCCESS) error = clSetKernelArgSVMPointer(kernel, 0, there);
  if (error == CL_SUCCESS)
    error =
        clEnqueueNDRangeKernel(cl.queue, kernel, 2, nullptr, threads, block, 0, nullptr, nullptr);
  if (error == CL_SUCCESS) error = clFinish(cl.queue);
  clReleaseKernel(kernel);
  clSVMFree(cl.context, there);
  return error == CL_SUCCESS ? nullptr : "an OpenCL kernel did not run";
}
template <class Call>
const char* run_grid(const char* name, Number number, const Call& call, const Grid& grid,
                     std::int32_t operands) {
  const std::size_t block[2] = {static_cast<std::size_t>(grid.units_at_once),
                                static_cast<std::size_t>(grid.rows)};
  // Groups of the second axis are operands: a group has all of its rows there.
  return run(std::string(name) + type_name(number), call,
             static_cast<std::size_t>(grid.units == 0 ? 0 : grid.blocks) * block[0],
             static_cast<std::size_t>(operands) * block[1], block);
}

const char* rotate_there(const RotateCall& call, void* /*stream*/) {
  const Grid grid = grid_of(call);
  return run_grid("rotate_", call.number, call, grid, grid.operands);
}
const char* rekey_there(const RekeyCall& call, void* /*stream*/) {
  return run_grid("rekey_", call.rotation.number, call, grid_of(call.rotation), 1);
}
const char* sum_there(const SumCall& call, void* /*stream*/) {
  return run(std::string("sum_") + type_name(call.number), call,
             static_cast<std::size_t>(units_of(call)), static_cast<std::size_t>(rows_of(call)));
}
const char* bias_there(const BiasCall& call, void* /*stream*/) {
  return run(std::string("bias_") + type_name(call.number), call,
             static_cast<std::size_t>(units_of(call)),
             static_cast<std::size_t>(call.queries.count));
}
const char* frequencies_there(const FrequencyCall& call, void* /*stream*/) {
  const auto count = static_cast<std::size_t>(frequencies_of(call));
  const char* error = run(std::string("part_") + type_name(call.rotation.number), call, count,
                          static_cast<std::size_t>(call.parts));
  return error != nullptr ? error : run("parts", call, count, 1);
}

const char* copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return nullptr;
}

}  // namespace

const Backend& device() {
  static constexpr Backend backend{
      .find = [] { return opencl().missing; },
      .allocate = [](std::size_t bytes, void** memory) -> const char* {
        *memory = clSVMAlloc(opencl().context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                             bytes, 0);
        return *memory != nullptr || bytes == 0 ? nullptr : "out of memory";
      },
      .release = [](void* memory) { clSVMFree(opencl().context, memory); },
      .copy_in = copy,
      .copy_out = copy,
      .rotate = rotate_there,
      .sum = sum_there,
      .bias = bias_there,
      .frequencies = frequencies_there,
      .rekey = rekey_there};
  return backend;
}
// Its speed says nothing of a GPU: there is no bench.
Bench device_bench() { return {device(), "", nullptr, nullptr, nullptr, nullptr}; }

}  // namespace posenc::cuda
