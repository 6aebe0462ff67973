#include "src/text/json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace posenc::detail {
namespace {

std::string excerpt(std::string_view word) { return printable(word, 60); }

// Of the byte at `index`, both from 1; columns count bytes.
std::string line_and_column(std::string_view text, std::size_t index) {
  const std::string_view before = text.substr(0, std::min(index, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t start = before.rfind('\n');  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - (start + 1) + 1);
}

// Receives the parser's events and builds the value; a broken limit stops the parser.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `added`: where what the parser reads has a byte that `text`, the file's, has not.
  Builder(std::string_view text, std::string_view name, std::span<const std::size_t> added)
      : text_(text), name_(name), added_(added) {}

  Json root;
  std::optional<Error> error;

  bool null() override { return add(std::monostate{}); }
  bool boolean(bool b) override { return add(b); }
  bool number_integer(number_integer_t i) override { return add(std::int64_t{i}); }
  bool number_unsigned(number_unsigned_t u) override {
    if (u > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return add(static_cast<double>(u));
    }
    return add(static_cast<std::int64_t>(u));
  }
  bool number_float(number_float_t x, const string_t&) override { return add(x); }
  bool string(string_t& s) override { return add(std::move(s)); }
  bool binary(binary_t&) override { return refuse("must be JSON text"); }

  bool start_object(std::size_t) override { return open(Json::Object{}); }
  bool start_array(std::size_t) override { return open(Json::Array{}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& k) override {
    Frame& frame = open_.back();
    frame.key = std::move(k);
    if (!frame.keys.insert(frame.key).second) {
      return refuse("each key must stand once in its object", "'" + excerpt(path()) + "' twice",
                    "remove one of them");
    }
    return true;
  }

  // `read` bytes were read before it was clear, of which `last` ends with the last.
  bool parse_error(std::size_t read, const std::string& last,
                   const nlohmann::json::exception& what) override {
    const bool overflow = what.id == 406;  // the one error of a lexically correct number
    // A whole word in a wrong place is shown from its first byte on, what is no word by the byte
    // that breaks it.
    const std::string_view why = what.what();
    const bool is_word = overflow || why.contains("unexpected string literal") ||
                         why.contains("unexpected number literal");
    read -= static_cast<std::size_t>(
        std::ranges::count_if(added_, [read](std::size_t index) { return index < read; }));
    const std::string at = line_and_column(text_, read - (is_word ? last.size() : 1));
    const bool ended = read > text_.size();
    std::string cure = ended ? "the file seems cut off" : "";
    if (overflow) cure = "no number of a configuration is that large";
    if (!last.empty() && (last.back() == 'N' || last.back() == 'I')) {
      cure = "NaN and Infinity are not JSON; write null or a number";
    }
    return refuse(overflow ? "a number must fit a double" : "must be JSON",
                  (last.empty() ? "the end" : "'" + excerpt(last) + "'") + " at " + at, cure);
  }

 private:
  struct Frame {
    Json* value;                 // stays where it is: its parent does not grow while it is open
    std::string key;             // of the member being read
    std::set<std::string> keys;  // seen so far
  };

  template <class T>
  Json* place(T&& value) {
    if (open_.empty()) {
      root.value = std::forward<T>(value);
      return &root;
    }
    if (auto* object = std::get_if<Json::Object>(&open_.back().value->value)) {
      object->push_back({open_.back().key, Json{std::forward<T>(value)}});
      return &object->back().value;
    }
    auto& array = *std::get_if<Json::Array>(&open_.back().value->value);
    array.push_back(Json{std::forward<T>(value)});
    return &array.back();
  }

  template <class T>
  bool add(T&& value) {
    if (++count_ > most_json_values)
      return refuse("must hold at most a million values", "more", "is it a model's file?");
    place(std::forward<T>(value));
    return true;
  }

  template <class T>
  bool open(T&& container) {
    if (open_.size() >= deepest_json)
      return refuse("must not nest deeper than 64 levels", "more", "is it a model's file?");
    if (++count_ > most_json_values)
      return refuse("must hold at most a million values", "more", "is it a model's file?");
    open_.push_back({place(std::forward<T>(container)), {}, {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string path() const {
    std::string path;
    for (const Frame& frame : open_) {
      if (frame.key.empty()) continue;
      if (!path.empty()) path += '.';
      path += frame.key;
    }
    return path;
  }

  bool refuse(std::string_view rule, std::string_view got = {}, std::string_view cure = {}) {
    if (!error) error = fail(name_, rule, got, cure).error();
    return false;
  }

  std::string_view text_, name_;
  std::span<const std::size_t> added_;
  std::vector<Frame> open_;
  std::size_t count_ = 0;
};

// Python writes NaN and Infinity bare (Mamba's time_step_limit). They become words, so that a file
// is read and only a key that needs a number refuses them.
std::string quote_constants(std::string_view text, std::vector<std::size_t>& added) {
  std::string quoted;
  quoted.reserve(text.size());
  bool inside = false;  // a string
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') inside = !inside;
    if (inside && text[i] == '\\' && i + 1 < text.size()) quoted += text[i++];
    constexpr std::string_view constants[] = {"-Infinity", "Infinity", "NaN"};
    const auto* constant = std::ranges::find_if(
        constants, [&](std::string_view word) { return text.substr(i).starts_with(word); });
    if (inside || constant == std::end(constants)) {
      quoted += text[i];
      continue;
    }
    added.push_back(quoted.size());
    added.push_back(quoted.size() + constant->size() + 1);
    quoted += '"' + std::string(*constant) + '"';
    i += constant->size() - 1;
  }
  return quoted;
}

}  // namespace

const Json* Json::find(std::string_view key) const {
  const auto* object = get<Object>();
  if (!object) return nullptr;
  // Few keys have another's length and end, which takes no call to see.
  const auto is_it = [key](const JsonMember& member) {
    const std::string_view other = member.key;
    return other.size() == key.size() && (key.empty() || other.back() == key.back()) &&
           other == key;
  };
  const auto member = std::ranges::find_if(*object, is_it);
  return member == object->end() ? nullptr : &member->value;
}

std::string_view Json::kind() const {
  constexpr std::string_view kinds[] = {"null",   "true or false", "a whole number", "a number",
                                        "a word", "a list",        "an object"};
  return kinds[value.index()];
}

std::string Json::text() const {
  if (const bool* b = get<bool>()) return *b ? "true" : "false";
  if (const auto* i = get<std::int64_t>()) return std::to_string(*i);
  if (const double* x = get<double>()) return number_text(*x);
  if (const auto* s = get<std::string>()) return '"' + excerpt(*s) + '"';
  if (const auto* a = get<Array>()) {
    std::string list = "[";
    for (std::size_t i = 0; i < a->size() && i < 4; ++i) {
      const auto* inner = (*a)[i].get<Array>();  // not shown: four of four of four have no end
      list += i ? ", " : "";
      list += inner ? "[" + std::to_string(inner->size()) + " values]" : (*a)[i].text();
    }
    if (a->size() > 4) list += ", ... " + std::to_string(a->size()) + " values";
    return list + "]";
  }
  if (const auto* o = get<Object>()) return "an object of " + std::to_string(o->size()) + " keys";
  return "null";
}

Expected<Json> parse_json(std::string_view text, std::string_view name, Constants constants) {
  if (text.size() > largest_json) {
    return fail(name, "must be at most 16 MiB", std::to_string(text.size()) + " bytes",
                "give the model's config.json, not its weights");
  }
  std::string quoted;
  std::vector<std::size_t> added;
  if (constants == Constants::words && (text.contains("NaN") || text.contains("Infinity")))
    quoted = quote_constants(text, added);
  const std::string_view readable = added.empty() ? text : quoted;
  Builder builder(text, name, added);
  const bool whole = nlohmann::json::sax_parse(readable.begin(), readable.end(), &builder);
  if (builder.error) return std::unexpected(*builder.error);
  if (!whole) return fail(name, "must be JSON");
  return std::move(builder.root);
}

}  // namespace posenc::detail
