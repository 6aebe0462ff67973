// Rows of families whose code does what no field of a file says, each as its own code has it.
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "posenc/model.h"

namespace posenc {
namespace {

Model read_model_text(std::string_view text) {
  auto model = read_config(text);
  if (!model) ADD_FAILURE() << text << ": " << model.error().message();
  return model ? *model : Model{.groups = {LayerGroup{.schemes = {NoPe{}}}}};
}

Model small_model(std::string_view type, std::string_view more) {
  return read_model_text(
      R"({"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 8, "model_type": ")" +
      std::string(type) + R"(", "num_key_value_heads": 4, "max_position_embeddings": 4096, )" +
      std::string(more) + "}");
}

bool rows_warn(const Model& model, std::string_view code) {
  return std::ranges::find(model.warnings, code, &Warning::code) != model.warnings.end();
}

const LayerGroup* group_of_layer(const Model& model, std::int64_t layer) {
  const LayerGroup* group = find_group(model, layer, Stack::text);
  return group ? group : find_group(model, layer, Stack::encoder);
}

// Of the eight layers, '1' where one rotates and 'w' where it has a window.
std::string where_rotated(const Model& model) {
  std::string pattern;
  for (std::int64_t i = 0; i < 8; ++i) {
    const LayerGroup* group = group_of_layer(model, i);
    pattern += group && std::holds_alternative<Rope>(group->schemes[0]) ? '1' : '0';
  }
  return pattern;
}
std::string where_windowed(const Model& model) {
  std::string pattern;
  for (std::int64_t i = 0; i < 8; ++i) {
    const LayerGroup* group = group_of_layer(model, i);
    pattern += group && group->window ? 'w' : '.';
  }
  return pattern;
}

TEST(FamilyRows, MobileBertsHeadsShareTheBottleneck) {
  const Model model = small_model("mobilebert", R"("intra_bottleneck_size": 128)");
  EXPECT_EQ(model.groups.at(0).geometry.head_dim, 32);
}

TEST(FamilyRows, PaliGemmaSeesItsPromptBothWaysAndSaysSo) {
  const Model model = read_model_text(R"({"model_type": "paligemma", "text_config": {
    "model_type": "gemma", "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
    "num_hidden_layers": 2, "head_dim": 64}})");
  EXPECT_TRUE(model.groups.at(0).causal);
  EXPECT_TRUE(rows_warn(model, "family_remark"));
}

TEST(FamilyRows, PhiMoeNeverTakesItsLongFactorsInTransformers) {
  const std::string factors = "[1" + [] {
    std::string more;
    for (int i = 1; i < 32; ++i) more += ", 1";
    return more + "]";
  }();
  const Model model = small_model(
      "phimoe", R"("rope_scaling": {"type": "longrope", "original_max_position_embeddings": 1024,
                   "short_factor": )" +
                    factors + R"(, "long_factor": )" + factors + "}");
  EXPECT_TRUE(rows_warn(model, "long_factor_unread"));
}

TEST(FamilyRows, ABaseForEachLayerOfWhichNoughtIsNoPosition) {
  const Model model = small_model(
      "granite_swa",
      R"("rope_theta": 10000, "layer_rope_theta": [0, 1e4, 1e4, 5e5, 0, 1e4, 1e4, 5e5])");
  EXPECT_EQ(where_rotated(model), "01110111");
  const LayerGroup* last = find_group(model, 7, Stack::text);
  ASSERT_TRUE(last);
  EXPECT_EQ(std::get<Rope>(last->schemes.at(0)).rope_theta, 500000);
}

TEST(FamilyRows, UltraBertsFirstFilesHaveAWindowAndABaseForEachLayer) {
  const Model model =
      small_model("ultrabert", R"("rope_theta": [1e3, 1e3, 5e4, 1e3, 1e3, 5e4, 2e3, 1e3],
                      "attention_windows": [64, 64, null, 64, 64, null, 64, 0])");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[0].window, 128);  // 64 on each side
  EXPECT_EQ(std::get<Rope>(model.groups[0].schemes.at(0)).rope_theta, 2000);
  EXPECT_EQ(model.groups[1].layers, (std::vector<std::int64_t>{2, 5, 7}));
  EXPECT_EQ(std::get<Rope>(model.groups[1].schemes.at(0)).rope_theta, 1000);
  EXPECT_FALSE(rows_warn(model, "unread_key"));
}

TEST(FamilyRows, RecurrentGemmaRepeatsItsBlockTypes) {
  const Model model = small_model(
      "recurrent_gemma",
      R"("attention_window_size": 64, "block_types": ["recurrent", "recurrent", "attention"])");
  EXPECT_EQ(where_rotated(model), "00100100");
  EXPECT_EQ(where_windowed(model), "..w..w..");
}

TEST(FamilyRows, KimiLinearHasNoPositionAndCountsItsLayersFromOne) {
  const Model model = small_model(
      "kimi_linear", R"("linear_attn_config": {"full_attn_layers": [4, 8], "kda_layers": [1, 2]})");
  EXPECT_EQ(where_rotated(model), "00000000");
  const LayerGroup* full = find_group(model, 3, Stack::text);
  ASSERT_TRUE(full);
  EXPECT_GT(full->cache_elements, 0);
  EXPECT_EQ(find_group(model, 0, Stack::text)->cache_elements, 0);
}

TEST(FamilyRows, Glm5NextsLatentHeadsHaveNoRotatedPart) {
  const Model model = small_model(
      "glm5_next_text", R"("qk_rope_head_dim": 0, "qk_nope_head_dim": 64, "kv_lora_rank": 32)");
  EXPECT_EQ(model.groups.at(0).geometry.head_dim, 64);
  EXPECT_EQ(model.groups.at(0).cache_elements, 32);
}

TEST(FamilyRows, BeamsLayersWithoutPositionHaveATemperature) {
  const Model model = small_model("beam", R"("rms_norm_eps": 1e-6)");
  EXPECT_EQ(where_windowed(model), "wwwww.w.");
  for (const LayerGroup& group : model.groups) {
    const bool plain = std::holds_alternative<NoPe>(group.schemes.front());
    EXPECT_EQ(plain, !group.window.has_value());
    const Expected<Plan> plan = compile(group);
    ASSERT_TRUE(plan);
    EXPECT_DOUBLE_EQ(plan->logits.query_scale(2047), plain ? std::pow(2, 0.1) : 1);
  }
}

TEST(FamilyRows, BeamsFileSaysWhatHasPosition) {
  const Model model = small_model("beam", R"("rope_parameters": {
      "sliding_attention": null, "full_attention": {"rope_theta": 500}})");
  for (const LayerGroup& group : model.groups)
    EXPECT_EQ(std::holds_alternative<NoPe>(group.schemes.front()), group.window.has_value());
}

TEST(FamilyRows, WhatOnlyACheckpointsOwnCodeReadsIsTold) {
  for (const char* key : {R"("rotary_emb_base": 10000)", R"("rotary_emb_fraction": 0.5)",
                          R"("rotary_emb_interleaved": true)"})
    EXPECT_TRUE(rows_warn(small_model("nomic_bert", key), "own_code_key")) << key;
  for (const char* key : {R"("rotary_emb_base": 1000)", R"("rotary_emb_fraction": 1.0)",
                          R"("rotary_emb_interleaved": false)", R"("rope_theta": 10000)"})
    EXPECT_FALSE(rows_warn(small_model("nomic_bert", key), "own_code_key")) << key;
}

TEST(FamilyRows, NomicsOwnCodeGrowsTheBaseBeyondWhatWasTrained) {
  const Model model =
      small_model("nomic_bert", R"("rotary_scaling_factor": 2, "max_trained_positions": 2048)");
  const auto& rope = std::get<Rope>(model.groups.at(0).schemes.at(0));
  EXPECT_EQ(rope.scaling, Scaling(DynamicNtk{.factor = 2, .max_position_embeddings = 2048}));
  EXPECT_FALSE(rows_warn(model, "ignored_key"));
}

TEST(FamilyRows, NomicsPartStandsInItsOwnKeyAlone) {
  const Model model = small_model(
      "nomic_bert", R"("rope_parameters": {"rope_theta": 1000, "partial_rotary_factor": 0.5})");
  EXPECT_TRUE(rows_warn(model, "unread_key"));
  EXPECT_EQ(compile(model.groups.at(0))->rotate->slice.rotary_dim, 64);
}

TEST(FamilyRows, NeoXsHeadsShareTheWidth) {
  const Model model = small_model("gpt_neox", R"("head_dim": 16)");
  EXPECT_EQ(model.groups.at(0).geometry.head_dim, 64);
  EXPECT_TRUE(rows_warn(model, "unread_key"));
}

TEST(FamilyRows, ErniesPairsTakeHeightAndWidthInTurns) {
  const Model model = small_model("ernie4_5_vl_moe_text", R"("rope_parameters": {
      "rope_type": "default", "rope_theta": 500000, "mrope_section": [12, 12, 8]})");
  const Expected<Plan> plan = compile(model.groups.at(0));
  ASSERT_TRUE(plan) << plan.error().message();
  for (std::int64_t r = 0; r < 32; ++r)
    EXPECT_NE(plan->rotate->at(0, r >= 24 ? 0 : 1 + r % 2, r), 0) << r;
}

TEST(FamilyRows, NeoMMEsTwoAxesTakePairsInTurns) {
  const Model model =
      small_model("neomme", R"("sliding_window": 16, "per_layer_config": {"1": {}})");
  ASSERT_EQ(model.groups.size(), 2u);
  for (const LayerGroup& group : model.groups) {
    const Expected<Plan> plan = compile(group);
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(plan->rotate->pairs(), group.window ? 32 : 8);
    for (std::int64_t r = 0; r < plan->rotate->pairs(); ++r)
      EXPECT_NE(plan->rotate->at(0, r % 2, r), 0) << r;
  }
}

TEST(FamilyRows, NeoMMEsLayersHaveWindowsOfTheirOwn) {
  const auto windows = [](std::string_view more) {
    std::string text;
    for (const LayerGroup& group : small_model("neomme", more).groups)
      text += std::to_string(group.layers.size()) + "x" + std::to_string(group.window.value_or(0)) +
              " ";
    return text;
  };
  EXPECT_EQ(windows(R"("sliding_window": 16)"), "3x32 3x2048 2x0 ");
  EXPECT_EQ(windows(R"("sliding_window": 16, "per_layer_config": {"02": {"sliding_window": 8}})"),
            "5x32 1x16 2x0 ");
}

TEST(FamilyRows, HunYuanVLsPairsHaveFourAxesAndTransformersIsToldOf) {
  const Model model = small_model("hunyuan_vl_text", R"("rope_scaling": {
      "type": "xdrope", "alpha": 1000, "xdrope_section": [8, 8, 8, 8]})");
  const Expected<Plan> plan = compile(model.groups.at(0));
  ASSERT_TRUE(plan) << plan.error().message();
  for (std::int64_t r = 0; r < 32; ++r) EXPECT_NE(plan->rotate->at(0, r / 8, r), 0) << r;
  EXPECT_TRUE(rows_warn(model, "sections_disputed"));
  EXPECT_FALSE(
      rows_warn(small_model("hunyuan_vl_text", R"("rope_theta": 1e4)"), "sections_disputed"));
}

TEST(FamilyRows, ClvpsValuesAreRotatedAndStay) {
  const Model model = small_model("clvp_encoder", R"("projection_dim": 256)");
  const Rope rope = std::get<Rope>(model.groups.at(0).schemes.at(0));
  EXPECT_TRUE(rope.rotate_values && rope.values_stay);
  EXPECT_EQ(compile(model.groups[0])->rotate->slice.rotary_dim, 32);
  EXPECT_EQ(where_rotated(small_model("clvp_encoder", R"("use_rotary_embedding": false)")),
            "00000000");
}

TEST(FamilyRows, RoFormersValuesAreRotatedWhereTheFileSaysSo) {
  const auto values = [](std::string_view more) {
    const auto plan = compile(small_model("roformer", more).groups.at(0));
    return plan->rotate->values == Values::rotated;
  };
  EXPECT_TRUE(values(R"("rotary_value": true)"));
  EXPECT_FALSE(values(R"("rotary_value": false)"));
}

TEST(FamilyRows, OneHeadOfQwenOmnisSpectraRotates) {
  const Model model = small_model("qwen2_5_omni_dit", R"("block_size": 24,
      "look_ahead_layers": [3], "look_backward_layers": [0, 5])");
  EXPECT_EQ(where_windowed(model), ".ww.w.ww");
  const auto plan = compile(model.groups.at(0));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->rotate->frequencies.heads, model.groups[0].geometry.heads);
  EXPECT_EQ(plan->rotate->at(1, 0, 0), 0);
  EXPECT_EQ(plan->rotate->at(0, 0, 0), 1);
}

TEST(FamilyRows, ADiffusionTransformersAxesAreInItsFile) {
  const Model model = read_model_text(R"({"_class_name": "FluxTransformer2DModel", "num_layers": 2,
      "num_single_layers": 3, "attention_head_dim": 64, "axes_dims_rope": [16, 24, 24]})");
  EXPECT_EQ(model.groups.at(0).layers.size(), 5u);
  EXPECT_EQ(std::get<Axial>(model.groups.at(0).schemes.at(0)).axes_dim,
            (std::vector<std::int64_t>{16, 24, 24}));
}

TEST(FamilyRows, WansAxesShareAHead) {
  const Model model = read_model_text(R"({"_class_name": "WanTransformer3DModel"})");
  EXPECT_EQ(std::get<Axial>(model.groups.at(0).schemes.at(0)).axes_dim,
            (std::vector<std::int64_t>{44, 42, 42}));
}

TEST(FamilyRows, WansOwnFileIsThatOfDiffusers) {
  const Model own = read_model_text(R"({"_class_name": "WanModel", "model_type": "t2v",
      "dim": 1536, "num_heads": 12, "num_layers": 30})");
  const Model diffusers = read_model_text(R"({"_class_name": "WanTransformer3DModel",
      "attention_head_dim": 128, "num_attention_heads": 12, "num_layers": 30})");
  EXPECT_EQ(own.groups.at(0).schemes, diffusers.groups.at(0).schemes);
  EXPECT_EQ(own.groups.at(0).layers, diffusers.groups.at(0).layers);
}

TEST(FamilyRows, DiffusionTransformersThatNoSchemeSaysAreRefusedByName) {
  for (const char* name : {"SD3Transformer2DModel", "PixArtTransformer2DModel",
                           "LTXVideoTransformer3DModel", "MochiTransformer3DModel"}) {
    const auto model = read_config(R"({"_class_name": ")" + std::string(name) + "\"}");
    ASSERT_FALSE(model) << name;
    EXPECT_EQ(model.error().rule, "is known and not covered") << name;
  }
}

TEST(FamilyRows, CogVideoXRotatesOnlyWhereItsFileAsksForIt) {
  const auto added = read_config(R"({"_class_name": "CogVideoXTransformer3DModel"})");
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().where, "config.json: use_rotary_positional_embeddings");
  const auto rotated = read_config(R"({"_class_name": "CogVideoXTransformer3DModel",
      "use_rotary_positional_embeddings": true})");
  ASSERT_TRUE(rotated);
  EXPECT_EQ(std::get<Axial>(rotated->groups.at(0).schemes.at(0)).axes_dim,
            (std::vector<std::int64_t>{16, 24, 24}));
}

TEST(FamilyRows, OddThirdsOfWansHeadAreToldOf) {
  const Model even = read_model_text(R"({"_class_name": "WanTransformer3DModel"})");
  EXPECT_TRUE(even.warnings.empty());
  const Model odd = read_model_text(R"({"_class_name": "WanTransformer3DModel",
      "attention_head_dim": 64})");
  ASSERT_EQ(odd.warnings.size(), 1u);
  EXPECT_TRUE(odd.warnings[0].message.contains("[24, 20, 20]")) << odd.warnings[0].message;
}

TEST(FamilyRows, AxesWithoutChannelsAreRefused) {
  for (const char* type : {"Kandinsky5Transformer3DModel", "FluxTransformer2DModel"}) {
    const auto model = read_config(R"({"_class_name": ")" + std::string(type) +
                                   R"(", "axes_dims": [], "axes_dims_rope": []})");
    ASSERT_FALSE(model) << type;
    EXPECT_EQ(model.error().rule, "must be the channels of each axis") << type;
  }
}

TEST(FamilyRows, KandinskysRowsAndColumnsAreDivided) {
  const Model model = read_model_text(R"({"_class_name": "Kandinsky6Transformer3DModel"})");
  EXPECT_EQ(std::get<Axial>(model.groups.at(0).schemes.at(0)).position_scale,
            (std::vector<double>{1, 0.5, 0.5}));
}

TEST(FamilyRows, DivisorsAreAsManyAsAxes) {
  const auto model = read_config(R"({"_class_name": "Kandinsky6Transformer3DModel",
      "scale_factor": [1.0, 4.0]})");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().where, "config.json: scale_factor");
}

TEST(FamilyRows, OpenClipsDescriptionIsNamed) {
  const auto model = read_config(R"({"embed_dim": 512, "vision_cfg": {}, "text_cfg": {}})");
  ASSERT_FALSE(model);
  EXPECT_TRUE(model.error().rule.contains("open_clip")) << model.error().message();
}

TEST(FamilyRows, MiMoIsQwen2WithLayersThatDraft) {
  const Model model = small_model("mimo", R"("rope_theta": 640000, "use_sliding_window": false)");
  EXPECT_TRUE(model.known_family);
  EXPECT_EQ(std::get<Rope>(model.groups.at(0).schemes.at(0)).rope_theta, 640000);
}

TEST(FamilyRows, MiniMaxM3RotatesHalfOfAHead) {
  for (const char* said : {R"("rotary_dim": 32)", R"("partial_rotary_factor": 0.5)"}) {
    const Model model = small_model("minimax_m3", R"("head_dim": 64, )" + std::string(said));
    EXPECT_EQ(compile(model.groups.at(0))->rotate->slice.rotary_dim, 32) << said;
  }
}

TEST(FamilyRows, AHeadsOwnWidthMayBeThatOfEitherPart) {
  const auto warned = [](const char* head_dim) {
    return rows_warn(small_model("glm_moe_dsa", R"("qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
        "head_dim": )" + std::string(head_dim)),
                     "unread_key");
  };
  EXPECT_FALSE(warned("192"));
  EXPECT_FALSE(warned("64"));
  EXPECT_FALSE(warned("256"));
  EXPECT_TRUE(warned("100"));
}

TEST(FamilyRows, QwensQueriesGrowWithTheLogarithmPastItsSeqLength) {
  const auto scale = [](std::string_view more, std::int64_t position) {
    const Expected<Plan> plan = compile(small_model("qwen", more).groups.at(0));
    return plan ? plan->logits.query_scale(position) : 0;
  };
  EXPECT_EQ(scale(R"("seq_length": 2048)", 2047), 1);
  EXPECT_NEAR(scale(R"("seq_length": 2048)", 9999), std::log(10000) / std::log(2048), 1e-12);
  EXPECT_NEAR(scale(R"("rotary_pct": 1.0)", 9999), std::log(10000) / std::log(8192), 1e-12);
  EXPECT_EQ(scale(R"("seq_length": 2048, "use_logn_attn": false)", 9999), 1);
}

TEST(FamilyRows, MistralLarge4sTemperatureIsTheCheckpoints) {
  const Model model = small_model("mistral_large4_text", R"("rms_norm_eps": 1e-6)");
  ASSERT_EQ(model.groups.size(), 2u);
  for (const LayerGroup& group : model.groups) {
    const Expected<Plan> plan = compile(group);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->logits.temperature, Temperature::heads);
    EXPECT_EQ(plan->logits.offset, 1);
    EXPECT_TRUE(plan->logits.head_scale.empty());
  }
}

TEST(FamilyRows, InklingsTokensHaveProfilesAsFarAsTheWindow) {
  const Model model = read_model_text(
      R"({"model_type": "inkling_text", "num_hidden_layers": 12, "hidden_size": 6144, "num_attention_heads": 64,
          "num_key_value_heads": 8, "head_dim": 128, "log_scaling_n_floor": 128000})");
  ASSERT_EQ(model.groups.size(), 2u);
  const LayerGroup &local = model.groups[0], &whole = model.groups[1];
  EXPECT_EQ(whole.layers, (std::vector<std::int64_t>{5, 11}));
  EXPECT_EQ(local.window, 512);
  EXPECT_EQ(local.geometry.kv_heads, 16);
  EXPECT_EQ(whole.geometry.kv_heads, 8);
  EXPECT_EQ(std::get<Profiles>(local.schemes[0]).extent, 512);
  EXPECT_EQ(std::get<Profiles>(whole.schemes[0]).extent, 1024);
  const Expected<Plan> plan = compile(whole);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->relative->profiles, 16);
  EXPECT_EQ(plan->logits.temperature, Temperature::log);
  EXPECT_NEAR(plan->logits.query_scale(255999), (1 + 0.1 * std::log(2.0)) / std::sqrt(128.0),
              1e-12);
  EXPECT_FALSE(compile(local)->logits.has_temperature());
}

TEST(FamilyRows, Inkling2LearnsSinksAndDividesByTheRoot) {
  const Model model =
      small_model("inkling2_text", R"("head_dim": 64, "swa_num_key_value_heads": 2)");
  for (const LayerGroup& group : model.groups) {
    EXPECT_TRUE(group.sink_logits);
    EXPECT_EQ(group.logits.multiplier, 1);
    EXPECT_EQ(group.geometry.kv_heads, group.window ? 2 : 4);
  }
}

TEST(FamilyRows, WavLMsBucketsHaveAGate) {
  const Model model = small_model("wavlm", R"("num_buckets": 64, "max_bucket_distance": 100)");
  ASSERT_EQ(model.groups.size(), 1u);
  EXPECT_FALSE(model.groups[0].causal);
  const Profiles scheme = std::get<Profiles>(model.groups[0].schemes[0]);
  EXPECT_EQ(scheme.curves, ProfileCurves::buckets);
  EXPECT_EQ(scheme.num_buckets, 64);
  EXPECT_EQ(scheme.max_distance, 100);
  EXPECT_EQ(compile(model.groups[0])->relative->profiles, 1);
}

TEST(FamilyRows, WhatNoPlanSaysIsRefusedWithTheReason) {
  for (const char* type : {"reformer", "dots3_note"}) {
    const auto model = read_config(R"({"model_type": ")" + std::string(type) + R"("})");
    ASSERT_FALSE(model) << type;
    EXPECT_EQ(model.error().rule, "is known and not covered");
    EXPECT_NE(model.error().cure, "its positions are not one of the schemes") << type;
  }
}

TEST(FamilyRows, MiniMaxsAttentionSlidesWhereTheFileHasAWindow) {
  EXPECT_EQ(where_windowed(small_model("minimax", R"("sliding_window": 512)")), "w.w.w.w.");
  EXPECT_EQ(where_windowed(small_model("minimax", R"("sliding_window": null)")), "........");
  EXPECT_EQ(where_windowed(small_model("minimax", R"("rope_theta": 1e6)")), "........");
}

TEST(FamilyRows, OlmosHybridHasNoPositionWhereItsBaseIsNull) {
  EXPECT_EQ(where_rotated(small_model("olmo_hybrid", R"("rope_parameters": {"rope_theta": null})")),
            "00000000");
  EXPECT_EQ(
      where_rotated(small_model("olmo_hybrid", R"("rope_parameters": null, "rope_theta": null)")),
      "00000000");
  EXPECT_EQ(where_rotated(small_model("olmo_hybrid", R"("rope_theta": 500000)")), "00010001");
}

TEST(FamilyRows, NanochatRotatesTheOtherWay) {
  const auto plan = compile(small_model("nanochat", R"("rope_theta": 10000)").groups[0]);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rotate->frequencies.radians[0], -1);
}

TEST(FamilyRows, StepsRotateAsTheirKindOfLayerDoes) {
  const Model model =
      small_model("step3p5", R"("layer_types": ["full_attention", "sliding_attention",
      "full_attention", "sliding_attention", "full_attention", "sliding_attention",
      "full_attention", "sliding_attention"], "sliding_window": 512, "head_dim": 128,
      "query_pre_attn_scalar": 64, "rope_parameters": {
        "full_attention": {"rope_theta": 5000000, "partial_rotary_factor": 0.5},
        "sliding_attention": {"rope_theta": 10000}})");
  EXPECT_EQ(where_windowed(model), ".w.w.w.w");
  EXPECT_EQ(compile(*find_group(model, 0, Stack::text))->rotate->slice.rotary_dim, 64);
  EXPECT_EQ(compile(*find_group(model, 1, Stack::text))->rotate->slice.rotary_dim, 128);
  EXPECT_DOUBLE_EQ(model.groups[0].logits.multiplier, std::sqrt(2));
}

TEST(FamilyRows, ListsMayGoOnForLayersThatGuess) {
  const Model model =
      small_model("step3p5", R"("layer_types": ["full_attention", "sliding_attention",
      "full_attention", "sliding_attention", "full_attention", "sliding_attention",
      "full_attention", "sliding_attention", "full_attention", "full_attention"],
      "sliding_window": 512, "head_dim": 128, "num_nextn_predict_layers": 2)");
  EXPECT_EQ(where_windowed(model), ".w.w.w.w");
}

TEST(FamilyRows, StepsPublishedFilesHaveLists) {
  const Model model =
      small_model("step3p5", R"("layer_types": ["full_attention", "sliding_attention",
      "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
      "sliding_attention", "sliding_attention"], "sliding_window": 512, "head_dim": 128,
      "rope_theta": [5000000.0, 10000.0, 10000.0, 10000.0, 5000000.0, 10000.0, 10000.0, 10000.0],
      "partial_rotary_factors": [0.5, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0],
      "yarn_only_types": ["full_attention"], "rope_scaling": {"rope_type": "llama3", "factor": 2.0,
        "original_max_position_embeddings": 131072, "low_freq_factor": 1.0,
        "high_freq_factor": 32.0})");
  ASSERT_EQ(model.groups.size(), 2);
  const Rope& full = std::get<Rope>(model.groups[0].schemes.front());
  const Rope& sliding = std::get<Rope>(model.groups[1].schemes.front());
  EXPECT_EQ(full.rope_theta, 5e6);
  EXPECT_EQ(full.rotary_dim, 64);
  EXPECT_TRUE(std::holds_alternative<Llama3>(full.scaling));
  EXPECT_EQ(sliding.rope_theta, 10000);
  EXPECT_TRUE(std::holds_alternative<Unscaled>(sliding.scaling));
  EXPECT_EQ(compile(model.groups[1])->rotate->slice.rotary_dim, 128);
}

TEST(FamilyRows, UnlimitedOcrsWindowsAreOfWhatItWrites) {
  const Model model = small_model("unlimited_ocr_text", R"("sliding_window": 128, "layer_types": [
      "reference_sliding_attention", "reference_sliding_attention", "reference_sliding_attention",
      "reference_sliding_attention", "reference_sliding_attention", "reference_sliding_attention",
      "reference_sliding_attention", "reference_sliding_attention"])");
  EXPECT_EQ(where_windowed(model), "........");
}

TEST(FamilyRows, RepositionedLayersAreTold) {
  const auto warnings = [](std::string_view mode) {
    const auto model = read_config(R"({"model_type": "olmo2", "hidden_size": 256,
        "num_attention_heads": 4, "num_hidden_layers": 8, "max_position_embeddings": 4096,
        "rope_theta": 500000, "pe_config": {"dynamic_pe_mode": ")" +
                                   std::string(mode) + R"(", "dynmaic_pe_start_layer": 5}})");
    EXPECT_TRUE(model);
    return model ? model->warnings : std::vector<Warning>{};
  };
  const auto told = warnings("swigluex_multihead");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code, "own_code_key");
  EXPECT_TRUE(told[0].message.contains("layers from 5 on")) << told[0].message;
  EXPECT_TRUE(warnings("none").empty());
}

TEST(FamilyRows, Molmo2MustScaleAllLayersOrNone) {
  const auto model = read_config(R"({"model_type": "molmo2_text", "hidden_size": 256,
      "num_attention_heads": 4, "num_hidden_layers": 8, "rope_scaling_layers": [0, 4],
      "rope_scaling": {"rope_type": "linear", "factor": 2}})");
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message().find("every layer"), std::string::npos);
}

const Rope& first_rope(const Model& model) {
  static const Rope none;
  const Rope* const rope = std::get_if<Rope>(&model.groups.at(0).schemes.at(0));
  if (!rope) ADD_FAILURE() << "another scheme";
  return rope ? *rope : none;
}

constexpr std::string_view scaled =
    R"("rope_scaling": {"rope_type": "linear", "factor": 4, "partial_rotary_factor": 0.5})";

TEST(FamilyRows, CodeThatReadsNoParametersRotatesPlainly) {
  for (const std::string type : {"gptj", "codegen", "esm"}) {
    const std::string more =
        R"("rotary_dim": 16, "position_embedding_type": "rotary", "vocab_size": 64, )";
    for (const std::string spelling : {"rope_scaling", "rope_parameters"}) {
      const Model model =
          small_model(type, more + '"' + spelling + R"(": {"rope_type": "linear", "factor": 4,
                                "partial_rotary_factor": 0.5})");
      EXPECT_EQ(first_rope(model).scaling, Scaling{Unscaled{}}) << type;
      EXPECT_TRUE(rows_warn(model, "unread_key")) << type;
      EXPECT_FALSE(rows_warn(model, "partial_conflict")) << type;
    }
    const Model model = small_model(type, more + R"("rope_theta": 50000)");
    EXPECT_EQ(first_rope(model).rope_theta, 10000) << type;
    EXPECT_TRUE(rows_warn(model, "unread_key")) << type;
  }
  EXPECT_EQ(
      first_rope(small_model("gptj", R"("rotary_dim": 16, )" + std::string(scaled))).rotary_dim,
      16);
}

TEST(FamilyRows, AHeadThatSharesTheWidthHasNoDimOfItsOwn) {
  for (const std::string type : {"gptj", "codegen", "gpt_neox"}) {
    const Model model = small_model(type, R"("rotary_dim": 16, "head_dim": 32)");
    EXPECT_EQ(model.groups.at(0).geometry.head_dim, 64) << type;
    EXPECT_TRUE(rows_warn(model, "unread_key")) << type;
  }
}

TEST(FamilyRows, ATypeThatHasThePartItselfTakesTheFamilysDefault) {
  const auto part = [](std::string_view type) {
    const Model model =
        small_model(type, R"("head_dim": 64, "rope_scaling": {"rope_type": "proportional"})");
    const auto* scaling = std::get_if<Proportional>(&first_rope(model).scaling);
    return scaling ? scaling->partial_rotary_factor : -1;
  };
  for (const std::string_view type : {"glm", "glm4", "glm4_moe", "nemotron", "persimmon"})
    EXPECT_EQ(part(type), 0.5) << type;
  for (const std::string_view type : {"gpt_neox", "stablelm"}) EXPECT_EQ(part(type), 0.25) << type;
  EXPECT_EQ(part("llama"), 1);
}

TEST(FamilyRows, ExaonesDefaultBaseIsThatOfItsClassSince524) {
  const Model now = small_model("exaone", R"("rope_scaling": null)");
  EXPECT_EQ(first_rope(now).rope_theta, 500000);
  EXPECT_TRUE(rows_warn(now, "default_changed"));
  const Model old = small_model("exaone", R"("transformers_version": "4.43.0")");
  EXPECT_EQ(first_rope(old).rope_theta, 10000);
}

TEST(FamilyRows, AClassThatIsScaledByDefaultHasAnotherBaseBesideParametersOfTheFile) {
  EXPECT_EQ(first_rope(small_model("higgs_audio_v2", R"("head_dim": 64)")).rope_theta, 500000);
  EXPECT_EQ(
      first_rope(small_model("higgs_audio_v2", R"("rope_parameters": {"rope_type": "default"})"))
          .rope_theta,
      10000);
}

TEST(FamilyRows, ParametersByLayerTypeInAClassThatHasOneSetAreToldOf) {
  constexpr std::string_view by_type =
      R"("rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 5e5},
                             "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})";
  for (const std::string_view type :
       {"qwen3", "gpt_oss", "cohere2", "exaone4", "cwm", "afmoe", "qwen2", "smollm3", "mistral"})
    EXPECT_TRUE(rows_warn(small_model(type, by_type), "layer_types_unread")) << type;
  for (const std::string_view type :
       {"gemma3_text", "gemma4_text", "olmo3", "beam", "dory", "laguna", "mellum", "lfm3"})
    EXPECT_FALSE(rows_warn(small_model(type, by_type), "layer_types_unread")) << type;
}

TEST(FamilyRows, Sarvams105BIsDeepSeekV3InOtherWords) {
  const Model model =
      small_model("sarvam_mla",
                  R"("head_dim": 576, "rope_theta": 10000, "rope_scaling": {"type": "deepseek_yarn",
      "factor": 4, "original_max_position_embeddings": 1024, "mscale": 1, "mscale_all_dim": 1})");
  EXPECT_EQ(first_rope(model).slice, SliceEnd::trailing);
  EXPECT_EQ(first_rope(model).rotary_dim, 64);
  EXPECT_TRUE(std::get<Yarn>(first_rope(model).scaling).scale_logits);
  EXPECT_EQ(model.groups.at(0).geometry.head_dim, 192);
}

TEST(FamilyRows, Hy4sPicturesHaveAxesByTurnsAndItsTextPairsNeighbours) {
  const Model model = read_model_text(
      R"({"model_type": "hy_v4_vl", "text_config": {"num_hidden_layers": 2},
          "vision_config": {"model_type": "hy_v4_vl_vision"}})");
  EXPECT_EQ(first_rope(model).pairing, Pairing::interleaved);
  EXPECT_EQ(first_rope(model).mrope_section, (std::vector<std::int64_t>{12, 10, 10}));
  EXPECT_TRUE(first_rope(model).mrope_interleaved);
  const LayerGroup* const vision = find_group(model, 0, Stack::vision);
  ASSERT_TRUE(vision);
  EXPECT_EQ(std::get<Learned>(vision->schemes.at(0)).rows, 128 * 128 + 1);
  EXPECT_EQ(vision->layers.size(), 40u);
}

TEST(FamilyRows, WrappersOf524NameTheirTextModels) {
  EXPECT_EQ(first_rope(read_model_text(R"({"model_type": "apertus1p5", "text_config": {}})"))
                .scaling.index(),
            Scaling{Llama3{}}.index());
  const Model heard = read_model_text(
      R"({"model_type": "omniasr", "text_config": {"hidden_size": 4096, "num_hidden_layers": 12,
          "num_attention_heads": 8}, "audio_config": {"model_type": "omniasr_audio"}})");
  EXPECT_EQ(heard.groups.at(0).geometry.head_dim, 512);
  EXPECT_TRUE(find_group(heard, 0, Stack::audio));
  for (const std::string type :
       {"wavtokenizer", "wavtokenizer_encoder", "apertus1p5_vision_tokenizer"}) {
    const Model alone = read_model_text(R"({"model_type": ")" + type + R"("})");
    EXPECT_EQ(alone.groups.at(0).mixer, Mixer::convolution) << type;
  }
}

TEST(UnknownPictures, ChannelsByAxisAreReadWhateverTheClass) {
  const auto model = read_config(R"({"_class_name": "ZorkTransformer2DModel",
      "axes_dim_rope": [40, 40, 40], "hidden_size": 2520, "num_attention_heads": 21,
      "num_layers": 2})");
  ASSERT_TRUE(model) << model.error().message();
  const auto* axial = std::get_if<Axial>(&model->groups.front().schemes.front());
  ASSERT_TRUE(axial);
  EXPECT_EQ(axial->axes_dim, (std::vector<std::int64_t>{40, 40, 40}));
  EXPECT_FALSE(model->known_family);
}

TEST(UnknownPictures, AClassWithoutAxesIsNoModelOfTexts) {
  const auto model = read_config(R"({"_class_name": "ZorkTransformer3DModel", "dim": 4096,
      "n_heads": 32, "n_layers": 2, "rope_theta": 10000.0})");
  ASSERT_FALSE(model);
  EXPECT_TRUE(model.error().rule.contains("pictures or sound"));
}

TEST(UnknownPictures, PatchesAreNoParamsOfMistral) {
  const std::string text =
      R"({"dim": 4096, "n_layers": 2, "n_heads": 32, "patch_size": 2, "axes_dims": [32, 48, 48]})";
  const auto model = read_model_bytes(std::as_bytes(std::span(text)), "config.json");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(std::holds_alternative<Axial>(model->groups.front().schemes.front()));
}

// Reaches measured on the modules of transformers with random weights: a frame of the input moves
// what is added to frames from 63 before it to 64 behind.
TEST(FamilyRows, ConvolutionsCarryTheOrderOfSounds) {
  const auto carried = [](std::string_view type) {
    const Model model = read_model_text(R"({"model_type": ")" + std::string(type) + "\"}");
    EXPECT_TRUE(std::holds_alternative<NoPe>(model.groups.at(0).schemes.at(0)));
    EXPECT_TRUE(rows_warn(model, "family_remark"));
    return model.groups.at(0).carried;
  };
  for (const std::string_view type : {"wav2vec2", "hubert", "unispeech-sat", "omniasr_audio"})
    EXPECT_TRUE(carried(type).contains("64 frames before each and 63 frames behind it")) << type;
  EXPECT_TRUE(carried("data2vec-audio").contains("5 convolutions"));
  EXPECT_TRUE(carried("data2vec-audio").contains("45 frames before each and 45 frames behind"));
  EXPECT_TRUE(carried("sew").contains("of which a token is 2"));
}

// Each of LongCat's layers has two attentions, and a cache for each.
TEST(FamilyRows, LongCatsLayersAttendTwice) {
  const Model model = read_model_text(R"({"model_type": "longcat_flash", "num_layers": 3})");
  ASSERT_EQ(model.groups.size(), 1u);
  EXPECT_EQ(model.groups[0].layers.size(), 6u);
  EXPECT_EQ(model.groups[0].cache_elements, 512 + 64);
  EXPECT_EQ(first_rope(model).pairing, Pairing::interleaved);
  EXPECT_EQ(first_rope(model).rope_theta, 1e7);
  EXPECT_EQ(read_model_text(R"({"model_type": "longcat_flash"})").groups[0].layers.size(), 56u);
}

TEST(FamilyRows, GemmasSoundsSeeTwelveFramesBefore) {
  for (const std::string_view type : {"gemma3n_audio", "gemma4_audio"}) {
    const Model model = read_model_text(R"({"model_type": ")" + std::string(type) + "\"}");
    const LayerGroup& group = model.groups.at(0);
    const auto* const scheme = std::get_if<TransformerXl>(&group.schemes.at(0));
    ASSERT_TRUE(scheme);
    EXPECT_FALSE(scheme->biases || scheme->bidirectional);
    EXPECT_EQ(scheme->spacing, WaveSpacing::ends);
    EXPECT_EQ(group.window, 13);
    EXPECT_TRUE(group.causal);
    EXPECT_EQ(group.logits.softcap, 50);
    EXPECT_NEAR(group.logits.multiplier, 1.4427, 1e-4);
  }
  const Model ahead =
      read_model_text(R"({"model_type": "gemma3n_audio", "conf_attention_context_right": 2})");
  EXPECT_EQ(ahead.groups.at(0).window, 15);
  EXPECT_EQ(ahead.groups.at(0).behind, 12);
  EXPECT_FALSE(ahead.groups.at(0).causal);
}

// vLLM's class of its word of YaRN: 0.07 ln s + 1.
TEST(RowsRemote, TeleChat3sYarnIsFlatter) {
  const auto model = [](const char* type) {
    return small_model("telechat3", R"("head_dim": 64, "rope_theta": 1000000,
        "rope_scaling": {"rope_type": ")" +
                                        std::string(type) + R"(", "factor": 4,
        "original_max_position_embeddings": 1024})");
  };
  const auto factor = [](const Model& read) {
    return std::get<Yarn>(std::get<Rope>(read.groups.front().schemes.front()).scaling)
        .attention_factor;
  };
  ASSERT_TRUE(factor(model("telechat3-yarn")));
  EXPECT_NEAR(*factor(model("telechat3-yarn")), 0.07 * std::log(4.0) + 1, 1e-12);
  EXPECT_FALSE(rows_warn(model("telechat3-yarn"), "attention_factor_given"));
  EXPECT_FALSE(factor(model("yarn")));
  // As the file spells it.
  const Model spelt = model("telechat3-yarn");
  const auto& values = spelt.groups.front().provenance;
  const auto type = std::ranges::find(values, "rope_type", &Provenance::field);
  ASSERT_NE(type, values.end());
  EXPECT_EQ(type->value, "telechat3-yarn");
}

// Both are published as bailing_moe, and the class tells them apart.
TEST(RowsRemote, Ling2IsToldByItsClass) {
  const Model ling = small_model("bailing_moe", R"("architectures": ["BailingMoeV2ForCausalLM"],
      "head_dim": 64, "rope_theta": 600000, "partial_rotary_factor": 0.5)");
  EXPECT_EQ(ling.family, "bailing_moe_v2");
  const auto plan = compile(ling.groups.front());
  ASSERT_TRUE(plan && plan->rotate);
  EXPECT_EQ(plan->rotate->slice.rotary_dim, 32);
  EXPECT_EQ(small_model("bailing_moe", R"("rope_theta": 600000)").family, "bailing_moe");
}

}  // namespace
}  // namespace posenc
