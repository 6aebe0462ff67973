#include "src/tools/printed_settings.h"
#include "src/core/small_letters.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace posenc::detail {
namespace {

constexpr std::size_t largest = std::size_t{1} << 16;
constexpr int deepest = 32, most_openings = 64;

bool is_of_name(char c) { return is_letter(c) || c == '_'; }

// Reads a value that stands somewhere in a text, and writes it as JSON.
class Printed {
 public:
  Printed(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  // {…}, Name(…) or Name {…}: an object, or nothing.
  std::optional<std::string> object() {
    std::string out;
    if (!value(out, 0) || !out.starts_with('{')) return std::nullopt;
    return out;
  }

 private:
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  // Python's comments too.
  void blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n#").contains(text_[at_]))
      at_ = text_[at_] == '#' ? std::min(text_.find('\n', at_), text_.size()) : at_ + 1;
  }
  std::string word() {
    const std::size_t start = at_;
    while (is_of_name(now()) || is_digit(now()) || now() == '.' || (now() == ':' && is_path()))
      ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  // "::" of a path, as in pipeline::Config.
  bool is_path() {
    const bool path = text_.substr(at_).starts_with("::");
    if (path) ++at_;
    return path;
  }

  bool value(std::string& out, int depth) {
    blanks();
    if (depth > deepest) return false;
    const char c = now();
    if (c == '{') return ++at_, members(out, '}', depth);
    if (c == '[' || c == '(') return ++at_, list(out, c == '[' ? ']' : ')', depth);
    if (c == '"' || c == '\'') return quoted(out);
    if (is_digit(c) || c == '-') return number(out);
    if (!is_of_name(c)) return false;
    return named(out, depth);
  }

  bool named(std::string& out, int depth) {
    const std::string name = word();
    blanks();
    if (now() == '(') {
      ++at_;
      blanks();
      if (has_key()) return members(out, ')', depth);
      // Some(…), Num(…), String(…): what is within.
      if (!value(out, depth + 1)) return false;
      blanks();
      return now() == ')' && ++at_;
    }
    if (now() == '{') return ++at_, members(out, '}', depth);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> words{
        {{"None", "null"},
         {"null", "null"},
         {"True", "true"},
         {"true", "true"},
         {"False", "false"},
         {"false", "false"}}};
    const auto known = std::ranges::find(words, name, &decltype(words)::value_type::first);
    out += known != words.end() ? std::string(known->second) : "\"" + name + "\"";
    return true;
  }

  // Whether "key=" stands here.
  bool has_key() const {
    std::size_t at = at_;
    while (at < text_.size() && (is_of_name(text_[at]) || is_digit(text_[at]))) ++at;
    return at > at_ && at < text_.size() && text_[at] == '=';
  }

  bool members(std::string& out, char end, int depth) {
    out += '{';
    std::set<std::string> keys;
    for (blanks(); now() != end; blanks()) {
      std::string key;
      if (now() == '"' || now() == '\'') {
        if (!quoted(key)) return false;
      } else if (is_of_name(now())) {
        const std::size_t start = at_;
        while (is_of_name(now()) || is_digit(now())) ++at_;
        key = "\"" + std::string(text_.substr(start, at_ - start)) + "\"";
      } else {
        return false;
      }
      blanks();
      if (now() != ':' && now() != '=') return false;
      ++at_;
      std::string mine;
      if (!value(mine, depth + 1)) return false;
      if (keys.insert(key).second) out += (keys.size() == 1 ? "" : ",") + key + ":" + mine;
      blanks();
      if (now() == ',') ++at_;
    }
    ++at_;
    out += '}';
    return true;
  }

  bool list(std::string& out, char end, int depth) {
    out += '[';
    bool first = true;
    for (blanks(); now() != end; blanks()) {
      if (!first) out += ',';
      first = false;
      if (!value(out, depth + 1)) return false;
      blanks();
      if (now() == ',') ++at_;
    }
    ++at_;
    out += ']';
    return true;
  }

  bool quoted(std::string& out) {
    const char quote = text_[at_++];
    out += '"';
    while (at_ < text_.size() && now() != quote) {
      if (now() == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] != '\'') out += '\\';
        ++at_;
      } else if (now() == '"') {
        out += '\\';
      }
      if (now() == '\n') return false;
      out += text_[at_++];
    }
    out += '"';
    return now() == quote && ++at_;
  }

  bool number(std::string& out) {
    const std::size_t start = at_;
    while (is_digit(now()) || std::string_view("+-.eE_").contains(now())) {
      if (now() != '_') out += now();
      if (++at_ >= text_.size()) break;
    }
    if (out.ends_with('.')) out += '0';  // 10000. of Python's repr of an array
    return at_ > start;
  }

  std::string_view text_;
  std::size_t at_;
};

// Other programs' words for keys of a config.json.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> other_names{
    {{"\"max_seq_len\":", "\"max_position_embeddings\":"},
     {"\"num_layers\":", "\"num_hidden_layers\":"}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> names_of_mlx{
    {{"\"dim\":", "\"hidden_size\":"},
     {"\"n_layers\":", "\"num_hidden_layers\":"},
     {"\"n_heads\":", "\"num_attention_heads\":"},
     {"\"n_kv_heads\":", "\"num_key_value_heads\":"}}};

// Where the name begins whose last letter stands before `end`.
std::size_t name_before(std::string_view text, std::size_t end) {
  while (end > 0 && (is_of_name(text[end - 1]) || is_digit(text[end - 1]))) --end;
  return end;
}

// LlamaConfig(…): the class tells the family, where the settings do not.
void name_class(std::string_view text, std::size_t start, std::string& json) {
  constexpr std::string_view ending = "Config";
  const std::size_t end = text.find_first_of(" ({", start);
  std::string_view name = text.substr(start, end - start);
  if (!name.ends_with(ending) || name.size() == ending.size() || json == "{}" ||
      json.contains("\"model_type\":") || json.contains("\"architectures\":"))
    return;
  name.remove_suffix(ending.size());
  json.insert(1, "\"architectures\":[\"" + std::string(name) + "ForCausalLM\"],");
}

// LlamaConfig(hidden_size=64, …), as a script makes one.
std::optional<std::string> constructed_settings(std::string_view text) {
  constexpr std::string_view opening = "Config(";
  int openings = 0;
  for (std::size_t at = text.find(opening); at != text.npos && openings < most_openings;
       at = text.find(opening, at + 1), ++openings) {
    const std::size_t start = name_before(text, at);
    auto json = Printed(text, start).object();
    if (!json || !json->contains("\"hidden_size\":") || !json->contains("\"num_attention_heads\":"))
      continue;
    name_class(text, start, *json);
    return json;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> printed_settings(std::string_view text) {
  if (text.size() > largest) return std::nullopt;
  const std::size_t key =
      std::min({text.find("rope_theta"), text.find("rope_scaling"), text.find("rope_parameters")});
  if (key == text.npos) return constructed_settings(text);
  // The widest of the braces and parentheses that the key stands in.
  std::optional<std::string> widest;
  int openings = 0;
  for (std::size_t at = key; at-- > 0 && openings < most_openings;) {
    if (text[at] != '{' && text[at] != '(') continue;
    ++openings;
    std::size_t start = at;  // of the name before it
    while (start > 0 && text[start - 1] == ' ') --start;
    start = name_before(text, start);
    auto json = Printed(text, start).object();
    if (!json) continue;
    const auto has = [&](std::string_view name) {
      return json->contains("\"" + std::string(name) + "\":");
    };
    if (!has("rope_theta") && !has("rope_scaling") && !has("rope_parameters")) continue;
    if (!has("hidden_size") && !has("dim") && !has("text_config") && !has("n_embd")) continue;
    for (const auto& [other, name] : other_names)
      if (const std::size_t place = json->find(other);
          place != json->npos && !json->contains(name) && !has("n_heads"))
        json->replace(place, other.size(), name);
    // MLX's ModelArgs, which rotates in halves where rope_traditional is false.
    if (has("rope_traditional") && has("dim")) {
      for (const auto& [theirs, ours] : names_of_mlx)
        if (const std::size_t place = json->find(theirs); place != json->npos)
          json->replace(place, theirs.size(), ours);
      json->insert(1, "\"model_type\":\"llama\",");
    }
    if (has("hidden_size")) name_class(text, start, *json);
    widest = std::move(json);
  }
  return widest;
}

}  // namespace posenc::detail
