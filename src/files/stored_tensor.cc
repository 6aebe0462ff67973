#include "src/files/stored_tensor.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "src/core/saturating.h"
#include "src/files/quantized.h"

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
template <class Number, class T, class Convert>
std::vector<Number> copied(std::span<const std::byte> bytes, Convert&& convert) {
  std::vector<Number> numbers(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    T number;
    std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
    numbers[i] = static_cast<Number>(convert(number));
  }
  return numbers;
}

std::string_view called(const StoredTensor& tensor) {
  return tensor.name.empty() ? "tensor" : std::string_view(tensor.name);
}

std::unexpected<Error> cut_off(const StoredTensor& tensor) {
  return fail(called(tensor), "its numbers must be in the file",
              std::to_string(tensor.bytes.size()) + " bytes of them",
              "the file seems cut off; download the whole file");
}

template <class Number>
Expected<std::vector<Number>> numbers_of(const StoredTensor& tensor, std::string_view types_taken) {
  const std::optional<DType> dtype = dtype_of(tensor);
  if (!dtype)
    return fail(called(tensor), "must be " + std::string(types_taken), tensor.type,
                "store it in one of these");
  const std::optional<std::int64_t> count = detail::element_count(tensor.shape);
  if (!count || static_cast<std::uint64_t>(*count) != tensor.bytes.size() / size_of(*dtype))
    return cut_off(tensor);
  switch (*dtype) {
    case DType::f64: return copied<Number, double>(tensor.bytes, [](double x) { return x; });
    case DType::f32: return copied<Number, float>(tensor.bytes, [](float x) { return x; });
    case DType::f16: return copied<Number, std::uint16_t>(tensor.bytes, half_to_float);
    case DType::bf16:
    case DType::e4m3:
    case DType::e5m2:
    case DType::q8_0: break;  // the last three stand in no file that is read
  }
  return copied<Number, std::uint16_t>(tensor.bytes, bfloat16_to_float);
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
  return numbers_of<double>(tensor, "float64, float32, float16 or bfloat16");
}

Expected<std::vector<float>> floats_of(const StoredTensor& tensor) {
  const detail::Quantized* const kind = detail::quantized(tensor.type);
  if (kind == nullptr)
    return numbers_of<float>(tensor,
                             "float64, float32, float16, bfloat16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, "
                             "Q4_K, Q5_K or Q6_K");
  const auto numbers = static_cast<std::size_t>(kind->numbers),
             bytes = static_cast<std::size_t>(kind->bytes);
  const std::size_t blocks = tensor.bytes.size() / bytes;
  const std::optional<std::int64_t> count = detail::element_count(tensor.shape);
  if (!count || static_cast<std::uint64_t>(*count) != blocks * numbers) return cut_off(tensor);
  std::vector<float> out(blocks * numbers);
  for (std::size_t i = 0; i < blocks; ++i)
    kind->restore(detail::Block(tensor.bytes.data() + i * bytes), out.data() + i * numbers);
  return out;
}

}  // namespace posenc
