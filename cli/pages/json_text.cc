#include "cli/pages/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posenc/error.h"

namespace posenc::cli {
namespace {

// Of a character that printable() does not show.
std::string code_of(std::string_view character) {
  char32_t point = static_cast<unsigned char>(character[0]);
  if (character.size() > 1) point &= 0x3Fu >> (character.size() - 1);
  for (const char byte : character.substr(1))
    point = point << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point));
}

// Bytes that the first one announces.
std::size_t announced(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

std::string json_string(std::string_view utf8) {
  std::string out = "\"";
  while (!utf8.empty()) {
    const std::string_view character = utf8.substr(0, announced(utf8.front()));
    const std::string shown = printable(character);
    if (shown == character) {
      if (character == "\"" || character == "\\") out += '\\';
      out += character;
      utf8.remove_prefix(character.size());
    } else if (shown == "?") {
      out += code_of(character);
      utf8.remove_prefix(character.size());
    } else {
      out += "\uFFFD";
      utf8.remove_prefix(1);
    }
  }
  return out + '"';
}

std::string json_number(double number, const char* format) {
  if (!std::isfinite(number)) return "null";
  return fmt::format(fmt::runtime(format), number);
}

std::string json_numbers(std::span<const double> numbers, const char* format) {
  std::string list;
  for (const double number : numbers)
    list += (list.empty() ? "" : ",") + json_number(number, format);
  return "[" + list + "]";
}

}  // namespace posenc::cli
