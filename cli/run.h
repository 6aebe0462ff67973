// What the program posenc does with its arguments.
#pragma once

namespace posenc::cli {

// Exit codes: 0 good, 1 something wrong was found, 2 bad input, which one line of standard error names.
int run_program(int argc, char** argv);

}  // namespace posenc::cli
