// How text looks on this terminal: colours, Unicode, width.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace posenc::cli {

struct Terminal {
  bool colour = false;
  bool unicode = false;

  std::string bold(std::string_view text) const { return painted("1", text); }
  std::string dim(std::string_view text) const { return painted("2", text); }
  std::string blue(std::string_view text) const { return painted("36", text); }
  std::string yellow(std::string_view text) const { return painted("33", text); }
  std::string painted(std::string_view code, std::string_view text) const;
};

// A text as a terminal may have it: newlines, tabs and the colours that Terminal painted pass, what
// else a terminal obeys is as printable() shows it, wherever the text has it from.
std::string tame(std::string_view text);

// All that commands say to people and programs leaves through these two, tamed. Bytes (pictures) do
// not.
template <class... T>
void write_out(fmt::format_string<T...> format, T&&... values) {
  const std::string text = tame(fmt::format(format, std::forward<T>(values)...));
  std::fwrite(text.data(), 1, text.size(), stdout);
}
// Standard error may be closed or full as well: nothing here throws.
template <class... T>
void write_error(fmt::format_string<T...> format, T&&... values) {
  const std::string text = tame(fmt::format(format, std::forward<T>(values)...));
  std::fwrite(text.data(), 1, text.size(), stderr);
}
// Takes back the line that standard error shows.
void clear_line();

// Colours only where standard output is a terminal that wants them.
Terminal terminal(bool no_color);

// Columns of a page: those that COLUMNS or the terminal has, from 60 to 120; 100 where nobody says.
std::size_t page_width();

std::string grouped(std::int64_t number);                      // 131,072
std::string listed(std::span<const std::int64_t> numbers);     // "0–3, 8", "3, 7, … 47", "none"
std::size_t columns(std::string_view utf8);                    // code points
std::string cut(std::string_view utf8, std::size_t most);      // "…" in place of what is too long
std::string padded(std::string_view utf8, std::size_t width);  // spaces after
// Lines of at most page_width() columns, every one but the first indented; no newline at the end. A
// word that no line could hold is cut into parts.
std::string wrapped(std::string_view utf8, std::size_t indent, std::size_t first_indent);

}  // namespace posenc::cli
