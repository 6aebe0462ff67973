// Numbers as decimal text. std::to_chars is exact, quick and free of locales; in libc++ it carries 110 KB
// of tables, so WebAssembly takes the same digits from decimal.h.
#include "src/files/number.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "posenc/error.h"
#include "src/files/decimal.h"

namespace posenc {
namespace {

using detail::Digits;

#ifdef __wasm__

Digits shortest(double number) { return detail::shortest_digits(detail::binary_of(number)); }

Digits rounded(double number, int significant) {
  return detail::rounded_digits(detail::binary_of(number), significant);
}

#else

// Of "d.ddde-dd".
Digits digits_of(const char* text, const char* end) {
  Digits out;
  for (; text < end && *text != 'e'; text++)
    if (*text != '.') out.digits += *text;
  out.point = static_cast<int>(std::strtol(std::string(text + 1, end).c_str(), nullptr, 10)) + 1;
  return out;
}

Digits shortest(double number) {
  char text[64];
  return digits_of(
      text, std::to_chars(text, text + sizeof text, number, std::chars_format::scientific).ptr);
}

Digits rounded(double number, int significant) {
  char text[400];
  return digits_of(text, std::to_chars(text, text + sizeof text, number,
                                       std::chars_format::scientific, significant - 1)
                             .ptr);
}

#endif

std::string zeros(int count) { return std::string(static_cast<std::size_t>(count), '0'); }

std::string scientific(const Digits& x) {
  std::string text = x.digits.substr(0, 1);
  if (x.digits.size() > 1) text += "." + x.digits.substr(1);
  const int exponent = x.point - 1, size = exponent < 0 ? -exponent : exponent;
  return text + (exponent < 0 ? "e-" : "e+") + (size < 10 ? "0" : "") + std::to_string(size);
}

std::string fixed(const Digits& x) {
  const auto count = static_cast<int>(x.digits.size());
  if (x.point <= 0) return "0." + zeros(-x.point) + x.digits;
  if (x.point >= count) return x.digits + zeros(x.point - count);
  std::string text = x.digits;
  return text.insert(static_cast<std::size_t>(x.point), ".");
}

// What is not a positive finite number, as printf has it; else its sign alone.
std::string sign_or_word(double& number) {
  std::string text = std::signbit(number) ? "-" : "";
  number = std::abs(number);
  if (number == 0) return text + "0";
  return std::isfinite(number) ? text : text + (std::isnan(number) ? "nan" : "inf");
}

}  // namespace

std::string number_text(double number) {
  // Whole numbers without an exponent: 500000 and not 5e+05.
  if (number == std::floor(number) && std::abs(number) < 1e15)
    return std::to_string(static_cast<std::int64_t>(number));
  std::string front = sign_or_word(number);
  if (number == 0 || !std::isfinite(number)) return front;
  const Digits digits = shortest(number);
  // Without an exponent where that is as short, and then with all digits of a large whole number.
  const std::string plain = fixed(digits), with = scientific(digits);
  if (plain.size() > with.size()) return front + with;
  const bool padded = digits.point > static_cast<int>(digits.digits.size());
  return front + (padded ? fixed(rounded(number, digits.point)) : plain);
}

std::string detail::rounded_text(double number, int significant) {
  std::string front = sign_or_word(number);
  if (number == 0 || !std::isfinite(number)) return front;
  Digits digits = rounded(number, significant);
  while (digits.digits.size() > 1 && digits.digits.back() == '0') digits.digits.pop_back();
  const bool exponent = digits.point <= -4 || digits.point > significant;
  return front + (exponent ? scientific(digits) : fixed(digits));
}

std::string detail::real_text(double number) {
  const std::string front = sign_or_word(number);
  if (number == 0) return front + ".0";
  const Digits digits = shortest(number);
  if (digits.point <= -4 || digits.point > 15) return front + scientific(digits);
  const bool whole = static_cast<int>(digits.digits.size()) <= digits.point;
  return front + fixed(digits) + (whole ? ".0" : "");
}

double detail::shortest_decimal(float number) {
#ifdef __wasm__
  if (number == 0 || !std::isfinite(number)) return static_cast<double>(number);
  const Digits digits = shortest_digits(binary_of(std::abs(number)));
  const std::string text = scientific(digits);
  const char* end = nullptr;
  return std::copysign(read_decimal(text.c_str(), &end), static_cast<double>(number));
#else
  char text[64];
  double decimal = static_cast<double>(number);
  std::from_chars(text, std::to_chars(text, text + sizeof text, number).ptr, decimal);
  return decimal;
#endif
}

}  // namespace posenc
