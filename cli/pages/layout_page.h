// What a layout of ranks does to a model, for people: `posenc lint --cp`.
#pragma once

#include <string>

#include "cli/pages/terminal.h"
#include "posenc/context_parallel.h"

namespace posenc::cli {

// The verdict, what an engine must keep, work and bytes of each group, and the layout that suits.
// Reasons stand among the findings.
std::string layout_page(const layout::Judgement& judgement, const Terminal& term);

}  // namespace posenc::cli
