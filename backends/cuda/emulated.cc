// The kernels on the host: the same text, a block and a thread after another. What it shows is the
// arithmetic and every access of memory; launches, speed and the order of memory only a device
// shows.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "backends/cuda/backend.h"
#include "posenc/tensor.h"

namespace posenc::cuda {

float real(Half x) { return half_to_float(x.bits); }
float real(Bfloat16 x) { return bfloat16_to_float(x.bits); }
void put(Half& out, float x) { out.bits = x == x ? float_to_half(x) : 0x7fff; }
void put(Bfloat16& out, float x) { out.bits = x == x ? float_to_bfloat16(x) : 0x7fff; }

namespace {
std::function<void()> before;
}
void emulate_kernel_before(std::function<void()> kernel) { before = std::move(kernel); }
void wait_for_kernel_before() {
  if (const std::function<void()> kernel = std::exchange(before, nullptr)) kernel();
}

namespace {

template <class T>
void rotate_all(const RotateCall& call) {
  const Grid grid = grid_of(call);
  for (std::int32_t operand = 0; operand < grid.operands; ++operand)
    for (std::int64_t block = 0; block < grid.blocks; ++block)
      for (std::int32_t row = 0; row < grid.rows; ++row)
        for (std::int32_t unit = 0; unit < grid.units; ++unit)
          rotate_at<T>(call, {unit, block * grid.rows + row, operand});
}

template <class T>
void rekey_all(const RekeyCall& call) {
  const Grid grid = grid_of(call.rotation);
  for (std::int64_t block = 0; block < grid.blocks; ++block)
    for (std::int32_t row = 0; row < grid.rows; ++row)
      for (std::int32_t unit = 0; unit < grid.units; ++unit)
        rekey_at<T>(call, {unit, block * grid.rows + row, 0});
}

template <class T>
void sum_all(const SumCall& call) {
  for (std::int64_t row = 0; row < rows_of(call); ++row)
    for (std::int32_t unit = 0; unit < units_of(call); ++unit) sum_at<T>(call, row, unit);
}

template <class T>
void bias_all(const BiasCall& call) {
  for (std::int64_t query = 0; query < call.queries.count; ++query)
    for (std::int64_t unit = 0; unit < units_of(call); ++unit) bias_at<T>(call, query, unit);
}

template <class T>
void add_all(const FrequencyCall& call) {
  for (std::int64_t part = 0; part < call.parts; ++part)
    for (std::int64_t i = 0; i < frequencies_of(call); ++i) add_part<T>(call, part, i);
  for (std::int64_t i = 0; i < frequencies_of(call); ++i) add_parts_up(call, i);
}

const char* rotate_emulated(const RotateCall& call, void* /*stream*/) {
  with_number(call.number, [&]<class T>(T) { rotate_all<T>(call); });
  return nullptr;
}
const char* sum_emulated(const SumCall& call, void* /*stream*/) {
  with_number(call.number, [&]<class T>(T) { sum_all<T>(call); });
  return nullptr;
}
const char* bias_emulated(const BiasCall& call, void* /*stream*/) {
  with_number(call.number, [&]<class T>(T) { bias_all<T>(call); });
  return nullptr;
}
const char* frequencies_emulated(const FrequencyCall& call, void* /*stream*/) {
  with_number(call.rotation.number, [&]<class T>(T) { add_all<T>(call); });
  return nullptr;
}
const char* rekey_emulated(const RekeyCall& call, void* /*stream*/) {
  with_number(call.rotation.number, [&]<class T>(T) { rekey_all<T>(call); });
  return nullptr;
}

const char* copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return nullptr;
}

}  // namespace

const Backend& emulated() {
  static constexpr Backend backend{.find = []() -> const char* { return nullptr; },
                                   .allocate = [](std::size_t bytes, void** memory) -> const char* {
                                     *memory = std::malloc(bytes);
                                     return *memory != nullptr || bytes == 0 ? nullptr
                                                                             : "out of memory";
                                   },
                                   .release = [](void* memory) { std::free(memory); },
                                   .copy_in = copy,
                                   .copy_out = copy,
                                   .rotate = rotate_emulated,
                                   .sum = sum_emulated,
                                   .bias = bias_emulated,
                                   .frequencies = frequencies_emulated,
                                   .rekey = rekey_emulated};
  return backend;
}

}  // namespace posenc::cuda
