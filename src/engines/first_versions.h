// Since when an engine has a class for a type of model.
#pragma once

#include <string_view>

namespace posenc::detail {

// The first release ("4.51.0") of transformers, vLLM or SGLang that has one; "": not known, or all
// that were looked at (transformers 4.38, vLLM 0.4, SGLang 0.3 and later).
std::string_view first_version(std::string_view engine, std::string_view type);

}  // namespace posenc::detail
