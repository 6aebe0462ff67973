// OpenCL C 1.2; a C compiler reads the same file as its host and test.
#include <string>

#include "src/emit/c_words.h"

namespace posenc::emitting {
namespace {

class OpenClPrinter : public CPrinter {
 public:
  explicit OpenClPrinter(const Computation& what) : CPrinter(what) {
    uint_type = "uint";
    int_type = "int";
  }

 protected:
  std::string high(const std::string& a, const std::string& b) const override {
    return "mul_hi(" + a + ", " + b + ")";
  }
  std::string as_f32(const std::string& of, Type) const override {
    return "convert_float_rte(" + of + ")";
  }
};

std::string opencl_kernel(const Computation& what, const OpenClPrinter& c) {
  std::string text;
  if (what.rotation)
    text += replaced(R"(
// x [tokens][heads][CHANNELS], in place; positions [axes][tokens]. An item for each token and each
// of its PAIRS pairs.
__kernel void rotate_pairs(__global float* x, __global const long* positions, ulong tokens,
                           uint heads) {
  const size_t item = get_global_id(0);
  if (item >= tokens * PAIRS) return;
  const size_t token = item / PAIRS;
  const uint pair = (uint)(item % PAIRS);
)",
                     "PAIRS", number(what.rotation->pairs)) +
            c.lines(what.rotation->statements, 1) + "}\n";
  if (what.rotation) text = replaced(text, "CHANNELS", number(what.rotation->head_dim));
  if (what.bias)
    text += std::string(R"(
// out [heads][queries][keys] = what is added to the logits. An item for each of them.
__kernel void bias_of(__global float* out, __global const long* query_positions,
                      __global const long* key_positions, ulong queries, ulong keys, uint heads)") +
            (what.bias->learned ? ",\n                      __global const float* values" : "") +
            R"() {
  const size_t item = get_global_id(0);
  if (item >= heads * queries * keys) return;
  const size_t head = item / (queries * keys), query = item / keys % queries, key = item % keys;
)" + c.lines(what.bias->statements, 1) +
            "  out[item] = bias;\n}\n";
  return text;
}

constexpr std::string_view opencl_host = R"(#include <CL/cl.h>
#include <stdint.h>
)";

constexpr std::string_view opencl_host_functions = R"(
static cl_context context;
static cl_command_queue queue;
static cl_program program;

static void must(int good, const char* what) {
  if (good) return;
  puts(what);
  exit(77);
}

// The first device of the machine, and this file built for it.
static void start(void) {
  static char text[1 << 20];
  cl_platform_id platform;
  cl_device_id device;
  cl_int error = 0;
  FILE* file = fopen(__FILE__, "rb");
  must(file != NULL, "cannot read " __FILE__);
  const size_t size = fread(text, 1, sizeof text, file);
  const char* start = text;
  fclose(file);
  must(clGetPlatformIDs(1, &platform, NULL) == 0, "no OpenCL");
  must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == 0, "no device");
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  must(error == 0, "no context");
  queue = clCreateCommandQueue(context, device, 0, &error);
  program = clCreateProgramWithSource(context, 1, &start, &size, &error);
  if (clBuildProgram(program, 1, &device, "-cl-std=CL1.2", NULL, NULL) != 0) {
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof text, text, NULL);
    fputs(text, stdout);
    exit(1);
  }
}

static cl_mem buffer(const void* from, size_t bytes) {
  cl_int error = 0;
  const cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes,
                                     (void*)from, &error);
  must(error == 0, "no memory on the device");
  return made;
}

static void run(cl_kernel kernel, size_t items, cl_mem out, void* to, size_t bytes) {
  must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) == 0,
       "the kernel did not start");
  must(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, bytes, to, 0, NULL, NULL) == 0,
       "the result did not come back");
}
)";

std::string opencl_test(const Computation& what) {
  std::string tables, body;
  if (what.rotation) {
    tables += rotation_test_tables(what) + rotation_test_verdict(what);
    body += replaced(R"(  {
    static float x[CHANNELS];
    fill(x);
    const cl_kernel kernel = clCreateKernel(program, "rotate_pairs", NULL);
    const cl_mem out = buffer(x, sizeof x), positions = buffer(POSITIONS, sizeof POSITIONS);
    const cl_ulong tokens = TOKENS;
    const cl_uint heads = HEADS;
    clSetKernelArg(kernel, 0, sizeof out, &out);
    clSetKernelArg(kernel, 1, sizeof positions, &positions);
    clSetKernelArg(kernel, 2, sizeof tokens, &tokens);
    clSetKernelArg(kernel, 3, sizeof heads, &heads);
    run(kernel, (size_t)TOKENS * PAIRS, out, x, sizeof x);
    wrong |= judge(x);
  }
)",
                     "PAIRS", number(what.rotation->pairs));
  }
  if (what.bias) {
    tables += bias_test_tables(what) + bias_test_verdict(what);
    body +=
        std::string(R"(  {
    static float biases[BIAS_HEADS * QUERIES * KEYS];
    const cl_kernel kernel = clCreateKernel(program, "bias_of", NULL);
    const cl_mem out = buffer(biases, sizeof biases),
                 query_at = buffer(QUERY_POSITIONS, sizeof QUERY_POSITIONS),
                 key_at = buffer(KEY_POSITIONS, sizeof KEY_POSITIONS);
    const cl_ulong queries = QUERIES, keys = KEYS;
    const cl_uint heads = BIAS_HEADS;
    clSetKernelArg(kernel, 0, sizeof out, &out);
    clSetKernelArg(kernel, 1, sizeof query_at, &query_at);
    clSetKernelArg(kernel, 2, sizeof key_at, &key_at);
    clSetKernelArg(kernel, 3, sizeof queries, &queries);
    clSetKernelArg(kernel, 4, sizeof keys, &keys);
    clSetKernelArg(kernel, 5, sizeof heads, &heads);
)") +
        (what.bias->learned ? R"(    const cl_mem values = buffer(TEST_VALUES, sizeof TEST_VALUES);
    clSetKernelArg(kernel, 6, sizeof values, &values);
)"
                            : "") +
        R"(    run(kernel, (size_t)BIAS_HEADS * QUERIES * KEYS, out, biases, sizeof biases);
    wrong |= judge_bias(biases);
  }
)";
  }
  return std::string(opencl_host) + test_helpers() + "\n" + tables +
         std::string(opencl_host_functions) + "\nint main(void) {\n  int wrong = 0;\n  start();\n" +
         body + "  return wrong;\n}\n";
}

Expected<std::string> opencl_text(const Computation& what) {
  const OpenClPrinter c(what);
  const std::string head =
      about(what, "// ",
            {"OpenCL C 1.2, which needs nothing but the kernels. Test: a C compiler reads the same "
             "file as their host, cc -D CL_TARGET_OPENCL_VERSION=120 -x c FILE.cl -x none -lOpenCL "
             "-lm && ./a.out; 77: there is no device."});
  return head + "\n#ifdef __OPENCL_VERSION__\n#pragma OPENCL FP_CONTRACT OFF\n\n" +
         c.constants("__constant ") + opencl_kernel(what, c) + "\n#else  // the host\n" +
         opencl_test(what) + "#endif\n";
}

}  // namespace

extern const Target opencl_target{
    {"opencl", "OpenCL C 1.2; a C compiler reads its host in the same file", ".cl"}, opencl_text};

}  // namespace posenc::emitting
