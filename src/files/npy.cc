// NumPy's .npy files: magic, version, the length of a header, the header (a Python dictionary of
// three keys), and the numbers. Format: numpy/lib/format.py. Read here: versions 1 and 2, C order,
// little endian.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "posenc/files.h"
#include "src/files/stored_tensor.h"

namespace posenc {
namespace {

constexpr std::size_t longest_header = 64 << 10;  // real ones have about 100 bytes

struct NpyType {
  std::string_view descr;
  std::size_t size;
};
constexpr NpyType npy_types[] = {{"<f8", 8}, {"<f4", 4}, {"<f2", 2}, {"<u2", 2},
                                 {"<i8", 8}, {"<i4", 4}, {"|u1", 1}, {"|b1", 1}};

class Header {
 public:
  Header(std::string_view text, std::string_view where) : rest_(text), where_(where) {}

  // The type and the shape.
  Expected<StoredTensor> read() {
    StoredTensor tensor;
    bool has_type = false, has_order = false, has_shape = false;
    if (!take('{')) return wrong("must be a dictionary");
    while (!take('}')) {
      const std::optional<std::string_view> key = quoted();
      if (!key || !take(':')) return wrong("must hold 'descr', 'fortran_order' and 'shape'");
      if (*key == "descr" && !has_type) {
        const std::optional<std::string_view> descr = quoted();
        if (!descr) return wrong("must describe one number, not a record");
        const Expected<std::string_view> type = known_type(*descr);
        if (!type) return std::unexpected(type.error());
        tensor.type = *type;
        has_type = true;
      } else if (*key == "fortran_order" && !has_order) {
        if (word("True"))
          return fail(where_, "the array must be in C order", "fortran_order True",
                      "save it with numpy.ascontiguousarray");
        if (!word("False")) return wrong("must say fortran_order True or False");
        has_order = true;
      } else if (*key == "shape" && !has_shape) {
        if (!shape(tensor.shape)) return wrong("must give the shape as whole numbers");
        has_shape = true;
      } else {
        return wrong("must hold 'descr', 'fortran_order' and 'shape' once, and nothing else");
      }
      if (!take(',') && !rest_.starts_with('}')) return wrong("must have a comma between its keys");
    }
    if (!has_type || !has_order || !has_shape)
      return wrong("must hold 'descr', 'fortran_order' and 'shape'");
    space();
    if (!rest_.empty()) return wrong("must end with its dictionary");
    return tensor;
  }

 private:
  std::unexpected<Error> wrong(std::string_view rule) const {
    return fail(where_, "the .npy header " + std::string(rule), "",
                "write the file with numpy.save");
  }

  Expected<std::string_view> known_type(std::string_view descr) const {
    // '=' is this machine's order and '|' none at all; both are little endian here.
    for (const NpyType& type : npy_types)
      if (descr.size() == 3 && descr.substr(1) == type.descr.substr(1) && descr[0] != '>')
        return type.descr;
    if (descr.starts_with('>'))
      return fail(where_, "the array must be little endian", descr,
                  "save it with array.astype(array.dtype.newbyteorder('<'))");
    return fail(where_, "unknown element type", descr.substr(0, 40),
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
      if (out.size() == detail::most_axes) return false;
      out.push_back(extent);
      if (!take(',') && !rest_.starts_with(')')) return false;
    }
    return true;
  }

  std::string_view rest_, where_;
};

}  // namespace

Expected<StoredTensor> parse_npy(std::span<const std::byte> bytes, std::string_view where) {
  constexpr std::string_view magic = "\x93NUMPY";
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const auto truncated = [&](std::size_t more) {
    return fail(where, "the file must be whole",
                std::to_string(bytes.size()) + " bytes, " + std::to_string(more) + " more wanted",
                "it ends too early; write it anew");
  };
  const std::string_view start_of_file(text, std::min(bytes.size(), magic.size()));
  if (!magic.starts_with(start_of_file))
    return fail(where, "must be a .npy file", "", "write it with numpy.save");
  if (bytes.size() < 8) return truncated(8 - bytes.size());
  const int version = std::to_integer<int>(bytes[6]);
  if ((version != 1 && version != 2) || bytes[7] != std::byte{0})
    return fail(where, "the .npy version must be 1.0 or 2.0",
                std::to_string(version) + "." + std::to_string(std::to_integer<int>(bytes[7])),
                "write the file with numpy.save");
  const std::size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) return truncated(start - bytes.size());
  std::size_t length = 0;
  for (std::size_t i = start; i-- > 8;)
    length = length * 256 + std::to_integer<std::size_t>(bytes[i]);
  if (length > longest_header)
    return fail(where, "the .npy header must be at most 64 KiB", std::to_string(length) + " bytes",
                "write the file with numpy.save");
  if (bytes.size() - start < length) return truncated(length - (bytes.size() - start));

  Expected<StoredTensor> tensor = Header({text + start, length}, where).read();
  if (!tensor) return tensor;
  const auto* type = std::ranges::find(npy_types, tensor->type, &NpyType::descr);
  const std::optional<std::int64_t> count = detail::element_count(tensor->shape);
  std::size_t needed = 0;
  if (!count || __builtin_mul_overflow(static_cast<std::size_t>(*count), type->size, &needed))
    return fail(where, "the shape must fit into 64 bits",
                "'" + std::string(text + start, std::min<std::size_t>(length, 100)) + "'",
                "write the file with numpy.save");
  tensor->bytes = bytes.subspan(start + length);
  if (tensor->bytes.size() < needed) return truncated(needed - tensor->bytes.size());
  if (tensor->bytes.size() > needed)
    return fail(where, "the file must end with the array",
                std::to_string(tensor->bytes.size() - needed) + " bytes more",
                "save one array to a file");
  if (const std::optional<DType> dtype = dtype_of(*tensor))
    tensor->view = detail::view_of(tensor->bytes, *dtype, tensor->shape);
  return tensor;
}

}  // namespace posenc
