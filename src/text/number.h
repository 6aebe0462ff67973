// Numbers as decimal text beyond error.h's number_text, and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace posenc::detail {

// Decimal digits of a positive number: "5" and point -1 are 0.05, that is 0.5e-1.
struct Digits {
  std::string digits;
  int point = 0;  // of these before the decimal point; may be negative or beyond the last
};

// The fewest digits of a positive finite number that read back the same, and of those the nearest;
// and so many digits (at least 1), rounded to nearest even. In digits.cc by <charconv>, for
// WebAssembly in src/wasm/digits.cc without its tables.
Digits shortest_digits(double number);
Digits rounded_digits(double number, int significant);

// As printf's %g with so many significant digits, in any locale.
std::string rounded_text(double number, int significant);

// As JSON writes a real number that is finite: the fewest digits that read back the same, with a
// point or an exponent even where it is whole: 4.0, 1e-05.
std::string real_text(double number);

// Decimal digits, with a minus or none before them; nothing: something else, or more than 18. By
// hand, since the overflow checks of std::from_chars want products of 128 bits, which WebAssembly
// has by a function of another ABI.
std::optional<std::int64_t> whole_number(std::string_view text);

// The shortest decimal that rounds to the float, as the double nearest to it: 0.1f gives 0.1.
double shortest_decimal(float number);

}  // namespace posenc::detail
