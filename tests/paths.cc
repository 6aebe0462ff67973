#include "tests/paths.h"

#include <unistd.h>

namespace posenc::test {

std::string data_path(std::string_view file) { return POSENC_TEST_DATA "/" + std::string(file); }
std::string command_path() { return POSENC_COMMAND; }

std::filesystem::path temporary_path(std::string_view name) {
  return std::filesystem::temp_directory_path() /
         ("posenc_" + std::to_string(getpid()) + "_" + std::string(name));
}

}  // namespace posenc::test
