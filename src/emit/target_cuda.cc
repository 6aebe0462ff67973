// CUDA, and by its macros HIP and the host: a kernel with a thread for each token and pair.
#include <string>

#include "src/emit/c_words.h"

namespace posenc::emitting {
namespace {

// Products and sums are rounded each, whatever -fmad says.
class CudaPrinter : public CPrinter {
 public:
  using CPrinter::CPrinter;

 protected:
  std::string of_floats(const Node& value) const override {
    const std::string name = value.op == Op::add        ? "__fadd_rn"
                             : value.op == Op::subtract ? "__fsub_rn"
                                                        : "__fmul_rn";
    return name + "(" + expression(*value.of[0]) + ", " + expression(*value.of[1]) + ")";
  }
};

constexpr std::string_view cuda_macros = R"(
#include <stddef.h>
#include <stdint.h>

#if defined(__HIP__)
// AMD's devices, with or without the headers of ROCm. Nothing may be fused.
#pragma clang fp contract(off)
#if __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#else
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#endif
#define ITEM                                                                                 \
  ((size_t)__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +         \
   __builtin_amdgcn_workitem_id_x())
#elif defined(__CUDACC__)
#define ITEM ((size_t)blockIdx.x * blockDim.x + threadIdx.x)
#else
// The host, a thread after the other.
#define ON_HOST 1
#define __global__ static
#define __device__
static size_t item_of_host;
#define ITEM item_of_host
#endif
#if !defined(__CUDACC__) || defined(__HIP__)
#define __fmul_rn(a, b) ((a) * (b))
#define __fadd_rn(a, b) ((a) + (b))
#define __fsub_rn(a, b) ((a) - (b))
#endif

)";

std::string cuda_rotation(const Computation& what, const CudaPrinter& c) {
  return replaced(R"(
// The upper half of the product.
__device__ static inline uint32_t hi(uint32_t a, uint32_t b) {
  return (uint32_t)((uint64_t)a * b >> 32);
}

// x [tokens][heads][CHANNELS], in place; positions [axes][tokens]. A thread for each token and
// each of its PAIRS pairs.
__global__ void rotate_pairs(float* x, const int64_t* positions, size_t tokens, uint32_t heads) {
  const size_t item = ITEM;
  if (item >= tokens * PAIRS) return;
  const size_t token = item / PAIRS;
  const uint32_t pair = (uint32_t)(item % PAIRS);
)",
                  "PAIRS", number(what.rotation->pairs)) +
         c.lines(what.rotation->statements, 1) + "}\n";
}

std::string cuda_bias(const Computation& what, const CudaPrinter& c) {
  return std::string(R"(
// out [heads][queries][keys] = what is added to the logits. A thread for each of them.
__global__ void bias_of(float* out, const int64_t* query_positions, const int64_t* key_positions,
                        size_t queries, size_t keys, uint32_t heads)") +
         (what.bias->learned ? ", const float* values" : "") + R"() {
  const size_t item = ITEM;
  if (item >= heads * queries * keys) return;
  const size_t head = item / (queries * keys), query = item / keys % queries, key = item % keys;
)" + c.lines(what.bias->statements, 1) +
         "  out[item] = bias;\n}\n";
}

constexpr std::string_view cuda_host = R"(
#ifndef ON_HOST
#ifdef __HIP__
#define cudaMalloc hipMalloc
#define cudaMemcpy hipMemcpy
#define cudaMemcpyDefault hipMemcpyDefault
#endif
static void* on_device(const void* from, size_t bytes) {
  void* made = NULL;
  if (cudaMalloc(&made, bytes) != 0 || cudaMemcpy(made, from, bytes, cudaMemcpyDefault) != 0) {
    puts("no device");
    exit(77);
  }
  return made;
}
#endif
)";

// One launch, or the same items one after the other. The first array is written.
std::string launch(const std::string& name, const std::string& count,
                   const std::vector<std::string>& arrays, const std::string& sizes) {
  const std::string& result = arrays.front();
  std::string here, there = "written, ";
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::string& array = arrays[i];
    here += array + ", ";
    if (i > 0)
      there += "\n        (const int64_t*)on_device(" + array + ", sizeof " + array + "), ";
  }
  const std::string text = "#ifdef ON_HOST\n  for (item_of_host = 0; item_of_host < " + count +
                           "; ++item_of_host)\n    " + name + "(" + here + sizes +
                           ");\n#else\n  {\n    float* written = (float*)on_device(" + result +
                           ", sizeof " + result + ");\n    " + name + "<<<(unsigned)((" + count +
                           " + 127) / 128), 128>>>(\n        " + there + sizes +
                           ");\n    if (cudaMemcpy(" + result + ", written, sizeof " + result +
                           ", cudaMemcpyDefault) != 0) return 1;\n  }\n#endif\n";
  return replaced(text, ", \n", ",\n");
}

std::string cuda_test(const Computation& what) {
  std::string text = "\n#ifdef POSENC_TEST\n" + test_helpers() + std::string(cuda_host), tables,
              body = "  int wrong = 0;\n";
  if (what.rotation) {
    tables += rotation_test_tables(what) + rotation_test_verdict(what);
    body += "  static float x[CHANNELS];\n  fill(x);\n" +
            launch("rotate_pairs", "(size_t)TOKENS * " + number(what.rotation->pairs),
                   {"x", "POSITIONS"}, "TOKENS, HEADS") +
            "  wrong |= judge(x);\n";
  }
  if (what.bias) {
    tables += bias_test_tables(what) + bias_test_verdict(what);
    std::vector<std::string> arrays{"out", "QUERY_POSITIONS", "KEY_POSITIONS"};
    body += "  static float out[BIAS_HEADS * QUERIES * KEYS];\n" +
            launch("bias_of", "(size_t)BIAS_HEADS * QUERIES * KEYS", arrays,
                   what.bias->learned ? "QUERIES, KEYS, BIAS_HEADS, VALUES_OF_TEST"
                                      : "QUERIES, KEYS, BIAS_HEADS") +
            "  wrong |= judge_bias(out);\n";
    if (what.bias->learned)
      tables += R"(#ifdef ON_HOST
#define VALUES_OF_TEST TEST_VALUES
#else
#define VALUES_OF_TEST (const float*)on_device(TEST_VALUES, sizeof TEST_VALUES)
#endif
)";
  }
  return text + "\n" + tables + "\nint main() {\n" + body + "  return wrong;\n}\n#endif\n";
}

Expected<std::string> cuda_text(const Computation& what) {
  const CudaPrinter c(what);
  std::string text = about(
      what, "// ",
      {"For nvcc; for clang as HIP (-x hip --offload-arch=gfx942); and for a C++ compiler, which "
       "runs one thread after the other. Test: nvcc -D POSENC_TEST FILE.cu && ./a.out, or on the "
       "host c++ -ffp-contract=off -D POSENC_TEST -x c++ FILE.cu && ./a.out; 77: there is no "
       "device."});
  text += std::string(cuda_macros) + c.constants("__device__ static const ");
  if (what.rotation)
    text += replaced(cuda_rotation(what, c), "CHANNELS", number(what.rotation->head_dim));
  if (what.bias) text += cuda_bias(what, c);
  return text + cuda_test(what);
}

}  // namespace

extern const Target cuda_target{
    {"cuda", "CUDA, HIP by its macros, and the host; a main under POSENC_TEST", ".cu"}, cuda_text};

}  // namespace posenc::emitting
