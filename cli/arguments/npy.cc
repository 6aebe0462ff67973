#include "cli/arguments/npy.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <nlohmann/json.hpp>

#include "cli/arguments/atomic_file.h"
#include "cli/system/system.h"
#include "posenc/files.h"
#include "src/core/safetensors_front.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct TypeRow {
  std::string_view name, descr, stored;  // in .npy; in safetensors and GGUF
  std::size_t size;
};
constexpr TypeRow types[] = {
    // in NpyType's order
    {"float64", "<f8", "F64", 8}, {"float32", "<f4", "F32", 4}, {"float16", "<f2", "F16", 2},
    {"uint16", "<u2", "U16", 2},  {"int64", "<i8", "I64", 8},   {"int32", "<i4", "I32", 4},
    {"uint8", "|u1", "U8", 1},    {"bool", "|b1", "BOOL", 1},   {"bfloat16", "<u2", "BF16", 2},
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

ArrayName array_name(const std::string& path) {
  for (const std::string_view ending : {".safetensors:", ".gguf:"})
    if (const std::size_t at = path.find(ending); at != std::string::npos) {
      const std::size_t colon = at + ending.size() - 1;
      return {path.substr(0, colon), path.substr(colon + 1)};
    }
  return {path, ""};
}

bool names_array(std::string_view text) {
  return text.ends_with(".npy") || text.ends_with(".safetensors") ||
         text.contains(".safetensors:") || text.contains(".gguf:");
}

namespace {

// The tensor that a path names.
Expected<StoredTensor> chosen(std::span<const StoredTensor> tensors, const ArrayName& name) {
  if (name.tensor.empty() && tensors.size() == 1) return tensors[0];
  if (const StoredTensor* found = find_tensor(tensors, name.tensor);
      found != nullptr && !name.tensor.empty())
    return *found;
  std::vector<std::string_view> names;
  for (const StoredTensor& tensor : tensors) names.push_back(tensor.name);
  if (name.tensor.empty())
    return fail(name.file, "one tensor must be named", std::to_string(tensors.size()) + " of them",
                "write FILE:TENSOR, like " + name.file + ":" +
                    (names.empty() ? "q" : std::string(names[0])));
  return fail(name.file, "the file must have the tensor", name.tensor,
              suggestion(name.tensor, names));
}

// Where numbers lie across their type's bounds, as a safetensors file may have them, they are
// copied.
Expected<MappedArray> mapped_array(const StoredTensor& stored, const std::string& path) {
  if (stored.shape.size() > Tensor::max_rank)
    return fail(path, "at most " + std::to_string(Tensor::max_rank) + " axes",
                std::to_string(stored.shape.size()), "reshape the array");
  const auto* type = std::ranges::find(types, stored.type, &TypeRow::descr);
  if (type == std::end(types)) type = std::ranges::find(types, stored.type, &TypeRow::stored);
  if (type == std::end(types))
    return fail(path, "the type must be one that NumPy has, or BF16", stored.type,
                "convert the tensor first");
  MappedArray mapped{{static_cast<NpyType>(type - types), stored.shape, {}}, {}, stored.bytes};
  if (reinterpret_cast<std::uintptr_t>(stored.bytes.data()) % type->size == 0) return mapped;
  mapped.array.data.assign(stored.bytes.begin(), stored.bytes.end());
  mapped.data = mapped.array.data;
  return mapped;
}

// All of it, since a pipe cannot be mapped.
Expected<MappedArray> from_standard_input() {
  std::vector<std::byte> bytes;
  constexpr std::size_t at_once = std::size_t{1} << 20;
  for (std::size_t got = at_once; got > 0;) {
    const std::size_t before = bytes.size();
    if (before > machine_memory())
      return fail("standard input", "must fit into memory", std::to_string(before) + " bytes",
                  "give the file's path");
    bytes.resize(before + at_once);
    got = std::fread(bytes.data() + before, 1, at_once, stdin);
    bytes.resize(before + got);
  }
  constexpr std::string_view where = "standard input";
  std::vector<StoredTensor> tensors;
  if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
          .starts_with("\x93NUMPY")) {
    POSENC_TRY(stored, parse_npy(bytes, where));
    tensors.push_back(std::move(stored));
  } else {
    POSENC_TRY(file, parse_safetensors(bytes, where));
    tensors = std::move(file.tensors);
  }
  POSENC_TRY(stored, chosen(tensors, {std::string(where), ""}));
  POSENC_TRY(mapped, mapped_array(stored, std::string(where)));
  mapped.array.data.assign(stored.bytes.begin(), stored.bytes.end());
  mapped.data = mapped.array.data;
  return mapped;
}

}  // namespace

Expected<MappedArray> map_array(const std::string& path) {
  if (path == "-") return from_standard_input();
  const ArrayName name = array_name(path);
  POSENC_TRY(file, read_tensors(name.file));
  POSENC_TRY(stored, chosen(file.tensors, name));
  POSENC_TRY(mapped, mapped_array(stored, path));
  mapped.file = file.file;
  return mapped;
}

Expected<std::optional<std::string>> said_of_tensor(const std::string& path,
                                                    std::string_view prefix) {
  const ArrayName name = array_name(path);
  if (!name.file.ends_with(".safetensors")) return std::nullopt;
  POSENC_TRY(file, MappedFile::open(name.file));
  POSENC_TRY(read, parse_safetensors(file.bytes(), name.file));
  POSENC_TRY(tensor, chosen(read.tensors, name));
  const std::string key = std::string(prefix) + ":" + tensor.name;
  for (const auto& [said, value] : read.metadata)
    if (said == key) return value;
  return std::nullopt;
}

Expected<Array> read_array(const std::string& path) {
  POSENC_TRY(mapped, map_array(path));
  if (mapped.data.size() > machine_memory())
    return fail(path, "must fit into memory", std::to_string(mapped.data.size()) + " bytes",
                "cut the tensor into parts");
  if (mapped.array.data.empty()) mapped.array.data.assign(mapped.data.begin(), mapped.data.end());
  return std::move(mapped.array);
}

Expected<void> write_npy(const std::string& path, const Array& array) {
  return write_whole(path, {npy_header(array),
                            {reinterpret_cast<const char*>(array.data.data()), array.data.size()}});
}

namespace {

// One tensor.
std::string safetensors_header(const std::string& tensor, const Array& array, std::string_view type,
                               const Metadata& metadata) {
  using Text = nlohmann::ordered_json;
  Text header;
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = value;
  header[tensor] = {
      {"dtype", type}, {"shape", array.shape}, {"data_offsets", {0, array.data.size()}}};
  return detail::safetensors_front(header.dump(-1, ' ', false, Text::error_handler_t::replace));
}

}  // namespace

Expected<ArrayFormat> array_format(std::string_view path) {
  if (path.ends_with(".npy")) return ArrayFormat::npy;
  if (path.ends_with(".safetensors") || path.contains(".safetensors:"))
    return ArrayFormat::safetensors;
  if (path == "-" || path.ends_with(".csv") || path.ends_with(".txt")) return ArrayFormat::text;
  return fail("output", "must end in .npy, .safetensors, .csv or .txt, or be -", path,
              ".npy and .safetensors (FILE:TENSOR) keep the shape and every bit, .csv and .txt are "
              "text, - prints it");
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
    case NpyType::f16:
    case NpyType::bf16: break;
  }
  Tensor one{.data = const_cast<std::byte*>(at),
             .dtype = type == NpyType::f16 ? DType::f16 : DType::bf16,
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

std::string tensor_written(const std::string& path) {
  const std::string tensor = array_name(path).tensor;
  return tensor.empty() ? "tensor" : tensor;
}

Expected<void> write_array(const std::string& path, const Array& array, std::string_view dtype,
                           const Metadata& metadata) {
  POSENC_TRY(format, array_format(path));
  if (format == ArrayFormat::npy) return write_npy(path, array);
  if (format == ArrayFormat::safetensors) {
    const ArrayName to = array_name(path);
    const bool bfloat16 = array.type == NpyType::u16 && dtype == "bfloat16";
    const NpyType type = bfloat16 ? NpyType::bf16 : array.type;
    return write_whole(to.file,
                       {safetensors_header(tensor_written(path), array, row(type).stored, metadata),
                        {reinterpret_cast<const char*>(array.data.data()), array.data.size()}});
  }
  const std::string text = text_of(array, dtype == "bfloat16");
  if (path != "-") return write_whole(path, {text});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

Expected<NpyType> type_named(std::string_view dtype) {
  for (const NpyType type : {NpyType::f64, NpyType::f32, NpyType::f16, NpyType::bf16})
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
  return array.type == NpyType::f64 || array.type == NpyType::f32 || array.type == NpyType::f16 ||
         array.type == NpyType::bf16;
}

Expected<std::optional<RealPositions>> real_positions(const std::string& text) {
  if (!names_array(text)) return std::nullopt;
  POSENC_TRY(array, read_array(text));
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
    case NpyType::f16:
    case NpyType::bf16: break;
  }
  return fail(where, "the array must hold integers", name(array.type),
              "save it with array.astype('int64')");
}

}  // namespace posenc::cli
