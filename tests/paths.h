// Where the build puts things, said by one source file: a compiler cache serves the others in every
// clone.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace posenc::test {

std::string data_path(std::string_view file);  // in tests/data
std::string command_path();                    // the built posenc
// A place of this process among the temporary files, since tests run beside each other.
std::filesystem::path temporary_path(std::string_view name);

}  // namespace posenc::test
