#include "src/text/json.h"
#include "posenc/model.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/paths.h"

namespace posenc::detail {
namespace {

std::string json_error(std::string_view text) {
  const auto json = parse_json(text, "f");
  return json ? "" : json.error().message();
}

std::string real_config() {
  std::ifstream file(test::data_path("zoo/deepseek-v3.json"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ModelJson, KeepsIntegersApartFromReals) {
  const auto json = parse_json(R"({"a": 4096, "b": 4096.0})", "f");
  ASSERT_TRUE(json);
  EXPECT_TRUE(json->find("a")->get<std::int64_t>());
  EXPECT_TRUE(json->find("b")->get<double>());
}

TEST(ModelJson, KeepsTheOrderOfKeys) {
  const auto json = parse_json(R"({"z": 1, "a": 2})", "f");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json->get<Json::Object>())[0].key, "z");
}

TEST(ModelJson, ARealFileCutAnywhereIsAnError) {
  const std::string text = real_config();
  const std::size_t end = text.find_last_of('}');
  ASSERT_GT(end, 500u);
  for (std::size_t length = 0; length <= end; ++length) {
    EXPECT_NE(json_error(std::string_view(text).substr(0, length)), "") << length;
  }
  EXPECT_EQ(json_error(text), "");
}

TEST(ModelJson, ACutFileSaysSo) {
  EXPECT_NE(json_error("{\"a\": 1").find("cut off"), std::string::npos);
  EXPECT_EQ(json_error("nul"),
            "f: must be JSON, got 'nul' at line 1, column 4; the file seems cut off");
  EXPECT_EQ(json_error("[1, x").find("cut off"), std::string::npos);
}

TEST(ModelJson, ErrorsNameLineAndColumnOfTheByteItself) {
  const struct {
    const char *text, *at;
  } cases[] = {{"x", "'x' at line 1, column 1"},
               {"{\n  \"a\": 1,\n  oops\n}", "line 3, column 3"},
               {"[1,]", "line 1, column 4"},
               {"[1 2]", "'2' at line 1, column 4"},
               {"{\"a\": 1 \"bc\": 2}", "'\"bc\"' at line 1, column 9"},
               {"[\n 1e400]", "'1e400' at line 2, column 2"},
               {"{} {}", "line 1, column 4"},
               {"", "the end at line 1, column 1"},
               {"[NaN, -Infinity, x]", "line 1, column 18"},
               {"[NaN", "line 1, column 5; the file seems cut off"},
               {"[1", "line 1, column 3; the file seems cut off"}};
  for (const auto& [text, at] : cases)
    EXPECT_NE(json_error(text).find(at), std::string::npos) << text << ": " << json_error(text);
}

TEST(ModelJson, AKeyTwiceIsAnErrorWithItsPath) {
  EXPECT_EQ(
      json_error(R"({"rope_scaling": {"factor": 2, "factor": 4}})"),
      "f: each key must stand once in its object, got 'rope_scaling.factor' twice; remove one of "
      "them");
}

TEST(ModelJson, TheSameKeyInTwoObjectsIsFine) {
  EXPECT_EQ(json_error(R"({"a": {"x": 1}, "b": {"x": 2}})"), "");
}

TEST(ModelJson, DepthIsBounded) {
  EXPECT_NE(json_error(std::string(100000, '[')).find("64 levels"), std::string::npos);
  EXPECT_EQ(json_error(std::string(64, '[') + std::string(64, ']')), "");
}

TEST(ModelJson, CountIsBounded) {
  std::string text = "[";
  for (int i = 0; i < 1 << 20; ++i) text += "0,";
  EXPECT_NE(json_error(text + "0]").find("a million values"), std::string::npos);
}

TEST(ModelJson, SizeIsBounded) {
  EXPECT_NE(json_error(std::string(largest_json + 1, ' ')).find("16 MiB"), std::string::npos);
}

// Python writes them bare, and files on the hub have them (Mamba's time_step_limit).
TEST(ModelJson, NanAndInfinityAreWordsThatNoNumberIs) {
  const auto json =
      parse_json(R"({"limit": [-Infinity, Infinity], "x": NaN, "NaN \" NaN": "a \" NaN"})", "f");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->find("limit")->text(), R"(["-Infinity", "Infinity"])");
  EXPECT_EQ(json->find("x")->text(), "\"NaN\"");
  EXPECT_EQ(json->find("NaN \" NaN")->text(), "\"a \" NaN\"");
  const auto model = read_config(R"({"model_type": "llama", "rope_theta": Infinity})");
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message().find("rope_theta: must be a number"), std::string::npos);
  EXPECT_NE(json_error(R"({"x": Inf})").find("write null"), std::string::npos);
}

TEST(ModelJson, NumbersBeyondADoubleAreRefused) {
  EXPECT_NE(json_error(R"({"factor": 1e400})").find("must fit a double"), std::string::npos);
}

TEST(ModelJson, IntegersBeyond64BitsBecomeReals) {
  const auto json = parse_json("[123456789012345678901234567890]", "f");
  ASSERT_TRUE(json);
  EXPECT_TRUE((*json->get<Json::Array>())[0].get<double>());
}

TEST(ModelJson, AMessageQuotesNoBrokenOrControlCharacters) {
  EXPECT_EQ(json_error("{\"a\xff\""), "f: must be JSON, got '\"a\uFFFD' at line 1, column 4");
  EXPECT_EQ(json_error("{\"\x1b[2J\": 1}").find('\x1b'), std::string::npos);
  EXPECT_EQ(json_error("{\"\\u001b\": 1, \"\\u001b\": 1}").find('\x1b'), std::string::npos);
}

TEST(ModelJson, AListOfListsIsShortInAMessage) {
  std::string text = "[1, 1, 1, 1]";
  for (int depth = 1; depth < 8; ++depth) {
    const std::string inner = text;
    text = "[" + inner + ", " + inner + ", " + inner + ", " + inner + "]";
  }
  const auto json = parse_json(text, "f");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->text(), "[[4 values], [4 values], [4 values], [4 values]]");
}

TEST(ModelJson, InvalidUtf8IsRefused) { EXPECT_NE(json_error("{\"a\": \"\xff\"}"), ""); }

TEST(ModelJson, AByteOrderMarkIsTolerated) { EXPECT_EQ(json_error("\xef\xbb\xbf{}"), ""); }

TEST(ModelJson, WhatFollowsTheEndIsRefused) { EXPECT_NE(json_error("{} {}"), ""); }

TEST(ModelJson, EmptyTextIsRefused) { EXPECT_NE(json_error(""), ""); }

}  // namespace
}  // namespace posenc::detail
