// Two files that describe one model.
#pragma once

#include <string_view>

#include "posenc/model.h"

namespace posenc::detail {

// A warning files_disagree in `model` for each thing that another file of it says otherwise.
void compare(Model& model, const Model& other, std::string_view file, std::string_view other_file);

}  // namespace posenc::detail
