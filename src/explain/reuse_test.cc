#include "posenc/reuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace posenc;

std::vector<ReuseGroup> groups_of(std::string_view model) {
  return reuse(read_model(model).value());
}

bool moves(const ReuseGroup& group, std::string_view words) {
  return std::ranges::any_of(group.moves,
                             [&](const std::string& each) { return each.contains(words); });
}

TEST(Reuse, ARotationByPositionAloneIsExact) {
  for (const std::string_view model : {"llama-3.1-8b", "qwen2.5-7b-yarn4", "deepseek-v3",
                                       "gpt-j-6b", "glm-4-9b", "mistral-7b-v0.3"})
    for (const ReuseGroup& group : groups_of(model))
      EXPECT_EQ(group.verdict, Reuse::exact) << model;
}

TEST(Reuse, BiasesByDistanceMoveNothing) {
  for (const std::string_view model : {"bloom-176b", "t5-small"})
    for (const ReuseGroup& group : groups_of(model)) {
      EXPECT_EQ(group.verdict, Reuse::exact) << model;
      EXPECT_TRUE(group.why.contains("by distance") || group.why.contains("no position"))
          << group.why;
    }
}

TEST(Reuse, WhatWasAddedToEmbeddingsIsInEveryKey) {
  for (const std::string_view model : {"gpt2", "opt-125m", "bert-base-uncased"})
    for (const ReuseGroup& group : groups_of(model))
      EXPECT_EQ(group.verdict, Reuse::never) << model;
}

TEST(Reuse, ChunksOfAbsolutePositionForbidIt) {
  bool seen = false;
  for (const ReuseGroup& group : groups_of("llama-4-scout"))
    if (group.why.contains("chunks begin")) {
      seen = true;
      EXPECT_EQ(group.verdict, Reuse::never);
    }
  EXPECT_TRUE(seen);
}

TEST(Reuse, AxesAndLengthsAreSaidToMoveAlong) {
  EXPECT_TRUE(moves(groups_of("qwen2.5-vl-7b").front(), "every axis"));
  EXPECT_TRUE(moves(groups_of("phi-3.5-mini").front(), "LongRoPE"));
  EXPECT_TRUE(moves(groups_of("internlm2.5-7b").front(), "dynamic NTK"));
}

TEST(Reuse, EveryBundledModelIsJudgedWithASentence) {
  for (const BundledModel& model : bundled_models()) {
    const auto groups = groups_of(model.name);
    EXPECT_FALSE(groups.empty() && model.name != "whisper-tiny") << model.name;
    for (const ReuseGroup& group : groups) EXPECT_FALSE(group.why.empty()) << model.name;
  }
}

TEST(Reuse, RecurrentLayersHaveNoKeys) {
  const auto model = read_config(R"({"model_type": "qwen3_next", "hidden_size": 64, "head_dim": 16,
      "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4,
      "full_attention_interval": 4, "partial_rotary_factor": 0.25, "rope_theta": 1e7})");
  ASSERT_TRUE(model) << model.error().message();
  bool recurrent = false;
  for (const ReuseGroup& group : reuse(*model)) {
    recurrent |= group.verdict == Reuse::never;
    if (group.verdict == Reuse::exact) {
      EXPECT_TRUE(moves(group, "recurrent"));
    }
  }
  EXPECT_TRUE(recurrent);
}

}  // namespace
