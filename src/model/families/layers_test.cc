// What the code of a family does to its layers, checked against the configuration classes and the
// modeling code of transformers 4.57 and 5: files as those classes write them, and as the hub has
// them.
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "posenc/model.h"

namespace posenc {
namespace {

Model layers_model(std::string_view type, std::string_view more, std::string_view layers = "8") {
  const std::string count =
      layers.empty() ? "" : R"("num_hidden_layers": )" + std::string(layers) + ", ";
  auto model =
      read_config(R"({"model_type": ")" + std::string(type) + "\", " + count +
                  R"("hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2,
                              "max_position_embeddings": 4096, )" +
                  std::string(more) + "}");
  if (!model) ADD_FAILURE() << type << ": " << model.error().message();
  return model ? *model : Model{.groups = {LayerGroup{.schemes = {NoPe{}}}}};
}

// A letter for each layer: r rotates, w rotates in a window, n has no position.
std::string pattern(const Model& model, Stack stack = Stack::text) {
  std::string letters;
  for (std::int64_t layer = 0;; ++layer) {
    const LayerGroup* group = find_group(model, layer, stack);
    if (!group) return letters;
    const bool rotates = std::holds_alternative<Rope>(group->schemes.at(0));
    letters += !rotates ? 'n' : group->window ? 'w' : 'r';
  }
}

Rope layer_rope(const Model& model) {
  const Rope* rope = std::get_if<Rope>(&model.groups.at(0).schemes.at(0));
  if (!rope) ADD_FAILURE() << "another scheme";
  return rope ? *rope : Rope{};
}

TEST(LayersLlama32Vision, LayersThatLookAtThePictureHaveNoPosition) {
  const Model model = layers_model("mllama_text_model", R"("cross_attention_layers": [1, 6])");
  EXPECT_EQ(pattern(model), "rnrrrrnr");
  const LayerGroup* cross = find_group(model, 1, Stack::text);
  ASSERT_NE(cross, nullptr);
  EXPECT_EQ(cross->label, "cross attention without position");
  EXPECT_FALSE(cross->causal);
  EXPECT_EQ(cross->cache_elements, 0);
  EXPECT_EQ(pattern(layers_model("mllama_text_model", R"("rope_theta": 5e5)", "10")), "rrrnrrrrnr");
}

TEST(LayersCohere2Moe, DenseLayersInFrontRotateThoughFull) {
  EXPECT_EQ(pattern(layers_model("cohere2_moe", R"("first_k_dense_replace": 1)")), "rwwwnwww");
}

TEST(LayersCohere2Moe, APatternOfTheirOwnLeavesThoseInFrontAlone) {
  const Model model = layers_model(
      "cohere2_moe", R"("first_k_dense_replace": 2, "prefix_dense_sliding_window_pattern": 2)");
  EXPECT_EQ(pattern(model), "wnwwwnww");
}

TEST(LayersExaoneMoe, FullLayersHaveNoPosition) {
  EXPECT_EQ(pattern(layers_model("exaone_moe", R"("rope_theta": 1e6)")), "wwwnwwwn");
}

TEST(LayersGlmOcr, NeighboursPairInThreeSections) {
  const Rope rope =
      layer_rope(layers_model("glm_ocr_text", R"("rope_theta": 1e4, "head_dim": 64)"));
  EXPECT_EQ(rope.pairing, Pairing::interleaved);
  EXPECT_EQ(rope.mrope_section, (std::vector<std::int64_t>{8, 12, 12}));
}

TEST(LayersWarnings, AKeyThatMovesPositionsAndIsNotReadIsNamed) {
  const Model model = layers_model("qwen2", R"("rotary_scaling_factor": 2)");
  ASSERT_FALSE(model.warnings.empty());
  EXPECT_EQ(model.warnings.back().code, "ignored_key");
}

TEST(LayersWarnings, AKeyThatSaysNothingIsNotNamed) {
  for (const char* key : {R"("rotary": true)", R"("rope_condense_ratio": 1)"})
    EXPECT_TRUE(layers_model("llama", key).warnings.empty()) << key;
}

TEST(LayersWarnings, KeysThatPublishedFilesHaveBesideAScalingAreNotUnknown) {
  EXPECT_TRUE(layers_model("llama", R"("rope_theta": 1e4, "rope_scaling": {"type": "yarn",
      "factor": 4, "original_max_position_embeddings": 1024, "finetuned": true})")
                  .warnings.empty());
  const Model hunyuan = layers_model("hunyuan_v1_dense", R"("rope_theta": 10000.0,
      "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32,
        "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0})");
  EXPECT_EQ(std::ranges::find(hunyuan.warnings, "unknown_key", &Warning::code),
            hunyuan.warnings.end());
}

TEST(LayersDualChunk, IsTheModelsOwnAndNotHuggingFaces) {
  const Model model = layers_model(
      "qwen2", R"("dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192})");
  const Rope rope = std::get<Rope>(model.groups[0].schemes[0]);
  EXPECT_EQ(rope.distance_map, DistanceMap(DualChunk{.chunk_size = 262144, .local_size = 8192}));
  ASSERT_FALSE(model.warnings.empty());
  EXPECT_NE(model.warnings.back().message.find("first chunk of 253952"), std::string::npos);
}

TEST(LayersDualChunk, WithoutASizeIsAWarning) {
  const Model model = layers_model("qwen2", R"("dual_chunk_attention_config": {"local_size": 8})");
  EXPECT_EQ(std::get<Rope>(model.groups[0].schemes[0]).distance_map, DistanceMap(NoMap{}));
  EXPECT_EQ(model.warnings.back().code, "ignored_key");
}

TEST(LayersLlama4, TemperatureTuningMayBeACount) {
  const std::string chunk = R"("attention_chunk_size": 64, "attn_temperature_tuning": )";
  EXPECT_EQ(find_group(layers_model("llama4_text", chunk + "4"), 3, Stack::text)->logits.beta, 0.1);
  EXPECT_EQ(find_group(layers_model("llama4_text", chunk + "0"), 3, Stack::text)->logits.beta, 0);
}

TEST(LayersNemotronH, AreCountedWhereTheFileOnlyListsThem) {
  const std::string listed = R"("layers_block_type": ["mamba", "attention", "moe"])";
  EXPECT_EQ(pattern(layers_model("nemotron_h", listed, "")), "nnn");
  EXPECT_EQ(pattern(layers_model("nemotron_h", R"("hybrid_override_pattern": "M*-M")", "")),
            "nnnn");
}

TEST(LayersHybrid, NothingAttendsWhereNoLayerIsListed) {
  for (const char* type : {"bamba", "granitemoehybrid"}) {
    const Model model = layers_model(type, R"("position_embedding_type": "rope")");
    EXPECT_EQ(model.groups.size(), 1U);
    EXPECT_EQ(model.groups[0].cache_elements, 0) << type;
  }
}

TEST(LayersQwen2Moe, AWindowOf0IsNone) {
  EXPECT_EQ(
      pattern(layers_model("qwen2_moe", R"("sliding_window": 0, "use_sliding_window": false)")),
      "rrrrrrrr");
  EXPECT_EQ(pattern(layers_model("mistral", R"("sliding_window": 0)")), "rrrrrrrr");
}

TEST(LayersGemma4, TheLastAttendsFully) {
  EXPECT_EQ(pattern(layers_model("gemma4_text", R"("rope_theta": 1e4)")), "wwwwwrwr");
}

TEST(LayersSections, OfQwenAndGlmHaveTheCodesDefault) {
  EXPECT_EQ(layer_rope(layers_model("qwen2_vl", R"("rope_theta": 1e6)")).mrope_section,
            (std::vector<std::int64_t>{16, 24, 24}));
  EXPECT_EQ(layer_rope(layers_model("glm4v", R"("partial_rotary_factor": 0.5)")).mrope_section,
            (std::vector<std::int64_t>{8, 12, 12}));
}

TEST(LayersLongformer, AttendInAWindowHalfOnEachSide) {
  const Model one = layers_model("longformer", R"("attention_window": 64)");
  ASSERT_EQ(one.groups.size(), 1U);
  EXPECT_EQ(one.groups[0].window, 64);
  EXPECT_EQ(layers_model("longformer", R"("pad_token_id": 1)").groups[0].window, 512);
  const Model two = layers_model("longformer", R"("attention_window": [32, 32, 64])", "3");
  ASSERT_EQ(two.groups.size(), 2U);
  EXPECT_EQ(two.groups[1].window, 64);
  EXPECT_EQ(two.groups[1].layers, std::vector<std::int64_t>{2});
  EXPECT_FALSE(read_config(R"({"model_type": "longformer", "attention_window": [32]})"));
}

TEST(LayersGpt2, LogitsMayShrinkWithTheLayer) {
  const Model model = layers_model("gpt2", R"("scale_attn_by_inverse_layer_idx": true)", "3");
  ASSERT_EQ(model.groups.size(), 3U);
  EXPECT_DOUBLE_EQ(model.groups[2].logits.multiplier, 1.0 / 3);
  const Model plain = layers_model("gpt_bigcode", R"("scale_attn_weights": false)");
  EXPECT_DOUBLE_EQ(plain.groups[0].logits.multiplier, std::sqrt(128.0));
}

TEST(LayersDbrx, BaseAndHeadsAreInsideAttnConfig) {
  const auto model =
      read_config(R"({"model_type": "dbrx", "d_model": 512, "n_heads": 4, "n_layers": 2,
      "max_seq_len": 4096, "attn_config": {"clip_qkv": 8, "kv_n_heads": 2, "rope_theta": 500000}})");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(layer_rope(*model).rope_theta, 500000);
  EXPECT_EQ(model->groups[0].geometry.kv_heads, 2);
  for (const Provenance& value : model->groups[0].provenance) {
    if (value.field == "kv_heads") {
      EXPECT_EQ(value.detail, "attn_config.kv_n_heads");
    }
    if (value.field == "rope_theta") {
      EXPECT_EQ(value.detail, "attn_config.rope_theta");
    }
  }
}

TEST(LayersFalconH1, KeysHaveAMultiplier) {
  const Model model = layers_model("falcon_h1", R"("rope_theta": 1e11, "key_multiplier": 0.25)");
  EXPECT_EQ(pattern(model), "rrrrrrrr");
  EXPECT_DOUBLE_EQ(model.groups[0].logits.multiplier, 0.25);
}

TEST(LayersModernBertDecoder, WindowIsHalfOfTheEncoders) {
  const Model model =
      layers_model("modernbert-decoder", R"("local_attention": 128, "local_rope_theta": 160000)");
  EXPECT_EQ(pattern(model), "rwwrwwrw");
  EXPECT_TRUE(model.groups[0].causal);
  EXPECT_EQ(model.groups[1].window, 64);
  EXPECT_EQ(layers_model("modernbert-decoder", R"("sliding_window": 64, "local_attention": 128)")
                .groups[1]
                .window,
            64);
  EXPECT_EQ(layers_model("modernbert-decoder", R"("global_rope_theta": 160000)").groups[1].window,
            64);
}

TEST(LayersYoutu, AreDeepSeeks) {
  const Rope rope = layer_rope(layers_model("youtu", R"("qk_rope_head_dim": 64)"));
  EXPECT_EQ(rope.pairing, Pairing::interleaved);
  EXPECT_EQ(rope.slice, SliceEnd::trailing);
}

// Its default of shared layers is more than the layers that a refused list leaves.
TEST(LayersGemma3n, ListOfTheWrongKindIsRefused) {
  EXPECT_FALSE(read_config(R"({"model_type": "gemma3n_text", "layer_types": 5})"));
}

bool layers_warn(const Model& model, std::string_view code, std::string_view text = {}) {
  return std::ranges::any_of(model.warnings, [&](const Warning& warning) {
    return warning.code == code && warning.message.contains(text);
  });
}

std::string layers_note_of(const LayerGroup& group, std::string_view field) {
  for (const Provenance& value : group.provenance)
    if (value.field == field) return value.value + " " + value.detail;
  return {};
}

TEST(LayersMimo, TokensBeforeTheQueryAreCountedWithoutIt) {
  const auto window = [](std::string_view more) {
    return find_group(layers_model("mimo_v2_flash", more), 1, Stack::text)->window;
  };
  EXPECT_EQ(window(R"("sliding_window": 128, "sliding_window_size": 128)"), 129);
  EXPECT_EQ(window(R"("sliding_window_size": 64)"), 65);
  EXPECT_EQ(window(R"("sliding_window": 128)"), 128);
}

TEST(LayersMimo, LaterOnesListWhichLayersSlideByABaseOfTheirOwn) {
  const Model model = layers_model("mimo_v2", R"("hybrid_layer_pattern": [0, 1, 1, 0],
                              "rope_theta": 10000000, "swa_rope_theta": 20000,
                              "sliding_window_size": 64, "attention_chunk_size": 64)",
                                   "4");
  const auto theta = [&](std::int64_t layer) {
    return std::get<Rope>(find_group(model, layer, Stack::text)->schemes.at(0)).rope_theta;
  };
  EXPECT_EQ(theta(0), 1e7);
  EXPECT_EQ(theta(1), 20000);
  EXPECT_EQ(find_group(model, 1, Stack::text)->window, 65);
  EXPECT_FALSE(find_group(model, 3, Stack::text)->window);
  EXPECT_FALSE(layers_warn(model, "unread_key", "attention_chunk_size"));
}

TEST(LayersLlama4, WithoutAChunkAllLayersSeeAll) {
  const Model model = layers_model("llama4_text", R"("attention_chunk_size": null)");
  EXPECT_EQ(pattern(model), "rrrnrrrn");
  EXPECT_EQ(pattern(layers_model("llama4_text", R"("head_dim": 128)")), "wwwnwwwn");
}

TEST(LayersLaraMini, LayersThatSlideRotateAlone) {
  const Model model = layers_model("lara_mini", R"("head_dim": 128)");
  EXPECT_EQ(pattern(model), "nwnnwnwn");
  EXPECT_EQ(find_group(model, 0, Stack::text)->mixer, Mixer::recurrence);
  EXPECT_EQ(find_group(model, 3, Stack::text)->mixer, Mixer::attention);
}

TEST(LayersDory, AnAttentionAndAPerceptronAreOneLayer) {
  const Model model = layers_model(
      "dory", R"("n_input_layers": 2, "n_output_layers": 2, "layer_types": ["sliding_attention",
      "mlp", "sliding_attention", "mlp", "full_attention", "mlp", "sliding_attention", "mlp"])");
  EXPECT_EQ(pattern(model), "wwrw");
  EXPECT_EQ(find_group(model, 1, Stack::text)->label, "sliding attention, run 2 times");
  EXPECT_EQ(std::get<Rope>(find_group(model, 0, Stack::text)->schemes.at(0)).rope_theta, 1e4);
  EXPECT_EQ(std::get<Rope>(find_group(model, 2, Stack::text)->schemes.at(0)).rope_theta, 1e7);
}

TEST(LayersEncoders, TheNoteOfAWindowSaysWhichSideItCounts) {
  const auto note = [](std::string_view type, std::string_view more) {
    const Model model = layers_model(type, more);
    const LayerGroup* const group = find_group(model, 0, Stack::encoder);
    return group ? layers_note_of(*group, "window") : "no encoder";
  };
  EXPECT_EQ(note("embedding_gemma2_text", R"("sliding_window": 512)"),
            "512 sliding_window, on each side");
  EXPECT_EQ(note("gemma3_text", R"("sliding_window": 512, "is_causal": false)"),
            "512 sliding_window, on each side");
  EXPECT_EQ(note("gemma4_text", R"("sliding_window": 512, "use_bidirectional_attention": true)"),
            "512 sliding_window, half of it and one on each side");
  EXPECT_EQ(note("modernbert", R"("local_attention": 128, "global_attn_every_n_layers": 3,
      "layer_types": ["sliding_attention", "full_attention", "full_attention", "full_attention",
      "full_attention", "full_attention", "full_attention", "full_attention"])"),
            "128 local_attention, half of it on each side");
}

TEST(LayersT5Gemma2, HalfOfAWindowCountsTheQuery) {
  const auto behind = [](std::string_view window) {
    const auto model = read_config(R"({"model_type": "t5gemma2", "encoder": {"model_type":
      "t5gemma2_text", "num_hidden_layers": 6, "sliding_window": )" +
                                   std::string(window) + R"(},
      "decoder": {"model_type": "t5gemma2_decoder", "num_hidden_layers": 6}})");
    EXPECT_TRUE(model);
    if (!model) return std::int64_t{-1};
    EXPECT_FALSE(find_group(*model, 0, Stack::decoder)->behind);
    return find_group(*model, 0, Stack::encoder)->behind.value_or(-1);
  };
  EXPECT_EQ(behind("512"), 255);
  EXPECT_EQ(behind("513"), 256);
}

TEST(LayersGenericRule, TellsOfLayersWhatTheFileSays) {
  const auto told = [](std::string_view more, std::string_view text) {
    return layers_warn(layers_model("zork", more), "unknown_family", text);
  };
  constexpr std::string_view plain = R"("rope_theta": 10000)";
  EXPECT_TRUE(told(plain, "that every layer rotates"));
  EXPECT_TRUE(told(plain, "none has a window"));
  constexpr std::string_view mixed =
      R"("rope_theta": 10000, "sliding_window": 64, "layer_types": ["mamba", "sliding_attention",
      "mamba", "full_attention", "mlp", "full_attention", "mamba", "full_attention"])";
  EXPECT_FALSE(told(mixed, "every layer rotates"));
  EXPECT_FALSE(told(mixed, "none has a window"));
  EXPECT_TRUE(told(mixed, "is what the file says"));
}

TEST(LayersWarnings, KeysThatSpeakOfTheRotationAndThatNobodyReads) {
  for (const char* key : {R"("rope_scaling_factor": 16)", R"("rotary_interpolation_factor": 8)",
                          R"("use_yarn": true)", R"("position_interpolation_scale": 0.25)",
                          R"("rope_scaling_type": "yarn")", R"("rope_ratio": 8)"})
    EXPECT_TRUE(layers_warn(layers_model("llama", key), "unread_key", "does not read")) << key;
  for (const char* key : {R"("rope_scaling_factor": 1)", R"("use_yarn": false)",
                          R"("rope_scaling_type": "default")", R"("rope_attention_factor": 2)"})
    EXPECT_TRUE(layers_model("llama", key).warnings.empty()) << key;
}

TEST(LayersWarnings, ListsThatNameLayersAreSaid) {
  EXPECT_TRUE(
      layers_warn(layers_model("zork", R"("rope_theta": 1e4, "sliding_window_layers": [1, 3])"),
                  "layer_list_unread", "names 2 of"));
}

}  // namespace
}  // namespace posenc
