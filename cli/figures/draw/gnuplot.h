// gnuplot as a process: a script goes in, a picture comes out.
#pragma once

#include <string>
#include <string_view>

#include "posenc/error.h"

namespace posenc::cli {

// What gnuplot writes to its standard output for a script on its standard input; no settings of the
// user's are read. Errors: gnuplot is not installed, or what it complained of.
Expected<std::string> gnuplot(std::string_view script);

// Text as a literal that gnuplot neither expands nor runs: single quotes know no backquotes, macros
// or escapes. Control characters and bytes that are not UTF-8 are replaced.
std::string in_quotes(std::string_view text);

}  // namespace posenc::cli
