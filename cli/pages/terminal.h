// How text looks on this terminal: colours, Unicode, width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

// Colours only where standard output is a terminal that wants them.
Terminal terminal(bool no_color);

// Columns of a page: those that COLUMNS or the terminal has, from 60 to 120; 100 where nobody says.
std::size_t page_width();

std::string grouped(std::int64_t number);                      // 131,072
std::size_t columns(std::string_view utf8);                    // code points
std::string cut(std::string_view utf8, std::size_t most);      // "…" in place of what is too long
std::string padded(std::string_view utf8, std::size_t width);  // spaces after
// Lines of at most page_width() columns, every one but the first indented; no newline at the end. A word that no
// line could hold is cut into parts.
std::string wrapped(std::string_view utf8, std::size_t indent, std::size_t first_indent);

}  // namespace posenc::cli
