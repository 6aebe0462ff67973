#include "src/core/utf8.h"

#include <algorithm>
#include <iterator>

namespace posenc::detail {

std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool valid = (first != 0xE0 || byte(1) >= 0xA0) && (first != 0xED || byte(1) < 0xA0) &&
                     (first != 0xF0 || byte(1) >= 0x90) && (first != 0xF4 || byte(1) < 0x90);
  return valid ? length : 0;
}

char32_t code_point(std::string_view character) {
  constexpr unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t point = static_cast<unsigned char>(character[0]) & first_bits[character.size()];
  for (const char byte : character.substr(1))
    point = point << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  return point;
}

bool is_control(std::string_view character) {
  const char32_t point = code_point(character);
  if (point < 0x20 || (point >= 0x7F && point < 0xA0)) return true;
  constexpr char32_t obeyed[] = {0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202B, 0x202C,
                                 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069, 0xFEFF};
  return std::ranges::find(obeyed, point) != std::end(obeyed);
}

}  // namespace posenc::detail
