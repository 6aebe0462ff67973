#include "cli/arguments/parse.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/arguments/npy.h"
#include "src/core/trimmed.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

template <class T>
bool read_whole(std::string_view text, T& value) {
  text = detail::trimmed(text, " ");
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

template <class T>
Expected<std::vector<T>> list(std::string_view text, std::string_view where,
                              Expected<T> (*one)(std::string_view, std::string_view)) {
  text = detail::trimmed(text, " ");
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<T> out;
  if (detail::trimmed(text, " ").empty()) return out;
  for (const std::string_view part : split(text, ',')) {
    POSENC_TRY(value, one(part, where));
    out.push_back(value);
  }
  return out;
}

Expected<Positions> positions_of(const Array& array, const std::string& path) {
  POSENC_TRY(ids, integers_of(array, path));
  const std::vector<std::int64_t>& shape = array.shape;
  if (shape.empty() || shape.size() > 3)
    return fail(path, "ids must be [seq], [axis][seq] or [axis][batch][seq]",
                std::to_string(shape.size()) + " axes", "reshape the array");
  return Positions::ids(ids, shape.size() > 1 ? shape[0] : 1, shape.size() > 2 ? shape[1] : 1);
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = text.find(separator)) != std::string_view::npos;
       text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

namespace {

// "128k" (128 · 1024), "1M" (1024 · 1024) or "1e6", where it is whole and not negative.
std::optional<std::int64_t> counted(std::string_view text) {
  constexpr double most = 0x1p40;
  std::string_view digits = detail::trimmed(text, " ");
  double unit = 1, value = 0;
  if (digits.ends_with('k') || digits.ends_with('K')) unit = 1024;
  if (digits.ends_with('m') || digits.ends_with('M')) unit = 1024 * 1024;
  if (unit != 1) digits.remove_suffix(1);
  if (read_whole(digits, value) && value >= 0 && value * unit <= most &&
      value * unit == std::floor(value * unit))
    return static_cast<std::int64_t>(value * unit);
  return {};
}

}  // namespace

Expected<std::int64_t> integer(std::string_view text, std::string_view where) {
  std::int64_t value = 0;
  if (read_whole(text, value)) return value;
  if (const auto count = counted(text)) return *count;
  return fail(where, "must be a whole number", text, "write it like 4096");
}

Expected<double> number(std::string_view text, std::string_view where) {
  double value = 0;
  if (read_whole(text, value) && std::isfinite(value)) return value;
  return fail(where, "must be a finite number", text, "write it like 1e6 or 0.25");
}

Expected<std::int64_t> tokens(std::string_view text, std::string_view where) {
  if (const auto count = counted(text); count && *count > 0) return *count;
  return fail(where, "must be a whole number above 0", text, "write it like 131072, 128k or 1e6");
}

Expected<std::vector<std::int64_t>> integers(std::string_view text, std::string_view where) {
  return list<std::int64_t>(text, where, integer);
}

Expected<std::vector<double>> numbers(std::string_view text, std::string_view where) {
  return list<double>(text, where, number);
}

Expected<IntegerRows> integer_rows(const std::string& text, std::string_view where) {
  IntegerRows out;
  if (names_array(text)) {
    POSENC_TRY(array, read_array(text));
    if (array.shape.size() > 2)
      return fail(text, "must have at most two axes", std::to_string(array.shape.size()));
    POSENC_TRY(values, integers_of(array, text));
    out.values = std::move(values);
    out.rows = array.shape.size() == 2 ? array.shape[0] : 1;
    return out;
  }
  const std::vector<std::string_view> rows = split(text, ';');
  out.rows = static_cast<std::int64_t>(rows.size());
  std::size_t length = 0;
  for (const std::string_view& row : rows) {
    POSENC_TRY(values, integers(row, where));
    if (&row != rows.data() && values.size() != length)
      return fail(where, "rows must be of one length", text, "pad the shorter rows");
    length = values.size();
    out.values.insert(out.values.end(), values.begin(), values.end());
  }
  return out;
}

Expected<Positions> positions(const std::string& text, std::string_view where) {
  if (names_array(text)) {
    POSENC_TRY(array, read_array(text));
    return positions_of(array, text);
  }
  if (text.contains('x')) {
    POSENC_TRY(patches, grid(text, where));
    return patch_positions(patches.height, patches.width);
  }
  const std::vector<std::string_view> ends = split(text, ':');
  if (ends.size() > 2)
    return fail(where, "must be FIRST:END, one position, a list or a .npy file", text,
                "0:4096 stands for 0 to 4095");
  if (ends.size() == 1) {
    POSENC_TRY(ids, integers(text, where));
    if (ids.empty()) return fail(where, "must name a position", text, "write it like 0:4096");
    if (ids.size() > 1) return Positions::ids(ids);
    if (ids.front() < 0) return fail(where, "positions start at 0", text);
    return Positions::range(ids.front(), 1);
  }
  POSENC_TRY(first, integer(ends[0], where));
  POSENC_TRY(end, integer(ends[1], where));
  if (first < 0) return fail(where, "positions start at 0", text);
  if (end <= first)
    return fail(where, "the end must lie after the first position", text,
                "the end is not included");
  return Positions::range(first, end - first);
}

Expected<Grid> grid(std::string_view text, std::string_view where) {
  const std::vector<std::string_view> sides = split(text, text.contains('x') ? 'x' : ',');
  Grid out;
  if (sides.size() == 2 && read_whole(sides[0], out.height) && read_whole(sides[1], out.width) &&
      out.height > 0 && out.width > 0)
    return out;
  return fail(where, "must be HEIGHTxWIDTH in patches", text, "write it like 16x24");
}

Expected<FieldValue> field_value(const FieldInfo& field, std::string_view text,
                                 std::string_view where) {
  const auto wrap = [](auto value) -> Expected<FieldValue> {
    if (!value) return std::unexpected(value.error());
    return FieldValue(*value);
  };
  if (field.optional && (text == "null" || text == "none")) return FieldValue{};
  switch (field.kind) {
    case FieldKind::boolean:
      if (text == "true" || text == "1") return FieldValue(true);
      if (text == "false" || text == "0") return FieldValue(false);
      return fail(where, "must be true or false", text);
    case FieldKind::integer: return wrap(integer(text, where));
    case FieldKind::number: return wrap(number(text, where));
    case FieldKind::choice: return FieldValue(std::string(text));
    case FieldKind::numbers:
    case FieldKind::integers: return wrap(numbers(text, where));
  }
  return fail(where, "unknown kind of field");
}

}  // namespace posenc::cli
