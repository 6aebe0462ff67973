// Typed access to a parsed file. Each getter checks the kind and the range of what it finds, and
// refuses the file with the path of the key; two spellings of one value that disagree are a
// warning.
#include "src/model/families/reading.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

namespace posenc::detail {
namespace {

std::optional<std::int64_t> whole(const Json& json) {
  if (const auto* i = json.get<std::int64_t>()) return *i;
  const double* x = json.get<double>();
  constexpr double exact = 9007199254740992.0;  // 2^53: 4096.0 is a whole number, 1e300 is not ours
  if (x && std::abs(*x) <= exact && *x == std::floor(*x)) return static_cast<std::int64_t>(*x);
  return std::nullopt;
}

std::optional<double> real(const Json& json) {
  if (const double* x = json.get<double>()) return *x;
  if (const auto* i = json.get<std::int64_t>()) return static_cast<double>(*i);
  return std::nullopt;
}

constexpr std::string_view rule_of_words =
    "must be a short word, at most 200 bytes without control characters";
bool is_word(std::string_view text) { return text == printable(text, 200); }

}  // namespace

void note(ProvenanceList& notes, std::string_view field, std::string_view value, Origin origin,
          std::string_view detail) {
  notes.push_back({std::string(field), printable(value), origin, printable(detail)});
}

void Reading::read_version(std::string_view version) {
  std::pair<int, int> read;
  const char *const begin = version.data(), *const end = begin + version.size();
  const auto major = std::from_chars(begin, end, read.first);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return;
  const auto minor = std::from_chars(major.ptr + 1, end, read.second);
  if (minor.ec == std::errc() && read.first >= 0 && read.second >= 0) saved_by = read;
}

void Reading::refuse(std::string_view path, std::string_view rule, std::string_view got,
                     std::string_view cure) {
  if (error) return;
  std::string where = file;
  if (!path.empty()) where += ": " + std::string(path);
  error = fail(where, rule, got, cure).error();
}

void Reading::warn(std::string_view code, std::string_view message) {
  const Warning warning{std::string(code), printable(message, 1000)};
  if (std::ranges::find(model.warnings, warning) == model.warnings.end())
    model.warnings.push_back(warning);
}

std::string Reading::as_spelled(std::string path) const {
  std::string_view longest, other;
  for (const auto& [read, said] : spelled) {
    const bool below =
        path.starts_with(read) && (path.size() == read.size() || path[read.size()] == '.');
    if (!below || read.size() <= longest.size()) continue;
    longest = read;
    other = said;
  }
  return longest.empty() ? path : std::string(other) + path.substr(longest.size());
}

const Json::Object& Section::members() const {
  static const Json::Object none;
  const auto* object = object_ ? object_->get<Json::Object>() : nullptr;
  return object ? *object : none;
}

std::string Section::inside(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

std::string Section::where(std::string_view key) const { return reading.as_spelled(inside(key)); }

std::vector<std::string_view> Section::names_present(std::string_view names) const {
  std::vector<std::string_view> present;
  for (const std::string_view key : split(names)) {
    const Json* value = raw(key);
    if (value && !value->is_null()) present.push_back(key);
  }
  return present;
}

std::optional<std::string_view> Section::pick(std::string_view names) const {
  if (reading.error) return std::nullopt;
  const auto present = names_present(names);
  if (present.empty()) return std::nullopt;
  for (const std::string_view other : std::span(present).subspan(1)) {
    const std::string first = raw(present.front())->text(), second = raw(other)->text();
    if (first == second) continue;
    reading.warn("spellings_disagree", where(present.front()) + " is " + first + " and " +
                                           where(other) + " is " + second +
                                           ": two spellings of one value; the first is used");
  }
  return present.front();
}

void Section::wrong_kind(std::string_view key, std::string_view wanted) const {
  const Json& value = *raw(key);
  reading.refuse(where(key), "must be " + std::string(wanted),
                 std::string(value.kind()) + " (" + value.text() + ")", "correct the file");
}

template <class T, class Convert>
std::optional<Found<T>> Section::read(std::string_view names, Convert convert) const {
  const auto key = pick(names);
  if (!key) return std::nullopt;
  std::optional<T> value = convert(*key, *raw(*key));
  if (!value) return std::nullopt;
  return Found<T>{std::move(*value), where(*key)};
}

std::optional<Found<std::int64_t>> Section::integer(std::string_view names, Range range) const {
  return read<std::int64_t>(names, [&](std::string_view key, const Json& json) {
    auto value = whole(json);
    if (!value) {
      wrong_kind(key, "a whole number");
    } else if (!range.contains(static_cast<double>(*value))) {
      reading.refuse(where(key), rule_of(range), std::to_string(*value), "correct the file");
      value.reset();
    }
    return value;
  });
}

std::optional<Found<double>> Section::number(std::string_view names, Range range) const {
  return read<double>(names, [&](std::string_view key, const Json& json) {
    auto value = real(json);
    if (!value) {
      wrong_kind(key, "a number");
    } else if (!range.contains(*value)) {
      reading.refuse(where(key), rule_of(range), number_text(*value), "correct the file");
      value.reset();
    }
    return value;
  });
}

std::optional<Found<bool>> Section::flag(std::string_view names) const {
  return read<bool>(names, [&](std::string_view key, const Json& json) -> std::optional<bool> {
    if (const bool* b = json.get<bool>()) return *b;
    wrong_kind(key, "true or false");
    return std::nullopt;
  });
}

std::optional<Found<std::string>> Section::word(std::string_view names) const {
  return read<std::string>(
      names, [&](std::string_view key, const Json& json) -> std::optional<std::string> {
        const auto* s = json.get<std::string>();
        if (s && is_word(*s)) return *s;
        if (s) reading.refuse(where(key), rule_of_words, *s, "correct the file");
        if (!s) wrong_kind(key, "a word");
        return std::nullopt;
      });
}

std::optional<Found<std::vector<std::int64_t>>> Section::integers(std::string_view names,
                                                                  Range range) const {
  using List = std::vector<std::int64_t>;
  return read<List>(names, [&](std::string_view key, const Json& json) -> std::optional<List> {
    const auto* array = json.get<Json::Array>();
    List list;
    for (const Json& item : array ? *array : Json::Array{}) {
      const bool* truth = item.get<bool>();  // flags for layers may be written as true and false
      const auto value = truth ? std::optional<std::int64_t>(*truth) : whole(item);
      if (!value || !range.contains(static_cast<double>(*value))) {
        const std::string entry = where(key) + "[" + std::to_string(list.size()) + "]";
        reading.refuse(entry, value ? rule_of(range) : "must be a whole number", item.text(),
                       "correct the file");
        return std::nullopt;
      }
      list.push_back(*value);
    }
    if (!array) wrong_kind(key, "a list of whole numbers");
    return array ? std::optional(std::move(list)) : std::nullopt;
  });
}

std::optional<Found<std::vector<double>>> Section::numbers(std::string_view names,
                                                           Range range) const {
  using List = std::vector<double>;
  return read<List>(names, [&](std::string_view key, const Json& json) -> std::optional<List> {
    const auto* array = json.get<Json::Array>();
    List list;
    for (const Json& item : array ? *array : Json::Array{}) {
      const auto value = real(item);
      if (!value || !range.contains(*value)) {
        reading.refuse(where(key) + "[" + std::to_string(list.size()) + "]",
                       value ? rule_of(range) : "must be a number", item.text(),
                       "correct the file");
        return std::nullopt;
      }
      list.push_back(*value);
    }
    if (!array) wrong_kind(key, "a list of numbers");
    return array ? std::optional(std::move(list)) : std::nullopt;
  });
}

std::optional<Found<std::vector<std::string>>> Section::words(std::string_view names) const {
  using List = std::vector<std::string>;
  return read<List>(names, [&](std::string_view key, const Json& json) -> std::optional<List> {
    const auto* array = json.get<Json::Array>();
    List list;
    for (const Json& item : array ? *array : Json::Array{}) {
      const auto* s = item.get<std::string>();
      if (!s || !is_word(*s)) {
        reading.refuse(where(key) + "[" + std::to_string(list.size()) + "]",
                       s ? rule_of_words : "must be a word", item.text(), "correct the file");
        return std::nullopt;
      }
      list.push_back(*s);
    }
    if (!array) wrong_kind(key, "a list of words");
    return array ? std::optional(std::move(list)) : std::nullopt;
  });
}

Section Section::section(std::string_view names) const {
  const auto key = pick(names);
  if (!key) return Section(reading);
  const Json* value = raw(*key);
  if (!value->get<Json::Object>()) {
    wrong_kind(*key, "an object");
    return Section(reading);
  }
  return Section(reading, value, inside(*key));
}

std::int64_t Section::size(ProvenanceList& notes, std::string_view field, std::string_view names,
                           std::int64_t family_default, std::int64_t most) const {
  if (reading.error) return 0;
  const Range range{.least = 1, .most = static_cast<double>(most)};
  if (const auto found = integer(names, range)) {
    note(notes, field, std::to_string(found->value), Origin::file, found->key);
    return found->value;
  }
  if (reading.error) return 0;
  if (family_default > 0) {
    note(notes, field, std::to_string(family_default), Origin::family,
         "default of " + reading.family);
    return family_default;
  }
  const std::string_view key = split(names).front();
  reading.refuse(where(key), "is missing", "",
                 "add it; the family has no default that one could mean");
  return 0;
}

bool Section::flag_or(ProvenanceList& notes, std::string_view field, std::string_view names,
                      bool family_default) const {
  const auto found = flag(names);
  const bool value = found ? found->value : family_default;
  note(notes, field, value ? "true" : "false", found ? Origin::file : Origin::family,
       found ? found->key : "default of " + reading.family);
  return value;
}

}  // namespace posenc::detail
