// Where the members of a JSON text stand, to change one and leave the rest as it is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace posenc::detail {

// A member: its key with the quotes, and its value. Ends are one behind the last byte.
struct JsonPlace {
  std::size_t key = 0, key_end = 0, value = 0, value_end = 0;
};

// The member at a path of keys ("rope_scaling.factor"), in a text that parse_json() has accepted.
// Nothing: none is there, or a key is written with escapes.
std::optional<JsonPlace> find_member(std::string_view text, std::string_view path);

// The text without that member, or with one more behind it: written as its neighbours are.
std::string without_member(std::string_view text, const JsonPlace& place);
std::string with_member_behind(std::string_view text, const JsonPlace& place, std::string_view key,
                               std::string_view value);

}  // namespace posenc::detail
