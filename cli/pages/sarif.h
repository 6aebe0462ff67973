// Findings by file, as JSON and as SARIF 2.1.0, which code hosts show beside the lines of a change.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "posenc/tools.h"

namespace posenc::cli {

struct LintedFile {
  std::string name;  // or what else is looked at: "command"
  std::vector<Finding> findings;
};

// {"findings":[…]}, each with its file.
std::string json_of(std::span<const LintedFile> files);
std::string sarif(std::span<const LintedFile> files);

}  // namespace posenc::cli
