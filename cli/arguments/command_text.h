// A command line of an engine, as text or in a file.
#pragma once

#include <string>

#include "posenc/error.h"

namespace posenc::cli {

// What is given, where it has a blank or begins with a dash and so is no name of a file; else the
// file's text, or that of a pipe ("-"). Errors: those of named_text().
Expected<std::string> command_text(const std::string& given);

}  // namespace posenc::cli
