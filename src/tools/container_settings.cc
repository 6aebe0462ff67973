#include "src/tools/container_settings.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/tools/command_line.h"

namespace posenc::detail {
namespace {

constexpr std::size_t largest = std::size_t{1} << 18;

// A word of YAML as a word of a shell: a whole line (sh -c "vllm serve …") stays several.
std::string shell_word(std::string_view item) {
  const bool quoted =
      item.size() > 1 && (item[0] == '"' || item[0] == '\'') && item.back() == item[0];
  const char mark = quoted ? item[0] : '\0';
  if (quoted) item = item.substr(1, item.size() - 2);
  std::string word;
  for (std::size_t i = 0; i < item.size(); ++i) {
    const bool has_next = i + 1 < item.size(), escapes = mark == '"' && item[i] == '\\' && has_next,
               doubled = mark == '\'' && item[i] == '\'' && has_next && item[i + 1] == '\'';
    if (escapes || doubled) ++i;
    word += item[i];
  }
  if (word.contains(' ') && (word.contains(" -") || word.starts_with('-'))) return word;
  if (word.find_first_of(" \"{}") == word.npos || word.contains('\'')) return word;
  return "'" + word + "'";
}

// ["--model", "x", '{"a": 1}'], with quotes or without.
std::string words_of_list(std::string_view text) {
  std::string out, item;
  char quote = 0;
  int depth = 0;
  const auto finish = [&] {
    const std::string_view word = without(item, " \t");
    if (!word.empty()) out += " " + shell_word(word);
    item.clear();
  };
  for (const char c : text) {
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}') {
      --depth;
    } else if (depth == 0 && (c == ',' || c == '[' || c == ']')) {
      finish();
      continue;
    }
    item += c;
  }
  finish();
  return out;
}

struct Service {
  std::string variables, image, words;

  std::string line() const { return variables + " " + image + " " + words; }
};

class Containers {
 public:
  std::vector<Service> read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    close_list();
    return std::move(services_);
  }

 private:
  enum class Part { none, words, variables };

  Service& now() {
    if (services_.empty()) services_.emplace_back();
    return services_.back();
  }

  void line(std::string_view text) {
    const std::size_t indent = text.find_first_not_of(' ');
    if (indent == text.npos || text[indent] == '#') return;
    std::string_view rest = without(text, " \t\r");
    if (!list_.empty()) {  // of several lines
      list_ += " " + std::string(rest);
      if (rest.ends_with(']')) close_list();
      return;
    }
    const bool is_item = rest.starts_with("- ");
    // Items of a list may stand at the indentation of their key.
    const bool within = part_ != Part::none && (indent > indent_ || (is_item && indent == indent_));
    if (within) return inside(rest, is_item);
    part_ = Part::none;
    if (is_item) rest = without(rest.substr(2), " ");
    key(rest, is_item ? indent + 2 : indent);
  }

  void key(std::string_view text, std::size_t indent) {
    const std::size_t colon = text.find(':');
    if (colon == text.npos) return;
    const std::string_view name = without(text.substr(0, colon), " \"'"),
                           value = without(text.substr(colon + 1), " \t");
    if (name == "services" || name == "models") {
      parent_ = static_cast<std::int64_t>(indent);
      return;
    }
    // Its children are services, each with a part of its own.
    const auto at = static_cast<std::int64_t>(indent);
    if (value.empty() && parent_ >= 0 && at > parent_ && (child_ < 0 || at == child_)) {
      child_ = at;
      services_.emplace_back();
    }
    // Of a chart of Helm.
    if (name == "repository" || name == "tag") {
      now().image += (name == "tag" ? ":" : "") + std::string(without(value, "\"'"));
      return;
    }
    if (name == "maxModelLen" || name == "max_model_len") {
      now().words += " --max-model-len " + std::string(without(value, "\"'"));
      return;
    }
    if (name == "image") {
      if (!now().image.empty()) services_.emplace_back();
      now().image = without(value, "\"'");
      return;
    }
    constexpr std::array<std::string_view, 6> lines{"command", "args",      "entrypoint",
                                                    "cmd",     "extraArgs", "extra_args"};
    const bool of_words = std::ranges::find(lines, name) != lines.end();
    if (!of_words && name != "environment" && name != "env") return;
    part_ = of_words ? Part::words : Part::variables;
    indent_ = indent;
    const bool is_block = value.starts_with('>') || value.starts_with('|');
    if (value.starts_with('[')) {
      list_ = value;
      if (value.ends_with(']')) close_list();
    } else if (!value.empty() && !is_block) {
      now().words +=
          " " + std::string(quoted_whole(value) ? value.substr(1, value.size() - 2) : value);
    }
  }

  static bool quoted_whole(std::string_view text) {
    return text.size() > 1 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0] &&
           !text.substr(1, text.size() - 2).contains(text[0]);
  }

  void inside(std::string_view text, bool is_item) {
    if (part_ == Part::variables) return variable(is_item ? without(text.substr(2), " ") : text);
    if (is_item) {
      text = without(text.substr(2), " ");
      if (text.starts_with('|') || text.starts_with('>')) return;
      now().words += " " + shell_word(text);
      return;
    }
    if (text.ends_with('\\')) text.remove_suffix(1);
    now().words += " " + std::string(text);
  }

  // "NAME=VALUE", "NAME: VALUE"; of Kubernetes "name: NAME" and behind it "value: VALUE".
  void variable(std::string_view text) {
    text = without(text, "\"' ");
    const std::size_t at = text.find_first_of("=:");
    if (at == text.npos) return;
    const std::string_view name = text.substr(0, at), value = without(text.substr(at + 1), " \"'");
    if (name == "name") {
      name_ = value;
      return;
    }
    const std::string variable = name == "value" ? name_ : std::string(name);
    if (variable.empty() || value.find_first_of("'\"\n") != value.npos) return;
    now().variables += " " + variable + "=" +
                       (value.contains(' ') ? "'" + std::string(value) + "'" : std::string(value));
  }

  void close_list() {
    if (!list_.empty() && part_ == Part::words) now().words += words_of_list(list_);
    list_.clear();
  }

  std::vector<Service> services_;
  std::string list_, name_;
  Part part_ = Part::none;
  std::size_t indent_ = 0;
  std::int64_t parent_ = -1, child_ = -1;
};

}  // namespace

namespace {

// What a Dockerfile starts: its variables, its image, and the words of ENTRYPOINT and CMD, each as
// a list or as a shell has it. Nothing: the text is none, such as a Modelfile of Ollama.
std::optional<Service> dockerfile(std::string_view text) {
  Service service;
  std::string entry, words, line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    line += without(text.substr(0, end), " \t\r");
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\\') && !text.empty()) {
      line.back() = ' ';
      continue;
    }
    const std::string_view whole = line;
    const auto behind = [&](std::string_view word) {
      return whole.starts_with(word) ? std::optional(whole.substr(word.size())) : std::nullopt;
    };
    const auto told = [](std::string_view said) {
      return said.starts_with('[') ? words_of_list(said) : " " + std::string(said);
    };
    if (const auto image = behind("FROM ")) service.image = image->substr(0, image->find(' '));
    if (const auto variable = behind("ENV ")) {
      std::string one(*variable);
      if (!one.contains('=')) one.replace(std::min(one.find(' '), one.size() - 1), 1, "=");
      service.variables += " " + one;
    }
    if (const auto said = behind("ENTRYPOINT ")) entry = told(*said);
    if (const auto said = behind("CMD ")) words = told(*said);
    line.clear();
  }
  if (service.image.empty() || (entry + words).empty()) return std::nullopt;
  service.words = entry + words;
  return service;
}

}  // namespace

std::optional<std::string> line_of_containers(std::string_view text) {
  if (text.size() <= largest)
    if (const auto service = dockerfile(text)) {
      const auto read = read_command_line(service->line());
      // A program of one's own: what is installed for it may tell more.
      const bool unknown = !read && read.error().rule.starts_with("must name an engine");
      return unknown ? std::nullopt : std::optional(service->line());
    }
  const auto has = [&](std::string_view word) { return text.contains(word); };
  const bool is_one = text.size() <= largest &&
                      (has("services:") || has("image:") || has("containers:") || has("models:") ||
                       has("repository:")) &&
                      (has("command:") || has("args:") || has("environment:") || has("cmd:") ||
                       has("env:") || has("extraArgs:"));
  if (!is_one) return std::nullopt;
  for (const Service& service : Containers().read(text)) {
    std::string line = service.line();
    const auto read = read_command_line(line);
    if (read && !read->flags.empty()) return line;
    // A flag that the engine refuses is what is wrong.
    if (!read && !service.words.empty() && read.error().rule.starts_with("a flag about position"))
      return line;
  }
  return std::nullopt;
}

}  // namespace posenc::detail
