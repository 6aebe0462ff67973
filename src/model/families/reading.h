// What reading a model's file carries along: the first error, the warnings, and typed access to
// objects of the file that knows the path of every key. After an error every getter finds nothing,
// so a reader runs to its end without asking after each step.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/model.h"
#include "src/core/words.h"
#include "src/text/json.h"

namespace posenc::detail {

using ProvenanceList = std::vector<Provenance>;

struct Reading {
  std::string file;    // for messages: "config.json"
  std::string family;  // whose documented defaults apply: "llama"
  Model model;
  std::optional<Error> error;
  // Where the file is of another dialect: a path as Hugging Face spells it, and as the file does. A
  // path stands for all below it too.
  std::vector<std::pair<std::string, std::string>> spelled = {};
  // Keys of the file that anything has looked at, by name.
  std::set<std::string, std::less<>> asked = {};
  // transformers_version of the file, {major, minor}: rules that moved hold as they were when it
  // was saved. Without it they are the newest.
  std::pair<int, int> saved_by = {1000, 0};

  void read_version(std::string_view version);  // "4.57.1"
  bool saved_before(int major, int minor = 0) const { return saved_by < std::pair(major, minor); }
  void refuse(std::string_view path, std::string_view rule, std::string_view got = {},
              std::string_view cure = {});
  void warn(std::string_view code, std::string_view message);  // once for the same text
  std::string as_spelled(std::string path) const;
};

template <class T>
struct Found {
  T value;
  std::string key;  // path in the file: "text_config.head_dim"
};

// An object of the file. `names` are spellings of one key, separated by spaces; the first one that
// is present and not null counts, and another with a different value is a warning.
class Section {
 public:
  explicit Section(Reading& from, const Json* object = nullptr, std::string path = {})
      : reading(from), object_(object), path_(std::move(path)) {}

  Reading& reading;

  explicit operator bool() const { return object_ != nullptr; }
  const Json::Object& members() const;
  std::string path() const { return reading.as_spelled(path_); }
  std::string where(std::string_view key) const;
  // Those of the names that the section has, nulls aside.
  std::vector<std::string_view> names_present(std::string_view names) const;
  bool has(std::string_view names) const { return !names_present(names).empty(); }

  std::optional<Found<std::int64_t>> integer(std::string_view names,
                                             Range range = any_number) const;
  std::optional<Found<double>> number(std::string_view names, Range range = any_number) const;
  std::optional<Found<bool>> flag(std::string_view names) const;
  std::optional<Found<std::string>> word(std::string_view names) const;
  std::optional<Found<std::vector<std::int64_t>>> integers(std::string_view names,
                                                           Range range = any_number) const;
  std::optional<Found<std::vector<double>>> numbers(std::string_view names,
                                                    Range range = any_number) const;
  std::optional<Found<std::vector<std::string>>> words(std::string_view names) const;
  Section section(std::string_view names) const;  // false if there is none
  const Json* raw(std::string_view key) const {
    const Json* value = object_ ? object_->find(key) : nullptr;
    if (value && !reading.asked.contains(key)) reading.asked.emplace(key);
    return value;
  }

  // The value with its provenance noted: the file's, else the family's default (0: refused as
  // missing).
  std::int64_t size(ProvenanceList& notes, std::string_view field, std::string_view names,
                    std::int64_t family_default, std::int64_t most) const;

  // A choice of the family with its provenance noted: the file's, else the family's.
  bool flag_or(ProvenanceList& notes, std::string_view field, std::string_view names,
               bool family_default) const;

 private:
  std::string inside(std::string_view key) const;
  std::optional<std::string_view> pick(std::string_view names) const;
  void wrong_kind(std::string_view key, std::string_view wanted) const;
  template <class T, class Convert>
  std::optional<Found<T>> read(std::string_view names, Convert convert) const;

  const Json* object_;
  std::string path_;
};

void note(ProvenanceList& notes, std::string_view field, std::string_view value, Origin origin,
          std::string_view detail);

constexpr std::int64_t most_layers = 10'000;
constexpr std::int64_t most_heads = 65'536;
constexpr std::int64_t most_head_dim = 65'536;
constexpr std::int64_t most_width = std::int64_t{1} << 24;
constexpr std::int64_t most_length = std::int64_t{1} << 40;

}  // namespace posenc::detail
