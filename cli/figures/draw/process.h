// gnuplot as a process of its own.
#pragma once

#include <string>
#include <string_view>

#include "posenc/error.h"

namespace posenc::cli {

struct Drawn {
  std::string picture, words;  // its standard output and standard error
  int status = 0;              // its exit code
  int signal = 0;              // that ended it, 0: none
};

// Runs `gnuplot --default-settings` on a script. Errors: there is none; it cannot be started; no
// room for temporary files.
Expected<Drawn> run_gnuplot(std::string_view script);

}  // namespace posenc::cli
