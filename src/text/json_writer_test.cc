#include "src/text/json_writer.h"

#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace posenc::detail {
namespace {

std::string written(auto value) {
  JsonWriter out;
  out.value(value);
  return out.text;
}

TEST(JsonWriter, CommasStandBetweenMembersAndValues) {
  JsonWriter out;
  out.object().member("a", std::int64_t{1}).key("b").array();
  out.value(true);
  out.object().end();
  out.array().end().end();
  out.member("c", std::optional<double>()).member("d", std::vector<std::string>{"x", "y"}).end();
  EXPECT_EQ(out.text, R"({"a":1,"b":[true,{},[]],"c":null,"d":["x","y"]})");
}

TEST(JsonWriter, TextIsEscapedAndWhatIsNoUtf8Replaced) {
  EXPECT_EQ(written("\"\\\b\f\n\r\t\x01\x1f/θ"), R"("\"\\\b\f\n\r\t\u0001\u001f/θ")");
  EXPECT_EQ(written("a\xffz\xce"), "\"a\uFFFDz\uFFFD\"");
  EXPECT_EQ(written("\uFFFD\U0001F600"), "\"\uFFFD\U0001F600\"");
}

// What a terminal obeys beyond the controls that JSON escapes: DEL, C1, other ends of lines, what
// reverses text.
TEST(JsonWriter, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(written("\x7f\xc2\x80\u202E\u2028\u2066"), R"("\u007f\u0080\u202e\u2028\u2066")");
}

TEST(JsonWriter, RealsKeepAPointOrAnExponent) {
  EXPECT_EQ(written(4.0), "4.0");
  EXPECT_EQ(written(-0.0), "-0.0");
  EXPECT_EQ(written(0.001), "0.001");
  EXPECT_EQ(written(1e-5), "1e-05");
  EXPECT_EQ(written(123456789012345.0), "123456789012345.0");
  EXPECT_EQ(written(1e15), "1e+15");
  EXPECT_EQ(written(1.5e300), "1.5e+300");
  EXPECT_EQ(written(std::nan("")), "null");
  EXPECT_EQ(written(-INFINITY), "null");
}

// The same layout as the library that reads it, whose digits are not always the fewest.
TEST(JsonWriter, NumbersReadBackAsTheyWere) {
  for (int e = -320; e < 308; e++) {
    const double x = 1.2345678901234567 * std::pow(10.0, e);
    EXPECT_EQ(nlohmann::json::parse(written(x)).get<double>(), x);
    if (std::abs(e) >= 100) continue;
    EXPECT_EQ(written(std::pow(10.0, e)), nlohmann::json(std::pow(10.0, e)).dump());
  }
}

}  // namespace
}  // namespace posenc::detail
