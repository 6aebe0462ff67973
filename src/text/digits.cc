// The digits of a number by <charconv>, which is exact, quick and free of locales.
#include <charconv>
#include <cstdlib>

#include "src/text/number.h"

namespace posenc::detail {
namespace {

// Of "d.ddde-dd".
Digits digits_of(const char* text, const char* end) {
  Digits out;
  for (; text < end && *text != 'e'; text++)
    if (*text != '.') out.digits += *text;
  out.point = static_cast<int>(std::strtol(std::string(text + 1, end).c_str(), nullptr, 10)) + 1;
  return out;
}

}  // namespace

Digits shortest_digits(double number) {
  char text[64];
  return digits_of(
      text, std::to_chars(text, text + sizeof text, number, std::chars_format::scientific).ptr);
}

Digits rounded_digits(double number, int significant) {
  char text[400];
  return digits_of(text, std::to_chars(text, text + sizeof text, number,
                                       std::chars_format::scientific, significant - 1)
                             .ptr);
}

double shortest_decimal(float number) {
  char text[64];
  double decimal = static_cast<double>(number);
  std::from_chars(text, std::to_chars(text, text + sizeof text, number).ptr, decimal);
  return decimal;
}

}  // namespace posenc::detail
