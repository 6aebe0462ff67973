// Whether a text holds one of several pieces.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace posenc::detail {

inline bool contains_any(std::string_view text, std::initializer_list<std::string_view> pieces) {
  return std::ranges::any_of(pieces, [&](std::string_view piece) { return text.contains(piece); });
}

}  // namespace posenc::detail
