// Text and numbers as JSON has them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace posenc::cli {

// In quotes; what a terminal obeys is escaped, and bytes that are no UTF-8 are U+FFFD.
std::string json_string(std::string_view utf8);

// The shortest that reads back the same, or as `format` has it ("{:.4f}"); null where it is not
// finite.
std::string json_number(double number, const char* format = "{}");
std::string json_numbers(std::span<const double> numbers, const char* format = "{}");  // an array

}  // namespace posenc::cli
