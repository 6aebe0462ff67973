// What a tool found, as people and programs read it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/pages/terminal.h"
#include "posenc/tools.h"

namespace posenc::cli {

// A paragraph a finding, the gravest first; `none` where there is nothing to tell.
std::string findings_page(std::span<const Finding> findings, const Terminal& term,
                          std::string_view none);

// A paragraph an engine: whether it runs what the file says, else what differs, and what its notes
// say.
std::string engines_page(std::span<const EngineDifferences> engines, const Terminal& term);

}  // namespace posenc::cli
