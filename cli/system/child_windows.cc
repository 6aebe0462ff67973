#include "cli/system/child.h"

namespace posenc::cli {

Expected<std::unique_ptr<Child>> Child::start(const std::vector<std::string>&) {
  return fail("conform", "starts programs on Linux and macOS alone", "",
              "run it there, or read vectors/*.json from a test of your own");
}

}  // namespace posenc::cli
