// The type lists as data: names, fields, defaults; a scheme or scaling made and changed by name.
// All of it follows from the structs' own fields(), so a new one appears everywhere by being in its
// list.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "posenc/content.h"
#include "posenc/schemes.h"
#include "src/core/try.h"
#include "src/schemes/reflection.h"

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
constexpr std::array<std::string_view, 2> words<SliceEnd>{"leading", "trailing"};
template <>
constexpr std::array<std::string_view, 4> words<ImaginaryHeads>{"none", "alternating",
                                                                "second_half", "all"};
template <>
constexpr std::array<std::string_view, 3> words<ProfileCurves>{"distances", "buckets", "ramp"};
template <>
constexpr std::array<std::string_view, 4> words<DistanceMap>{"none", "dual_chunk", "rerope",
                                                             "self_extend"};
template <>
constexpr std::array<std::string_view, 2> words<AxisOrder>{"height_width", "width_height"};
template <>
constexpr std::array<std::string_view, 3> words<AxisFrequencies>{"shared", "alternating",
                                                                 "in_turns"};

// --- a field as data: one loop reads, checks and writes the fields of every struct ------------------

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

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

struct Row {
  std::string_view name, doc, unit, aliases;
  Range range;
  FieldKind kind;
  bool optional, required;
  std::span<const std::string_view> words;  // of FieldKind::choice
  const Holds* holds;                       // null: nothing is said
  void* (*member)(void* object);            // where an object of the struct keeps it
};

// A tensor beside the fields.
struct TableRow {
  TableInfo info;
  Table* (*member)(void* object);
};

// What a struct says of itself.
struct About {
  std::string_view name, aliases, title, formula, paper;
  std::span<const Row> rows;
  std::span<const TableRow> tables;
  std::optional<Reads> reads;
};

template <class S, std::size_t I>
constexpr Holds holds = std::get<I>(S::fields()).holds;

template <class S, std::size_t I>
constexpr Row row() {
  constexpr auto field = std::get<I>(S::fields());
  using T = std::remove_cvref_t<decltype(std::declval<S>().*field.member)>;
  std::span<const std::string_view> choices;
  if constexpr (std::is_enum_v<T>) {
    static_assert(sizeof(T) == sizeof(int));
    choices = words<T>;
  }
  return {field.name,
          field.doc,
          field.unit,
          field.aliases,
          field.range,
          kind_of<T>(),
          is_optional<T>,
          field.required,
          choices,
          field.holds == Holds{} ? nullptr : &holds<S, I>,
          [](void* object) -> void* {
            constexpr auto member = std::get<I>(S::fields()).member;
            return &(static_cast<S*>(object)->*member);
          }};
}

template <class S, std::size_t... I>
constexpr std::array<Row, sizeof...(I)> rows_of(std::index_sequence<I...>) {
  return {row<S, I>()...};
}

template <class S>
constexpr auto rows =
    rows_of<S>(std::make_index_sequence<std::tuple_size_v<decltype(S::fields())>>{});

template <class S, std::size_t... I>
constexpr std::array<TableRow, sizeof...(I)> tables_of(std::index_sequence<I...>) {
  constexpr auto all = S::tables();
  return {TableRow{{std::get<I>(all).name, std::get<I>(all).doc, std::get<I>(all).holds},
                   [](void* object) -> Table* {
                     constexpr auto member = std::get<I>(S::tables()).member;
                     return &(static_cast<S*>(object)->*member);
                   }}...};
}

template <class S>
constexpr std::array<TableRow, 0> tables{};
template <class S>
  requires requires { S::tables(); }
constexpr auto tables<S> =
    tables_of<S>(std::make_index_sequence<std::tuple_size_v<decltype(S::tables())>>{});

template <class S>
constexpr std::optional<Reads> reads{};
template <class S>
  requires requires { S::reads; }
constexpr std::optional<Reads> reads<S> = S::reads;

template <class Variant>
constexpr std::array<About, 0> abouts;
template <class... S>
constexpr std::array<About, sizeof...(S)> abouts<std::variant<S...>> = {
    About{S::name, S::aliases, S::title, S::formula, S::paper, rows<S>, tables<S>, reads<S>}...};

template <class Variant>
const About& about(const Variant& object) {
  return abouts<Variant>[object.index()];
}

// The struct that a variant holds.
template <class... S>
void* struct_in(std::variant<S...>& object) {
  return std::visit([](auto& s) -> void* { return &s; }, object);
}
template <class... S>
void* struct_in(const std::variant<S...>& object) {  // to read
  return struct_in(const_cast<std::variant<S...>&>(object));
}

template <class T>
FieldValue loaded(const void* member, bool optional) {
  if (!optional) return *static_cast<const T*>(member);
  const auto& value = *static_cast<const std::optional<T>*>(member);
  return value ? FieldValue(*value) : FieldValue();
}

FieldValue load(const Row& row, void* object) {
  const void* member = row.member(object);
  switch (row.kind) {
    case FieldKind::boolean: return *static_cast<const bool*>(member);
    case FieldKind::integer: return loaded<std::int64_t>(member, row.optional);
    case FieldKind::number: return loaded<double>(member, row.optional);
    case FieldKind::numbers: return *static_cast<const std::vector<double>*>(member);
    case FieldKind::integers: {
      const auto& list = *static_cast<const std::vector<std::int64_t>*>(member);
      return std::vector<double>(list.begin(), list.end());
    }
    case FieldKind::choice: break;
  }
  int word = 0;  // an enum's number
  std::memcpy(&word, member, sizeof word);
  return std::string(row.words[static_cast<std::size_t>(word)]);
}

template <class T>
void stored(void* member, bool optional, const FieldValue& value) {
  const T* number = std::get_if<T>(&value);
  if (!optional)
    *static_cast<T*>(member) = *number;
  else
    *static_cast<std::optional<T>*>(member) = number ? std::optional<T>(*number) : std::nullopt;
}

// What `checked` gave, or a default.
void store(const Row& row, void* object, const FieldValue& value) {
  void* member = row.member(object);
  switch (row.kind) {
    case FieldKind::boolean: *static_cast<bool*>(member) = std::get<bool>(value); break;
    case FieldKind::integer: stored<std::int64_t>(member, row.optional, value); break;
    case FieldKind::number: stored<double>(member, row.optional, value); break;
    case FieldKind::numbers:
      *static_cast<std::vector<double>*>(member) = std::get<std::vector<double>>(value);
      break;
    case FieldKind::integers: {
      auto& list = *static_cast<std::vector<std::int64_t>*>(member);
      list.clear();
      for (const double x : std::get<std::vector<double>>(value))
        list.push_back(static_cast<std::int64_t>(x));
      break;
    }
    case FieldKind::choice: {
      const auto found = std::ranges::find(row.words, std::get<std::string>(value));
      const auto word = static_cast<int>(found - row.words.begin());
      std::memcpy(member, &word, sizeof word);
      break;
    }
  }
}

Expected<FieldValue> number(std::string_view where, const Row& row, double x) {
  const bool whole = row.kind == FieldKind::integer || row.kind == FieldKind::integers;
  constexpr double exact_integers = 9007199254740992.0;  // 2^53
  if (whole && (!(std::abs(x) <= exact_integers) || x != std::floor(x)))
    return fail(where, "must be a whole number", number_text(x));
  if (!row.range.contains(x)) return fail(where, rule_of(row.range), number_text(x));
  if (whole) return static_cast<std::int64_t>(x);
  return x;
}

std::optional<double> as_number(const FieldValue& value) {
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  return {};
}

// The value as the field holds it.
Expected<FieldValue> checked(std::string_view where, const Row& row, const FieldValue& value) {
  if (row.optional && std::holds_alternative<std::monostate>(value)) return value;
  const std::optional<double> one = as_number(value);
  switch (row.kind) {
    case FieldKind::boolean:
      if (!std::holds_alternative<bool>(value)) return fail(where, "must be true or false");
      return value;
    case FieldKind::choice: {
      const auto* word = std::get_if<std::string>(&value);
      if (!word) return fail(where, "must be a word", "", suggestion("", row.words));
      if (std::ranges::find(row.words, *word) == row.words.end())
        return fail(where, "unknown word", *word, suggestion(*word, row.words));
      return value;
    }
    case FieldKind::integer:
    case FieldKind::number:
      if (!one) return fail(where, rule_of(row.range));
      return number(where, row, *one);
    case FieldKind::numbers:
    case FieldKind::integers: break;
  }
  if (!one && !std::holds_alternative<std::vector<double>>(value))
    return fail(where, "must be a list of numbers");
  auto list = one ? std::vector<double>{*one} : std::get<std::vector<double>>(value);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string entry = std::string(where) + "[" + std::to_string(i) + "]";
    if (const auto x = number(entry, row, list[i]); !x) return x;
  }
  return FieldValue(std::move(list));
}

// --- one struct ----------------------------------------------------------------------------------

bool named(std::string_view spelled, std::string_view aliases, std::string_view name) {
  const auto others = detail::split(aliases);
  return spelled == name || std::ranges::find(others, name) != others.end();
}

std::string where(std::string_view scheme, std::string_view field) {
  return std::string(scheme) + ": " + std::string(field);
}

// The first field by that name is set; false if there is none.
Expected<bool> set_if_named(const About& about, const SchemeInfo& info, void* object,
                            std::string_view name, const FieldValue& value) {
  for (std::size_t i = 0; i < about.rows.size(); ++i) {
    const Row& row = about.rows[i];
    if (!named(row.name, row.aliases, name)) continue;
    if (!row.optional && std::holds_alternative<std::monostate>(value)) {
      store(row, object, info.fields[i].default_value);  // null, as Hugging Face reads it
      return true;
    }
    const auto converted = checked(where(about.name, row.name), row, value);
    if (!converted) return std::unexpected(converted.error());
    store(row, object, *converted);
    return true;
  }
  return false;
}
template <class Variant>
Expected<bool> set_if_named(Variant& object, std::string_view name, const FieldValue& value) {
  return set_if_named(about(object), info(object), struct_in(object), name, value);
}

Expected<void> check_fields(const About& about, void* object) {
  for (const Row& row : about.rows) {
    const auto again = checked(where(about.name, row.name), row, load(row, object));
    if (!again) return std::unexpected(again.error());
  }
  return {};
}

std::vector<FieldSetting> settings_of(const About& about, void* object) {
  std::vector<FieldSetting> result;
  for (const Row& row : about.rows) result.push_back({row.name, load(row, object)});
  return result;
}

SchemeInfo describe(const About& about, void* defaults) {
  SchemeInfo info{about.name, detail::split(about.aliases), about.title, about.formula, about.paper,
                  {}};
  for (const Row& row : about.rows)
    info.fields.push_back({row.name,
                           row.kind,
                           row.doc,
                           row.range,
                           row.unit,
                           detail::split(row.aliases),
                           {row.words.begin(), row.words.end()},
                           row.required,
                           row.optional,
                           load(row, defaults),
                           row.holds ? *row.holds : Holds{}});
  for (const TableRow& table : about.tables) info.tables.push_back(table.info);
  info.reads = about.reads;
  return info;
}

// --- the lists -----------------------------------------------------------------------------------

template <class... S>
std::array<std::variant<S...>, sizeof...(S)> defaults_of(const std::variant<S...>&) {
  return {S{}...};
}

template <class Variant>
std::vector<SchemeInfo> describe_all() {
  std::vector<SchemeInfo> list;
  for (Variant& defaults : defaults_of(Variant{}))
    list.push_back(describe(about(defaults), struct_in(defaults)));
  return list;
}

template <class Variant>
Expected<Variant> make(std::string_view what, std::string_view name) {
  for (Variant& defaults : defaults_of(Variant{}))
    if (named(about(defaults).name, about(defaults).aliases, name)) return std::move(defaults);
  std::vector<std::string_view> known;
  known.reserve(abouts<Variant>.size());
  for (const About& each : abouts<Variant>) known.push_back(each.name);
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

template <class Variant>
Expected<void> set_named(Variant& object, std::string_view name, const FieldValue& value) {
  POSENC_TRY(found, set_if_named(object, name, value));
  if (!found) return no_such_field(info(object).name, name, {&info(object)});
  return {};
}

template <class Variant>
Table* table_named(Variant& scheme, std::string_view name) {
  for (const TableRow& row : about(scheme).tables)
    if (row.info.name == name) return row.member(struct_in(scheme));
  return nullptr;
}

template <class Variant>
Expected<void> set_table_named(Variant& scheme, std::string_view name, Table table) {
  if (Table* const found = table_named(scheme, name)) {
    *found = std::move(table);
    return {};
  }
  std::vector<std::string_view> known;
  for (const TableRow& each : about(scheme).tables) known.push_back(each.info.name);
  return fail(about(scheme).name, "has no such table", "'" + std::string(name.substr(0, 64)) + "'",
              suggestion(name, known));
}

}  // namespace

std::string rule_of(const Range& range) {
  std::string rule = "must be a number";
  if (range.has_least()) {
    rule += (range.open ? " above " : " of at least ") + number_text(range.least);
  }
  if (range.has_most()) rule += " and at most " + number_text(range.most);
  return rule;
}

Expected<WrittenField> written_field(std::string_view where, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    return fail(where, "fields are written name=value", text, "write factor=8");
  WrittenField field{.name = text.substr(0, equals), .value = {}};
  text.remove_prefix(equals + 1);
  const char *const begin = text.data(), *const end = begin + text.size();
  std::int64_t whole = 0;
  double number = 0;
  if (text == "true" || text == "false")
    field.value = text == "true";
  else if (std::from_chars(begin, end, whole).ptr == end)
    field.value = whole;
  else if (std::from_chars(begin, end, number).ptr == end)
    field.value = number;
  else
    field.value = std::string(text);
  return field;
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
  static const std::vector<SchemeInfo> list = describe_all<Scheme>();
  return list;
}

std::span<const SchemeInfo> all_scalings() {
  static const std::vector<SchemeInfo> list = describe_all<Scaling>();
  return list;
}

std::span<const SchemeInfo> all_content_schemes() {
  static const std::vector<SchemeInfo> list = describe_all<ContentScheme>();
  return list;
}

const SchemeInfo& info(const Scheme& scheme) { return all_schemes()[scheme.index()]; }
const SchemeInfo& info(const Scaling& scaling) { return all_scalings()[scaling.index()]; }
const SchemeInfo& info(const ContentScheme& scheme) {
  return all_content_schemes()[scheme.index()];
}

Expected<Scheme> make_scheme(std::string_view name) { return make<Scheme>("scheme", name); }
Expected<Scaling> make_scaling(std::string_view name) { return make<Scaling>("rope_type", name); }
Expected<ContentScheme> make_content_scheme(std::string_view name) {
  return make<ContentScheme>("scheme", name);
}

Expected<void> set_field(Scaling& scaling, std::string_view name, const FieldValue& value) {
  return set_named(scaling, name, value);
}

Expected<void> set_field(ContentScheme& scheme, std::string_view name, const FieldValue& value) {
  return set_named(scheme, name, value);
}

Expected<void> set_table(ContentScheme& scheme, std::string_view name, Table table) {
  return set_table_named(scheme, name, std::move(table));
}

const Table* table_of(const ContentScheme& scheme, std::string_view name) {
  return table_named(scheme, name);
}

Expected<void> set_table(Scheme& scheme, std::string_view name, Table table) {
  return set_table_named(scheme, name, std::move(table));
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
    found = set_if_named(rope->scaling, name, value);
    if (!found) return std::unexpected(found.error());
  }
  if (!*found) found = set_if_named(scheme, name, value);
  if (!found) return std::unexpected(found.error());
  if (*found) return {};
  if (rope) return no_such_field("rope", name, {&info(scheme), &info(rope->scaling)});
  return no_such_field(info(scheme).name, name, {&info(scheme)});
}

std::vector<FieldSetting> settings(const Scheme& scheme) {
  return settings_of(about(scheme), struct_in(scheme));
}

std::vector<FieldSetting> settings(const Scaling& scaling) {
  return settings_of(about(scaling), struct_in(scaling));
}

std::vector<FieldSetting> settings(const ContentScheme& scheme) {
  return settings_of(about(scheme), struct_in(scheme));
}

std::optional<double> number_of(const Scaling& scaling, std::string_view field) {
  for (const FieldSetting& setting : settings(scaling)) {
    if (setting.name != field) continue;
    if (const auto* x = std::get_if<double>(&setting.value)) return *x;
    if (const auto* i = std::get_if<std::int64_t>(&setting.value)) return static_cast<double>(*i);
  }
  return std::nullopt;
}

Expected<void> detail::check_fields(const Scheme& scheme) {
  auto ok = posenc::check_fields(about(scheme), struct_in(scheme));
  const Rope* rope = std::get_if<Rope>(&scheme);
  if (!ok || !rope) return ok;
  return posenc::check_fields(about(rope->scaling), struct_in(rope->scaling));
}

}  // namespace posenc
