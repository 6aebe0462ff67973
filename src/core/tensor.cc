#include "posenc/tensor.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>

#include "src/core/float8.h"
#include "src/core/saturating.h"

namespace posenc {
namespace {

// A 16-bit binary floating-point format: sign, exponent and mantissa from the top.
struct Format {
  int exponent_bits, mantissa_bits;
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint64_t infinity() const {
    return ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  }
};
constexpr Format half{5, 10};
constexpr Format bfloat16{8, 7};

// The nearest value of the format, ties to even. A NaN keeps its leading payload bits.
std::uint16_t narrowed(double value, Format format) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits >> 63 << 15;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const int dropped = 52 - format.mantissa_bits;

  std::uint64_t magnitude = 0;
  if (exponent == 0x7ff) {
    magnitude = format.infinity();
    if (mantissa != 0) {
      const std::uint64_t quiet = std::uint64_t{1} << (format.mantissa_bits - 1);
      magnitude |= mantissa >> dropped | quiet;
    }
  } else if (exponent != 0) {  // a subnormal double is far below half of any ulp here
    const int biased = exponent - 1023 + format.bias();
    const int shift = biased >= 1 ? dropped : dropped + 1 - biased;  // more for a subnormal result
    if (shift <= 53) {
      const std::uint64_t significand = std::uint64_t{1} << 52 | mantissa;
      const std::uint64_t rest = significand & ((std::uint64_t{1} << shift) - 1);
      const std::uint64_t tie = std::uint64_t{1} << (shift - 1);
      std::uint64_t rounded = significand >> shift;
      if (rest > tie || (rest == tie && (rounded & 1) != 0)) ++rounded;
      // The leading bit of a normal number, and any carry, add themselves to the exponent.
      const int below = std::max(biased - 1, 0);
      magnitude = (static_cast<std::uint64_t>(below) << format.mantissa_bits) + rounded;
      magnitude = std::min(magnitude, format.infinity());
    }
  }
  return static_cast<std::uint16_t>(sign | magnitude);
}

}  // namespace

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 15) << 31;
  const std::uint32_t exponent = bits >> 10 & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {  // zero and subnormals: multiples of 2^-24, exact in float
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign == 0 ? magnitude : -magnitude;
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xff : exponent - 15 + 127;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// Every float is a double, so one rounding happens either way.
std::uint16_t float_to_half(float value) { return narrowed(value, half); }
std::uint16_t double_to_half(double value) { return narrowed(value, half); }
std::uint16_t float_to_bfloat16(float value) { return narrowed(value, bfloat16); }
std::uint16_t double_to_bfloat16(double value) { return narrowed(value, bfloat16); }

Tensor Tensor::dense(void* data, DType dtype, std::initializer_list<std::int64_t> shape) {
  assert(shape.size() <= max_rank);
  Tensor view{.data = data, .dtype = dtype, .rank = static_cast<int>(shape.size())};
  std::copy(shape.begin(), shape.end(), view.shape.begin());
  std::int64_t step = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    view.stride[a] = step;
    step = detail::product(step, view.shape[a]);
  }
  return view;
}

std::int64_t Tensor::size() const {
  const auto end = shape.begin() + rank;
  if (std::any_of(shape.begin(), end, [](std::int64_t extent) { return extent <= 0; })) return 0;
  std::int64_t product = 1;
  for (auto extent = shape.begin(); extent != end; ++extent) {
    product = detail::product(product, *extent);
  }
  return product;
}

Tensor Tensor::swapped(int axis_a, int axis_b) const {
  assert(0 <= axis_a && axis_a < rank && 0 <= axis_b && axis_b < rank);
  Tensor view = *this;
  const auto a = static_cast<std::size_t>(axis_a), b = static_cast<std::size_t>(axis_b);
  std::swap(view.shape[a], view.shape[b]);
  std::swap(view.stride[a], view.stride[b]);
  return view;
}

Tensor Tensor::with_rank(int new_rank) const {
  assert(rank <= new_rank && new_rank <= max_rank);
  Tensor view{.data = data, .dtype = dtype, .rank = new_rank};
  const int added = new_rank - rank;
  std::fill_n(view.shape.begin(), added, 1);
  std::copy_n(shape.begin(), rank, view.shape.begin() + added);
  std::copy_n(stride.begin(), rank, view.stride.begin() + added);
  return view;
}

double Tensor::get(std::int64_t element_offset) const {
  switch (dtype) {
    case DType::f64: return static_cast<const double*>(data)[element_offset];
    case DType::f32: return static_cast<const float*>(data)[element_offset];
    case DType::f16: return half_to_float(static_cast<const std::uint16_t*>(data)[element_offset]);
    case DType::bf16:
      return bfloat16_to_float(static_cast<const std::uint16_t*>(data)[element_offset]);
    case DType::e4m3: return detail::e4m3_to_float(static_cast<const std::uint8_t*>(data)[element_offset]);
    case DType::e5m2: 
      // The upper byte of a half.
      return half_to_float(static_cast<std::uint16_t>(
          static_cast<const std::uint8_t*>(data)[element_offset] << 8));
    case DType::q8_0: {
      const std::int64_t number = element_offset % q8_block;
      const char* const block =
          static_cast<const char*>(data) + bytes_of(DType::q8_0, element_offset - number);
      std::uint16_t factor = 0;
      std::memcpy(&factor, block, sizeof(factor));
      return static_cast<double>(half_to_float(factor)) *
             static_cast<signed char>(block[2 + number]);
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void Tensor::set(std::int64_t element_offset, double value) const {
  switch (dtype) {
    case DType::f64: static_cast<double*>(data)[element_offset] = value; return;
    case DType::f32: static_cast<float*>(data)[element_offset] = static_cast<float>(value); return;
    case DType::f16:
      static_cast<std::uint16_t*>(data)[element_offset] = double_to_half(value);
      return;
    case DType::bf16:
      static_cast<std::uint16_t*>(data)[element_offset] = double_to_bfloat16(value);
      return;
    case DType::e4m3:
    case DType::e5m2:
    case DType::q8_0: break;
  }
}

std::string shape_text(const Tensor& tensor) {
  std::string list;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    list += (axis == 0 ? "" : ", ") + std::to_string(tensor.shape[static_cast<std::size_t>(axis)]);
  }
  return "[" + list + "]";
}

}  // namespace posenc
