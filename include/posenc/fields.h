// What a scheme's numbers are called, mean and may be: one list drives the config reader, the
// command line's flags, bindings and sliders. A scheme states it as fields(); FieldInfo is its
// run-time form.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "posenc/error.h"

namespace [[gnu::visibility("default")]] posenc {

// The numbers that a field may hold, both ends included: finite ones, and all of them where no end is stated.
struct Range {
  static constexpr double largest = std::numeric_limits<double>::max();
  double least = -largest;
  double most = largest;
  bool open = false;  // `least` itself is not allowed
  bool has_least() const { return least > -largest; }
  bool has_most() const { return most < largest; }
  bool contains(double x) const { return (open ? x > least : x >= least) && x <= most; }
};
std::string rule_of(const Range& range);  // "must be a number above 0 and at most 1"

constexpr Range any_number{};
constexpr Range positive{.least = 0, .open = true};
constexpr Range not_negative{.least = 0};
constexpr Range at_least_one{.least = 1};
constexpr Range above_one{.least = 1, .open = true};
constexpr Range fraction{.least = 0, .most = 1, .open = true};
constexpr Range row_index{.least = -1};  // -1: none

// One entry of a scheme's fields(): a member with all that is said of it.
template <class Owner, class T>
struct Field {
  std::string_view name;  // as Hugging Face spells it, where it has the field
  T Owner::* member;
  std::string_view doc;           // one line
  Range range = any_number;       // of each number
  std::string_view unit = {};     // "tokens", "channels", ...
  std::string_view aliases = {};  // other spellings, separated by spaces
  bool required = false;          // it has no default that one could mean
};
template <class Owner, class T, class... Rest>
Field(std::string_view, T Owner::*, std::string_view, Rest...) -> Field<Owner, T>;

// A tensor that a scheme reads (learned, or made of the tokens) and that comes beside its fields: flags
// name its file, bindings hand it over.
template <class Owner, class T>
struct TableField {
  std::string_view name;
  T Owner::* member;
  std::string_view doc;  // one line, with its shape
};
template <class Owner, class T>
TableField(std::string_view, T Owner::*, std::string_view) -> TableField<Owner, T>;

namespace detail {
std::vector<std::string_view> split(std::string_view spaced);  // into words
}

// A field's value outside its struct; monostate is null (an optional field left to its rule).
using FieldValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<double>>;

enum class FieldKind { boolean, integer, number, choice, numbers, integers };

// A Field at run time, with the default that its struct has. Those of a field whose value is one of several structs follow
// it, and their doc says which of them have it.
struct FieldInfo {
  std::string_view name;
  FieldKind kind;
  std::string doc;
  Range range;
  std::string_view unit;
  std::vector<std::string_view> aliases;
  std::vector<std::string_view> choices;  // of FieldKind::choice
  bool required;
  bool optional;  // may be null
  FieldValue default_value;
};

// A field with the value that one scheme has, or shall have.
struct FieldSetting {
  std::string_view name;
  FieldValue value;
};

// Fields as one writes them, {"theta=500000", "pairing=halves"}: a value is true or false, a whole number, a number, or
// else the word. Errors: no equals sign.
Expected<std::vector<FieldSetting>> written_fields(std::string_view where,
                                                   std::span<const std::string_view> words);

// A learned table that a scheme takes, and what it holds.
struct TableInfo {
  std::string_view name, doc;
};

// What one word of a type list says of itself.
struct SchemeInfo {
  std::string_view name;                  // "rope", "yarn"
  std::vector<std::string_view> aliases;  // other spellings of the name
  std::string_view title;                 // "Rotary position embedding"
  std::string_view formula;               // one line of text
  std::string_view paper;                 // "2104.09864", "" where there is none
  std::vector<FieldInfo> fields;
  std::vector<TableInfo> tables = {};
};

// A field by its name or an alias; null where there is none.
const FieldInfo* find_field(const SchemeInfo& of, std::string_view spelling);

}  // namespace posenc
