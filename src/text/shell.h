// Words of a shell.
#pragma once

#include <string>
#include <string_view>

namespace posenc::detail {

// Any text as one word, in single quotes.
inline std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace posenc::detail
