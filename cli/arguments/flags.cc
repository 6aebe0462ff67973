#include "cli/arguments/flags.h"

#include <cstdint>
#include <string>

#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"

namespace posenc::cli {

bool no_color(const CLI::App& app) { return app.count("--no_color") > 0; }

namespace {

// Writes the number back as CLI11 reads it.
CLI::Validator whole_number(std::int64_t least, const char* rule, const char* type) {
  const auto check = [=](std::string& text) -> std::string {
    const Expected<std::int64_t> number = integer(text, "");
    if (!number || *number < least) return std::string(rule) + ", got '" + text + "'";
    text = std::to_string(*number);
    return "";
  };
  return {check, type};
}

}  // namespace

CLI::Validator above_zero() {
  return whole_number(1, "must be a whole number above 0", "POSITIVE");
}

CLI::Validator position_count() {
  return whole_number(0, "must be a whole number of 0 or more, like 131072, 128k or 1e6",
                      "POSITION");
}

CLI::Validator array_file() {
  const auto check = [](std::string& path) -> std::string {
    const Expected<ArrayFormat> format = array_format(path);
    return format ? "" : format.error().rule + ", got '" + path + "'; " + format.error().cure;
  };
  return {check, ""};
}

void add_output(CLI::App& app, std::string& into, const char* doc) {
  app.add_option("OUT", into, doc)->check(array_file())->required();
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
