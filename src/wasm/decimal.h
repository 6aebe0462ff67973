// Binary numbers as decimal digits and back, exactly, by whole numbers of any length (Steele and
// White, "How to print floating-point numbers accurately", 1990; Clinger, "How to read floating
// point numbers accurately", 1990). <charconv> does the same several times faster with 10 to 110 KB
// of tables, which is why only WebAssembly uses these.
#pragma once

#include <cstdint>

#include "src/text/number.h"

namespace posenc::detail {

// mantissa · 2^exponent with a mantissa of at most `bits` bits, as frexp would have it; not 0.
struct Binary {
  std::uint64_t mantissa;
  int exponent;
  bool narrow_below;  // the next smaller number is half as far away as the next larger one
};
Binary binary_of(double number);  // positive, finite
Binary binary_of(float number);

// The fewest digits that read back the same, and of those the nearest.
Digits shortest_digits(const Binary& number);

// So many digits (at least 1), rounded to nearest even.
Digits rounded_digits(const Binary& number, int significant);

// The double nearest to "-12.5e-3" at the front of the text, a JSON number; *end is where it ends.
// Beyond the largest double: infinity.
double read_decimal(const char* text, const char** end);

}  // namespace posenc::detail
