#include "cli/pages/code_pages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/core/trimmed.h"

namespace posenc::cli {
namespace {

// A cell without Markdown: `code` and [words](link) as their words.
std::string plain(std::string_view cell) {
  std::string out;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    if (cell[i] == '`' || cell[i] == '[') continue;
    if (cell[i] == ']') {
      if (cell.substr(i).starts_with("](")) i = std::min(cell.find(')', i), cell.size());
      continue;
    }
    out += cell[i];
  }
  return out;
}

std::vector<std::string_view> cells_of(std::string_view row) {
  std::vector<std::string_view> cells;
  row.remove_prefix(1);
  while (!row.empty()) {
    const std::size_t end = std::min(row.find('|'), row.size());
    cells.push_back(detail::trimmed(row.substr(0, end)));
    row.remove_prefix(std::min(end + 1, row.size()));
  }
  return cells;
}

// The third column of a page says the cure, or what a difference does to a text.
CodeText in_page(std::string_view page, bool has_cures, std::string_view code) {
  const std::string name = "`" + std::string(code) + "`";
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const std::string_view row = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    if (!row.starts_with("| `")) continue;
    const auto cells = cells_of(row);
    if (cells.size() < 2 || !cells[0].contains(name)) continue;
    const std::string third = cells.size() > 2 ? plain(cells[2]) : "";
    if (has_cures) return {plain(cells[1]), third};
    return {plain(cells[1]) + (third.empty() ? "" : "; " + third), ""};
  }
  return {};
}

}  // namespace

CodeText text_of_code(std::string_view code) {
  constexpr std::string_view of_engine = "engine_";
  for (const std::string_view name :
       {code, code.starts_with(of_engine) ? code.substr(of_engine.size()) : code})
    for (const auto& [page, has_cures] : {std::pair(warnings_page, true), {codes_page, false}})
      if (CodeText text = in_page(page, has_cures, name); !text.what.empty()) return text;
  return {};
}

}  // namespace posenc::cli
