// params.json. Values of Mistral 7B v0.1 and Mistral Large 3 (without what has no part in position)
// are the published ones; the others are made up, and say so.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "posenc/explain.h"
#include "posenc/model.h"

namespace posenc::params_test {
namespace {

const std::string mistral_v01 = R"({"dim": 4096, "n_layers": 32, "head_dim": 128,
  "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8, "norm_eps": 1e-05, "sliding_window": 4096,
  "vocab_size": 32000})";

const std::string large_3 = R"({"dim": 7168, "n_layers": 61, "head_dim": 192, "n_heads": 128,
  "n_kv_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "v_head_dim": 128, "rope_theta": 10000.0,
  "max_position_embeddings": 294912, "max_seq_len": 262144,
  "moe": {"num_experts": 128, "num_experts_per_tok": 4, "num_shared_experts": 1},
  "llama_4_scaling": {"beta": 0.1, "original_max_position_embeddings": 8192},
  "vision_encoder": {"hidden_size": 1664, "image_size": 1540, "num_attention_heads": 16,
                     "num_hidden_layers": 48, "patch_size": 14, "rope_theta": 10000.0},
  "yarn": {"alpha": 1, "apply_scale": false, "beta": 32, "factor": 36,
           "original_max_position_embeddings": 8192}})";

// Made up: small, with what a test adds.
std::string small(const std::string& more = "") {
  return R"({"dim": 512, "n_layers": 4, "head_dim": 64, "n_heads": 8, "n_kv_heads": 2)" +
         (more.empty() ? "" : ", " + more) + "}";
}

Model read(const std::string& text) {
  const auto model = read_params(text);
  EXPECT_TRUE(model) << model.error().message();
  return model ? *model : Model{.groups = {{}}};
}

std::string error_of(const std::string& text) {
  const auto model = read_params(text);
  return model ? "" : model.error().message();
}

Rope rope_of(const Model& model) {
  const auto& schemes = model.groups.at(0).schemes;
  const Rope* rope = schemes.empty() ? nullptr : std::get_if<Rope>(&schemes[0]);
  EXPECT_TRUE(rope);
  return rope ? *rope : Rope{};
}

Provenance provenance(const Model& model, std::string_view field) {
  for (const Provenance& value : model.groups.at(0).provenance)
    if (value.field == field) return value;
  return {};
}

bool warns(const Model& model, std::string_view code) {
  for (const Warning& warning : model.warnings)
    if (warning.code == code) return true;
  return false;
}

TEST(Params, ContextOfMetasFilesFollowsTheirBase) {
  const auto context = [](const char* base) {
    return read(small("\"multiple_of\": 256, \"rope_theta\": " + std::string(base))).context;
  };
  EXPECT_EQ(context("10000"), 4096);     // Llama 2
  EXPECT_EQ(context("500000"), 8192);    // Llama 3
  EXPECT_EQ(context("1000000"), 16384);  // Code Llama
}

TEST(Params, SizesAreReadByTheirOwnNames) {
  const Model model = read(mistral_v01);
  const LayerGroup& group = model.groups.at(0);
  EXPECT_EQ(group.layers.size(), 32u);
  EXPECT_EQ(group.geometry.width, 4096);
  EXPECT_EQ(group.geometry.heads, 32);
  EXPECT_EQ(group.geometry.kv_heads, 8);
  EXPECT_EQ(group.geometry.head_dim, 128);
  EXPECT_EQ(provenance(model, "layers").detail, "n_layers");
  EXPECT_EQ(provenance(model, "width").detail, "dim");
}

TEST(Params, PairsAreNeighboursAndTheReasonIsSaid) {
  const Model model = read(mistral_v01);
  EXPECT_EQ(rope_of(model).pairing, Pairing::interleaved);
  EXPECT_NE(provenance(model, "pairing").detail.find("permute wq and wk"), std::string::npos);
}

TEST(Params, MissingThetaDependsOnTheWindow) {
  const Model with = read(mistral_v01), without = read(small());
  EXPECT_EQ(rope_of(with).rope_theta, 1e4);
  EXPECT_EQ(rope_of(without).rope_theta, 1e6);
  EXPECT_EQ(provenance(without, "rope_theta").origin, Origin::family);
}

TEST(Params, MissingContextIsThatOfTheEnginesTable) {
  const Model model = read(mistral_v01);
  EXPECT_EQ(model.context, 128'000);
  EXPECT_EQ(provenance(model, "context").origin, Origin::family);
}

TEST(Params, AWindowHoldsForAllLayers) { EXPECT_EQ(read(mistral_v01).groups.at(0).window, 4096); }

TEST(Params, AListOfWindowsIsRepeatedOverTheLayers) {
  const Model model = read(small(R"("sliding_window": [null, 1024])"));
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_FALSE(find_group(model, 2, Stack::text)->window);
  EXPECT_EQ(find_group(model, 3, Stack::text)->window, 1024);
}

TEST(Params, AListOfNullsIsNoWindow) {
  EXPECT_FALSE(read(small(R"("sliding_window": [null])")).groups.at(0).window);
}

TEST(Params, TheWindowsPrivateSpellingCountsToo) {
  EXPECT_EQ(read(small(R"("_sliding_window": 256)")).groups.at(0).window, 256);
}

TEST(Params, AListThatDoesNotDivideTheLayersIsRefused) {
  EXPECT_NE(
      error_of(small(R"("sliding_window": [null, 8, 8])")).find("sliding_window: must divide"),
      std::string::npos);
}

TEST(Params, SeveralWindowsAreRefused) {
  EXPECT_NE(error_of(small(R"("sliding_window": [8, 16])")).find("one window"), std::string::npos);
}

TEST(Params, AWindowThatIsAWordIsRefusedByItsOwnName) {
  EXPECT_NE(error_of(small(R"("_sliding_window": "long")")).find("_sliding_window"),
            std::string::npos);
}

TEST(Params, YarnsBetaIsFastAndItsAlphaSlow) {
  const Model model = read(small(R"("yarn": {"factor": 16, "beta": 30, "alpha": 2,
      "original_max_position_embeddings": 1024}, "max_position_embeddings": 16384)"));
  const Rope rope = rope_of(model);
  const auto* yarn = std::get_if<Yarn>(&rope.scaling);
  ASSERT_TRUE(yarn);
  EXPECT_EQ(yarn->factor, 16);
  EXPECT_EQ(yarn->beta_fast, 30);
  EXPECT_EQ(yarn->beta_slow, 2);
  EXPECT_EQ(yarn->original_max_position_embeddings, 1024);
  EXPECT_EQ(provenance(model, "beta_fast").detail, "yarn.beta");
  EXPECT_EQ(model.trained_context, 1024);
}

TEST(Params, YarnsMagnitudeIsOnUnlessApplyScaleIsFalse) {
  const auto amplitude = [](const std::string& more) {
    const Model model =
        read(small(R"("yarn": {"factor": 16, "original_max_position_embeddings": 1024)" + more +
                   R"(}, "max_position_embeddings": 16384)"));
    const auto plan = compile(model.groups.at(0));
    return plan && plan->rotate ? plan->rotate->amplitude : 0;
  };
  EXPECT_NEAR(amplitude(""), 0.1 * std::log(16.0) + 1, 1e-15);
  EXPECT_NEAR(amplitude(R"(, "apply_scale": true)"), 0.1 * std::log(16.0) + 1, 1e-15);
  EXPECT_EQ(amplitude(R"(, "apply_scale": false)"), 1);
}

TEST(Params, YarnWithoutItsTrainedLengthIsRefused) {
  EXPECT_NE(error_of(small(R"("yarn": {"factor": 4})"))
                .find("yarn.original_max_position_embeddings: is missing"),
            std::string::npos);
}

TEST(Params, AnUnknownKeyOfYarnIsAWarning) {
  EXPECT_TRUE(warns(read(small(R"("yarn": {"factor": 4, "gamma": 2,
      "original_max_position_embeddings": 1024}, "max_position_embeddings": 4096)")),
                    "unknown_key"));
}

TEST(Params, QueryTemperatureHasItsOwnLength) {
  const Model model =
      read(small(R"("llama_4_scaling": {"beta": 0.1, "original_max_position_embeddings": 4096})"));
  EXPECT_EQ(model.groups.at(0).logits, (Logits{.beta = 0.1, .floor = 4096, .offset = 0}));
}

TEST(Params, Large3IsLatentAttentionWithTheRotationAtTheEnd) {
  const Model model = read(large_3);
  const LayerGroup& group = model.groups.at(0);
  const Rope rope = rope_of(model);
  EXPECT_EQ(group.geometry.head_dim, 192);
  EXPECT_EQ(rope.rotary_dim, 64);
  EXPECT_EQ(rope.slice, SliceEnd::trailing);
  EXPECT_EQ(rope.pairing, Pairing::interleaved);
  EXPECT_EQ(group.cache_elements, 512 + 64);
  EXPECT_EQ(model.context, 294912);
  EXPECT_EQ(model.trained_context, 8192);
  EXPECT_TRUE(model.warnings.empty()) << model.warnings[0].message;
}

TEST(Params, Large3sLogitsAreNotScaledByYarn) {
  const Model model = read(large_3);
  const auto plan = compile(model.groups.at(0));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->logits, (Logits{.multiplier = 1, .beta = 0.1, .floor = 8192, .offset = 0}));
  EXPECT_EQ(plan->rotate->amplitude, 1);
}

TEST(Params, LatentAttentionMustSayThatYarnScalesNothing) {
  std::string text = large_3;
  text.replace(text.find("false"), 5, "true");
  EXPECT_NE(error_of(text).find("yarn.apply_scale"), std::string::npos);
}

TEST(Params, LatentAttentionNeedsAllItsSizes) {
  EXPECT_NE(error_of(small(R"("kv_lora_rank": 64)")).find("qk_rope_head_dim: is missing"),
            std::string::npos);
}

TEST(Params, TheVisionTowerPairsNeighboursToo) {
  const Model model = read(large_3);
  const LayerGroup* tower = find_group(model, 47, Stack::vision);
  ASSERT_TRUE(tower);
  const auto* axial = std::get_if<Axial>(&tower->schemes.at(0));
  ASSERT_TRUE(axial);
  EXPECT_EQ(axial->pairing, Pairing::interleaved);
  EXPECT_EQ(axial->frequencies, AxisFrequencies::alternating);
  EXPECT_EQ(tower->geometry.head_dim, 104);
}

TEST(Params, AMissingSizeIsNamedAsTheFormatSpellsIt) {
  EXPECT_NE(error_of(R"({"dim": 512, "n_layers": 4})").find("n_heads: is missing"),
            std::string::npos);
  EXPECT_NE(error_of(small(R"("vision_encoder": {"hidden_size": 64, "num_attention_heads": 2})"))
                .find("vision_encoder.num_hidden_layers"),
            std::string::npos);
}

TEST(Params, MetasFileHasMetasRules) {
  const auto read = [](const char* more, int width) {
    const auto model = read_params(R"({"n_layers": 16, "n_heads": 32, "n_kv_heads": 8, "dim": )" +
                                   std::to_string(width) + more + "}");
    EXPECT_TRUE(model) << model.error().message();
    return *model;
  };
  const auto rope = [](const Model& model) { return std::get<Rope>(model.groups[0].schemes[0]); };
  const Model llama2 = read(R"(, "multiple_of": 256)", 4096);
  EXPECT_EQ(llama2.context, 4096);
  EXPECT_EQ(rope(llama2).rope_theta, 10000);
  EXPECT_EQ(rope(llama2).pairing, Pairing::interleaved);
  constexpr const char* scaled =
      R"(, "multiple_of": 256, "rope_theta": 500000.0, "use_scaled_rope": true)";
  EXPECT_EQ(std::get<Llama3>(rope(read(scaled, 4096)).scaling).factor, 8);
  EXPECT_EQ(std::get<Llama3>(rope(read(scaled, 2048)).scaling).factor, 32);  // Llama 3.2 1B
  const Model llama31 = read(scaled, 4096);
  EXPECT_EQ(llama31.context, 131072);
  // Its length stands nowhere in the file.
  EXPECT_EQ(provenance(llama31, "context").origin, Origin::family);
  EXPECT_TRUE(provenance(llama31, "context").detail.contains("use_scaled_rope"));
}

TEST(Params, Llama4OfMetaHasChunksAndLayersWithoutPosition) {
  const auto model = read_params(
      R"({"dim": 5120, "n_layers": 8, "n_heads": 40, "n_kv_heads": 8, "rope_theta": 500000.0,
          "use_scaled_rope": true, "rope_scaling_factor": 16.0, "rope_high_freq_factor": 1.0,
          "nope_layer_interval": 4, "attention_chunk_size": 8192})");
  ASSERT_TRUE(model) << model.error().message();
  const LayerGroup &first = *find_group(*model, 0, Stack::text),
                   &fourth = *find_group(*model, 3, Stack::text);
  EXPECT_TRUE(first.chunked);
  EXPECT_EQ(first.window, 8192);
  EXPECT_EQ(std::get<Llama3>(std::get<Rope>(first.schemes[0]).scaling).factor, 16);
  EXPECT_TRUE(std::holds_alternative<NoPe>(fourth.schemes[0]));
  EXPECT_EQ(fourth.window, std::nullopt);
  EXPECT_EQ(model->context, 10485760);
}

TEST(Params, MambaHasARecurrenceAndNoAttention) {
  const auto model = read_params(
      R"({"model_type": "mamba", "dim": 4096, "n_layers": 64, "n_groups": 8})", "params.json");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->groups.at(0).mixer, Mixer::recurrence);
  EXPECT_EQ(model->groups.at(0).layers.size(), 64U);
}

TEST(Params, WhatIsNoObjectIsRefused) {
  for (const char* text : {"", "[]", "3", "null", "{"}) EXPECT_NE(error_of(text), "") << text;
  EXPECT_NE(error_of(small(R"("yarn": 3)")).find("yarn: must be an object"), std::string::npos);
}

TEST(Params, HostilePathsDoNotConfuseTheTable) {
  EXPECT_NE(error_of(R"({"dim": {}, "n_layers": [], "n_heads": "8"})"), "");
  EXPECT_NE(error_of(small(R"("vision_encoder": 3)")), "");
  EXPECT_NE(error_of(small(R"("dtype": {}, "multimodal": [])")), "");
}

TEST(Params, TheExplanationSaysThatTheWeightsAreInAnotherOrder) {
  const auto explanation = explain(read(mistral_v01));
  ASSERT_TRUE(explanation);
  bool said = false;
  for (const std::string& sentence : explanation->words)
    said = said || sentence.contains("pairs neighbours");
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace posenc::params_test
