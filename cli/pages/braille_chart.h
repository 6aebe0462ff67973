// A sketch in text: the wavelength of every pair, with lines where contexts end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/pages/terminal.h"
#include "posenc/explain.h"

namespace posenc::cli {

// A line across the plot where a wavelength is as long as a context.
struct Mark {
  std::int64_t length = 0;
  std::string_view what;  // "trained", "context", "window"
};

// Lines without newline; none if nothing turns.
std::vector<std::string> wavelength_sketch(std::span<const PairFact> pairs,
                                           std::span<const Mark> marks, const Terminal& term);

}  // namespace posenc::cli
