// A plan for a larger picture or a longer video, as people read it.
#pragma once

#include <string>

#include "cli/pages/terminal.h"
#include "posenc/pictures.h"

namespace posenc::cli {

// The model's name above it; a row an axis, a row an option, the one that is recommended in the
// words of tools, and what is not known.
std::string picture_page(const std::string& title, const PicturePlan& plan, const Terminal& term);

}  // namespace posenc::cli
