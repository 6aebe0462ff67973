// What is said to an engine is what the model has, or a note says what is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "posenc/engines.h"
#include "tests/paths.h"

namespace posenc {
namespace {

// A Qwen3 with a scaling, and a context of 131072.
Model qwen_with(const std::string& scaling) {
  const Expected<Model> model = read_config(
      R"({"model_type": "qwen3", "hidden_size": 4096, "head_dim": 128, "num_hidden_layers": 2,
          "num_attention_heads": 32, "num_key_value_heads": 8, "rope_theta": 1000000.0,
          "max_position_embeddings": 131072, "rope_scaling": )" +
      scaling + "}");
  EXPECT_TRUE(model) << model.error().message();
  return model.value_or(Model{});
}
const char* const yarn_four =
    R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})";

Translation said(const Model& model, std::string_view engine, std::int64_t length = 0) {
  const auto translation = translate(model, engine, length);
  EXPECT_TRUE(translation) << translation.error().message();
  return translation.value_or(Translation{});
}

bool notes(const Translation& translation, EngineNote::Kind kind, std::string_view text) {
  return std::ranges::any_of(translation.notes, [&](const EngineNote& note) {
    return note.kind == kind && note.what.contains(text);
  });
}

TEST(Translate, FlagsOfLlamaCpp) {
  EXPECT_EQ(
      said(qwen_with(yarn_four), "llama.cpp", 65536).target,
      "--rope-freq-base 1000000 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 65536");
}

TEST(Translate, VllmIsToldTheBaseToo) {
  EXPECT_EQ(
      said(qwen_with(yarn_four), "vllm").target,
      R"(--hf-overrides '{"rope_parameters":{"rope_type":"yarn","factor":4.0,)"
      R"("original_max_position_embeddings":32768,"beta_fast":32.0,"beta_slow":1.0,"rope_theta":1000000.0}}')");
}

TEST(Translate, OldSpellingHasTheBaseBesideTheScaling) {
  const Translation old =
      said(qwen_with(R"({"rope_type": "linear", "factor": 2.0})"), "transformers@4");
  EXPECT_EQ(old.target,
            R"({"rope_theta":1000000.0,"rope_scaling":{"rope_type":"linear","factor":2.0},)"
            R"("max_position_embeddings":131072})");
}

TEST(Translate, LayersOfTwoKindsThatRotateAlikeAreSaidOnce) {
  const Expected<Model> model = read_model("gpt-oss-20b");
  ASSERT_TRUE(model);
  const std::string target = said(*model, "transformers").target;
  EXPECT_TRUE(target.starts_with(R"({"rope_parameters":{"rope_type":"yarn")")) << target;
}

TEST(Translate, EachKindOfLayerIsSaidOnce) {
  const Expected<Model> model = read_model("gemma-4-e2b");  // has four groups of two kinds
  ASSERT_TRUE(model);
  const std::string target = said(*model, "transformers").target;
  EXPECT_EQ(target.find("full_attention"), target.rfind("full_attention")) << target;
}

TEST(Translate, NtkAwareScalingIsAnotherBase) {
  const Translation ntk = said(qwen_with(R"({"rope_type": "ntk", "factor": 8.0})"), "llama.cpp");
  EXPECT_EQ(ntk.largest_angle_difference, 0);
  EXPECT_TRUE(ntk.target.starts_with("--rope-freq-base 8268")) << ntk.target;
}

TEST(Translate, AnAttentionFactorThatNoFlagKeepsIsLost) {
  const Translation lost = said(
      qwen_with(
          R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "attention_factor": 1.0})"),
      "llama.cpp");
  EXPECT_TRUE(notes(lost, EngineNote::Kind::lost, "attention_factor"));
  EXPECT_NEAR(*lost.amplitude_difference, 0.1 * std::log(4.0), 1e-12);
}

TEST(Translate, AnEngineThatRefusesLeavesNothingToCompare) {
  const Translation refused =
      said(qwen_with(R"({"rope_type": "dynamic", "factor": 2.0})"), "exllamav3");
  EXPECT_FALSE(refused.largest_angle_difference);
  EXPECT_TRUE(notes(refused, EngineNote::Kind::lost, "ValueError"));
}

TEST(Translate, AModelThatDoesNotRotateIsRefused) {
  const Expected<Model> model = read_model("bloom-176b");
  ASSERT_TRUE(model);
  EXPECT_FALSE(translate(*model, "vllm"));
}

TEST(Translate, LengthsBelowZeroAreRefused) {
  EXPECT_FALSE(translate(qwen_with(yarn_four), "vllm", -1));
}

// Every model of the zoo whose text rotates by one kind of RoPE: its keys, read again, give its frequencies.
class Zoo : public testing::TestWithParam<std::string> {};

TEST_P(Zoo, KeysForTransformersReadBackTheSame) {
  const Expected<Model> model = read_model(test::data_path("zoo/" + GetParam() + ".json"));
  ASSERT_TRUE(model) << model.error().message();
  const auto made = translate(*model, "transformers");
  if (!made || made->target.contains("full_attention") || made->target.contains("mrope")) return;
  ASSERT_EQ(made->largest_angle_difference, 0);
  const LayerGroup& group = model->groups.front();
  const Expected<Plan> plan = compile(group, model->context);
  ASSERT_TRUE(plan);
  // A Llama's heads of as many channels as rotate here, so that the part is the same of any head.
  const std::string keys = made->target.substr(1);
  const Expected<Model> again = read_config(
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 1, "num_attention_heads": 8, "head_dim": )" +
      std::to_string(group.geometry.head_dim) + ", " + keys);
  ASSERT_TRUE(again) << again.error().message() << made->target;
  const Expected<Plan> theirs = compile(again->groups.front(), model->context);
  ASSERT_TRUE(theirs) << theirs.error().message();
  EXPECT_EQ(theirs->rotate->frequency, plan->rotate->frequency) << made->target;
  EXPECT_NEAR(theirs->rotate->amplitude, plan->rotate->amplitude, 1e-12);
}

std::vector<std::string> zoo() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::data_path("zoo")))
    if (entry.path().stem() != "index") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Translate, Zoo, testing::ValuesIn(zoo()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

}  // namespace
}  // namespace posenc
