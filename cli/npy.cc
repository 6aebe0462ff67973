#include "cli/npy.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>

#include "cli/output.h"

static_assert(std::endian::native == std::endian::little, "arrays are read without swapping bytes");

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

// Beyond it the system would end the process instead of refusing.
std::size_t machine_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
}

// --- the header: a Python dictionary with three keys ---------------------------------------------

class Header {
 public:
  Header(std::string_view text, std::string_view where) : rest_(text), where_(where) {}

  Expected<Array> read() {
    Array array;
    bool has_type = false, has_order = false, has_shape = false;
    if (!take('{')) return wrong("must be a dictionary");
    while (!take('}')) {
      const std::optional<std::string_view> key = quoted();
      if (!key || !take(':')) return wrong("must hold 'descr', 'fortran_order' and 'shape'");
      if (*key == "descr") {
        const std::optional<std::string_view> descr = quoted();
        if (!descr) return wrong("must describe one number, not a record");
        if (Expected<void> good = set_type(*descr, array); !good)
          return std::unexpected(good.error());
        has_type = true;
      } else if (*key == "fortran_order") {
        if (word("True"))
          return fail(where_, "the array must be in C order", "fortran_order True",
                      "save it with numpy.ascontiguousarray");
        if (!word("False")) return wrong("must say fortran_order True or False");
        has_order = true;
      } else if (*key == "shape") {
        if (!shape(array.shape)) return wrong("must give the shape as whole numbers");
        has_shape = true;
      } else {
        return wrong("must hold only 'descr', 'fortran_order' and 'shape'");
      }
      take(',');
    }
    if (!has_type || !has_order || !has_shape)
      return wrong("must hold 'descr', 'fortran_order' and 'shape'");
    if (array.shape.size() > Tensor::max_rank)
      return fail(where_, "at most " + std::to_string(Tensor::max_rank) + " axes",
                  std::to_string(array.shape.size()), "reshape the array");
    return array;
  }

 private:
  std::unexpected<Error> wrong(std::string_view rule) const {
    return fail(where_, "the .npy header " + std::string(rule), "",
                "write the file with numpy.save");
  }

  Expected<void> set_type(std::string_view descr, Array& array) {
    for (std::size_t i = 0; i < std::size(types); i++)
      // '=' is this machine's order and '|' none at all; both are little endian here.
      if (descr.size() == 3 && descr.substr(1) == types[i].descr.substr(1) && descr[0] != '>') {
        array.type = static_cast<NpyType>(i);
        return {};
      }
    if (descr.starts_with('>'))
      return fail(where_, "the array must be little endian", descr,
                  "save it with array.astype(array.dtype.newbyteorder('<'))");
    return fail(where_, "unknown element type", descr,
                "use float64, float32, float16, uint16, int64 or int32");
  }

  void space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t'))
      rest_.remove_prefix(1);
  }
  bool take(char c) {
    space();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view text) {
    space();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return {};
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == rest_.npos) return {};
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool shape(std::vector<std::int64_t>& out) {
    if (!take('(')) return false;
    while (!take(')')) {
      std::int64_t extent = -1;
      space();
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error != std::errc{} || extent < 0) return false;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      out.push_back(extent);
      if (!take(',') && !rest_.starts_with(')')) return false;
    }
    return true;
  }

  std::string_view rest_, where_;
};

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::unexpected<Error> system_error(const std::string& path, std::string_view rule) {
  return fail(path, rule, std::strerror(errno));
}

bool starts_like_npy(std::span<const std::byte> bytes) {
  constexpr std::string_view magic = "\x93NUMPY";
  const std::size_t seen = std::min(bytes.size(), magic.size());
  return std::memcmp(bytes.data(), magic.data(), seen) == 0;
}
std::unexpected<Error> not_npy(std::string_view where) {
  return fail(where, "must be a .npy file", "", "write it with numpy.save");
}

std::string header_of(const Array& array) {
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

Expected<Array> parse_npy(std::vector<std::byte> bytes, std::string_view where) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const auto truncated = [&] {
    return fail(where, "the file must be whole", std::to_string(bytes.size()) + " bytes",
                "it ends too early; write it anew");
  };
  if (!starts_like_npy(bytes)) return not_npy(where);
  if (bytes.size() < 8) return truncated();
  const int version = std::to_integer<int>(bytes[6]);
  if ((version != 1 && version != 2) || bytes[7] != std::byte{0})
    return fail(where, "the .npy version must be 1.0 or 2.0",
                std::to_string(version) + "." + std::to_string(std::to_integer<int>(bytes[7])));
  const std::size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) return truncated();
  std::size_t length = 0;
  for (std::size_t i = start; i-- > 8;)
    length = length * 256 + std::to_integer<std::size_t>(bytes[i]);
  if (bytes.size() - start < length) return truncated();

  Expected<Array> array = Header({text + start, length}, where).read();
  if (!array) return array;
  const std::optional<std::size_t> needed = bytes_needed(array->type, array->shape);
  if (!needed) return fail(where, "the shape must fit into 64 bits");
  const std::size_t found = bytes.size() - start - length;
  if (found < *needed) return truncated();
  if (found > *needed)
    return fail(where, "the file must end with the array",
                std::to_string(found - *needed) + " bytes more", "save one array to a file");
  // Moved to the front, so that the numbers are aligned whatever the header's length.
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(start + length));
  array->data = std::move(bytes);
  return array;
}

Expected<Array> read_npy(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return fail(path, "must be a regular file", "a folder, pipe, socket or device",
                "give a .npy file");
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return system_error(path, "cannot be opened");
  const auto size = std::filesystem::file_size(path, error);
  std::vector<std::byte> bytes;
  std::array<std::byte, 1 << 16> chunk;
  while (const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    if (bytes.empty()) {
      // The first bytes tell another kind of file, however large, before all of it is read.
      if (!starts_like_npy({chunk.data(), count})) return not_npy(path);
      if (!error && size > machine_memory())
        return fail(path, "must fit into memory", std::to_string(size) + " bytes",
                    "cut the tensor into parts");
      if (!error) bytes.reserve(size);
    }
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(count));
  }
  if (std::ferror(file.get())) return system_error(path, "cannot be read");
  return parse_npy(std::move(bytes), path);
}

Expected<void> write_npy(const std::string& path, const Array& array) {
  return write_whole(path, {header_of(array),
                            {reinterpret_cast<const char*>(array.data.data()), array.data.size()}});
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
                  dtype == "bfloat16" ? "bfloat16 is kept as uint16" : "leave --dtype away");
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
