// What a scheme's numbers are called, mean and may be: one list drives the config reader, the
// command line's flags, bindings and sliders. A scheme states it as fields(); FieldInfo is its
// run-time form.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
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

// The numbers that a field may hold, both ends included: finite ones, and all of them where no end
// is stated.
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

// What the numbers of a list or tensor run over, the last axis fastest. A count names the axis that
// it counts: `heads` of a mixture counts its key heads. unit: of a network; column: as many as a
// tensor comes with.
enum class Axis : std::uint8_t {
  none,
  head,
  key_head,
  axis,
  pair,
  input,
  output,
  row,
  channel,
  batch,
  query,
  key,
  unit,
  column
};
constexpr auto words_of(Axis) {
  return std::array<std::string_view, 14>{"",      "head",   "key head", "axis",    "pair",
                                          "input", "output", "row",      "channel", "batch",
                                          "query", "key",    "unit",     "column"};
}

// The name of an enumerator, out of the words_of(enum) of its list.
template <class E>
  requires requires(E word) { words_of(word); }
constexpr std::string_view name(E word) {
  return words_of(word)[static_cast<std::size_t>(word)];
}

// Up to four of them, outermost first.
struct Axes {
  std::array<Axis, 4> all = {};
  std::size_t count = 0;

  constexpr Axes() = default;
  constexpr Axes(std::initializer_list<Axis> axes) : count(axes.size()) {
    std::ranges::copy(axes, all.begin());
  }
  constexpr const Axis* begin() const { return all.data(); }
  constexpr const Axis* end() const { return all.data() + count; }
  bool operator==(const Axes&) const = default;
  constexpr bool has(Axis axis) const { return std::ranges::find(*this, axis) != end(); }
  constexpr bool of_tokens() const { return has(Axis::query) || has(Axis::key); }
};

// What a model makes of a projection. unit_length: of each row. rms_rotated: rows are divided by
// their root mean square and rotated by their position, a radian a token, backwards.
enum class Activation { none, log_sigmoid, unit_length, twice_sigmoid, rms_rotated };
constexpr auto words_of(Activation) {
  return std::array<std::string_view, 5>{"none", "log_sigmoid", "unit_length", "twice_sigmoid",
                                         "rms_rotated"};
}

// How its authors make a tensor of the tokens: by a projection of the layer's input.
struct Projection {
  Activation activation = Activation::none;
  bool biased = false;
  std::int64_t columns = 0;    // of Axis::column
  std::int64_t rank = 0;       // it goes through so many numbers; 0: it does not
  std::string_view same = {};  // the table whose projection this is too
  bool operator==(const Projection&) const = default;
};

// What a field's list or a table holds: enough to draw it, to cut it by heads and to learn it.
struct Holds {
  Axes axes = {};
  bool for_all_heads = false;  // the axis of heads may be absent (a list: have one number)
  bool learned = false;        // attend_backward gives its gradient, of the same name
  double deviation = 0;        // of a list that is learned, as training begins
  bool alibi = false;          // an empty list stands for ALiBi's slopes
  // Of a table:
  bool optional = false;          // the scheme does without
  std::string_view instead = {};  // this field says as much where the table is absent
  Projection projection = {};     // of tokens
  bool operator==(const Holds&) const = default;
  // Without heads where they may share it.
  constexpr Axes least_axes() const {
    Axes least;
    for (const Axis axis : axes)
      if (axis != Axis::head || !for_all_heads) least.all[least.count++] = axis;
    return least;
  }
};

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
  Holds holds = {};

  constexpr Field with(const Holds& said) const {
    Field whole = *this;
    whole.holds = said;
    return whole;
  }
};
template <class Owner, class T, class... Rest>
Field(std::string_view, T Owner::*, std::string_view, Rest...) -> Field<Owner, T>;

// A tensor that a scheme reads (learned, or made of the tokens) and that comes beside its fields:
// flags name its file, bindings hand it over.
template <class Owner, class T>
struct TableField {
  std::string_view name;
  T Owner::* member;
  std::string_view doc;  // one line, with its shape
  Holds holds = {};

  constexpr TableField with(const Holds& said) const { return {name, member, doc, said}; }
};
template <class Owner, class T>
TableField(std::string_view, T Owner::*, std::string_view) -> TableField<Owner, T>;

// A field's value outside its struct; monostate is null (an optional field left to its rule).
using FieldValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<double>>;

enum class FieldKind { boolean, integer, number, choice, numbers, integers };

// A Field at run time, with the default that its struct has. Those of a field whose value is one of
// several structs follow it, and their doc says which of them have it.
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
  Holds holds = {};
};

// A field with the value that one scheme has, or shall have.
struct FieldSetting {
  std::string_view name;
  FieldValue value;
};

// Fields as one writes them, {"theta=500000", "pairing=halves"}: a value is true or false, a whole
// number, a number, or else the word. Errors: no equals sign.
Expected<std::vector<FieldSetting>> written_fields(std::string_view where,
                                                   std::span<const std::string_view> words);

// A table that a scheme takes.
struct TableInfo {
  std::string_view name, doc;
  Holds holds = {};
  bool required() const { return !holds.optional; }
};

// What a scheme that reads the content weighs a key by. What positions and gates add is known
// before q·k, so that the softmax is that of attend, with sink logits and a softcap. But for
// positions the mask is causal, and keys stand in order.
enum class Reads {
  positions,  // where query and key stand; it adds a bias, and keys may have any order
  gates,      // log gates of tokens; it adds their sum from the key to the query
  keys        // the keys between, by q·k or another product
};
constexpr auto words_of(Reads) {
  return std::array<std::string_view, 3>{"positions", "gates", "keys"};
}

// What one word of a type list says of itself.
struct SchemeInfo {
  std::string_view name;                  // "rope", "yarn"
  std::vector<std::string_view> aliases;  // other spellings of the name
  std::string_view title;                 // "Rotary position embedding"
  std::string_view formula;               // one line of text
  std::string_view paper;                 // "2104.09864", "" where there is none
  std::vector<FieldInfo> fields;
  std::vector<TableInfo> tables = {};
  std::optional<Reads> reads = {};  // of those that read the content
};

// A field by its name or an alias; null where there is none.
const FieldInfo* find_field(const SchemeInfo& of, std::string_view spelling);

}  // namespace posenc
