// The type lists as data: names, fields, defaults; a scheme or scaling made and changed by name.
// All of it follows from the structs' own fields(), so a new one appears everywhere by being in its
// list.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "posenc/schemes.h"
#include "src/schemes/engines.h"

namespace posenc {
namespace {

// --- words of the enums that fields use ----------------------------------------------------------

template <class E>
constexpr std::array<std::string_view, 2> words{};
template <>
constexpr std::array<std::string_view, 2> words<Pairing>{name(Pairing::halves),
                                                         name(Pairing::interleaved)};
template <>
constexpr std::array<std::string_view, 2> words<WaveLayout>{name(WaveLayout::interleaved),
                                                            name(WaveLayout::concatenated)};
template <>
constexpr std::array<std::string_view, 2> words<WaveSpacing>{"width", "ends"};
template <>
constexpr std::array<std::string_view, 2> words<OddWidth>{"zero", "sine"};
template <>
constexpr std::array<std::string_view, 2> words<RowOrder>{"key_minus_query", "query_minus_key"};
template <>
constexpr std::array<std::string_view, 2> words<SlopeRounding>{"exact", "bfloat16"};
template <>
constexpr std::array<std::string_view, 2> words<KerpleKernel>{"log", "power"};
template <>
constexpr std::array<std::string_view, 2> words<Slice>{"leading", "trailing"};
template <>
constexpr std::array<std::string_view, 2> words<AxisOrder>{"height_width", "width_height"};
template <>
constexpr std::array<std::string_view, 2> words<AxisFrequencies>{"shared", "alternating"};

// --- one member <-> one FieldValue ---------------------------------------------------------------

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
template <class T>
constexpr bool is_list = false;
template <class T>
constexpr bool is_list<std::vector<T>> = true;

template <class T>
constexpr FieldKind kind_of() {
  if constexpr (is_optional<T>)
    return kind_of<typename T::value_type>();
  else if constexpr (std::is_same_v<T, bool>)
    return FieldKind::boolean;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return FieldKind::integer;
  else if constexpr (std::is_same_v<T, double>)
    return FieldKind::number;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return FieldKind::numbers;
  else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
    return FieldKind::integers;
  else
    return FieldKind::choice;
}

template <class T>
FieldValue to_value(const T& member) {
  if constexpr (is_optional<T>) {
    return member ? to_value(*member) : FieldValue{};
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(words<T>[static_cast<std::size_t>(member)]);
  } else if constexpr (is_list<T>) {
    return std::vector<double>(member.begin(), member.end());
  } else {
    return member;
  }
}

Expected<double> number(std::string_view where, const Range& range, double x) {
  if (!std::isfinite(x) || !range.contains(x)) return fail(where, rule_of(range), number_text(x));
  return x;
}

Expected<std::int64_t> integer(std::string_view where, const Range& range, double x) {
  constexpr double exact_integers = 9007199254740992.0;  // 2^53
  if (!(std::abs(x) <= exact_integers) || x != std::floor(x))
    return fail(where, "must be a whole number", number_text(x));
  if (!range.contains(x)) return fail(where, rule_of(range), number_text(x));
  return static_cast<std::int64_t>(x);
}

const double* as_number(const FieldValue& value, double& storage) {
  if (const auto* d = std::get_if<double>(&value)) return d;
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    storage = static_cast<double>(*i);
    return &storage;
  }
  return nullptr;
}

template <class T>
Expected<T> from_value(std::string_view where, const Range& range, const FieldValue& value) {
  if constexpr (is_optional<T>) {
    if (std::holds_alternative<std::monostate>(value)) return T{};
    auto inner = from_value<typename T::value_type>(where, range, value);
    if (!inner) return std::unexpected(inner.error());
    return T{*inner};
  } else if constexpr (std::is_same_v<T, bool>) {
    if (const auto* b = std::get_if<bool>(&value)) return *b;
    return fail(where, "must be true or false");
  } else if constexpr (std::is_enum_v<T>) {
    const auto* word = std::get_if<std::string>(&value);
    if (!word) return fail(where, "must be a word", "", suggestion("", words<T>));
    for (std::size_t i = 0; i < words<T>.size(); ++i) {
      if (*word == words<T>[i]) return static_cast<T>(i);
    }
    return fail(where, "unknown word", *word, suggestion(*word, words<T>));
  } else if constexpr (is_list<T>) {
    double one = 0;
    std::vector<double> single;
    const auto* list = std::get_if<std::vector<double>>(&value);
    if (const double* x = as_number(value, one); x && !list) {
      single = {*x};
      list = &single;
    }
    if (!list) return fail(where, "must be a list of numbers");
    T result;
    result.reserve(list->size());
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string entry = std::string(where) + "[" + std::to_string(i) + "]";
      auto x = from_value<typename T::value_type>(entry, range, (*list)[i]);
      if (!x) return std::unexpected(x.error());
      result.push_back(*x);
    }
    return result;
  } else {
    double storage = 0;
    const double* x = as_number(value, storage);
    if (!x) return fail(where, rule_of(range));
    if constexpr (std::is_same_v<T, std::int64_t>)
      return integer(where, range, *x);
    else
      return number(where, range, *x);
  }
}

// --- one struct ----------------------------------------------------------------------------------

bool named(const auto& spelled, std::string_view name) {
  const auto aliases = detail::split(spelled.aliases);
  return spelled.name == name || std::ranges::find(aliases, name) != aliases.end();
}

template <class S>
void for_each_field(auto&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, S::fields());
}

template <class S>
SchemeInfo describe() {
  SchemeInfo info{S::name, detail::split(S::aliases), S::title, S::formula, S::paper, {}};
  const S defaults{};
  for_each_field<S>([&](const auto& field) {
    using T = std::remove_cvref_t<decltype(defaults.*field.member)>;
    FieldInfo row{field.name,
                  kind_of<T>(),
                  field.doc,
                  field.range,
                  field.unit,
                  detail::split(field.aliases),
                  {},
                  field.required,
                  is_optional<T>,
                  to_value(defaults.*field.member)};
    if constexpr (std::is_enum_v<T>) row.choices.assign(words<T>.begin(), words<T>.end());
    info.fields.push_back(std::move(row));
  });
  return info;
}

template <class... S>
std::vector<SchemeInfo> describe_all(const std::variant<S...>&) {
  return {describe<S>()...};
}

std::string where(std::string_view scheme, std::string_view field) {
  return std::string(scheme) + ": " + std::string(field);
}

// The first field by that name is set; false if there is none.
template <class S>
Expected<bool> set_if_named(S& object, std::string_view name, const FieldValue& value) {
  Expected<bool> found = false;
  for_each_field<S>([&](const auto& field) {
    if (!found || *found || !named(field, name)) return;
    auto& member = object.*field.member;
    using T = std::remove_cvref_t<decltype(member)>;
    if (!is_optional<T> && std::holds_alternative<std::monostate>(value)) {
      member = S{}.*field.member;  // null: back to the default, as Hugging Face reads it
      found = true;
      return;
    }
    auto converted = from_value<T>(where(S::name, field.name), field.range, value);
    if (!converted) {
      found = std::unexpected(converted.error());
      return;
    }
    member = std::move(*converted);
    found = true;
  });
  return found;
}

template <class S>
Expected<void> check_fields(const S& object) {
  Expected<void> result;
  for_each_field<S>([&](const auto& field) {
    if (!result) return;
    const auto& member = object.*field.member;
    using T = std::remove_cvref_t<decltype(member)>;
    const auto again = from_value<T>(where(S::name, field.name), field.range, to_value(member));
    if (!again) result = std::unexpected(again.error());
  });
  return result;
}

template <class S>
std::vector<FieldSetting> settings_of(const S& object) {
  std::vector<FieldSetting> result;
  for_each_field<S>(
      [&](const auto& field) { result.push_back({field.name, to_value(object.*field.member)}); });
  return result;
}

template <class Variant, std::size_t... I>
std::optional<Variant> make_named(std::string_view name, std::index_sequence<I...>) {
  std::optional<Variant> made;
  const auto try_one = [&]<class S>() {
    if (!made && named(S{}, name)) made = S{};
  };
  (try_one.template operator()<std::variant_alternative_t<I, Variant>>(), ...);
  return made;
}

template <class Variant>
Expected<Variant> make(std::string_view what, std::string_view name,
                       std::span<const SchemeInfo> list) {
  auto made = make_named<Variant>(name, std::make_index_sequence<std::variant_size_v<Variant>>{});
  if (made) return std::move(*made);
  std::vector<std::string_view> known;
  for (const SchemeInfo& entry : list) known.push_back(entry.name);
  return fail(what, "unknown name", "'" + std::string(name.substr(0, 64)) + "'",
              suggestion(name, known));
}

std::unexpected<Error> no_such_field(std::string_view scheme, std::string_view name,
                                     std::initializer_list<const SchemeInfo*> infos) {
  std::vector<std::string_view> known;
  for (const SchemeInfo* info : infos)
    for (const FieldInfo& field : info->fields) known.push_back(field.name);
  return fail(scheme, "has no such field", "'" + std::string(name.substr(0, 64)) + "'",
              suggestion(name, known));
}

}  // namespace

std::string rule_of(const Range& range) {
  std::string rule = "must be a number";
  if (std::isfinite(range.least)) {
    rule += (range.open ? " above " : " of at least ") + number_text(range.least);
  }
  if (std::isfinite(range.most)) rule += " and at most " + number_text(range.most);
  return rule;
}

std::vector<std::string_view> detail::split(std::string_view spaced) {
  std::vector<std::string_view> result;
  while (!spaced.empty()) {
    const std::size_t end = std::min(spaced.find(' '), spaced.size());
    if (end > 0) result.push_back(spaced.substr(0, end));
    spaced.remove_prefix(std::min(end + 1, spaced.size()));
  }
  return result;
}

std::span<const SchemeInfo> all_schemes() {
  static const std::vector<SchemeInfo> list = describe_all(Scheme{});
  return list;
}

std::span<const SchemeInfo> all_scalings() {
  static const std::vector<SchemeInfo> list = describe_all(Scaling{});
  return list;
}

const SchemeInfo& info(const Scheme& scheme) { return all_schemes()[scheme.index()]; }
const SchemeInfo& info(const Scaling& scaling) { return all_scalings()[scaling.index()]; }

Expected<Scheme> make_scheme(std::string_view name) {
  return make<Scheme>("scheme", name, all_schemes());
}
Expected<Scaling> make_scaling(std::string_view name) {
  return make<Scaling>("rope_type", name, all_scalings());
}

Expected<void> set_field(Scaling& scaling, std::string_view name, const FieldValue& value) {
  const auto found = std::visit([&](auto& s) { return set_if_named(s, name, value); }, scaling);
  if (!found) return std::unexpected(found.error());
  if (!*found) return no_such_field(info(scaling).name, name, {&info(scaling)});
  return {};
}

Expected<void> set_field(Scheme& scheme, std::string_view name, const FieldValue& value) {
  Rope* rope = std::get_if<Rope>(&scheme);
  if (rope && (name == "rope_type" || name == "scaling")) {
    const auto* word = std::get_if<std::string>(&value);
    if (!word) return fail("rope: rope_type", "must be the name of a scaling");
    auto scaling = make_scaling(*word);
    if (!scaling) return std::unexpected(scaling.error());
    rope->scaling = std::move(*scaling);
    return {};
  }
  Expected<bool> found = false;
  if (rope) {
    found = std::visit([&](auto& s) { return set_if_named(s, name, value); }, rope->scaling);
    if (!found) return std::unexpected(found.error());
  }
  if (!*found) found = std::visit([&](auto& s) { return set_if_named(s, name, value); }, scheme);
  if (!found) return std::unexpected(found.error());
  if (*found) return {};
  if (rope) return no_such_field("rope", name, {&info(scheme), &info(rope->scaling)});
  return no_such_field(info(scheme).name, name, {&info(scheme)});
}

std::vector<FieldSetting> settings(const Scheme& scheme) {
  return std::visit([](const auto& s) { return settings_of(s); }, scheme);
}

std::vector<FieldSetting> settings(const Scaling& scaling) {
  return std::visit([](const auto& s) { return settings_of(s); }, scaling);
}

Expected<Plan> compile(const Scheme& scheme, const Geometry& geometry, Angles angles) {
  for (const std::int64_t extent :
       {geometry.width, geometry.heads, geometry.kv_heads, geometry.head_dim, geometry.length,
        geometry.grid_height, geometry.grid_width}) {
    if (extent < 0)
      return fail("compile", "a geometry has no negative sizes", std::to_string(extent));
  }
  auto ok = std::visit([](const auto& s) { return check_fields(s); }, scheme);
  if (const Rope* rope = std::get_if<Rope>(&scheme); ok && rope) {
    ok = std::visit([](const auto& s) { return check_fields(s); }, rope->scaling);
  }
  if (!ok) return std::unexpected(ok.error());
  auto plan = std::visit([&](const auto& s) { return s.compiled(geometry); }, scheme);
  if (!plan) return plan;
  if (plan->rotate && angles != Angles::exact) {
    ok = detail::take_angles(scheme, geometry, angles, *plan->rotate);
    if (!ok) return std::unexpected(ok.error());
  }
  return checked(std::move(*plan), geometry.head_dim);
}

}  // namespace posenc
