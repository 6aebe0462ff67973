#include "tests/paths.h"

namespace posenc::test {

std::string data_path(std::string_view file) { return POSENC_TEST_DATA "/" + std::string(file); }
std::string command_path() { return POSENC_COMMAND; }

}  // namespace posenc::test
