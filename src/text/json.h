// JSON from outside, made safe: bounded in size, depth and count, valid UTF-8, no key twice.
// Numbers keep their kind (an integer is not a real), which is how a wrong value is told from a
// right one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/error.h"

namespace posenc::detail {

struct JsonMember;

struct Json {
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;  // in the file's order

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value;

  bool is_null() const { return std::holds_alternative<std::monostate>(value); }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&value);
  }
  const Json* find(std::string_view key) const;  // null if this is no object or has no such key
  std::string_view kind() const;                 // "a number", "an object"
  std::string text() const;  // short, for messages: "1.5", "\"yarn\"", "[3 values]"
};

struct JsonMember {
  std::string key;
  Json value;
};

constexpr std::size_t largest_json = 16u << 20;
constexpr std::size_t deepest_json = 64;
constexpr std::size_t most_json_values = 1u << 20;

// Python writes NaN and Infinity bare, though they are not JSON.
enum class Constants { words, refused };

// Errors name the line and column. `name` is the file's, for messages.
Expected<Json> parse_json(std::string_view text, std::string_view name,
                          Constants constants = Constants::words);

}  // namespace posenc::detail
