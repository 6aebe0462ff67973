#include "cli/playground/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/arguments/parse.h"
#include "cli/pages/json_text.h"
#include "cli/playground/link_fields.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

constexpr std::size_t longest_link = 64 * 1024;
constexpr std::size_t most_notes = 12;

// application/x-www-form-urlencoded, but commas stay readable.
std::string encoded(std::string_view text) {
  constexpr std::string_view plain = "*-._,";
  std::string out;
  for (const char c : text) {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter || plain.contains(c))
      out += c;
    else if (c == ' ')
      out += '+';
    else
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Control characters become '?' and bytes that are no UTF-8 U+FFFD: what comes out is printed.
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i++) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return printable(out, longest_link * 3);
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

void set_in(std::vector<LinkSetting>& settings, std::string_view name, std::string value) {
  for (LinkSetting& setting : settings)
    if (setting.name == name) {
      setting.value = std::move(value);
      return;
    }
  settings.push_back({std::string(name), std::move(value)});
}

// One key and its value into `read`; where it goes nowhere, a note tells.
void take_pair(ReadLink& read, std::string_view key, const std::string& text) {
  const std::vector<std::string_view> names = split(key, '.');
  if (names.size() > 1 && is_name(names[1]) && (names[0] == "scheme" || names[0] == "scaling")) {
    set_in(names[0] == "scheme" ? read.view.scheme : read.view.scaling, names[1], text);
    return;
  }
  const std::optional<std::size_t> at = find_link_field(key);
  const std::string quoted = "'" + printable(key, 40) + "'";
  if (!at) {
    read.notes.push_back(quoted + " is no key of a link, and is left out");
    return;
  }
  const LinkField& field = link_fields()[*at];
  const std::optional<std::string> value = nearest_value(field, text);
  const std::string given = "'" + printable(text, 40) + "'";
  if (!value) {
    read.notes.push_back(
        fmt::format("{} cannot be {}, and is left at {}", field.key, given, read.view.values[*at]));
    return;
  }
  const std::optional<double> number = read_script_number(text);
  const bool same = field.kind == LinkKind::number    ? number && script_number(*number) == *value
                    : field.kind == LinkKind::boolean ? true
                                                      : *value == text;
  if (!same)
    read.notes.push_back(
        fmt::format("{} is read as {}, not {}", field.key, printable(*value, 80), given));
  read.view.values[*at] = *value;
}

Expected<void> check_version(std::string_view text) {
  POSENC_TRY(version, integer(text, "link: v"));
  if (version < 1) return fail("link: v", "must be 1 or more", text);
  if (version > link_version())
    return fail("link", "must be of version " + std::to_string(link_version()) + " at most",
                "version " + std::string(text), "a newer posenc reads it");
  return {};
}

// As the playground would type it: a number, true, false, null, a list of numbers, else text.
std::string setting_json(const std::string& text) {
  if (text == "true" || text == "false" || text == "null") return text;
  std::string out;
  const std::vector<std::string_view> parts = comma_separated(text);
  for (const std::string_view part : parts) {
    const std::optional<double> x = read_script_number(part);
    if (!x) return json_string(text);
    out += (out.empty() ? "" : ",") + script_number(*x);
  }
  if (parts.empty()) return "\"\"";
  return parts.size() > 1 ? "[" + out + "]" : out;
}

std::string value_json(const LinkField& field, const std::string& text) {
  switch (field.kind) {
    case LinkKind::number: return text;
    case LinkKind::boolean: return text == "1" ? "true" : "false";
    case LinkKind::text: return json_string(text);
    case LinkKind::numbers: return "[" + text + "]";
    case LinkKind::choice: return read_script_number(text) ? text : json_string(text);
    case LinkKind::words: break;
  }
  std::string out;
  for (const std::string_view word : comma_separated(text))
    out += (out.empty() ? "" : ",") + json_string(word);
  return "[" + out + "]";
}

std::string settings_json(const std::vector<LinkSetting>& settings) {
  std::string out;
  for (const LinkSetting& setting : settings)
    out += (out.empty() ? "" : ",") + json_string(setting.name) + ":" + setting_json(setting.value);
  return "{" + out + "}";
}

}  // namespace

const std::string& View::operator[](std::string_view key) const {
  return values.at(find_link_field(key).value());
}

double View::number(std::string_view key) const {
  return read_script_number((*this)[key]).value_or(0);
}

bool View::is_default(std::string_view key) const {
  return (*this)[key] == default_of(link_fields()[find_link_field(key).value()]);
}

View default_view() {
  View view{std::string(link_panels().front()), {}};
  for (const LinkField& field : link_fields()) view.values.push_back(default_of(field));
  return view;
}

std::string format_link(const View& view) {
  std::string out = fmt::format("#/{}?v={}", view.panel, link_version());
  const std::span<const LinkField> fields = link_fields();
  for (std::size_t i = 0; i < fields.size(); i++)
    if (view.values[i] != default_of(fields[i]))
      out += fmt::format("&{}={}", fields[i].key, encoded(view.values[i]));
  for (const LinkSetting& setting : view.scheme)
    out += fmt::format("&scheme.{}={}", setting.name, encoded(setting.value));
  for (const LinkSetting& setting : view.scaling)
    out += fmt::format("&scaling.{}={}", setting.name, encoded(setting.value));
  return out;
}

bool is_link(const std::string& text) {
  std::error_code error;
  return text.contains("#/") && !std::filesystem::exists(text, error);
}

Expected<ReadLink> read_link(std::string_view text) {
  if (text.size() > longest_link)
    return fail("link", "must be at most 65536 bytes long", std::to_string(text.size()));
  const std::size_t at = text.find("#/");
  if (at == std::string_view::npos)
    return fail("link", "must hold #/PANEL?v=1", printable(text, 80),
                "posenc link prints such a link");
  const std::vector<std::string_view> parts = split(text.substr(at + 2), '?');
  ReadLink read{default_view(), {}, {}};
  const std::vector<std::string_view> panels = link_panels();
  if (std::find(panels.begin(), panels.end(), parts[0]) != panels.end())
    read.view.panel = parts[0];
  else
    read.notes.push_back(fmt::format("there is no panel '{}'; the playground opens {}",
                                     printable(parts[0], 40), read.view.panel));
  std::vector<std::string> stated;
  for (const std::string_view pair : split(parts.size() > 1 ? parts[1] : "", '&')) {
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string key = decoded(pair.substr(0, equals));
    const std::string value = decoded(pair.substr(std::min(equals + 1, pair.size())));
    if (key == "v") {
      POSENC_CHECK(check_version(value));
      continue;
    }
    take_pair(read, key, value);
    stated.push_back(key);
  }
  for (const LinkField& field : link_fields())
    if (std::find(stated.begin(), stated.end(), field.key) != stated.end())
      read.stated.emplace_back(field.key);
  if (read.notes.size() > most_notes) {
    const std::size_t more = read.notes.size() - most_notes;
    read.notes.resize(most_notes);
    read.notes.push_back(fmt::format("and {} more of the kind", more));
  }
  return read;
}

std::string view_json(const View& view) {
  std::string values;
  const std::span<const LinkField> fields = link_fields();
  for (std::size_t i = 0; i < fields.size(); i++)
    values += (i == 0 ? "" : ",") + json_string(fields[i].key) + ":" +
              value_json(fields[i], view.values[i]);
  return fmt::format("\"version\":{},\"panel\":{},\"values\":{{{}}},\"scheme\":{},\"scaling\":{}",
                     link_version(), json_string(view.panel), values, settings_json(view.scheme),
                     settings_json(view.scaling));
}

}  // namespace posenc::cli
