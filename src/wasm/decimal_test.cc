// Digits by whole numbers of any length, against <charconv>.
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <gtest/gtest.h>

#include "posenc/error.h"
#include "src/wasm/decimal.h"

namespace posenc::detail {
namespace {

// "d.ddde-dd" without its point and exponent.
Digits parsed(std::string text) {
  const std::size_t e = text.find('e');
  Digits out{text.substr(0, e), std::stoi(text.substr(e + 1)) + 1};
  std::erase(out.digits, '.');
  return out;
}

template <class Number>
Digits by_charconv(Number number, int significant = 0) {
  char text[1000];
  const auto format = std::chars_format::scientific;
  const auto end = significant
                       ? std::to_chars(text, text + sizeof text, number, format, significant - 1)
                       : std::to_chars(text, text + sizeof text, number, format);
  return parsed(std::string(text, end.ptr));
}

void expect_same(const Digits& a, const Digits& b, double number) {
  EXPECT_EQ(a.digits, b.digits) << number;
  EXPECT_EQ(a.point, b.point) << number;
}

// Any bits, whole numbers, short decimals, and what lies beside powers of two and ten.
std::vector<double> numbers() {
  std::mt19937_64 random(7);
  std::vector<double> list = {std::numeric_limits<double>::denorm_min(),
                              std::numeric_limits<double>::min(),
                              std::numeric_limits<double>::max(),
                              5e-324,
                              9.5,
                              0.5,
                              2.5,
                              99.95};
  for (int i = 0; i < 20000; i++) {
    const double any = std::bit_cast<double>(random() >> 1);
    if (std::isfinite(any) && any > 0) list.push_back(any);
    list.push_back(static_cast<double>(random() % 1000000 + 1) / 1000);
    list.push_back(static_cast<double>((random() >> (random() % 60)) + 1));
  }
  for (int e = -1070; e < 1020; e++)
    for (const double near : {0.0, 1e9}) list.push_back(std::nextafter(std::ldexp(1.0, e), near));
  for (int e = -300; e < 300; e++) {
    const double ten = std::pow(10.0, e);
    list.insert(list.end(), {ten, std::nextafter(ten, 0.0), std::nextafter(ten, INFINITY)});
  }
  return list;
}

TEST(Decimal, TheFewestDigitsAreCharconvs) {
  for (const double x : numbers()) expect_same(shortest_digits(binary_of(x)), by_charconv(x), x);
}

TEST(Decimal, TheFewestDigitsOfAFloatAreCharconvs) {
  std::mt19937 random(3);
  for (int i = 0; i < 50000; i++) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random() >> 1));
    if (std::isfinite(x) && x > 0) expect_same(shortest_digits(binary_of(x)), by_charconv(x), x);
  }
}

TEST(Decimal, RoundedDigitsAreCharconvs) {
  int significant = 0;
  for (const double x : numbers()) {
    significant = significant % 20 + 1;
    expect_same(rounded_digits(binary_of(x), significant), by_charconv(x, significant), x);
  }
}

TEST(Decimal, TheTextOfANumberIsCharconvs) {
  for (const double x : numbers()) {
    char text[400];
    if (x == std::floor(x) && x < 1e15) continue;  // always without an exponent
    EXPECT_EQ(number_text(-x), std::string(text, std::to_chars(text, text + 400, -x).ptr));
    const auto general = std::chars_format::general;
    EXPECT_EQ(rounded_text(x, 6),
              std::string(text, std::to_chars(text, text + 400, x, general, 6).ptr));
  }
}

double read(const std::string& text) {
  const char* end = nullptr;
  const double x = read_decimal(text.c_str(), &end);
  EXPECT_EQ(end, text.c_str() + text.size()) << text;
  return x;
}

TEST(Decimal, WhatItReadsIsTheNearestDouble) {
  std::mt19937 random(11);
  char text[1200];
  for (const double x : numbers()) {
    const int digits = 1 + static_cast<int>(random() % 25);
    for (const auto format : {std::chars_format::scientific, std::chars_format::fixed}) {
      const std::string decimal(text,
                                std::to_chars(text, text + sizeof text, x, format, digits).ptr);
      double expected = 0;
      const auto status =
          std::from_chars(decimal.data(), decimal.data() + decimal.size(), expected);
      if (status.ec != std::errc()) expected = decimal.contains("e+") ? INFINITY : 0;
      EXPECT_EQ(read(decimal), expected) << decimal;
    }
  }
}

// Exactly between two doubles, and just beside: hundreds of digits decide.
TEST(Decimal, MidpointsGoToTheEvenDouble) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; i++) {
    const double x = std::bit_cast<double>(random() % (0x7feull << 52) + 1);
    const Binary b = binary_of(x);
    const Binary between{2 * b.mantissa + 1, b.exponent - 1, false};
    const Digits digits = rounded_digits(between, 790);
    const auto text = [&](const std::string& tail) {
      return "0." + digits.digits + tail + "e" + std::to_string(digits.point);
    };
    const double next = std::nextafter(x, INFINITY);
    EXPECT_EQ(read(text("")), b.mantissa % 2 == 0 ? x : next);
    EXPECT_EQ(read(text("000000000000000000001")), next);
  }
}

TEST(Decimal, BeyondTheRangeIsInfinityOrZero) {
  EXPECT_EQ(read("1e400"), INFINITY);
  EXPECT_EQ(read("-1e99999999999"), -INFINITY);
  EXPECT_EQ(read("1.7976931348623159e308"), INFINITY);
  EXPECT_EQ(read("1e-400"), 0);
  EXPECT_EQ(read("2.4703282292062327e-324"), 0);
  EXPECT_EQ(read("2.4703282292062328e-324"), 5e-324);
  EXPECT_EQ(read("0.000e5"), 0);
  EXPECT_EQ(read("-" + std::string(900, '1') + "e-900"), read("-0.1" + std::string(899, '1')));
}

}  // namespace
}  // namespace posenc::detail
