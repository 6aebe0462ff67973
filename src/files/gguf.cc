// GGUF, as the ggml project's docs/gguf.md describes it: magic, version, counts, metadata, tensor
// infos, padding, tensor data. Every count is held against the bytes that are left before anything
// is made of it, and no byte of tensor data is touched.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "src/core/saturating.h"
#include "src/files/quantized.h"
#include "src/files/stored_tensor.h"

namespace posenc {
namespace {

// Kinds of metadata values, as numbered in the file.
enum class Kind : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

constexpr std::size_t size_of(Kind kind) {
  constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};  // 0: no fixed size
  return sizes[static_cast<std::size_t>(kind)];
}

constexpr std::uint64_t longest_key = 65535;       // of the format
constexpr std::uint64_t longest_text = 16u << 20;  // a chat template has some 10,000 bytes
constexpr std::uint64_t most_keys = 1u << 16;
constexpr std::uint64_t most_tensors = 1u << 20;
constexpr std::uint64_t most_entries = 16u << 20;  // of all arrays; a vocabulary has some 250,000
constexpr std::uint32_t most_axes = 4;
constexpr std::uint64_t largest_alignment = 1u << 20;

struct Placed {
  std::size_t tensor;
  std::uint64_t offset;
  std::optional<std::uint64_t> size;  // none: of a type that is not known here
};

// After the first error every step does nothing and yields zeros.
class Parser {
 public:
  Parser(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  Expected<Gguf> parse() {
    read_start();
    read_metadata();
    read_alignment();
    read_tensors();
    place_tensors();
    if (error_) return std::unexpected(std::move(*error_));
    return std::move(gguf_);
  }

 private:
  void refuse(std::string_view what, std::string_view rule, std::string_view got = {},
              std::string_view cure = {}) {
    if (error_) return;
    std::string at(where_);
    if (!what.empty()) at += ": " + printable(what, 80);
    error_ = fail(at, rule, got, cure).error();
  }

  std::uint64_t left() const { return bytes_.size() - at_; }

  bool needs(std::uint64_t count) {
    if (!error_ && count > left()) {
      refuse(key_, "the file ends within its header",
             std::to_string(bytes_.size()) + " bytes, " + std::to_string(count) +
                 " more wanted at byte " + std::to_string(at_),
             "download the whole file");
    }
    return !error_;
  }

  template <class T>
  T number() {
    T value{};
    if (!needs(sizeof(T))) return value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string text(std::uint64_t longest) {
    const auto length = number<std::uint64_t>();
    if (length > longest && length <= left()) {
      refuse(key_, "a text is at most " + std::to_string(longest) + " bytes long",
             std::to_string(length), "the file is damaged");
    }
    if (!needs(length)) return {};
    std::string value(reinterpret_cast<const char*>(bytes_.data() + at_), length);
    at_ += length;
    return value;
  }

  void read_start() {
    if (bytes_.empty()) return refuse("", "must be a GGUF file", "no bytes", "download it anew");
    constexpr std::string_view magic = "GGUF";
    const std::size_t size = std::min(bytes_.size(), magic.size());
    if (std::memcmp(bytes_.data(), magic.data(), size) != 0)
      return refuse("", "must be a GGUF file", "another first four bytes", "give a .gguf file");
    if (!needs(magic.size())) return;
    at_ = magic.size();
    gguf_.version = number<std::uint32_t>();
    if (error_) return;
    if (gguf_.version != 0 && (gguf_.version & 0xffff) == 0) {
      return refuse("", "must be little endian", "a big-endian GGUF",
                    "convert it with gguf-py's gguf_convert_endian");
    }
    if (gguf_.version != 2 && gguf_.version != 3) {
      return refuse("", "must be GGUF version 2 or 3", std::to_string(gguf_.version),
                    gguf_.version == 1 ? "convert the model anew: version 1 was short-lived" : "");
    }
    tensor_count_ = number<std::uint64_t>();
    key_count_ = number<std::uint64_t>();
    limit("tensors", tensor_count_, most_tensors);
    limit("metadata keys", key_count_, most_keys);
  }

  void limit(std::string_view what, std::uint64_t count, std::uint64_t most) {
    if (error_ || count <= most) return;
    refuse("", "at most " + std::to_string(most) + " " + std::string(what) + " are read",
           std::to_string(count), "the file is damaged");
  }

  void read_metadata() {
    std::set<std::string> seen;
    for (std::uint64_t i = 0; i < key_count_ && !error_; ++i) {
      key_.clear();
      std::string key = text(longest_key);
      if (error_) return;
      if (!seen.insert(key).second)
        return refuse(key, "each key must stand once", "twice", "the file is damaged");
      key_ = key;
      GgufValue value = read_value();
      if (!error_) gguf_.metadata.emplace_back(std::move(key), std::move(value));
    }
    key_.clear();
  }

  std::optional<Kind> read_kind() {
    const auto kind = number<std::uint32_t>();
    if (error_) return std::nullopt;
    if (kind > static_cast<std::uint32_t>(Kind::f64)) {
      refuse(key_, "has an unknown kind of value", std::to_string(kind), "the file is damaged");
      return std::nullopt;
    }
    return static_cast<Kind>(kind);
  }

  GgufValue read_value() {
    const auto kind = read_kind();
    if (!kind) return {};
    switch (*kind) {
      case Kind::u8: return std::uint64_t{number<std::uint8_t>()};
      case Kind::u16: return std::uint64_t{number<std::uint16_t>()};
      case Kind::u32: return std::uint64_t{number<std::uint32_t>()};
      case Kind::u64: return number<std::uint64_t>();
      case Kind::i8: return std::int64_t{number<std::int8_t>()};
      case Kind::i16: return std::int64_t{number<std::int16_t>()};
      case Kind::i32: return std::int64_t{number<std::int32_t>()};
      case Kind::i64: return number<std::int64_t>();
      case Kind::f32: return static_cast<double>(number<float>());
      case Kind::f64: return number<double>();
      case Kind::boolean: return read_boolean();
      case Kind::string: return text(longest_text);
      case Kind::array: return read_array();
    }
    return {};
  }

  bool read_boolean() {
    const auto value = number<std::uint8_t>();
    if (value > 1)
      refuse(key_, "must be 0 or 1: it is a boolean", std::to_string(value), "the file is damaged");
    return value == 1;
  }

  GgufValue read_array() {
    const auto kind = read_kind();
    const auto count = number<std::uint64_t>();
    if (error_) return {};
    if (*kind == Kind::array) {
      refuse(key_, "must not be an array of arrays", "", "no model needs one");
      return {};
    }
    // An entry takes a byte at least, a string the eight of its length.
    const std::uint64_t entry = *kind == Kind::string ? 8 : size_of(*kind);
    if (count > left() || !needs(count * entry)) {
      refuse(key_, "has more entries than the file has bytes", std::to_string(count),
             "the file is damaged or cut off");
      return {};
    }
    if (count > entries_left_) {
      refuse(key_, "the arrays may have " + std::to_string(most_entries) + " entries in all",
             std::to_string(count), "the file is damaged");
      return {};
    }
    entries_left_ -= count;
    switch (*kind) {
      case Kind::string: return skip_strings(count);
      case Kind::f32: return numbers<float, double>(count);
      case Kind::f64: return numbers<double, double>(count);
      case Kind::u8:
      case Kind::boolean: return numbers<std::uint8_t, std::int64_t>(count);
      case Kind::i8: return numbers<std::int8_t, std::int64_t>(count);
      case Kind::u16: return numbers<std::uint16_t, std::int64_t>(count);
      case Kind::i16: return numbers<std::int16_t, std::int64_t>(count);
      case Kind::u32: return numbers<std::uint32_t, std::int64_t>(count);
      case Kind::i32: return numbers<std::int32_t, std::int64_t>(count);
      case Kind::i64: return numbers<std::int64_t, std::int64_t>(count);
      case Kind::u64: return numbers<std::uint64_t, std::int64_t>(count);
      case Kind::array: break;
    }
    return {};
  }

  template <class Stored, class Kept>
  std::vector<Kept> numbers(std::uint64_t count) {
    std::vector<Kept> list(count);
    for (Kept& value : list) {
      const auto stored = number<Stored>();
      value = static_cast<Kept>(stored);
      if constexpr (std::is_same_v<Stored, std::uint64_t>) {
        if (value < 0)
          refuse(key_, "must fit 63 bits", std::to_string(stored), "the file is damaged");
      }
    }
    return list;
  }

  // Lengths are walked; the texts are not touched.
  GgufStrings skip_strings(std::uint64_t count) {
    const std::uint64_t first = at_;
    for (std::uint64_t i = 0; i < count && !error_; ++i) {
      const auto length = number<std::uint64_t>();
      if (needs(length)) at_ += length;
    }
    return {count, bytes_.subspan(first, at_ - first)};
  }

  void read_alignment() {
    const GgufValue* value = error_ ? nullptr : gguf_.find("general.alignment");
    if (!value) return;
    const auto* said = std::get_if<std::uint64_t>(value);
    if (said && std::has_single_bit(*said) && *said <= largest_alignment) {
      alignment_ = *said;
      return;
    }
    refuse("general.alignment",
           "must be a power of two up to " + std::to_string(largest_alignment) + ", unsigned",
           said ? std::to_string(*said) : "a value of another kind", "the file is damaged");
  }

  void read_tensors() {
    std::set<std::string> seen;
    for (std::uint64_t i = 0; i < tensor_count_ && !error_; ++i) {
      key_.clear();
      StoredTensor tensor;
      tensor.name = text(longest_key);
      if (error_) return;
      if (!seen.insert(tensor.name).second)
        return refuse(tensor.name, "each tensor must stand once", "twice", "the file is damaged");
      key_ = tensor.name;
      read_tensor(std::move(tensor));
    }
    key_.clear();
  }

  void read_tensor(StoredTensor tensor) {
    const auto axes = number<std::uint32_t>();
    if (axes > most_axes)
      return refuse(key_, "has at most 4 axes", std::to_string(axes), "the file is damaged");
    for (std::uint32_t axis = 0; axis < axes; ++axis) {
      const auto extent = number<std::uint64_t>();
      if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return refuse(key_, "an extent must fit 63 bits", std::to_string(extent),
                      "the file is damaged");
      tensor.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const std::int64_t row =
        axes > 0 ? tensor.shape.front() : 1;  // ggml's first axis is contiguous
    std::ranges::reverse(tensor.shape);
    const auto id = number<std::uint32_t>();
    const auto offset = number<std::uint64_t>();
    if (error_) return;
    if (offset % alignment_ != 0) {
      return refuse(key_, "its offset must be a multiple of " + std::to_string(alignment_),
                    std::to_string(offset), "the file is damaged");
    }
    const auto count = detail::element_count(tensor.shape);
    if (!count)
      return refuse(key_, "its extents must multiply to 63 bits", product(tensor.shape),
                    "the file is damaged");
    Placed placed{gguf_.tensors.size(), offset, {}};
    const auto* type = detail::ggml_type(id);
    if (!type) {
      tensor.type = "ggml type " + std::to_string(id);
    } else {
      tensor.type = type->name;
      if (row % type->block != 0) {
        return refuse(
            key_,
            "a row of " + tensor.type + " must be a multiple of " + std::to_string(type->block),
            std::to_string(row), "the file is damaged");
      }
      const std::int64_t size = detail::product(*count / type->block, type->bytes);
      if (size == detail::saturated)
        return refuse(key_, "its size in bytes must fit 63 bits", product(tensor.shape),
                      "the file is damaged");
      placed.size = static_cast<std::uint64_t>(size);
    }
    gguf_.tensors.push_back(std::move(tensor));
    placed_.push_back(placed);
  }

  static std::string product(std::span<const std::int64_t> shape) {
    std::string text;
    for (const std::int64_t extent : shape)
      text += (text.empty() ? "" : " × ") + std::to_string(extent);
    return text;
  }

  // Offsets count from the first aligned byte behind the infos.
  void place_tensors() {
    if (error_ || placed_.empty()) return;
    const std::uint64_t start = (at_ + alignment_ - 1) / alignment_ * alignment_;
    // A heap's code is a tenth of a merge's; in the file's order where offsets are equal.
    const auto place = [](const Placed& p) { return std::pair(p.offset, p.tensor); };
    std::ranges::make_heap(placed_, {}, place);
    std::ranges::sort_heap(placed_, {}, place);
    std::uint64_t used = 0;
    for (const auto& [index, offset, size] : placed_) {
      StoredTensor& tensor = gguf_.tensors[index];
      if (offset < used && size.value_or(1) > 0)
        return refuse(tensor.name, "tensors must not overlap", "offset " + std::to_string(offset),
                      "the file is damaged");
      std::uint64_t end = 0;
      if (__builtin_add_overflow(start, offset, &end) ||
          __builtin_add_overflow(end, size.value_or(0), &end))
        return refuse(tensor.name, "its end must fit 64 bits", "offset " + std::to_string(offset),
                      "the file is damaged");
      used = std::max(used, offset + size.value_or(0));
      if (end > bytes_.size()) {
        gguf_.missing_bytes = std::max(gguf_.missing_bytes, end - bytes_.size());
        continue;
      }
      if (!size) continue;
      tensor.bytes = bytes_.subspan(start + offset, *size);
      if (const auto dtype = dtype_of(tensor))
        tensor.view = detail::view_of(tensor.bytes, *dtype, tensor.shape);
    }
  }

  std::span<const std::byte> bytes_;
  std::string_view where_;
  std::uint64_t at_ = 0;
  std::string key_;  // what is being read, for messages
  std::uint64_t tensor_count_ = 0, key_count_ = 0;
  std::uint64_t alignment_ = 32;
  std::uint64_t entries_left_ = most_entries;
  std::vector<Placed> placed_;
  std::optional<Error> error_;
  Gguf gguf_;
};

}  // namespace

std::vector<std::string_view> GgufStrings::texts() const {
  std::vector<std::string_view> texts;
  for (std::span<const std::byte> rest = bytes; rest.size() >= sizeof(std::uint64_t);) {
    std::uint64_t length = 0;
    std::memcpy(&length, rest.data(), sizeof(length));
    rest = rest.subspan(sizeof(length));
    length = std::min<std::uint64_t>(length, rest.size());
    texts.emplace_back(reinterpret_cast<const char*>(rest.data()), length);
    rest = rest.subspan(length);
  }
  return texts;
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = std::ranges::find(metadata, key, &std::pair<std::string, GgufValue>::first);
  return found == metadata.end() ? nullptr : &found->second;
}

Expected<Gguf> parse_gguf(std::span<const std::byte> bytes, std::string_view where) {
  return Parser(bytes, where).parse();
}

}  // namespace posenc
