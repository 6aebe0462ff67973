// Settings in YAML whose values may be objects, as `vllm serve --config FILE` takes them. Not all of
// YAML: no anchors, no lists over several lines, no strings over several lines but JSON in blocks.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/core/trimmed.h"

namespace posenc::detail {

// A value without blanks and quotes around it.
constexpr std::string_view stripped(std::string_view text) { return trimmed(text, " \t\r\"'"); }

// Keys at the left edge, each with its value as JSON; an object may stand below its key. Of long
// texts the first 64 KiB.
std::vector<std::pair<std::string, std::string>> settings_of_yaml(std::string_view text);

}  // namespace posenc::detail
