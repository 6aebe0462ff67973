#include "state.h"

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "posenc/plan.h"

namespace posenc::python {
namespace {

// --- out
// -------------------------------------------------------------------------------------------

template <PlanPart T>
nb::object put(const T& part);
template <class T>
  requires(std::is_arithmetic_v<T>)
nb::object put(T number) {
  return nb::cast(number);
}
template <class T>
  requires(std::is_enum_v<T>)
nb::object put(T word) {
  return nb::cast(static_cast<int>(word));
}
nb::object put(const std::string& word) { return nb::cast(word); }
template <class... T>
nb::object put(const std::variant<T...>& kind) {
  return nb::make_tuple(kind.index(), std::visit([](const auto& part) { return put(part); }, kind));
}
template <class T>
nb::object put(const std::optional<T>& maybe) {
  return maybe ? put(*maybe) : nb::none();
}
template <class T>
nb::object put(const std::vector<T>& items) {
  nb::list list;
  for (const T& item : items) list.append(put(item));
  return list;
}
nb::object put(const RowList& rows) {
  return put(std::vector<std::int32_t>(rows.begin(), rows.end()));
}
nb::object put(const Table& table) {
  if (!table) return nb::none();
  const Table copy = copied_table(table.values);
  nb::list shape;
  for (int axis = 0; axis < table.values.rank; ++axis)
    shape.append(table.values.shape[static_cast<std::size_t>(axis)]);
  return nb::make_tuple(shape, put(*copy.owned));
}
template <PlanPart T>
nb::object put(const T& part) {
  nb::dict out;
  each_member(part, [&](const auto& row, const auto& member) {
    out[nb::str(row.name.data(), row.name.size())] = put(member);
  });
  return out;
}

// --- and back
// --------------------------------------------------------------------------------------

[[noreturn]] void no_state(nb::handle found) {
  refuse("Plan", "must be unpickled from what a plan was pickled as", said(nb::borrow(found)),
         "pickle the plan again");
}

template <PlanPart T>
void take(nb::handle from, T& part);
template <class T>
  requires(std::is_arithmetic_v<T>)
void take(nb::handle from, T& number) {
  if (!nb::try_cast(from, number)) no_state(from);
}
void take(nb::handle from, std::string& word) {
  if (!nb::try_cast(from, word)) no_state(from);
}
// checked() does not look at words, since C++ has no others.
template <class T>
  requires(std::is_enum_v<T>)
void take(nb::handle from, T& word) {
  int number = 0;
  take(from, number);
  if (number < 0 || std::cmp_greater_equal(number, words_of(T{}).size())) no_state(from);
  word = static_cast<T>(number);
}
template <class T>
void take(nb::handle from, std::vector<T>& items) {
  if (!PyList_Check(from.ptr())) no_state(from);
  items.clear();
  for (const nb::handle item : from) take(item, items.emplace_back());
}
void take(nb::handle from, RowList& rows) {
  std::vector<std::int32_t> list;
  take(from, list);
  rows = RowList(std::move(list));
}
// Of a pair (a, b) both.
std::pair<nb::object, nb::object> pair_of(nb::handle from) {
  if (!PyTuple_Check(from.ptr()) || nb::len(from) != 2) no_state(from);
  return {from[0], from[1]};
}
template <class... T>
void take(nb::handle from, std::variant<T...>& kind) {
  const auto [index, part] = pair_of(from);
  std::size_t which = 0;
  take(index, which);
  std::size_t at = 0;
  const auto one = [&]<class Part>(Part made) {
    if (at++ != which) return;
    take(part, made);
    kind = std::move(made);
  };
  (one(T{}), ...);
  if (which >= at) no_state(from);
}
template <class T>
void take(nb::handle from, std::optional<T>& maybe) {
  maybe.reset();
  if (!from.is_none()) take(from, maybe.emplace());
}
void take(nb::handle from, Table& table) {
  table = {};
  if (from.is_none()) return;
  const auto [extents, list] = pair_of(from);
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  take(extents, shape);
  take(list, values);
  std::int64_t count = 1;
  for (const std::int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) no_state(extents);
  if (shape.empty() || shape.size() > 3 || count != std::ssize(values)) no_state(extents);
  if (shape.size() == 1) table = Table::own(std::move(values), {shape[0]});
  if (shape.size() == 2) table = Table::own(std::move(values), {shape[0], shape[1]});
  if (shape.size() == 3) table = Table::own(std::move(values), {shape[0], shape[1], shape[2]});
}
template <PlanPart T>
void take(nb::handle from, T& part) {
  if (!PyDict_Check(from.ptr())) no_state(from);
  const auto given = nb::borrow<nb::dict>(from);
  std::size_t known = 0;
  each_member(part, [&](const auto& row, auto& member) {
    const nb::str name(row.name.data(), row.name.size());
    if (!given.contains(name)) return;
    take(nb::object(given[name]), member);
    ++known;
  });
  if (known != nb::len(from)) no_state(from);  // of a later posenc
}

// --- hashed: equal plans alike ------------------------------------------------------------------

template <PlanPart T>
void mix(std::size_t& hash, const T& part);
// -0 equals 0, and adding 0 makes it so.
template <class T>
  requires(std::is_arithmetic_v<T>)
void mix(std::size_t& hash, T number) {
  hash = hash * 31 + std::hash<double>{}(static_cast<double>(number) + 0.0);
}
template <class T>
  requires(std::is_enum_v<T>)
void mix(std::size_t& hash, T word) {
  mix(hash, static_cast<int>(word));
}
void mix(std::size_t& hash, const std::string& word) { mix(hash, std::hash<std::string>{}(word)); }
template <class... T>
void mix(std::size_t& hash, const std::variant<T...>& kind) {
  mix(hash, kind.index());
  std::visit([&](const auto& part) { mix(hash, part); }, kind);
}
template <class T>
void mix(std::size_t& hash, const std::optional<T>& maybe) {
  mix(hash, maybe.has_value());
  if (maybe) mix(hash, *maybe);
}
template <class T>
void mix(std::size_t& hash, const std::vector<T>& items) {
  mix(hash, items.size());
  for (const T& item : items) mix(hash, item);
}
void mix(std::size_t& hash, const RowList& rows) { mix(hash, rows.size()); }
// Its extents alone: a learned table has millions of numbers.
void mix(std::size_t& hash, const Table& table) {
  for (int axis = 0; axis < table.values.rank; ++axis)
    mix(hash, table.values.shape[static_cast<std::size_t>(axis)]);
}
template <PlanPart T>
void mix(std::size_t& hash, const T& part) {
  each_member(part, [&](const auto&, const auto& member) { mix(hash, member); });
}

}  // namespace

std::size_t hash_of(const Plan& plan) {
  std::size_t hash = 0;
  mix(hash, plan);
  return hash;
}

nb::object state_of(const Plan& plan) { return put(plan); }

Plan plan_of_state(nb::handle state) {
  Plan plan;
  take(state, plan);
  return unwrap(checked(std::move(plan)));
}

}  // namespace posenc::python
