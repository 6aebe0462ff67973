// A plan for a longer context, as people read it.
#pragma once

#include <string>

#include "cli/pages/terminal.h"
#include "posenc/tools.h"

namespace posenc::cli {

// What training has shown, a row an option, the one that is recommended with its flags, the cache,
// and what is not known.
std::string extend_page(const Model& model, const ContextPlan& plan, const Terminal& term);

}  // namespace posenc::cli
