// Families whose code stands beside their weights, each as that code has it.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "posenc/model.h"
#include "posenc/tools.h"

namespace posenc {
namespace {

Model remote_model(std::string_view type, std::string_view more,
                   std::string_view heads = R"("num_attention_heads": 4)") {
  auto model = read_config(
      R"({"hidden_size": 256, "num_hidden_layers": 4, "max_position_embeddings": 4096, )" +
      std::string(heads) + R"(, "model_type": ")" + std::string(type) + R"(", )" +
      std::string(more) + "}");
  if (!model) ADD_FAILURE() << model.error().message();
  return model ? *model : Model{.groups = {LayerGroup{.schemes = {NoPe{}}}}};
}

constexpr std::string_view eight_heads = R"("num_attention_heads": 8)";

bool remote_warns(const Model& model, std::string_view code) {
  return std::ranges::find(model.warnings, code, &Warning::code) != model.warnings.end();
}

const Rope& rope_of_first(const Model& model) {
  return std::get<Rope>(model.groups.front().schemes.front());
}

TEST(Remote, MiniMaxAttendsWhereItsListHasAOne) {
  const Model model = remote_model(
      "minimax_m1", R"("attn_type_list": [0, 0, 0, 1], "rope_theta": 1e7, "rotary_dim": 32)");
  EXPECT_EQ(find_group(model, 0, Stack::text)->mixer, Mixer::recurrence);
  EXPECT_EQ(find_group(model, 3, Stack::text)->mixer, Mixer::attention);
}

TEST(Remote, AListThatMissesALayerIsRefused) {
  const auto model = read_config(R"({"model_type": "minimax_text_01", "hidden_size": 256,
      "num_hidden_layers": 4, "num_attention_heads": 4, "rope_theta": 1e7,
      "attn_type_list": [0, 1]})");
  ASSERT_FALSE(model);
  EXPECT_TRUE(model.error().where.ends_with("attn_type_list"));
}

TEST(Remote, SmallThinkerHasAListOfThoseThatRotate) {
  const Model model = remote_model(
      "smallthinker", R"("rope_layout": [0, 1, 1, 1], "sliding_window_layout": [0, 1, 1, 1])");
  EXPECT_TRUE(std::holds_alternative<NoPe>(find_group(model, 0, Stack::text)->schemes.front()));
  EXPECT_EQ(find_group(model, 1, Stack::text)->window, 4096);
}

TEST(Remote, PlamosHeadsShareAKey) {
  const Model model = remote_model("plamo", R"("n_shared_head": 8, "num_key_value_heads": 16)",
                                   R"("num_attention_heads": 16)");
  EXPECT_EQ(model.groups.front().geometry.kv_heads, 2);
}

TEST(Remote, Grok2SaysTheTypeOfAnotherModel) {
  const Model model =
      remote_model("git", R"("architectures": ["Grok1ForCausalLM"], "rope_theta": 208533496,
                "rope_type": "original", "attn_logit_softcapping": 30)",
                   eight_heads);
  EXPECT_EQ(rope_of_first(model).rope_theta, 208533496);
  EXPECT_EQ(model.groups.front().logits.softcap, 30);
}

TEST(Remote, AScalingOfGrokThatIsNotCoveredIsRefused) {
  const auto model = read_config(R"({"model_type": "grok-1", "rope_type": "yarn_log"})");
  ASSERT_FALSE(model);
  EXPECT_TRUE(model.error().where.ends_with("rope_type"));
}

TEST(Remote, Phi3SmallIsDividedByTheWidthOfAHead) {
  const Model model = remote_model("phi3small", R"("rope_embedding_base": 1e6)", eight_heads);
  EXPECT_DOUBLE_EQ(model.groups.front().logits.multiplier, 1 / std::sqrt(32.0));
}

TEST(Remote, Phi3SmallMultipliesByItsOwnMscales) {
  const Model model = remote_model("phi3small", R"("original_max_position_embeddings": 1024,
      "rope_scaling": {"type": "su", "long_mscale": 1.19, "short_mscale": 1.0,
        "short_factor": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],
        "long_factor": [2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]})",
                                   eight_heads);
  EXPECT_EQ(std::get<LongRope>(rope_of_first(model).scaling).long_mscale, 1.19);
}

TEST(Remote, MossRotatesNeighbours) {
  EXPECT_EQ(rope_of_first(remote_model("moss", R"("rotary_dim": 32)")).pairing,
            Pairing::interleaved);
}

TEST(Remote, RefactHasBiases) {
  const Model model = remote_model("gpt_refact", R"("multi_query": true)");
  EXPECT_TRUE(std::holds_alternative<Alibi>(model.groups.front().schemes.front()));
}

TEST(Remote, DeepSeekWithoutLatentHeadsIsAsLlama) {
  const Model model = remote_model("deepseek_v2", R"("use_mla": false, "qk_nope_head_dim": 0,
      "qk_rope_head_dim": 0, "v_head_dim": 0, "kv_lora_rank": null)");
  EXPECT_EQ(rope_of_first(model).pairing, Pairing::halves);
  EXPECT_EQ(model.groups.front().geometry.head_dim, 64);
}

TEST(Remote, WhatAnEngineMakesOfThemIsNotKnown) {
  const Model model = remote_model("arctic", R"("rope_theta": 1e6)");
  EXPECT_TRUE(model.known_family);
  const auto found = engine_differences(model, "vllm");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->findings.size(), 1);
  EXPECT_EQ(found->findings.front().code, "not_known");
}

TEST(Remote, AnUnknownFamilysListOfLayersIsSaid) {
  EXPECT_TRUE(remote_warns(
      remote_model("mystery", R"("rope_theta": 1e4, "attention_kinds": ["a", "b", "b", "a"])"),
      "layer_list_unread"));
}

TEST(Remote, AListThatIsReadIsNotCalledUnread) {
  const Model model =
      remote_model("deci", R"("rope_theta": 1e4, "num_key_value_heads_per_layer": [4, 4, 2, 2])");
  EXPECT_FALSE(remote_warns(model, "layer_list_unread"));
  EXPECT_EQ(find_group(model, 3, Stack::text)->geometry.kv_heads, 2);
}

TEST(Remote, AListOfEqualEntriesSaysNothing) {
  EXPECT_FALSE(remote_warns(
      remote_model("mystery", R"("rope_theta": 1e4, "attention_kinds": ["a", "a", "a", "a"])"),
      "layer_list_unread"));
}

TEST(Remote, AListOfPerceptronsIsNoMatterOfPosition) {
  EXPECT_FALSE(remote_warns(
      remote_model("mystery", R"("rope_theta": 1e4, "mlp_layer_types": ["a", "b", "b", "a"])"),
      "layer_list_unread"));
}

}  // namespace
}  // namespace posenc
