// The digits of a number without tables: <charconv> of libc++ brings 110 KB of them.
#include <cmath>

#include "src/text/number.h"
#include "src/wasm/decimal.h"

namespace posenc::detail {

Digits shortest_digits(double number) { return shortest_digits(binary_of(number)); }

Digits rounded_digits(double number, int significant) {
  return rounded_digits(binary_of(number), significant);
}

double shortest_decimal(float number) {
  if (number == 0 || !std::isfinite(number)) return static_cast<double>(number);
  const Digits digits = shortest_digits(binary_of(std::abs(number)));
  const std::string text =
      digits.digits + "e" + std::to_string(digits.point - static_cast<int>(digits.digits.size()));
  const char* end = nullptr;
  return std::copysign(read_decimal(text.c_str(), &end), static_cast<double>(number));
}

}  // namespace posenc::detail
