#include "cli/arguments/npy.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>

#include "cli/arguments/atomic_file.h"
#include "cli/system/system.h"
#include "posenc/files.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct TypeRow {
  std::string_view name, descr;
  std::size_t size;
};
constexpr TypeRow types[] = {
    // in NpyType's order
    {"float64", "<f8", 8}, {"float32", "<f4", 4}, {"float16", "<f2", 2}, {"uint16", "<u2", 2},
    {"int64", "<i8", 8},   {"int32", "<i4", 4},   {"uint8", "|u1", 1},   {"bool", "|b1", 1},
};
const TypeRow& row(NpyType type) { return types[static_cast<std::size_t>(type)]; }

// Bytes of an array, nothing if no memory could hold them.
std::optional<std::size_t> bytes_needed(NpyType type, std::span<const std::int64_t> shape) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(type));
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return {};
    empty |= extent == 0;
    if (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes)) return {};
  }
  return empty ? 0 : static_cast<std::size_t>(bytes);
}

}  // namespace

std::string_view name(NpyType type) { return row(type).name; }
std::size_t size_of(NpyType type) { return row(type).size; }

std::int64_t Array::size() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

Expected<Array> make_array(NpyType type, std::vector<std::int64_t> shape) {
  const std::optional<std::size_t> bytes = bytes_needed(type, shape);
  Array array{type, std::move(shape), {}};
  if (bytes && *bytes <= machine_memory()) {
    array.data.resize(*bytes);
    return array;
  }
  std::string text;
  for (const std::int64_t extent : array.shape)
    text += (text.empty() ? "" : " × ") + std::to_string(extent);
  return fail("output", "the array must fit into memory", text + " " + std::string(name(type)),
              "ask for fewer positions or heads");
}

std::string npy_header(const Array& array) {
  std::string shape;
  for (const std::int64_t extent : array.shape) shape += std::to_string(extent) + ", ";
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  if (array.shape.size() == 1) shape.pop_back();
  std::string text = "{'descr': '" + std::string(row(array.type).descr) +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr std::size_t before = 10;  // magic, version and length; the whole is a multiple of 64
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() % 256);
  header += static_cast<char>(text.size() / 256);
  return header + text;
}

Expected<MappedArray> map_npy(const std::string& path) {
  POSENC_TRY(file, MappedFile::open(path));
  POSENC_TRY(stored, parse_npy(file.bytes(), path));
  if (stored.shape.size() > Tensor::max_rank)
    return fail(path, "at most " + std::to_string(Tensor::max_rank) + " axes",
                std::to_string(stored.shape.size()), "reshape the array");
  const auto* type = std::ranges::find(types, stored.type, &TypeRow::descr);
  return MappedArray{{static_cast<NpyType>(type - types), stored.shape, {}}, file, stored.bytes};
}

Expected<Array> read_npy(const std::string& path) {
  POSENC_TRY(mapped, map_npy(path));
  if (mapped.data.size() > machine_memory())
    return fail(path, "must fit into memory", std::to_string(mapped.data.size()) + " bytes",
                "cut the tensor into parts");
  mapped.array.data.assign(mapped.data.begin(), mapped.data.end());
  return std::move(mapped.array);
}

Expected<void> write_npy(const std::string& path, const Array& array) {
  return write_whole(path, {npy_header(array),
                            {reinterpret_cast<const char*>(array.data.data()), array.data.size()}});
}

Expected<ArrayFormat> array_format(std::string_view path) {
  if (path.ends_with(".npy")) return ArrayFormat::npy;
  if (path == "-" || path.ends_with(".csv") || path.ends_with(".txt")) return ArrayFormat::text;
  return fail("output", "must end in .npy, .csv or .txt, or be -", path,
              ".npy keeps the shape and every bit, .csv and .txt are text, - prints it");
}

namespace {

// The shortest that reads back as the same number of its type.
template <class T>
void append(std::string& text, T value) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end);
}

template <class T>
void append(std::string& text, const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  append(text, value);
}

void append(std::string& text, NpyType type, bool bfloat16, const std::byte* at) {
  switch (type) {
    case NpyType::f64: return append<double>(text, at);
    case NpyType::f32: return append<float>(text, at);
    case NpyType::i64: return append<std::int64_t>(text, at);
    case NpyType::i32: return append<std::int32_t>(text, at);
    case NpyType::u8:
    case NpyType::boolean: text += std::to_string(std::to_integer<int>(*at)); return;
    case NpyType::u16:
      if (!bfloat16) return append<std::uint16_t>(text, at);
      [[fallthrough]];
    case NpyType::f16: break;
  }
  Tensor one{.data = const_cast<std::byte*>(at),
             .dtype = bfloat16 ? DType::bf16 : DType::f16,
             .rank = 1,
             .shape = {1},
             .stride = {1}};
  append(text, static_cast<float>(one.get(0)));
}

std::string text_of(const Array& array, bool bfloat16) {
  const std::int64_t columns = array.shape.empty() ? 1 : array.shape.back();
  const std::size_t size = size_of(array.type);
  std::string text;
  for (std::int64_t i = 0; i < array.size(); ++i) {
    append(text, array.type, bfloat16, array.data.data() + static_cast<std::size_t>(i) * size);
    text += (i + 1) % columns == 0 ? '\n' : ',';
  }
  return text;
}

}  // namespace

Expected<void> write_array(const std::string& path, const Array& array, std::string_view dtype) {
  POSENC_TRY(format, array_format(path));
  if (format == ArrayFormat::npy) return write_npy(path, array);
  const std::string text = text_of(array, dtype == "bfloat16");
  if (path != "-") return write_whole(path, {text});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

Expected<NpyType> type_named(std::string_view dtype) {
  if (dtype == "bfloat16") return NpyType::u16;
  for (const NpyType type : {NpyType::f64, NpyType::f32, NpyType::f16})
    if (name(type) == dtype) return type;
  return fail("--dtype", "unknown type", dtype, "use float64, float32, float16 or bfloat16");
}

Expected<Tensor> tensor_of(Array& array, std::string_view dtype, std::string_view where) {
  std::string_view own = name(array.type);
  if (array.type == NpyType::u16 && dtype == "bfloat16") own = dtype;
  if (!dtype.empty()) {
    if (Expected<NpyType> known = type_named(dtype); !known) return std::unexpected(known.error());
    if (dtype != own)
      return fail(where, "the array must be " + std::string(dtype) + " as --dtype says", own,
                  dtype == "bfloat16" ? "bfloat16 is kept as uint16" : "drop --dtype");
  }
  Tensor tensor;
  bool floating = false;
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16})
    if (posenc::name(type) == own) {
      tensor.dtype = type;
      floating = true;
    }
  if (!floating)
    return fail(where, "the array must hold floating-point numbers", own,
                array.type == NpyType::u16 ? "say --dtype bfloat16 if that is what it holds" : "");
  tensor.data = array.data.data();
  tensor.rank = static_cast<int>(array.shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = array.shape.size(); axis-- > 0;) {
    tensor.shape[axis] = array.shape[axis];
    tensor.stride[axis] = stride;
    stride *= array.shape[axis];
  }
  return tensor;
}

bool is_of_floats(const Array& array) {
  return array.type == NpyType::f64 || array.type == NpyType::f32 || array.type == NpyType::f16;
}

Expected<std::optional<RealPositions>> real_positions(const std::string& text) {
  if (!text.ends_with(".npy")) return std::nullopt;
  POSENC_TRY(array, read_npy(text));
  if (!is_of_floats(array)) return std::nullopt;
  RealPositions real{std::move(array)};
  POSENC_TRY(seen, tensor_of(real.numbers, "", text));
  if (seen.rank < 1 || seen.rank > 2)
    return fail(text, "must be [seq] or [axis][seq]", std::to_string(seen.rank) + " axes");
  const Tensor given = seen.with_rank(2);
  real.at = {.data = given.data,
             .dtype = given.dtype,
             .rank = 3,
             .shape = {given.shape[0], 1, given.shape[1]},
             .stride = {given.stride[0], 0, given.stride[1]}};
  return real;
}

Expected<std::vector<std::int64_t>> integers_of(const Array& array, std::string_view where) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(array.size()));
  const auto copy = [&]<class T>(T) {
    for (std::size_t i = 0; i < out.size(); i++) {
      T value;
      std::memcpy(&value, array.data.data() + i * sizeof(T), sizeof(T));
      out[i] = value;
    }
  };
  switch (array.type) {
    case NpyType::i64: copy(std::int64_t{}); return out;
    case NpyType::i32: copy(std::int32_t{}); return out;
    case NpyType::u16: copy(std::uint16_t{}); return out;
    case NpyType::u8:
    case NpyType::boolean: copy(std::uint8_t{}); return out;
    case NpyType::f64:
    case NpyType::f32:
    case NpyType::f16: break;
  }
  return fail(where, "the array must hold integers", name(array.type),
              "save it with array.astype('int64')");
}

}  // namespace posenc::cli
