#include "cli/playground/link_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>

#include "cli/arguments/parse.h"
#include "posenc/content.h"
#include "posenc/schemes.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

bool is_whole(const LinkField& field) { return std::fmod(field.step, 1) == 0; }

// JavaScript's Math.round, the step of 2, then the range.
double clamped(const LinkField& field, double x) {
  if (is_whole(field)) x = std::floor(x + 0.5);
  if (field.step == 2) x -= std::fmod(x, 2);
  return std::clamp(x, field.least, field.most);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (&part == parts.data() ? "" : ",") + part;
  return out;
}

// The first UTF-16 units: JavaScript leaves half of a character that would be cut.
std::string shortened(std::string_view utf8) {
  const std::size_t longest = link_rules().most_characters;
  std::size_t units = 0;
  for (std::size_t at = 0; at < utf8.size(); at++) {
    const auto byte = static_cast<unsigned char>(utf8[at]);
    if ((byte & 0xC0) == 0x80) continue;
    units += byte >= 0xF0 ? 2 : 1;
    if (units <= longest) continue;
    const bool half = byte >= 0xF0 && units == longest + 1;
    return std::string(utf8.substr(0, at)) + (half ? "\uFFFD" : "");
  }
  return std::string(utf8);
}

Expected<std::string> asked_number(const LinkField& field, std::string_view text,
                                   std::string_view where) {
  POSENC_TRY(x, number(text, where));
  if (x < field.least || x > field.most)
    return fail(where, "must be " + range_of(field), text, "the playground shows no other");
  if (is_whole(field) && x != std::floor(x))
    return fail(where, "must be a whole number", text, "write it like " + default_of(field));
  if (field.step == 2 && std::fmod(x, 2) != 0)
    return fail(where, "must be even", text, "channels come in pairs");
  return script_number(x);
}

// Keys whose words name schemes or a scaling; their names in full.
Expected<std::string> asked_word(const LinkField& field, std::string_view text) {
  if (field.key == "scaling") {
    POSENC_TRY(scaling, make_scaling(text));
    return std::string(info(scaling).name);
  }
  if (field.key == "scheme" || field.key == "with") {
    if (const auto content = make_content_scheme(text)) return std::string(info(*content).name);
    POSENC_TRY(scheme, make_scheme(text));
    return std::string(info(scheme).name);
  }
  return std::string(text);
}

}  // namespace

std::optional<std::size_t> find_link_field(std::string_view key) {
  const std::span<const LinkField> all = link_fields();
  for (std::size_t i = 0; i < all.size(); i++)
    if (all[i].key == key) return i;
  return {};
}

std::string script_number(double number) {
  if (!std::isfinite(number))
    return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
  if (number == 0) return "0";
  std::array<char, 32> shortest{};
  const auto end = std::to_chars(shortest.data(), shortest.data() + shortest.size(),
                                 std::abs(number), std::chars_format::scientific)
                       .ptr;
  const std::string_view text(shortest.data(), static_cast<std::size_t>(end - shortest.data()));
  const std::size_t e = text.find('e');
  std::string digits;
  for (const char c : text.substr(0, e))
    if (c != '.') digits += c;
  // The number is 0.DIGITS × 10^point.
  const auto point = static_cast<int>(std::strtol(text.data() + e + 1, nullptr, 10)) + 1;
  const int count = static_cast<int>(digits.size());
  const std::string sign = number < 0 ? "-" : "";
  const auto zeros = [](int n) { return std::string(static_cast<std::size_t>(n), '0'); };
  const auto before = [&] { return static_cast<std::size_t>(point); };
  if (count <= point && point <= 21) return sign + digits + zeros(point - count);
  if (0 < point && point <= 21)
    return sign + digits.substr(0, before()) + "." + digits.substr(before());
  if (-6 < point && point <= 0) return sign + "0." + zeros(-point) + digits;
  const std::string power = fmt::format("e{}{}", point > 0 ? '+' : '-', std::abs(point - 1));
  return sign + digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") + power;
}

std::optional<double> read_script_number(std::string_view text) {
  constexpr std::string_view space = " \t\n\v\f\r";
  while (!text.empty() && space.contains(text.front())) text.remove_prefix(1);
  while (!text.empty() && space.contains(text.back())) text.remove_suffix(1);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(x)) return {};
  return x;
}

std::vector<std::string_view> comma_separated(std::string_view text) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (std::size_t end; (end = text.find(',')) != std::string_view::npos;
       text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

std::string default_of(const LinkField& field) { return field.default_value; }

Expected<std::string> asked_value(const LinkField& field, std::string_view text,
                                  std::string_view where) {
  switch (field.kind) {
    case LinkKind::number: return asked_number(field, text, where);
    case LinkKind::boolean:
      if (text == "1" || text == "true") return "1";
      if (text == "0" || text == "false") return "0";
      return fail(where, "must be true or false", text);
    case LinkKind::choice: {
      const std::vector<std::string_view> known = comma_separated(field.choices);
      if (std::find(known.begin(), known.end(), text) != known.end()) return std::string(text);
      return fail(where, "must be " + range_of(field), text, suggestion(text, known));
    }
    case LinkKind::text:
      if (shortened(text) != text)
        return fail(where, "must have at most 200 characters", text, "say it shorter");
      return asked_word(field, text);
    case LinkKind::numbers:
    case LinkKind::words: break;
  }
  const std::vector<std::string_view> parts = comma_separated(text);
  if (parts.size() > link_rules().most_entries)
    return fail(where, "must have at most 16 entries", std::to_string(parts.size()));
  std::vector<std::string> values;
  for (const std::string_view part : parts) {
    POSENC_TRY(value, field.kind == LinkKind::numbers ? asked_number(field, part, where)
                                                      : asked_word(field, part));
    values.push_back(std::move(value));
  }
  return joined(values);
}

std::optional<std::string> nearest_value(const LinkField& field, std::string_view text) {
  switch (field.kind) {
    case LinkKind::number: {
      const std::optional<double> x = read_script_number(text);
      if (!x) return {};
      return script_number(clamped(field, *x));
    }
    case LinkKind::boolean: return text == "1" || text == "true" ? "1" : "0";
    case LinkKind::choice:
      for (const std::string_view choice : comma_separated(field.choices))
        if (choice == text) return std::string(text);
      return {};
    case LinkKind::text: return shortened(text);
    case LinkKind::numbers:
    case LinkKind::words: break;
  }
  std::vector<std::string_view> parts = comma_separated(text);
  parts.resize(std::min(parts.size(), link_rules().most_entries));
  std::vector<std::string> values;
  for (const std::string_view part : parts) {
    if (field.kind == LinkKind::words) {
      values.emplace_back(part);
      continue;
    }
    // Where JavaScript reads nothing as 0.
    const std::optional<double> x = part.empty() ? 0 : read_script_number(part);
    if (!x) return {};
    values.push_back(script_number(clamped(field, *x)));
  }
  return joined(values);
}

std::string range_of(const LinkField& field) {
  const std::string unit = field.unit.empty() ? "" : " " + std::string(field.unit);
  std::string numbers = script_number(field.least) + " to " + script_number(field.most) + unit;
  switch (field.kind) {
    case LinkKind::number:
    case LinkKind::numbers: return numbers;
    case LinkKind::boolean: return "true or false";
    case LinkKind::choice:
      return fmt::format("{}", fmt::join(comma_separated(field.choices), " or "));
    case LinkKind::text:
    case LinkKind::words: return "";
  }
  return "";
}

}  // namespace posenc::cli
