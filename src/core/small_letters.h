// A text whose capitals of ASCII are small: in files, logs and headers case rarely counts.
#pragma once

#include <string>
#include <string_view>

namespace posenc::detail {

constexpr char small_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return small_letter(c) >= 'a' && small_letter(c) <= 'z'; }

inline std::string small_letters(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = small_letter(c);
  return out;
}

}  // namespace posenc::detail
