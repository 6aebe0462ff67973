#include "cli/pages/terminal.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>

namespace posenc::cli {
namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::size_t columns_given() {
  if (const char* said = std::getenv("COLUMNS"); said != nullptr) {
    const unsigned long number = std::strtoul(said, nullptr, 10);
    if (number > 0) return number;
  }
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return 100;
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
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

Terminal terminal(bool no_color) {
  const char* term = std::getenv("TERM");
  const char* refused = std::getenv("NO_COLOR");
  Terminal out;
  out.colour = !no_color && (!refused || !*refused) && isatty(STDOUT_FILENO) && term &&
               std::string_view(term) != "dumb";
  std::setlocale(LC_CTYPE, "");
  // The console of Linux has no braille.
  out.unicode = std::string_view(nl_langinfo(CODESET)) == "UTF-8" &&
                !(term && isatty(STDOUT_FILENO) && std::string_view(term) == "linux");
  return out;
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t sign = number < 0;
  for (std::size_t at = text.size(); at > sign + 3;) text.insert(at -= 3, 1, ',');
  return text;
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
