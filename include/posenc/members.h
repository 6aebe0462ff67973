// How a part of a plan describes itself: one row for each member. JSON both ways, differences, the
// fingerprint of ranks, pickles, cutting by heads, the checks, the type in JavaScript and the table
// of docs/json.md walk these rows, so none of them can forget a member.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "posenc/fields.h"

namespace [[gnu::visibility("default")]] posenc {

// The row of one member. What follows its line is said by the functions, in any order.
template <class Part, class T>
struct Member {
  static constexpr std::int64_t always = std::numeric_limits<std::int64_t>::min();

  std::string_view name;  // its key in JSON
  T Part::* at;
  std::string_view doc;           // one line
  std::array<Axis, 3> axes = {};  // of a list or a table; of a count the axis that it counts
  Range range = any_number;       // of each number
  std::int64_t null = always;     // the number that JSON has as null: none, no end
  bool inlined = false;           // in JSON its own members stand in this one's place
  bool left_out = false;          // of JSON where it is empty
  bool flat_alone = false;        // no list of lists in JSON where the first axis is one long

  constexpr Member(std::string_view key, T Part::* member, std::string_view line)
      : name(key), at(member), doc(line) {}
  constexpr Member by(Axis a, Axis b = Axis::none, Axis c = Axis::none) const {
    return with([&](Member& m) { m.axes = {a, b, c}; });
  }
  constexpr Member counts(Axis axis) const { return by(axis); }
  constexpr Member within(const Range& allowed) const {
    return with([&](Member& m) { m.range = allowed; });
  }
  constexpr Member null_at(std::int64_t number) const {
    return with([&](Member& m) { m.null = number; });
  }
  constexpr Member in_place() const {
    return with([](Member& m) { m.inlined = true; });
  }
  constexpr Member flat() const {
    return with([](Member& m) { m.flat_alone = true; });
  }
  constexpr Member unless_empty() const {
    return with([](Member& m) { m.left_out = true; });
  }

 private:
  constexpr Member with(auto&& change) const {
    Member changed = *this;
    change(changed);
    return changed;
  }
};

namespace detail {

// The rows name every member, in order: one more initializer than rows is one too many.
template <class Part>
constexpr bool names_all() {
  return std::apply(
      []<class... T>(const Member<Part, T>&...) {
        return requires { Part{std::declval<T>()...}; } &&
               !requires { Part{std::declval<T>()..., {}}; };
      },
      Part::members());
}

}  // namespace detail

// A struct of a plan, not a number, a list, a table or an optional.
template <class T>
concept PlanPart = requires { T::members(); };

namespace detail {
// Made by the compiler: no call builds the rows again. A shared library shows none of them.
template <PlanPart T>
[[gnu::visibility("hidden")]] inline constexpr auto member_rows = T::members();
}  // namespace detail

// Of a kind, an alternative of a variant: the key of its object in JSON; empty where its members
// stand in the place of the variant.
template <PlanPart T>
constexpr std::string_view key_of() {
  if constexpr (requires { T::key; })
    return T::key;
  else
    return {};
}

// visit(row, member) for each member of a part, in order.
template <PlanPart T>
constexpr void each_member(T& part, auto&& visit) {
  static_assert(detail::names_all<std::remove_const_t<T>>(), "a member has no row in members()");
  std::apply([&](const auto&... row) { (visit(row, part.*row.at), ...); },
             detail::member_rows<std::remove_const_t<T>>);
}

// visit(row, a's member, b's member) for each member of two parts of one kind.
template <PlanPart T>
constexpr void each_member(const T& a, const T& b, auto&& visit) {
  std::apply([&](const auto&... row) { (visit(row, a.*row.at, b.*row.at), ...); },
             detail::member_rows<T>);
}

}  // namespace posenc
