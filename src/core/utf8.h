// Characters of UTF-8, one at a time.
#pragma once

#include <cstddef>
#include <string_view>

namespace posenc::detail {

// Bytes of the character at the front of a text that is not empty; 0 where none begins. (Longer
// forms of a shorter one, surrogates and what lies past U+10FFFF are none.)
std::size_t character_length(std::string_view text);

// Whether a terminal obeys a character instead of showing it: C0, DEL and C1, other ends of lines,
// and what reverses the text that follows (bidirectional controls).
bool is_control(std::string_view character);

// The code point of one whole character.
char32_t code_point(std::string_view character);

}  // namespace posenc::detail
