// Cures that leave no choice, and every other byte as it was.
#include <gtest/gtest.h>

#include <string>

#include "posenc/tools.h"
#include "src/text/json_place.h"

namespace posenc {
namespace {

std::string qwen_with(const std::string& scaling) {
  return R"({
  "model_type": "qwen3", "hidden_size": 4096,
  "head_dim":   128,
  "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8,
  "rope_theta": 1e6, "max_position_embeddings": 131072,
  "rope_scaling": )" +
         scaling + R"(,
  "zzz": [1, {"rope_scaling": 2}]
}
)";
}

MendedConfig fixed(const std::string& text) {
  const Expected<MendedConfig> out = mend(text);
  EXPECT_TRUE(out) << out.error().message();
  return out.value_or(MendedConfig{});
}

TEST(Mend, AKeysSpelling) {
  const MendedConfig out = fixed(qwen_with(
      R"({"rope_type": "yarn", "factor": 4.0, "orignal_max_position_embeddings": 32768})"));
  EXPECT_EQ(
      out.text,
      qwen_with(
          R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})"));
  ASSERT_EQ(out.mended.size(), 1u);
  EXPECT_EQ(out.mended[0].code, "unknown_key");
}

TEST(Mend, AZeroThatMeansNothingIsDropped) {
  EXPECT_EQ(
      fixed(
          qwen_with(
              R"({"rope_type": "yarn", "factor": 4.0, "beta_fast": 0, "original_max_position_embeddings": 32768})"))
          .text,
      qwen_with(
          R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})"));
  EXPECT_EQ(
      fixed(
          qwen_with(
              R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768 , "beta_slow": 0})"))
          .text,
      qwen_with(
          R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768 })"));
}

TEST(Mend, BetasAreExchanged) {
  EXPECT_EQ(
      fixed(
          qwen_with(
              R"({"rope_type": "yarn", "beta_fast": 1, "factor": 4.0, "beta_slow": 32.0, "original_max_position_embeddings": 32768})"))
          .text,
      qwen_with(
          R"({"rope_type": "yarn", "beta_fast": 32.0, "factor": 4.0, "beta_slow": 1, "original_max_position_embeddings": 32768})"));
}

TEST(Mend, AFactorThatFollowsIsWrittenAsItsNeighboursAre) {
  EXPECT_EQ(fixed(qwen_with(R"({
    "rope_type": "yarn",
    "original_max_position_embeddings": 32768
  })"))
                .text,
            qwen_with(R"({
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 32768
  })"));
}

TEST(Mend, SeveralThingsAtOnce) {
  const MendedConfig out = fixed(qwen_with(
      R"({"rope_type": "yarn", "factor": 4.0, "beta_fast": 0, "orignal_max_position_embeddings": 32768})"));
  EXPECT_EQ(out.mended.size(), 2u);
  EXPECT_EQ(
      out.text,
      qwen_with(
          R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})"));
}

TEST(Mend, WhatLeavesAChoiceIsLeft) {
  for (
      const char* scaling :
      {R"({"rope_type": "yarn", "type": "linear", "factor": 4.0, "original_max_position_embeddings": 32768})",
       R"({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32768})",
       R"({"rope_type": "yarn", "factor": 4.0, "attn_factor": 0.8, "original_max_position_embeddings": 32768})",
       R"({"rope_type": "yarn", "factor": 4.0, "beta": 7, "original_max_position_embeddings": 32768})",
       R"({"rope_type": "linear", "factor": 0.25})"}) {
    const MendedConfig out = fixed(qwen_with(scaling));
    EXPECT_EQ(out.text, qwen_with(scaling));
    EXPECT_TRUE(out.mended.empty());
  }
}

TEST(Mend, AFileThatCannotBeReadIsAnError) { EXPECT_FALSE(mend("{")); }

TEST(JsonPlace, FindsMembersByPathAndNoOthers) {
  const std::string text = R"( {"a": {"b" : "}\"", "c": [ {"b": 1} ]}, "b": -2.5 })";
  const auto value = [&](const char* path) {
    const auto place = detail::find_member(text, path);
    return place ? text.substr(place->value, place->value_end - place->value) : "none";
  };
  EXPECT_EQ(value("b"), "-2.5");
  EXPECT_EQ(value("a.b"), R"("}\"")");
  EXPECT_EQ(value("a.c"), R"([ {"b": 1} ])");
  EXPECT_EQ(value("a.c.b"), "none");
  EXPECT_EQ(value("c"), "none");
  EXPECT_EQ(value("b.b"), "none");
}

TEST(JsonPlace, TheOnlyMemberLeavesAnEmptyObject) {
  EXPECT_EQ(detail::without_member(R"({"a": 1})", *detail::find_member(R"({"a": 1})", "a")), "{}");
}

TEST(JsonPlace, TextThatIsNoneEnds) {
  for (const char* text :
       {"", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":{", "{\"a\":\"\\", "[1"})
    EXPECT_FALSE(detail::find_member(text, "b.c")) << text;
}

}  // namespace
}  // namespace posenc
