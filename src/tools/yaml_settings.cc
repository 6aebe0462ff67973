#include "src/tools/yaml_settings.h"

#include <algorithm>
#include <span>

#include "src/tools/command_line.h"

namespace posenc::detail {
namespace {

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// A line of YAML without its comment, which a '#' behind a blank begins outside of quotes.
std::string_view uncommented(std::string_view line) {
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if ((c == '\'' || c == '"') && (at == 0 || line[at - 1] == ' ')) {
      quote = c;
    } else if (c == '#' && (at == 0 || line[at - 1] == ' ')) {
      return line.substr(0, at);
    }
  }
  return line;
}

// A plain value of YAML, or {a: b, …} in a line, as JSON; `deepest`: of objects within objects.
std::string json_of_yaml(std::string_view value, int deepest = 16) {
  value = stripped(value);
  if (deepest > 0 && value.starts_with('{') && value.ends_with('}') && !value.contains('"')) {
    std::string object = "{";
    std::string_view rest = value.substr(1, value.size() - 2);
    while (!stripped(rest).empty()) {
      std::size_t end = 0;
      for (int depth = 0; end < rest.size() && (rest[end] != ',' || depth > 0); ++end)
        depth += rest[end] == '{' || rest[end] == '['   ? 1
                 : rest[end] == '}' || rest[end] == ']' ? -1
                                                        : 0;
      const std::string_view one = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const std::size_t colon = one.find(':');
      if (colon == one.npos) return std::string(value);
      object += (object.size() > 1 ? ", \"" : "\"") +
                std::string(without(stripped(one.substr(0, colon)), "'")) +
                "\": " + json_of_yaml(one.substr(colon + 1), deepest - 1);
    }
    return object + "}";
  }
  const bool plain = value.find_first_not_of("0123456789.eE+-_") == value.npos;
  std::string text(value);
  if (plain) std::erase(text, '_');
  if (plain || value.starts_with('[') || value.starts_with('{') || value.starts_with('"') ||
      value == "true" || value == "false" || value == "null")
    return text;
  return '"' + std::string(without(value, "'")) + '"';
}

using Lines = std::span<const std::string_view>;

// What stands further right below a key of YAML, as an object of JSON: vLLM makes the same of it.
std::string object_below(Lines& lines, std::size_t key_indent) {
  std::string object = "{";
  while (!lines.empty() && indent_of(lines.front()) > key_indent) {
    const std::string_view line = lines.front();
    const std::size_t colon = line.find(':');
    lines = lines.subspan(1);
    if (colon == line.npos) continue;
    const std::string key(without(stripped(line.substr(0, colon)), "\"'"));
    const std::string_view own = stripped(line.substr(colon + 1));
    const std::string value =
        own.empty() ? object_below(lines, indent_of(line)) : json_of_yaml(own);
    object += (object.size() > 1 ? ", \"" : "\"") + key + "\": " + value;
  }
  return object + "}";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settings_of_yaml(std::string_view text) {
  constexpr std::size_t longest = std::size_t{1} << 16;
  std::vector<std::string_view> all;
  for (std::string_view rest = text.substr(0, longest); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = uncommented(rest.substr(0, end));
    if (!stripped(line).empty()) all.push_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::vector<std::pair<std::string, std::string>> settings;
  for (Lines lines = all; !lines.empty();) {
    const std::string_view line = lines.front();
    lines = lines.subspan(1);
    const std::size_t colon = line.find(':');
    if (colon == line.npos || indent_of(line) > 0) continue;
    std::string_view own = stripped(line.substr(colon + 1));
    std::string value;
    if (own.starts_with('>') || own.starts_with('|')) {
      for (; !lines.empty() && indent_of(lines.front()) > 0; lines = lines.subspan(1))
        value += std::string(stripped(lines.front())) + " ";
      value = stripped(value);
    } else {
      value = own.empty() ? object_below(lines, 0) : json_of_yaml(own);
    }
    settings.emplace_back(stripped(line.substr(0, colon)), std::move(value));
  }
  return settings;
}

}  // namespace posenc::detail
