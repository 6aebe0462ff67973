// Walks a JSON text that is known to be right, member by member.
#include "src/text/json_place.h"

#include <algorithm>

namespace posenc::detail {
namespace {

constexpr std::string_view json_blank = " \t\r\n";

std::size_t past_blank(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_not_of(json_blank, at);
  return next == text.npos ? text.size() : next;
}

std::size_t past_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

// From the first byte of a value to behind its last.
std::size_t past_value(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  if (text[at] == '"') return past_string(text, at);
  if (text[at] != '{' && text[at] != '[') {
    const std::size_t end = text.find_first_of(",]} \t\r\n", at);
    return end == text.npos ? text.size() : end;
  }
  int depth = 0;
  while (at < text.size()) {
    if (text[at] == '"') {
      at = past_string(text, at);
      continue;
    }
    if (text[at] == '{' || text[at] == '[') ++depth;
    if (text[at] == '}' || text[at] == ']') --depth;
    ++at;
    if (depth == 0) return at;
  }
  return at;
}

}  // namespace

std::optional<JsonPlace> find_member(std::string_view text, std::string_view path) {
  std::size_t at = past_blank(text, 0);
  while (true) {
    const std::size_t dot = path.find('.');
    const std::string_view key = path.substr(0, dot);
    if (at >= text.size() || text[at] != '{') return {};
    std::optional<JsonPlace> found;
    at = past_blank(text, at + 1);
    while (at < text.size() && text[at] == '"' && !found) {
      JsonPlace one{.key = at, .key_end = past_string(text, at)};
      one.value = past_blank(text, past_blank(text, one.key_end) + 1);
      one.value_end = past_value(text, one.value);
      if (text.substr(one.key + 1, one.key_end - one.key - 2) == key) found = one;
      at = past_blank(text, past_blank(text, one.value_end) + 1);
    }
    if (!found || dot == path.npos) return found;
    at = found->value;
    path.remove_prefix(dot + 1);
  }
}

std::string without_member(std::string_view text, const JsonPlace& place) {
  std::size_t from = place.key, to = place.value_end;
  const std::size_t next = past_blank(text, to);
  if (next < text.size() && text[next] == ',') {
    to = past_blank(text, next + 1);
  } else if (from > 0) {  // the last one: the comma before goes with it
    const std::size_t before = text.find_last_not_of(json_blank, from - 1);
    if (before != text.npos && text[before] == ',') from = before;
  }
  return std::string(text.substr(0, from)) + std::string(text.substr(to));
}

std::string with_member_behind(std::string_view text, const JsonPlace& place, std::string_view key,
                               std::string_view value) {
  const std::size_t before =
      place.key > 0 ? text.find_last_not_of(json_blank, place.key - 1) : text.npos;
  const std::size_t blank = before == text.npos ? place.key : before + 1;
  std::string more = ",";
  more += text.substr(blank, place.key - blank);
  more += "\"";
  more += key;
  more += "\"";
  more += text.substr(place.key_end, place.value - place.key_end);
  more += value;
  return std::string(text.substr(0, place.value_end)) + more +
         std::string(text.substr(place.value_end));
}

}  // namespace posenc::detail
