// The program posenc. What it does is a library, which tests link as well.
#include "cli/run.h"

int main(int argc, char** argv) { return posenc::cli::run_program(argc, argv); }
