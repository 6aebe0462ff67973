// What the program posenc does with its arguments.
#pragma once

#include <string>
#include <vector>

#include "cli/pages/manual.h"
#include "posenc/error.h"

namespace posenc::cli {

// Of every command that the help lists, and of the kinds of plot after plot.
std::vector<Manual> all_manuals();

// Whether arguments, as one would type them behind `posenc`, name a command and flags that it
// takes; nothing is run. Errors: what the program would say.
Expected<void> parsed(std::vector<std::string> arguments);

// What stands behind `posenc`, as UTF-8, on the process's standard streams. Exit codes: 0 good, 1
// something wrong was found, 2 bad input, which one line of standard error names.
int run_program(std::vector<std::string> arguments);

}  // namespace posenc::cli
