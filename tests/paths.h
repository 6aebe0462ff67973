// Where the build puts things, said by one source file: a compiler cache serves the others in every
// clone.
#pragma once

#include <string>
#include <string_view>

namespace posenc::test {

std::string data_path(std::string_view file);  // in tests/data
std::string command_path();                    // the built posenc

}  // namespace posenc::test
