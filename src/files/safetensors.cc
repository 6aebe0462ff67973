// safetensors: eight bytes with the length of a header, the header (JSON: name to dtype, shape and
// data_offsets, and __metadata__), and the numbers, row-major and little endian, which the tensors
// cover without a hole. Format: github.com/huggingface/safetensors.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "posenc/files.h"
#include "src/files/stored_tensor.h"
#include "src/text/json.h"

namespace posenc {
namespace {

using detail::Json;
using detail::JsonMember;

struct SafetensorsType {
  std::string_view name;
  std::size_t bits;
};
constexpr SafetensorsType safetensors_types[] = {
    {"BF16", 16},       {"F32", 32},        {"F16", 16},    {"F64", 64},    {"I64", 64},
    {"I32", 32},        {"I16", 16},        {"I8", 8},      {"U64", 64},    {"U32", 32},
    {"U16", 16},        {"U8", 8},          {"BOOL", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"C64", 64},    {"F4", 4},
    {"F6_E2M3", 6},     {"F6_E3M2", 6},
};

constexpr std::string_view write_anew = "write the file anew";

std::string in_quotes(std::string_view name) { return Json{std::string(name)}.text(); }

struct Reader {
  std::span<const std::byte> data;
  std::string_view where;

  std::unexpected<Error> wrong(const JsonMember& entry, std::string_view rule,
                               std::string_view got = {}) const {
    return fail(where, "tensor " + in_quotes(entry.key) + " " + std::string(rule), got, write_anew);
  }

  Expected<std::vector<std::int64_t>> counts(const JsonMember& entry, std::string_view key) const {
    const Json* list = entry.value.find(key);
    const std::string rule = "must have '" + std::string(key) + "', a list of whole numbers from 0";
    if (!list || !list->get<Json::Array>()) return wrong(entry, rule, list ? list->text() : "");
    std::vector<std::int64_t> counts;
    for (const Json& item : *list->get<Json::Array>()) {
      const auto* count = item.get<std::int64_t>();
      if (!count || *count < 0) return wrong(entry, rule, list->text());
      counts.push_back(*count);
    }
    return counts;
  }

  Expected<StoredTensor> tensor(const JsonMember& entry) const {
    const Json* type = entry.value.find("dtype");
    const auto* word = type ? type->get<std::string>() : nullptr;
    const auto* row = word ? std::ranges::find(safetensors_types, *word, &SafetensorsType::name)
                           : std::end(safetensors_types);
    if (row == std::end(safetensors_types))
      return wrong(entry, "must have a known 'dtype'", type ? type->text() : "");
    Expected<std::vector<std::int64_t>> shape = counts(entry, "shape");
    if (!shape) return std::unexpected(shape.error());
    if (shape->size() > detail::most_axes)
      return wrong(entry, "must have at most " + std::to_string(detail::most_axes) + " axes",
                   std::to_string(shape->size()));
    const Expected<std::vector<std::int64_t>> offsets = counts(entry, "data_offsets");
    if (!offsets) return std::unexpected(offsets.error());
    if (offsets->size() != 2 || (*offsets)[0] > (*offsets)[1])
      return wrong(entry, "must have two 'data_offsets', its first byte and its end",
                   entry.value.find("data_offsets")->text());
    const auto begin = static_cast<std::size_t>((*offsets)[0]);
    const auto end = static_cast<std::size_t>((*offsets)[1]);
    if (end > data.size())
      return fail(where, "tensor " + in_quotes(entry.key) + " must lie within the file's data",
                  "end " + std::to_string(end) + " of " + std::to_string(data.size()) + " bytes",
                  "the file seems cut off; fetch it anew");

    const std::optional<std::int64_t> count = detail::element_count(*shape);
    std::size_t bits = 0;
    if (!count || __builtin_mul_overflow(static_cast<std::size_t>(*count), row->bits, &bits))
      return wrong(entry, "must have a shape that fits into 64 bits",
                   entry.value.find("shape")->text());
    if (bits % 8 != 0 || bits / 8 != end - begin)
      return wrong(entry,
                   "must have as many bytes as its dtype and shape need, " +
                       number_text(static_cast<double>(bits) / 8),
                   std::to_string(end - begin));
    StoredTensor tensor{.name = entry.key,
                        .type = *word,
                        .shape = std::move(*shape),
                        .bytes = data.subspan(begin, end - begin)};
    if (const std::optional<DType> dtype = dtype_of(tensor))
      tensor.view = detail::view_of(tensor.bytes, *dtype, tensor.shape);
    return tensor;
  }

  Expected<void> metadata(const JsonMember& entry, Safetensors& file) const {
    if (entry.value.is_null()) return {};
    const auto* object = entry.value.get<Json::Object>();
    if (!object)
      return fail(where, "__metadata__ must be an object", entry.value.text(), write_anew);
    for (const JsonMember& member : *object) {
      const auto* text = member.value.get<std::string>();
      if (!text)
        return fail(where, "__metadata__ must hold text, key " + in_quotes(member.key),
                    member.value.text(), write_anew);
      file.metadata.emplace_back(member.key, *text);
    }
    return {};
  }

  // Sorts by offset; what has no bytes stands before what begins there.
  Expected<void> cover(std::vector<StoredTensor>& tensors) const {
    std::ranges::stable_sort(tensors, {}, [](const StoredTensor& tensor) {
      return std::pair(tensor.bytes.data(), tensor.bytes.size());
    });
    const std::byte* reached = data.data();
    for (const StoredTensor& tensor : tensors) {
      if (tensor.bytes.data() != reached)
        return fail(where,
                    "tensor " + in_quotes(tensor.name) +
                        " must begin where the one before it ends, at byte " +
                        std::to_string(reached - data.data()),
                    std::to_string(tensor.bytes.data() - data.data()), write_anew);
      reached += tensor.bytes.size();
    }
    if (reached != data.data() + data.size())
      return fail(where,
                  "the file must end with its last tensor, " +
                      std::to_string(reached - data.data()) + " bytes of data",
                  std::to_string(data.size()) + " bytes", write_anew);
    return {};
  }
};

}  // namespace

Expected<Safetensors> parse_safetensors(std::span<const std::byte> bytes, std::string_view where) {
  if (bytes.size() < 8)
    return fail(where, "must be a safetensors file", std::to_string(bytes.size()) + " bytes",
                "it ends before its header");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > detail::largest_json)
    return fail(where, "the safetensors header must be at most 16 MiB",
                std::to_string(length) + " bytes", "is it a safetensors file?");
  const std::span<const std::byte> rest = bytes.subspan(8);
  if (length > rest.size())
    return fail(where, "the file must hold its header of " + std::to_string(length) + " bytes",
                std::to_string(rest.size()) + " bytes", "the file seems cut off; fetch it anew");
  const std::string_view header(reinterpret_cast<const char*>(rest.data()), length);
  if (!header.starts_with('{'))
    return fail(where, "the safetensors header must begin with {", "", "is it a safetensors file?");
  const Expected<Json> json = detail::parse_json(header, where, detail::Constants::refused);
  if (!json) return std::unexpected(json.error());

  const Reader reader{.data = rest.subspan(length), .where = where};
  Safetensors file;
  for (const JsonMember& entry : *json->get<Json::Object>()) {
    if (entry.key == "__metadata__") {
      if (auto read = reader.metadata(entry, file); !read) return std::unexpected(read.error());
      continue;
    }
    Expected<StoredTensor> tensor = reader.tensor(entry);
    if (!tensor) return std::unexpected(tensor.error());
    file.tensors.push_back(std::move(*tensor));
  }
  if (auto covered = reader.cover(file.tensors); !covered) return std::unexpected(covered.error());
  return file;
}

}  // namespace posenc
