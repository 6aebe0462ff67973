#include "cli/arguments/flags.h"

#include <cstdint>
#include <string>

#include "cli/arguments/parse.h"

namespace posenc::cli {

bool no_color(const CLI::App& app) { return app.count("--no_color") > 0; }

CLI::Validator above_zero() {
  const auto check = [](std::string& text) -> std::string {
    const Expected<std::int64_t> number = integer(text, "");
    return number && *number > 0 ? "" : "must be a whole number above 0, got '" + text + "'";
  };
  return {check, "POSITIVE"};
}

CLI::Validator token_count() {
  const auto check = [](std::string& text) -> std::string {
    const Expected<std::int64_t> count = tokens(text, "");
    if (!count)
      return "must be a whole number above 0, like 131072, 128k or 1e6, got '" + text + "'";
    text = std::to_string(*count);
    return "";
  };
  return {check, "TOKENS"};
}

}  // namespace posenc::cli
