// Whether a text holds one of several pieces.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace posenc::detail {

inline bool contains_any(std::string_view text, std::initializer_list<std::string_view> pieces) {
  return std::ranges::any_of(pieces, [&](std::string_view piece) { return text.contains(piece); });
}

// The same of phrases with | between them; where there are none, true.
inline bool contains_one_of(std::string_view text, std::string_view phrases) {
  if (phrases.empty()) return true;
  while (!phrases.empty()) {
    const std::size_t end = std::min(phrases.find('|'), phrases.size());
    if (text.contains(phrases.substr(0, end))) return true;
    phrases.remove_prefix(std::min(end + 1, phrases.size()));
  }
  return false;
}

}  // namespace posenc::detail
