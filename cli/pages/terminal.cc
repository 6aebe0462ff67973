#include "cli/pages/terminal.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "cli/system/system.h"
#include "posenc/error.h"

namespace posenc::cli {
namespace {

// What stands for the beginning of a colour until a text leaves: no file and no argument can hold
// it, since nobody knows it before the program runs.
const std::string& paint_mark() {
  static const std::string mark = [] {
    std::random_device random;
    return fmt::format("\x1b{:08x}{:08x}[", random(), random());
  }();
  return mark;
}

std::string paint(std::string_view code) { return paint_mark() + std::string(code) + "m"; }

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::size_t columns_given() {
  if (const char* said = std::getenv("COLUMNS"); said != nullptr) {
    const unsigned long number = std::strtoul(said, nullptr, 10);
    if (number > 0) return number;
  }
  const std::size_t there = terminal_columns();
  return there > 0 ? there : 100;
}

// The first `most` columns of a text, in bytes.
std::size_t bytes_of(std::string_view utf8, std::size_t most) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < utf8.size(); ++at)
    if (!continues(utf8[at]) && seen++ == most) break;
  return at;
}

}  // namespace

std::size_t page_width() {
  static const std::size_t width = std::clamp<std::size_t>(columns_given(), 60, 120);
  return width;
}

std::string Terminal::painted(std::string_view code, std::string_view text) const {
  if (!colour) return std::string(text);
  return paint(code) + std::string(text) + paint("0");
}

std::string tame(std::string_view text) {
  const std::string& own = paint_mark();
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (text.starts_with(own)) {
      out += "\x1b[";
      text.remove_prefix(own.size());
    } else if (text.front() == '\n' || text.front() == '\t') {
      out += text.front();
      text.remove_prefix(1);
    } else {
      const std::size_t end =
          std::min(text.find_first_of(std::string_view("\n\t\x1b", 3), 1), text.size());
      out += printable(text.substr(0, end), std::string_view::npos);
      text.remove_prefix(end);
    }
  }
  return out;
}

void clear_line() { std::fputs("\r\x1b[K", stderr); }

Terminal terminal(bool no_color) {
  const char* term = std::getenv("TERM");
  const char* refused = std::getenv("NO_COLOR");
  Terminal out;
  out.colour = !no_color && (!refused || !*refused) && isatty(STDOUT_FILENO) && term &&
               std::string_view(term) != "dumb";
  // The console of Linux has no braille.
  out.unicode =
      speaks_utf8() && !(term && isatty(STDOUT_FILENO) && std::string_view(term) == "linux");
  return out;
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t sign = number < 0;
  for (std::size_t at = text.size(); at > sign + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string listed(std::span<const std::int64_t> numbers) {
  if (numbers.empty()) return "none";
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    runs.push_back(last > i ? fmt::format("{}–{}", numbers[i], numbers[last])
                            : fmt::format("{}", numbers[i]));
    i = last + 1;
  }
  if (runs.size() > 4) return fmt::format("{}, {}, … {}", runs[0], runs[1], runs.back());
  return fmt::format("{}", fmt::join(runs, ", "));
}

std::size_t columns(std::string_view utf8) {
  std::size_t count = 0;
  for (const char byte : utf8) count += !continues(byte);
  return count;
}

std::string cut(std::string_view utf8, std::size_t most) {
  if (columns(utf8) <= most) return std::string(utf8);
  return std::string(utf8.substr(0, bytes_of(utf8, most - 1))) + "…";
}

std::string padded(std::string_view utf8, std::size_t width) {
  const std::size_t used = columns(utf8);
  return std::string(utf8) + std::string(used < width ? width - used : 0, ' ');
}

std::string wrapped(std::string_view utf8, std::size_t indent, std::size_t first_indent) {
  std::string out;
  std::size_t used = first_indent;
  bool start = true;
  while (!utf8.empty()) {
    const std::size_t end = std::min(utf8.find(' '), utf8.size()),
                      part = std::min(end, bytes_of(utf8, page_width() - indent));
    const std::string_view word = utf8.substr(0, part);
    utf8.remove_prefix(std::min(part == end ? end + 1 : part, utf8.size()));
    if (!start && used + 1 + columns(word) > page_width()) {
      out += '\n' + std::string(indent, ' ');
      used = indent;
      start = true;
    }
    if (!start) out += ' ';
    out += word;
    used += columns(word) + !start;
    start = false;
  }
  return out;
}

}  // namespace posenc::cli
