// Tells a command line from the name of a file that has one.
#include "cli/arguments/command_text.h"

#include <cstddef>
#include <filesystem>
#include <system_error>

#include "cli/arguments/model.h"

namespace posenc::cli {

Expected<std::string> command_text(const std::string& given) {
  constexpr std::size_t most = std::size_t{1} << 20;
  std::error_code none;
  const bool is_file =
      given == "-" || (given.size() < 4096 && std::filesystem::exists(given, none));
  if (!is_file && given.find_first_of(" \n") != given.npos) return given;
  return named_text(given, most);
}

}  // namespace posenc::cli
