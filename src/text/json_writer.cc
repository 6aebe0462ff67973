#include "src/text/json_writer.h"

#include <algorithm>
#include <cmath>

#include "src/core/utf8.h"
#include "src/text/number.h"

namespace posenc::detail {
namespace {

constexpr std::string_view hex = "0123456789abcdef";

}  // namespace

void JsonWriter::separate() {
  if (follows_) text += ',';
  follows_ = true;
}

JsonWriter& JsonWriter::open(char first, char last) {
  separate();
  text += first;
  ends_ += last;
  follows_ = false;
  return *this;
}

JsonWriter& JsonWriter::end() {
  text += ends_.back();
  ends_.pop_back();
  follows_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text += ':';
  follows_ = false;
  return *this;
}

void JsonWriter::null() {
  separate();
  text += "null";
}

void JsonWriter::json(std::string_view value) {
  separate();
  text += value;
}

void JsonWriter::truth(bool flag) {
  separate();
  text += flag ? "true" : "false";
}

void JsonWriter::value(std::string_view word) {
  separate();
  text += '"';
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; };
  while (!word.empty()) {
    // Most words are plain ASCII, and are taken in long pieces.
    const auto end = std::ranges::find_if_not(word, is_plain);
    text.append(word.begin(), end);
    word.remove_prefix(static_cast<std::size_t>(end - word.begin()));
    if (word.empty()) break;
    const std::size_t length = character_length(word);
    const char c = word[0];
    constexpr std::string_view plain = "\b\t\n\f\r\"\\", escaped = "btnfr\"\\";
    if (length == 0) {
      text += "\uFFFD";
    } else if (const std::size_t at = plain.find(c); at != std::string_view::npos) {
      text += '\\';
      text += escaped[at];
    } else if (is_control(word.substr(0, length))) {
      const char32_t point = code_point(word.substr(0, length));
      text += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) text += hex[point >> shift & 15];
    } else {
      text += word.substr(0, length);
    }
    word.remove_prefix(length == 0 ? 1 : length);
  }
  text += '"';
}

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  text += real_text(number);
}

void JsonWriter::value(std::int64_t number) {
  separate();
  text += std::to_string(number);
}

template <class T, class As>
void JsonWriter::list(std::span<const T> items) {
  array();
  for (const T& item : items) value(As(item));
  end();
}

void JsonWriter::value(std::span<const double> items) { list<double, double>(items); }
void JsonWriter::value(std::span<const float> items) { list<float, double>(items); }
void JsonWriter::value(std::span<const std::int64_t> items) {
  list<std::int64_t, std::int64_t>(items);
}
void JsonWriter::value(std::span<const std::int32_t> items) {
  list<std::int32_t, std::int64_t>(items);
}
void JsonWriter::value(std::span<const std::string> items) {
  list<std::string, std::string_view>(items);
}
void JsonWriter::value(std::span<const std::string_view> items) {
  list<std::string_view, std::string_view>(items);
}

}  // namespace posenc::detail
