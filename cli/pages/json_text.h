// Text as JSON quotes it.
#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

std::string json_string(std::string_view utf8);

}  // namespace posenc::cli
