#include "src/files/stored_tensor.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "src/core/saturating.h"

namespace posenc {
namespace {

struct TypeRow {
  std::string_view name;
  DType dtype;
};
// safetensors and GGUF spell them alike; .npy does not.
constexpr TypeRow types[] = {{"F64", DType::f64},   {"F32", DType::f32}, {"F16", DType::f16},
                             {"BF16", DType::bf16}, {"<f8", DType::f64}, {"<f4", DType::f32},
                             {"<f2", DType::f16}};

// Numbers that may stand at any address.
template <class T, class Convert>
std::vector<double> copied(std::span<const std::byte> bytes, Convert&& convert) {
  std::vector<double> numbers(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    T number;
    std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
    numbers[i] = static_cast<double>(convert(number));
  }
  return numbers;
}

}  // namespace

namespace detail {

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return {};
    empty |= extent == 0;
    if (extent == 0) continue;
    if (count > saturated / extent) return {};
    count *= extent;
  }
  return empty ? 0 : count;
}

Tensor view_of(std::span<const std::byte> bytes, DType dtype, std::span<const std::int64_t> shape) {
  Tensor view;
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (bytes.empty() || shape.size() > Tensor::max_rank || address % size_of(dtype) != 0)
    return view;
  // Tensors are views of memory that may be written; the interface says that this one may not.
  view.data = const_cast<std::byte*>(bytes.data());
  view.dtype = dtype;
  view.rank = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    view.shape[axis] = shape[axis];
    view.stride[axis] = stride;
    stride *= shape[axis];
  }
  return view;
}

}  // namespace detail

const StoredTensor* find_tensor(std::span<const StoredTensor> tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &StoredTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::optional<DType> dtype_of(const StoredTensor& tensor) {
  const auto* found = std::ranges::find(types, tensor.type, &TypeRow::name);
  if (found == std::end(types)) return {};
  return found->dtype;
}

Expected<std::vector<double>> doubles_of(const StoredTensor& tensor) {
  const std::optional<DType> dtype = dtype_of(tensor);
  if (!dtype)
    return fail(tensor.name.empty() ? "tensor" : tensor.name,
                "must be float64, float32, float16 or bfloat16", tensor.type,
                "store it in one of these");
  const std::optional<std::int64_t> count = detail::element_count(tensor.shape);
  if (!count || static_cast<std::uint64_t>(*count) != tensor.bytes.size() / size_of(*dtype))
    return fail(tensor.name.empty() ? "tensor" : tensor.name, "its numbers must be in the file",
                std::to_string(tensor.bytes.size()) + " bytes of them",
                "the file seems cut off; download the whole file");
  switch (*dtype) {
    case DType::f64: return copied<double>(tensor.bytes, [](double x) { return x; });
    case DType::f32: return copied<float>(tensor.bytes, [](float x) { return x; });
    case DType::f16: return copied<std::uint16_t>(tensor.bytes, half_to_float);
    case DType::bf16: break;
  }
  return copied<std::uint16_t>(tensor.bytes, bfloat16_to_float);
}

}  // namespace posenc
