// Numbers as decimal text: where the point and the exponent stand among the digits.
#include "src/text/number.h"

#include <cmath>
#include <cstdint>

#include "posenc/error.h"

namespace posenc {
namespace {

using detail::Digits, detail::rounded_digits, detail::shortest_digits;

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
  const Digits digits = shortest_digits(number);
  // Without an exponent where that is as short, and then with all digits of a large whole number.
  const std::string plain = fixed(digits), with = scientific(digits);
  if (plain.size() > with.size()) return front + with;
  const bool padded = digits.point > static_cast<int>(digits.digits.size());
  return front + (padded ? fixed(rounded_digits(number, digits.point)) : plain);
}

std::string detail::rounded_text(double number, int significant) {
  std::string front = sign_or_word(number);
  if (number == 0 || !std::isfinite(number)) return front;
  Digits digits = rounded_digits(number, significant);
  while (digits.digits.size() > 1 && digits.digits.back() == '0') digits.digits.pop_back();
  const bool exponent = digits.point <= -4 || digits.point > significant;
  return front + (exponent ? scientific(digits) : fixed(digits));
}

std::optional<std::int64_t> detail::whole_number(std::string_view text) {
  constexpr std::size_t most_digits = 18;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > most_digits) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return negative ? -value : value;
}

std::string detail::real_text(double number) {
  const std::string front = sign_or_word(number);
  if (number == 0) return front + ".0";
  const Digits digits = shortest_digits(number);
  if (digits.point <= -4 || digits.point > 15) return front + scientific(digits);
  const bool whole = static_cast<int>(digits.digits.size()) <= digits.point;
  return front + fixed(digits) + (whole ? ".0" : "");
}

}  // namespace posenc
