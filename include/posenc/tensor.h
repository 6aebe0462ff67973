// A borrowed, strided view of memory with a dtype. It owns nothing and is cheap to copy.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] posenc {

// The four that are computed with, and those of 8 bits in which engines cache keys and values:
// only attend() reads these, and no function writes them.
enum class DType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  e4m3,  // float8_e4m3fn of torch: largest 448, no infinities
  e5m2,  // float8_e5m2
  // ggml's: a half and 32 signed bytes that it multiplies, 34 bytes. Extents and strides count
  // numbers: the last axis is contiguous and, as every other stride, a multiple of 32.
  q8_0,
};

constexpr std::string_view name(DType dtype) {
  constexpr std::string_view names[] = {"float64",       "float32",     "float16", "bfloat16",
                                        "float8_e4m3fn", "float8_e5m2", "q8_0"};
  return names[static_cast<std::size_t>(dtype)];
}

constexpr bool has_8_bits(DType dtype) { return dtype >= DType::e4m3; }

// Bytes of a number; of q8_0 without the halves between its blocks, see bytes_of().
constexpr std::size_t size_of(DType dtype) {
  constexpr std::size_t sizes[] = {8, 4, 2, 2, 1, 1, 1};
  return sizes[static_cast<std::size_t>(dtype)];
}

constexpr std::int64_t q8_block = 32, q8_block_bytes = 34;  // numbers, bytes

// Bytes of so many numbers in a row, of q8_0 a multiple of 32.
constexpr std::int64_t bytes_of(DType dtype, std::int64_t numbers) {
  if (dtype == DType::q8_0) return numbers / q8_block * q8_block_bytes;
  return numbers * static_cast<std::int64_t>(size_of(dtype));
}

// Bit conversions of the 16-bit types; rounding is to nearest, ties to even.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
std::uint16_t double_to_half(double value);  // rounded once, not through float
constexpr float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
std::uint16_t float_to_bfloat16(float value);
std::uint16_t double_to_bfloat16(double value);  // rounded once, not through float

// A view of up to four axes. What each axis means is said by the function that takes it; kernels
// take [batch, head, seq, dim] (or fewer axes, from the right) whatever the strides are, so that
// [batch, seq, head, dim] in memory is a view with swapped strides. A default view is absent.
struct Tensor {
  static constexpr int max_rank = 4;

  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<std::int64_t, max_rank> shape{};   // elements along each axis
  std::array<std::int64_t, max_rank> stride{};  // elements (not bytes) from one index to the next

  // A dense row-major view; the last axis is contiguous.
  static Tensor dense(void* data, DType dtype, std::initializer_list<std::int64_t> shape);
  static Tensor dense(double* data, std::initializer_list<std::int64_t> shape) {
    return dense(data, DType::f64, shape);
  }
  static Tensor dense(float* data, std::initializer_list<std::int64_t> shape) {
    return dense(data, DType::f32, shape);
  }

  explicit operator bool() const { return data != nullptr; }
  std::int64_t size() const;                     // number of elements
  Tensor swapped(int axis_a, int axis_b) const;  // the same memory with two axes exchanged
  // The same memory seen with `rank` axes: axes of extent 1 are put in front.
  Tensor with_rank(int new_rank) const;

  std::int64_t offset(std::int64_t a, std::int64_t b = 0, std::int64_t c = 0,
                      std::int64_t d = 0) const {
    return a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3];
  }
  // One element as a double, and back (rounded once to nearest even; not of 8 bits). For reference
  // code.
  double get(std::int64_t element_offset) const;
  void set(std::int64_t element_offset, double value) const;

  bool operator==(const Tensor&) const = default;
};

std::string shape_text(const Tensor& tensor);  // "[2, 8, 128]", for messages

}  // namespace posenc
