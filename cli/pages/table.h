// Rows of words in columns, as the pages of extend show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/pages/terminal.h"

namespace posenc::cli {

// Where a page's labels end, and the least width of a first column.
inline constexpr std::size_t label_margin = 14;

// A line each, the first of them dim and the one that begins with `chosen` bold. All have as many
// cells as the first.
std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view chosen,
                  const Terminal& term);

}  // namespace posenc::cli
