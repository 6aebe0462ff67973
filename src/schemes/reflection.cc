// The type lists as data: names, fields, defaults; a scheme or scaling made and changed by name.
// All of it follows from the structs' own fields(), so a new one appears everywhere by being in its
// list.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "posenc/content.h"
#include "posenc/schemes.h"
#include "src/core/try.h"
#include "src/core/words.h"
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
constexpr std::array<std::string_view, 2> words<AxisOrder>{"height_width", "width_height"};
template <>
constexpr std::array<std::string_view, 3> words<AxisFrequencies>{"shared", "alternating",
                                                                 "in_turns"};
template <class... S>
constexpr std::array<std::string_view, sizeof...(S)> words<std::variant<S...>>{S::name...};

// --- a field as data: one loop reads, checks and writes the fields of every struct ---------------

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

struct Row;

// A value that is one of several words: an enum, or a variant of structs that have rows of their
// own.
struct Choice {
  std::span<const std::string_view> words;
  std::size_t (*chosen)(const void* member);
  void (*choose)(void* member, std::size_t word);
  std::span<const Row> (*rows)(std::size_t word) = nullptr;
  void* (*object)(void* member,
                  std::size_t word) = nullptr;  // its defaults where another is chosen
};

struct Row {
  std::string_view name, doc, unit, aliases;
  Range range;
  FieldKind kind;
  bool optional, required;
  const Holds* holds;             // null: nothing is said
  void* (*member)(void* object);  // where an object of the struct keeps it
  Choice choice;                  // of FieldKind::choice
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

template <class E>
constexpr Choice choice_of(std::type_identity<E>) {
  return {.words = words<E>,
          .chosen =
              [](const void* member) {
                return static_cast<std::size_t>(*static_cast<const E*>(member));
              },
          .choose = [](void* member,
                       std::size_t word) { *static_cast<E*>(member) = static_cast<E>(word); }};
}
template <class... S>
constexpr Choice choice_of(std::type_identity<std::variant<S...>>);

template <class S, std::size_t I>
constexpr Holds holds = std::get<I>(S::fields()).holds;

template <class S, std::size_t I>
constexpr Row row() {
  constexpr auto field = std::get<I>(S::fields());
  using T = std::remove_cvref_t<decltype(std::declval<S>().*field.member)>;
  Choice choice{};
  if constexpr (kind_of<T>() == FieldKind::choice) choice = choice_of(std::type_identity<T>{});
  return {field.name,
          field.doc,
          field.unit,
          field.aliases,
          field.range,
          kind_of<T>(),
          is_optional<T>,
          field.required,
          field.holds == Holds{} ? nullptr : &holds<S, I>,
          [](void* object) -> void* {
            constexpr auto member = std::get<I>(S::fields()).member;
            return &(static_cast<S*>(object)->*member);
          },
          choice};
}

template <class S, std::size_t... I>
constexpr std::array<Row, sizeof...(I)> rows_of(std::index_sequence<I...>) {
  return {row<S, I>()...};
}

template <class S>
constexpr auto rows =
    rows_of<S>(std::make_index_sequence<std::tuple_size_v<decltype(S::fields())>>{});

// The struct that a variant holds.
template <class... S>
void* struct_in(std::variant<S...>& object) {
  return std::visit([](auto& s) -> void* { return &s; }, object);
}
template <class... S>
void* struct_in(const std::variant<S...>& object) {  // to read
  return struct_in(const_cast<std::variant<S...>&>(object));
}

template <class... S>
std::array<std::variant<S...>, sizeof...(S)> defaults_of(const std::variant<S...>&) {
  return {S{}...};
}

template <class... S>
constexpr Choice choice_of(std::type_identity<std::variant<S...>>) {
  using Variant = std::variant<S...>;
  return {
      .words = words<Variant>,
      .chosen = [](const void* member) { return static_cast<const Variant*>(member)->index(); },
      .choose =
          [](void* member, std::size_t word) {
            auto& variant = *static_cast<Variant*>(member);
            if (variant.index() != word) variant = defaults_of(variant)[word];
          },
      .rows = [](std::size_t word) { return std::array{std::span<const Row>(rows<S>)...}[word]; },
      .object =
          [](void* member, std::size_t word) {
            static auto defaults = defaults_of(Variant{});
            auto& variant = *static_cast<Variant*>(member);
            return struct_in(variant.index() == word ? variant : defaults[word]);
          }};
}

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

template <class T>
FieldValue loaded(const void* member, bool optional) {
  if (!optional) return *static_cast<const T*>(member);
  const auto& value = *static_cast<const std::optional<T>*>(member);
  return value ? FieldValue(*value) : FieldValue();
}

FieldValue load(const Row& row, const void* member) {
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
  return std::string(row.choice.words[row.choice.chosen(member)]);
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
void store(const Row& row, void* member, const FieldValue& value) {
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
      const auto found = std::ranges::find(row.choice.words, std::get<std::string>(value));
      row.choice.choose(member, static_cast<std::size_t>(found - row.choice.words.begin()));
      break;
    }
  }
}

constexpr double exact_integers = 9007199254740992.0;  // 2^53

Expected<FieldValue> number(std::string_view where, const Row& row, double x) {
  const bool whole = row.kind == FieldKind::integer || row.kind == FieldKind::integers;
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
      if (!word) return fail(where, "must be a word", "", suggestion("", row.choice.words));
      if (std::ranges::find(row.choice.words, *word) == row.choice.words.end())
        return fail(where, "unknown word", *word, suggestion(*word, row.choice.words));
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
    const bool is_whole = std::abs(list[i]) <= exact_integers && list[i] == std::floor(list[i]);
    if (row.range.contains(list[i]) && (row.kind == FieldKind::numbers || is_whole)) continue;
    const std::string entry = std::string(where) + "[" + std::to_string(i) + "]";
    if (const auto x = number(entry, row, list[i]); !x) return x;
  }
  return FieldValue(std::move(list));
}

// --- one struct ----------------------------------------------------------------------------------

bool named(std::string_view spelled, const std::vector<std::string_view>& aliases,
           std::string_view name) {
  return spelled == name || std::ranges::find(aliases, name) != aliases.end();
}

std::string where(std::string_view scheme, std::string_view field) {
  return std::string(scheme) + ": " + std::string(field);
}

// A field of an object, or of a struct that one of its choices may hold.
struct Spot {
  const Row* row;
  void* member;
  bool chosen = true;
  std::string_view choice = {}, word = {};
};

std::vector<Spot> spots(const About& about, void* object) {
  std::vector<Spot> all;
  all.reserve(about.rows.size());
  for (const Row& row : about.rows) {
    void* const member = row.member(object);
    all.push_back({&row, member});
    const auto& [words, chosen, choose, rows, struct_of] = row.choice;
    if (!rows) continue;
    for (std::size_t word = 0; word < words.size(); ++word)
      for (const Row& inner : rows(word))
        all.push_back({&inner, inner.member(struct_of(member, word)), chosen(member) == word,
                       row.name, words[word]});
  }
  return all;
}

// The field by that name is set; false if there is none. One of a struct that is not chosen may be
// given its default.
Expected<bool> set_if_named(const About& about, const SchemeInfo& info, void* object,
                            std::string_view name, const FieldValue& value) {
  const FieldInfo* const field = find_field(info, name);
  if (!field) return false;
  std::string others;
  for (const auto& [row, member, chosen, choice, word] : spots(about, object)) {
    if (row->name != field->name) continue;
    FieldValue next = field->default_value;  // what null stands for, as Hugging Face reads it
    if (row->optional || !std::holds_alternative<std::monostate>(value)) {
      POSENC_TRY(converted, checked(where(about.name, row->name), *row, value));
      next = std::move(converted);
    }
    if (chosen) {
      store(*row, member, next);
      return true;
    }
    if (next != field->default_value)
      others += (others.empty() ? std::string(choice) + " " : " or ") + std::string(word);
  }
  if (!others.empty())
    return fail(where(about.name, field->name), "belongs to " + others, "",
                "choose that, or drop the field");
  return true;
}
template <class Variant>
Expected<bool> set_if_named(Variant& object, std::string_view name, const FieldValue& value) {
  return set_if_named(about(object), info(object), struct_in(object), name, value);
}

Expected<void> check_fields(const About& about, void* object) {
  for (const auto& [row, member, chosen, choice, word] : spots(about, object))
    if (chosen)
      if (FieldValue value = load(*row, member); !checked(row->name, *row, value))
        return std::unexpected(checked(where(about.name, row->name), *row, value).error());
  return {};
}

// Structs of one choice may have fields of one name; the chosen one's counts.
std::vector<FieldSetting> settings_of(const About& about, void* object) {
  std::vector<FieldSetting> result;
  for (const auto& [row, member, chosen, choice, word] : spots(about, object)) {
    const auto known = std::ranges::find(result, row->name, &FieldSetting::name);
    if (known == result.end())
      result.push_back({row->name, load(*row, member)});
    else if (chosen)
      known->value = load(*row, member);
  }
  return result;
}

SchemeInfo describe(const About& about, void* defaults) {
  SchemeInfo info{
      about.name, detail::split(about.aliases).list(), about.title, about.formula, about.paper, {}};
  for (const auto& [row, member, chosen, choice, word] : spots(about, defaults)) {
    const std::string doc = (word.empty() ? "" : std::string(word) + ": ") + std::string(row->doc);
    const auto known = std::ranges::find(info.fields, row->name, &FieldInfo::name);
    if (known != info.fields.end() && known->doc.ends_with(row->doc))
      known->doc.insert(known->doc.size() - row->doc.size() - 2, ", " + std::string(word));
    else if (known != info.fields.end())
      known->doc += "; " + doc;
    else
      info.fields.push_back({row->name,
                             row->kind,
                             doc,
                             row->range,
                             row->unit,
                             detail::split(row->aliases).list(),
                             {row->choice.words.begin(), row->choice.words.end()},
                             row->required,
                             row->optional,
                             load(*row, member),
                             row->holds ? *row->holds : Holds{}});
  }
  for (const TableRow& table : about.tables) info.tables.push_back(table.info);
  info.reads = about.reads;
  return info;
}

// --- the lists -----------------------------------------------------------------------------------

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
    if (about(defaults).name == name || detail::contains_word(about(defaults).aliases, name))
      return std::move(defaults);
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

Expected<std::vector<FieldSetting>> written_fields(std::string_view where,
                                                   std::span<const std::string_view> words) {
  std::vector<FieldSetting> fields;
  for (std::string_view text : words) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos)
      return fail(where, "fields are written name=value", text, "write factor=8");
    FieldSetting field{.name = text.substr(0, equals), .value = {}};
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
    fields.push_back(std::move(field));
  }
  return fields;
}

const FieldInfo* find_field(const SchemeInfo& of, std::string_view spelling) {
  for (const FieldInfo& field : of.fields)
    if (named(field.name, field.aliases, spelling)) return &field;
  return nullptr;
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
