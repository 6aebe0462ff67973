#include "src/tools/settings.h"

#include <algorithm>

#include "src/tools/command_line.h"

namespace posenc::detail {

std::string_view Setting::parent() const {
  const std::size_t dot = path.rfind('.');
  if (dot == path.npos) return {};
  const std::string_view before = std::string_view(path).substr(0, dot);
  return before.substr(before.rfind('.') + 1);
}

Settings::Settings(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

const std::string* Settings::find(std::string_view key, bool deep) const {
  const std::string* last = nullptr;
  for (const Setting& one : all_)
    if ((one.path == key || (deep && one.key() == key)) && one.value != key) last = &one.value;
  return last && !last->empty() && *last != "null" && *last != "~" ? last : nullptr;
}

void Settings::line(std::string_view text) {
  const std::size_t indent = text.find_first_not_of(' ');
  if (indent == text.npos || text[indent] == '#' || text[indent] == '-') return;
  text = without(text.substr(0, text.find(" #")), " \t\r");
  if (text.starts_with('[') && text.ends_with(']')) {  // of TOML
    open_ = {{0, std::string(text.substr(1, text.size() - 2))}};
    toml_ = true;
    return;
  }
  const std::size_t colon = text.find_first_of(toml_ ? "=" : ":=");
  if (colon == text.npos || colon == 0) return;
  const std::string_view key = without(text.substr(0, colon), " \"'");
  if (key.empty() || key.find_first_of(" {}()/") != key.npos) return;
  if (!toml_)
    while (!open_.empty() && open_.back().indent >= indent) open_.pop_back();
  const std::string path = (open_.empty() ? "" : open_.back().path + ".") + std::string(key);
  // Of Python an argument ends at a comma.
  const std::string_view value = without(text.substr(colon + 1), " \t,");
  if (value.starts_with('{') && value.contains('}'))
    flow(path, value);
  else
    all_.push_back({path, std::string(without(value, "\"'"))});
  if (!toml_ && (value.empty() || value == "{")) open_.push_back({indent, path});
}

// {type: yarn, factor: 4.0}, with quotes or without; braces within are passed over.
void Settings::flow(const std::string& path, std::string_view text) {
  text = without(text, "{} ");
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = entry.find(':');
    if (colon == entry.npos) continue;
    all_.push_back({path + "." + std::string(without(entry.substr(0, colon), " \"'")),
                    std::string(without(entry.substr(colon + 1), " \"'"))});
  }
}

}  // namespace posenc::detail
