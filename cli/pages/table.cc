#include "cli/pages/table.h"

#include <algorithm>

namespace posenc::cli {

std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view chosen,
                  const Terminal& term) {
  std::vector<std::size_t> widths(rows.front().size());
  widths[0] = label_margin;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], columns(row[c]) + 2);
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += c + 1 < row.size() ? padded(row[c], widths[c]) : row[c];
    const bool is_head = &row == &rows.front();
    out += (is_head ? term.dim(line) : row[0] == chosen ? term.bold(line) : line) + "\n";
  }
  return out;
}

}  // namespace posenc::cli
