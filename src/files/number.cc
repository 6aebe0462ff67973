// Numbers as decimal text. std::to_chars is exact, quick and free of locales; in libc++ it carries 110 KB
// of tables, so WebAssembly, which has the C locale alone, takes the same digits from printf.
#include "src/files/number.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "posenc/error.h"

namespace posenc {
namespace {

#ifdef __wasm__

std::string general(double number, int significant) {
  char text[64];
  return std::string(text, text + std::snprintf(text, sizeof text, "%.*g", significant, number));
}

// The fewest digits that read back the same, without an exponent where that is as short.
std::string shortest(double number) {
  char scientific[64], fixed[400];
  int digits = 0;
  do std::snprintf(scientific, sizeof scientific, "%.*e", digits, number);
  while (++digits < 17 && std::strtod(scientific, nullptr) != number);
  const char* exponent = std::strchr(scientific, 'e');
  if (!exponent) return scientific;  // not finite
  const int decimals = digits - 1 - std::atoi(exponent + 1);
  std::snprintf(fixed, sizeof fixed, "%.*f", decimals > 0 ? decimals : 0, number);
  return std::strlen(fixed) <= std::strlen(scientific) ? fixed : scientific;
}

#else

std::string general(double number, int significant) {
  char text[64];
  const auto end =
      std::to_chars(text, text + sizeof text, number, std::chars_format::general, significant).ptr;
  return std::string(text, end);
}

std::string shortest(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

#endif

}  // namespace

std::string number_text(double number) {
  // Whole numbers without an exponent: 500000 and not 5e+05.
  if (number == std::floor(number) && std::abs(number) < 1e15)
    return std::to_string(static_cast<std::int64_t>(number));
  return shortest(number);
}

std::string detail::rounded_text(double number, int significant) {
  return general(number, significant);
}

double detail::shortest_decimal(float number) {
#ifdef __wasm__
  for (int digits = 1; digits < 9; ++digits) {
    const std::string text = general(static_cast<double>(number), digits);
    if (std::strtof(text.c_str(), nullptr) == number) return std::strtod(text.c_str(), nullptr);
  }
  return std::strtod(general(static_cast<double>(number), 9).c_str(), nullptr);
#else
  char text[64];
  double decimal = static_cast<double>(number);
  std::from_chars(text, std::to_chars(text, text + sizeof text, number).ptr, decimal);
  return decimal;
#endif
}

}  // namespace posenc
