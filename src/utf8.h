// UTF-8 in text from outside.
#pragma once

#include <cstddef>
#include <string_view>

namespace posenc::detail {

// Bytes of the UTF-8 character at the front of a text that is not empty; 0 where none begins. (Longer forms
// of a shorter one, surrogates and what lies past U+10FFFF are none.)
std::size_t utf8_length(std::string_view text);

}  // namespace posenc::detail
