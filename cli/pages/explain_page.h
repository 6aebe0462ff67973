// An explanation laid out for a terminal, and its pairs as CSV. The words and facts are posenc's; only
// their places are chosen here.
#pragma once

#include <string>

#include "cli/pages/terminal.h"
#include "posenc/explain.h"

namespace posenc::cli {

std::string page(const Explanation& explanation, bool all_pairs, const Terminal& term);
std::string csv(const Explanation& explanation);

}  // namespace posenc::cli
