// The program posenc. What it does is a library, which tests link as well.
#include "cli/run.h"
#include "cli/system/system.h"

int main(int argc, char** argv) {
  return posenc::cli::run_program(posenc::cli::arguments_of(argc, argv));
}
