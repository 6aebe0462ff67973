// One rule of a family a test: what its code does and no config.json says.
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "posenc/model.h"

namespace posenc {
namespace {

constexpr std::string_view sizes =
    R"("hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 8, "max_position_embeddings": 4096)";

Model whole_model(std::string_view text) {
  auto model = read_config(text);
  if (!model) ADD_FAILURE() << text << ": " << model.error().message();
  return model ? *model : Model{.groups = {LayerGroup{.schemes = {NoPe{}}}}};
}

// A small model of a family, with some keys more. Falcon has a key-value head of its own.
Model family_model(std::string_view type, std::string_view more = "") {
  const bool heads = type == "falcon" || more.contains("num_key_value_heads");
  return whole_model(R"({"model_type": ")" + std::string(type) + "\", " + std::string(sizes) +
                     (heads ? "" : R"(, "num_key_value_heads": 4)") + (more.empty() ? "" : ", ") +
                     std::string(more) + "}");
}

template <class S>
S scheme_of(const LayerGroup& group, std::size_t index = 0) {
  const S* scheme = index < group.schemes.size() ? std::get_if<S>(&group.schemes[index]) : nullptr;
  if (!scheme) ADD_FAILURE() << "another scheme";
  return scheme ? *scheme : S{};
}

Rope rope_of(const Model& model, std::size_t group = 0) {
  return scheme_of<Rope>(model.groups.at(group));
}

// '1' where a layer rotates, '0' where it has no position.
std::string rotating_layers(const Model& model, std::int64_t layers, Stack stack = Stack::text) {
  std::string pattern;
  for (std::int64_t i = 0; i < layers; ++i) {
    const LayerGroup* group = find_group(model, i, stack);
    pattern += group && std::holds_alternative<Rope>(group->schemes[0]) ? '1' : '0';
  }
  return pattern;
}

// 'w' where a layer has a window.
std::string windows(const Model& model, std::int64_t layers, Stack stack = Stack::text) {
  std::string pattern;
  for (std::int64_t i = 0; i < layers; ++i) {
    const LayerGroup* group = find_group(model, i, stack);
    pattern += group && group->window ? 'w' : '.';
  }
  return pattern;
}

TEST(FamilyPairing, Halves) {
  for (const std::string_view type :
       {"llama",      "mistral",  "mixtral",  "qwen2",     "qwen3",    "gemma",     "gemma2",
        "phi",        "phi3",     "gpt_neox", "falcon",    "stablelm", "olmo2",     "internlm2",
        "starcoder2", "smollm3",  "gpt_oss",  "minicpm",   "granite",  "nemotron",  "glm4_moe",
        "persimmon",  "deepseek", "orion",    "qwen3_moe", "seed_oss", "modernbert"}) {
    EXPECT_EQ(rope_of(family_model(type)).pairing, Pairing::halves) << type;
  }
}

TEST(FamilyPairing, Interleaved) {
  for (const std::string_view type : {"gptj", "codegen", "cohere", "cohere2", "glm", "glm4",
                                      "chatglm", "llama4_text", "ernie4_5", "helium", "roformer"}) {
    EXPECT_EQ(rope_of(family_model(type, R"("rope_theta": 10000)")).pairing, Pairing::interleaved)
        << type;
  }
}

TEST(FamilyPartial, DefaultsRotateAPart) {
  EXPECT_EQ(rope_of(family_model("phi")).partial_rotary_factor, 0.5);
  EXPECT_EQ(rope_of(family_model("gpt_neox")).partial_rotary_factor, 0.25);
  EXPECT_EQ(
      rope_of(family_model("stablelm", R"("partial_rotary_factor": 0.5)")).partial_rotary_factor,
      0.5);
  EXPECT_EQ(rope_of(family_model("gpt_neox", R"("rotary_pct": 1.0)")).partial_rotary_factor, 1);
}

TEST(FamilyPartial, RotaryDimIsTakenAndNullIsTheWholeHead) {
  EXPECT_EQ(rope_of(family_model("gptj")).rotary_dim, 64);
  EXPECT_EQ(rope_of(family_model("gptj", R"("rotary_dim": 32)")).rotary_dim, 32);
  EXPECT_FALSE(rope_of(family_model("gptj", R"("rotary_dim": null)")).rotary_dim);
}

TEST(FamilyChatGlm, HalfOfTheChannelsAndABaseOfItsOwn) {
  const Rope rope = rope_of(family_model("chatglm", R"("kv_channels": 64, "rope_ratio": 500)"));
  EXPECT_EQ(rope.rotary_dim, 32);
  EXPECT_EQ(rope.rope_theta, 5e6);
}

TEST(FamilyChatGlm, TheSecondDividesPositionsByItsRatio) {
  const auto model_named = [](const std::string& name) {
    return family_model("chatglm", R"("kv_channels": 64, "padded_vocab_size": 65024,
        "rope_ratio": 16, "_name_or_path": ")" +
                                       name + "\"");
  };
  const Model second = model_named("THUDM/chatglm2-6b-32k");
  EXPECT_EQ(rope_of(second).rope_theta, 10000);
  EXPECT_EQ(rope_of(second).scaling, Scaling(Linear{16}));
  const auto warns = [](const Model& model) {
    return std::ranges::any_of(model.warnings, [](const Warning& one) {
      return one.message.contains("ChatGLM2's own code divides positions");
    });
  };
  EXPECT_TRUE(warns(model_named("/models/mine")));
  EXPECT_FALSE(warns(model_named("THUDM/chatglm3-6b-32k")));
  EXPECT_EQ(rope_of(model_named("THUDM/chatglm3-6b-32k")).rope_theta, 160000);
}

TEST(FamilyChatGlm, TwoPositionIdsAreRefused) {
  EXPECT_FALSE(read_config(R"({"model_type": "chatglm", "position_encoding_2d": true})"));
}

TEST(FamilyLatent, TheLastChannelsRotate) {
  const Model model = family_model(
      "deepseek_v3", R"("qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "kv_lora_rank": 64)");
  EXPECT_EQ(model.groups[0].geometry.head_dim, 48);
  EXPECT_EQ(rope_of(model).slice, SliceEnd::trailing);
  EXPECT_EQ(rope_of(model).rotary_dim, 16);
  EXPECT_EQ(model.groups[0].cache_elements, 80);
}

TEST(FamilyLatent, InterleavingCanBeSwitchedOff) {
  EXPECT_EQ(rope_of(family_model("deepseek_v3", R"("rope_interleave": false)")).pairing,
            Pairing::halves);
  EXPECT_EQ(rope_of(family_model("minicpm3")).pairing, Pairing::halves);
}

TEST(FamilyLatent, MscaleAllDimScalesTheLogits) {
  const auto logits = [](std::string_view mscale) {
    const Model model =
        family_model("deepseek_v3", R"("rope_scaling": {"type": "yarn", "factor": 40,
        "original_max_position_embeddings": 4096)" +
                                        std::string(mscale) + "}");
    const auto plan = compile(model.groups[0]);
    return plan ? plan->logits.multiplier : 0;
  };
  EXPECT_NEAR(logits(R"(, "mscale": 1.0, "mscale_all_dim": 1.0)"), 1.8738542070926265, 1e-12);
  EXPECT_EQ(logits(""), 1);
}

TEST(FamilyLatent, OtherFamiliesDoNotScaleTheirLogits) {
  const Model model =
      family_model("llama", R"("rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0,
      "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096})");
  const auto plan = compile(model.groups[0]);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->logits.multiplier, 1);
}

TEST(FamilyLlama4, EveryFourthLayerHasNoPositionAndATemperature) {
  const Model model = family_model("llama4_text");
  EXPECT_EQ(rotating_layers(model, 8), "11101110");
  EXPECT_EQ(windows(model, 8), "www.www.");
  const LayerGroup* nope = find_group(model, 3, Stack::text);
  ASSERT_TRUE(nope);
  EXPECT_EQ(nope->logits, (Logits{.beta = 0.1, .floor = 8192, .offset = 1}));
  EXPECT_EQ(model.groups[0].logits, Logits{});
}

TEST(FamilyLlama4, TheTemperatureCanBeOff) {
  const Model model = family_model("llama4_text", R"("attn_temperature_tuning": false)");
  EXPECT_EQ(find_group(model, 3, Stack::text)->logits, Logits{});
}

TEST(FamilySmolLm3, TheListNamesTheLayersThatRotate) {
  EXPECT_EQ(rotating_layers(family_model("smollm3"), 8), "11101110");
  EXPECT_EQ(
      rotating_layers(family_model("smollm3", R"("no_rope_layers": [1, 0, 1, 1, 1, 1, 1, 1])"), 8),
      "10111111");
  EXPECT_EQ(rotating_layers(family_model("smollm3", R"("no_rope_layer_interval": 2)"), 8),
            "10101010");
}

TEST(FamilyCohere2, FullLayersHaveNoPosition) {
  const Model model = family_model("cohere2");
  EXPECT_EQ(rotating_layers(model, 8), "11101110");
  EXPECT_EQ(windows(model, 8), "www.www.");
}

TEST(FamilyExaone4, WithoutAWindowEveryLayerRotates) {
  EXPECT_EQ(
      rotating_layers(
          family_model("exaone4", R"("sliding_window": null, "sliding_window_pattern": null)"), 8),
      "11111111");
  EXPECT_EQ(rotating_layers(family_model("exaone4", R"("sliding_window_pattern": "LLLG")"), 8),
            "11101110");
}

TEST(FamilyMinistral3, TheTemperatureStartsAtTheTrainedLength) {
  const Model model = family_model(
      "ministral3",
      R"("head_dim": 64, "num_key_value_heads": 2, "rope_parameters": {"rope_type": "yarn",
      "rope_theta": 1e6, "factor": 16, "original_max_position_embeddings": 1024, "llama_4_scaling_beta": 0.1})");
  EXPECT_EQ(model.groups[0].logits, (Logits{.beta = 0.1, .floor = 1024, .offset = 0}));
}

TEST(FamilyGemma2, LogitsAreScaledByTheFilesScalar) {
  const Model model = family_model(
      "gemma2", R"("head_dim": 128, "query_pre_attn_scalar": 144, "num_key_value_heads": 2)");
  EXPECT_NEAR(model.groups[0].logits.multiplier, std::sqrt(128.0 / 144), 1e-15);
  EXPECT_EQ(windows(model, 8), "w.w.w.w.");
}

TEST(FamilyGemma3, SlidingLayersHaveTheirOwnBaseAndNoScaling) {
  const Model model =
      family_model("gemma3_text", R"("num_key_value_heads": 2, "sliding_window": 512,
      "rope_scaling": {"rope_type": "linear", "factor": 8})");
  EXPECT_EQ(windows(model, 8), "wwwww.ww");
  EXPECT_EQ(rope_of(model, 0).rope_theta, 10000);
  EXPECT_EQ(rope_of(model, 0).scaling, Scaling{Unscaled{}});
  EXPECT_EQ(rope_of(model, 1).rope_theta, 1e6);
  EXPECT_EQ(rope_of(model, 1).scaling, Scaling{Linear{.factor = 8}});
}

TEST(FamilyGemma4, FullLayersAreWiderAndSharedOnesCacheNothing) {
  const Model model = family_model(
      "gemma4_text", R"("head_dim": 64, "global_head_dim": 128, "num_key_value_heads": 2,
      "num_kv_shared_layers": 2, "rope_parameters": {"sliding_attention": {"rope_theta": 10000},
      "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25}})");
  const LayerGroup *sliding = find_group(model, 0, Stack::text),
                   *full = find_group(model, 5, Stack::text),
                   *shared = find_group(model, 7, Stack::text);
  ASSERT_TRUE(sliding && full && shared);
  EXPECT_EQ(sliding->geometry.head_dim, 64);
  EXPECT_EQ(full->geometry.head_dim, 128);
  EXPECT_EQ(scheme_of<Rope>(*full).scaling, Scaling{Proportional{.partial_rotary_factor = 0.25}});
  EXPECT_NEAR(full->logits.multiplier, std::sqrt(128.0), 1e-15);
  EXPECT_EQ(shared->cache_elements, 0);
}

TEST(FamilyOlmo3, OnlyFullLayersAreScaled) {
  const Model model = family_model(
      "olmo3", R"("rope_theta": 500000, "rope_scaling": {"rope_type": "yarn", "factor": 8,
      "original_max_position_embeddings": 512})");
  EXPECT_EQ(rope_of(model, 0).scaling, Scaling{Unscaled{}});
  EXPECT_EQ(info(rope_of(model, 1).scaling).name, "yarn");
  EXPECT_EQ(rope_of(model, 0).rope_theta, rope_of(model, 1).rope_theta);
}

TEST(FamilyGptOss, WindowsAlternateAndTheRampIsNotRounded) {
  const Model model = family_model(
      "gpt_oss", R"("head_dim": 64, "num_key_value_heads": 2, "rope_scaling": {"rope_type": "yarn",
      "factor": 32, "truncate": false, "original_max_position_embeddings": 128}, "initial_context_length": 128)");
  EXPECT_EQ(windows(model, 8), "w.w.w.w.");
  EXPECT_FALSE(std::get<Yarn>(rope_of(model).scaling).truncate);
}

TEST(FamilyGemma2, CapsItsLogitsUnlessTheFileSaysNull) {
  const auto cap = [](std::string_view more) {
    return compile(family_model("gemma2", more).groups.at(0))->logits.softcap;
  };
  EXPECT_EQ(cap(""), 50);
  EXPECT_EQ(cap(R"("attn_logit_softcapping": 30.0)"), 30);
  EXPECT_EQ(cap(R"("attn_logit_softcapping": null)"), 0);
}

TEST(FamilySinks, StandInTheSoftmaxOfTheLayersThatLearnThem) {
  const auto sinks = [](std::string_view type) {
    std::vector<bool> of_groups;
    for (const LayerGroup& group : family_model(type, "").groups)
      of_groups.push_back(group.sink_logits);
    return of_groups;
  };
  EXPECT_EQ(sinks("gpt_oss"), (std::vector<bool>{true, true}));
  EXPECT_EQ(sinks("mimo_v2_flash"), (std::vector<bool>{false, true}));  // those that slide
  EXPECT_EQ(sinks("llama"), (std::vector<bool>{false}));
}

TEST(FamilyGranite, TheMultiplierReplacesTheRoot) {
  const Model model = family_model("granite", R"("attention_multiplier": 0.015625)");
  EXPECT_EQ(model.groups[0].logits.multiplier, 0.015625 * 8);
}

TEST(FamilyGranite4, HasNoPositionUnlessItSaysRope) {
  constexpr std::string_view layers =
      R"("layer_types": ["mamba", "mamba", "mamba", "attention", "mamba", "mamba", "mamba",
      "attention"], "position_embedding_type": )";
  EXPECT_EQ(rotating_layers(family_model("granitemoehybrid", std::string(layers) + "\"nope\""), 8),
            "00000000");
  EXPECT_EQ(rotating_layers(family_model("granitemoehybrid", std::string(layers) + "\"rope\""), 8),
            "00010001");
}

TEST(FamilyQwen2, TheWindowNeedsItsSwitch) {
  constexpr std::string_view keys =
      R"("sliding_window": 128, "max_window_layers": 6, "use_sliding_window": )";
  EXPECT_EQ(windows(family_model("qwen2", std::string(keys) + "false"), 8), "........");
  EXPECT_EQ(windows(family_model("qwen2", std::string(keys) + "true"), 8), "......ww");
}

TEST(FamilyMistral, TheWindowHoldsForAllAndNullTurnsItOff) {
  EXPECT_EQ(family_model("mistral").groups[0].window, 4096);
  EXPECT_FALSE(family_model("mistral", R"("sliding_window": null)").groups[0].window);
}

TEST(FamilyLlama, AWindowInTheFileIsNotRead) {
  EXPECT_FALSE(family_model("llama", R"("sliding_window": 128)").groups[0].window);
}

TEST(FamilyQwen3Next, LinearLayersHaveNoCacheThatGrows) {
  const Model model = family_model("qwen3_next", R"("num_key_value_heads": 2, "head_dim": 64)");
  EXPECT_EQ(rotating_layers(model, 8), "00010001");
  EXPECT_EQ(model.groups[0].cache_elements, 0);
}

TEST(FamilyNemotronH, TheStarsAttendWithoutPosition) {
  const Model model = family_model(
      "nemotron_h", R"("hybrid_override_pattern": "M-M*M-M*", "num_key_value_heads": 2)");
  EXPECT_EQ(find_group(model, 3, Stack::text)->label, "full attention without position");
  EXPECT_EQ(find_group(model, 0, Stack::text)->cache_elements, 0);
}

TEST(FamilyHunYuan, AlphaIsNtkAware) {
  const Rope rope = rope_of(
      family_model("hunyuan_v1_dense",
                   R"("rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0})"));
  EXPECT_EQ(rope.scaling, Scaling{NtkAware{.factor = 1000}});
}

TEST(FamilyFalcon, ShareOneKeyValueHeadUnlessTold) {
  EXPECT_EQ(family_model("falcon").groups[0].geometry.kv_heads, 1);
  EXPECT_EQ(family_model("falcon", R"("multi_query": false)").groups[0].geometry.kv_heads, 4);
  EXPECT_EQ(family_model("falcon", R"("new_decoder_architecture": true, "num_kv_heads": 2)")
                .groups[0]
                .geometry.kv_heads,
            2);
}

TEST(FamilyFalcon, AlibiIsRoundedAndMeetsTheScale) {
  const Alibi alibi = scheme_of<Alibi>(family_model("falcon", R"("alibi": true)").groups[0]);
  EXPECT_EQ(alibi.rounding, SlopeRounding::bfloat16);
  EXPECT_TRUE(alibi.before_scale);
}

TEST(FamilyBaichuan, ThirteenBillionHaveAlibi) {
  EXPECT_TRUE(std::holds_alternative<Rope>(family_model("baichuan").groups[0].schemes[0]));
  const Model large =
      whole_model(R"({"model_type": "baichuan", "hidden_size": 5120, "num_attention_heads": 40,
                                      "num_hidden_layers": 40, "model_max_length": 4096})");
  EXPECT_TRUE(std::holds_alternative<Alibi>(large.groups[0].schemes[0]));
}

TEST(FamilyMpt, AlibiOrATable) {
  EXPECT_EQ(
      scheme_of<Alibi>(
          family_model("mpt", R"("attn_config": {"alibi": true, "alibi_bias_max": 16})").groups[0])
          .alibi_bias_max,
      16);
  EXPECT_EQ(
      scheme_of<Learned>(family_model("mpt", R"("attn_config": {"alibi": false})").groups[0]).rows,
      4096);
}

TEST(FamilyOpt, RowsStandBeyondThePositions) {
  const Model model = family_model("opt");
  EXPECT_EQ(scheme_of<Learned>(model.groups[0]).rows, 4098);
  EXPECT_EQ(scheme_of<Learned>(model.groups[0]).row_offset, 2);
  EXPECT_EQ(model.context, 4096);
}

TEST(FamilyRoberta, RowsForPaddingAreLost) {
  const Model model = family_model("roberta", R"("pad_token_id": 1)");
  EXPECT_EQ(scheme_of<Learned>(model.groups[0]).rows, 4096);
  EXPECT_EQ(scheme_of<Learned>(model.groups[0]).row_offset, 2);
  EXPECT_EQ(model.context, 4094);
  for (const Provenance& row : model.groups[0].provenance) {
    if (row.field == "context") {
      EXPECT_EQ(row.value, "4094");
    }
  }
}

TEST(FamilyBert, RelativeKeysReplaceTheTable) {
  const Shaw shaw = scheme_of<Shaw>(
      family_model("bert", R"("position_embedding_type": "relative_key_query")").groups[0]);
  EXPECT_EQ(shaw.max_distance, 4095);
  EXPECT_TRUE(shaw.use_keys);
  EXPECT_FALSE(shaw.use_values);
}

TEST(FamilyBert, JinasHasSymmetricAlibi) {
  EXPECT_TRUE(
      scheme_of<Alibi>(family_model("bert", R"("position_embedding_type": "alibi")").groups[0])
          .symmetric);
}

TEST(FamilyBert, AnEncoderCachesNothing) {
  const Model model = family_model("bert");
  EXPECT_EQ(model.groups[0].stack, Stack::encoder);
  EXPECT_FALSE(model.groups[0].causal);
  EXPECT_EQ(model.groups[0].cache_elements, 0);
}

TEST(FamilyElectra, TheTableIsNarrow) {
  EXPECT_EQ(family_model("electra", R"("embedding_size": 128)").groups[0].geometry.width, 128);
}

TEST(FamilyDistilBert, SinusoidsOnlyWhereSaid) {
  EXPECT_TRUE(std::holds_alternative<Learned>(family_model("distilbert").groups[0].schemes[0]));
  EXPECT_TRUE(std::holds_alternative<Sinusoidal>(
      family_model("distilbert", R"("sinusoidal_pos_embds": true)").groups[0].schemes[0]));
}

TEST(FamilyGptNeo, LayersAlternateAndNothingIsDivided) {
  const Model model =
      whole_model(R"({"model_type": "gpt_neo", "hidden_size": 256, "num_heads": 4, "num_layers": 4,
      "max_position_embeddings": 512, "window_size": 64, "attention_types": [[["global", "local"], 2]]})");
  EXPECT_EQ(windows(model, 4), ".w.w");
  EXPECT_EQ(model.groups[0].logits.multiplier, 8);
}

TEST(FamilyMpnet, ATableAndABias) {
  const Model model = family_model("mpnet");
  EXPECT_EQ(scheme_of<Learned>(model.groups[0], 0).row_offset, 2);
  EXPECT_TRUE(scheme_of<T5>(model.groups[0], 1).bidirectional);
}

TEST(FamilyEsm, RotatesWhereItSays) {
  EXPECT_EQ(rope_of(family_model("esm", R"("position_embedding_type": "rotary")")).rope_theta,
            10000);
  EXPECT_TRUE(std::holds_alternative<Learned>(family_model("esm").groups[0].schemes[0]));
}

TEST(FamilyDeberta, BucketsAndDirectionsComeFromTheFile) {
  const Model model =
      family_model("deberta-v2", R"("relative_attention": true, "position_buckets": 64,
      "max_relative_positions": -1, "pos_att_type": ["p2c"], "position_biased_input": false)");
  const Deberta scheme = scheme_of<Deberta>(model.groups[0]);
  EXPECT_EQ(scheme.position_buckets, 64);
  EXPECT_EQ(scheme.max_relative_positions, 4096);
  EXPECT_FALSE(scheme.c2p);
  EXPECT_TRUE(scheme.p2c);
}

TEST(FamilyT5, TheOriginSaysWhoSharesTheTable) {
  const auto said = [](const char* family) {
    const Model model = family_model(family);
    for (const Provenance& row : model.groups[0].provenance)
      if (row.field == "table") return row.value;
    return std::string();
  };
  EXPECT_EQ(said("t5"), "one for all layers of a stack");
  EXPECT_EQ(said("umt5"), "one for each layer");
}

TEST(FamilyT5, TwoStacksThatDiffer) {
  const Model model = whole_model(
      R"({"model_type": "t5", "d_model": 256, "d_kv": 64, "num_heads": 4, "num_layers": 3,
                                      "num_decoder_layers": 5})");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_TRUE(scheme_of<T5>(model.groups[0]).bidirectional);
  EXPECT_FALSE(scheme_of<T5>(model.groups[1]).bidirectional);
  EXPECT_EQ(model.groups[1].layers.size(), 5u);
  EXPECT_EQ(model.groups[0].logits.multiplier, 8);
}

constexpr std::string_view pair_sizes = R"("d_model": 256, "encoder_layers": 2, "decoder_layers": 3,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4)";

Model pair_model(std::string_view type, std::string_view more = "") {
  return whole_model(R"({"model_type": ")" + std::string(type) + "\", " + std::string(pair_sizes) +
                     (more.empty() ? "" : ", ") + std::string(more) + "}");
}

TEST(FamilyBart, TablesStartAtRowTwo) {
  const Model model = pair_model("bart", R"("max_position_embeddings": 1024)");
  EXPECT_EQ(scheme_of<Learned>(model.groups[1]).rows, 1026);
  EXPECT_EQ(scheme_of<Learned>(model.groups[1]).row_offset, 2);
}

TEST(FamilyMarian, SinesThenCosines) {
  const Sinusoidal waves =
      scheme_of<Sinusoidal>(pair_model("marian", R"("scale_embedding": true)").groups[0]);
  EXPECT_EQ(waves.layout, WaveLayout::concatenated);
  EXPECT_EQ(waves.spacing, WaveSpacing::width);
  EXPECT_TRUE(waves.scale_embedding);
}

TEST(FamilyM2m, FairseqsSinusoids) {
  const Sinusoidal waves = scheme_of<Sinusoidal>(pair_model("m2m_100").groups[0]);
  EXPECT_EQ(waves.spacing, WaveSpacing::ends);
  EXPECT_EQ(waves.row_offset, 2);
  EXPECT_EQ(waves.padding_idx, 1);
}

TEST(FamilyWhisper, TheEncoderHasSinusoidsAndTheDecoderATable) {
  const Model model = pair_model("whisper", R"("max_target_positions": 448)");
  EXPECT_EQ(scheme_of<Sinusoidal>(model.groups[0]).spacing, WaveSpacing::ends);
  EXPECT_EQ(scheme_of<Learned>(model.groups[1]).rows, 448);
}

TEST(FamilyModernBert, GlobalAndLocalBases) {
  const Model model =
      family_model("modernbert", R"("global_rope_theta": 160000, "local_rope_theta": 20000,
      "local_attention": 64, "global_attn_every_n_layers": 4)");
  EXPECT_EQ(windows(model, 8, Stack::encoder), ".www.www");
  EXPECT_EQ(rope_of(model, 0).rope_theta, 160000);
  EXPECT_EQ(rope_of(model, 1).rope_theta, 20000);
  EXPECT_EQ(model.groups[1].window, 64);
}

TEST(FamilyNomic, PairingIsTheFiles) {
  EXPECT_EQ(rope_of(family_model("nomic_bert")).pairing, Pairing::halves);
  EXPECT_EQ(rope_of(family_model("nomic_bert", R"("rotary_emb_interleaved": true)")).pairing,
            Pairing::interleaved);
}

// MiniMax-M2's class sets the factor from rotary_dim where the file says none.
TEST(Families, APartialFactorCountsBeforeARotaryDimOfAnotherWidth) {
  const auto rotated = [](std::string_view more) {
    const Model model = family_model("minimax_m2", more);
    const bool warned = std::ranges::find(model.warnings, "partial_conflict", &Warning::code) !=
                        model.warnings.end();
    return std::pair{compile(model.groups[0])->rotate->slice.rotary_dim, warned};
  };
  EXPECT_EQ(rotated(R"("head_dim": 32, "rotary_dim": 8)"), std::pair(std::int64_t{8}, false));
  EXPECT_EQ(rotated(R"("head_dim": 32, "rotary_dim": 8, "partial_rotary_factor": 0.25)"),
            std::pair(std::int64_t{8}, false));
  EXPECT_EQ(rotated(R"("head_dim": 32, "rotary_dim": 8, "partial_rotary_factor": 0.75)"),
            std::pair(std::int64_t{24}, true));
}

TEST(NotCovered, SaysWhy) {
  const auto fnet = read_config(R"({"model_type": "fnet"})");
  ASSERT_FALSE(fnet);
  EXPECT_NE(fnet.error().message().find("Fourier transforms"), std::string::npos);
  EXPECT_FALSE(read_config(R"({"model_type": "transfo-xl"})"));
}

Model read_text(const char* text) {
  const auto model = read_config(text);
  EXPECT_TRUE(model) << model.error().message();
  return model.value_or(Model{});
}

TEST(Families, BlocksOfNemotronNasSayWhichLayersAttendAndWithHowManyHeads) {
  const Model model = read_text(R"({"model_type": "nemotron-nas", "hidden_size": 1024,
      "num_attention_heads": 8, "num_hidden_layers": 3, "rope_theta": 500000.0,
      "max_position_embeddings": 4096, "block_configs": [
        {"attention": {"n_heads_in_group": 4, "no_op": false}},
        {"attention": {"n_heads_in_group": null, "no_op": true}},
        {"attention": {"n_heads_in_group": 8, "no_op": false}}]})");
  EXPECT_EQ(find_group(model, 0, Stack::text)->geometry.kv_heads, 2);
  EXPECT_EQ(find_group(model, 1, Stack::text)->mixer, Mixer::none);
  EXPECT_EQ(find_group(model, 2, Stack::text)->geometry.kv_heads, 1);
}

TEST(Families, OpenElmHasHeadsOfEachLayer) {
  const Model model = read_text(R"({"model_type": "openelm", "head_dim": 64, "model_dim": 1280,
      "max_context_length": 2048, "num_transformer_layers": 2, "num_kv_heads": [3, 5],
      "num_query_heads": [12, 20], "rope_freq_constant": 20000})");
  EXPECT_EQ(model.context, 2048);
  EXPECT_EQ(find_group(model, 1, Stack::text)->geometry.heads, 20);
  EXPECT_EQ(find_group(model, 1, Stack::text)->geometry.kv_heads, 5);
  EXPECT_EQ(std::get<Rope>(model.groups[0].schemes[0]).rope_theta, 20000);
}

TEST(Families, Plamo2AttendsInTheMiddleOfEachStep) {
  const Model model = read_text(R"({"model_type": "plamo2", "hidden_size": 2048,
      "hidden_size_per_head": 128, "num_attention_heads": 16, "num_key_value_heads": 1,
      "num_hidden_layers": 4, "mamba_enabled": true, "mamba_step": 2,
      "attention_window_size": 2048, "max_position_embeddings": 100000})");
  EXPECT_EQ(find_group(model, 0, Stack::text)->mixer, Mixer::recurrence);
  EXPECT_EQ(find_group(model, 1, Stack::text)->window, 2048);
}

TEST(Families, GtesNtkSlowsTheFirstPairToo) {
  const Model model = read_text(R"({"model_type": "new", "hidden_size": 1024,
      "num_attention_heads": 16, "num_hidden_layers": 1, "max_position_embeddings": 8192,
      "rope_scaling": {"factor": 2.0, "type": "ntk"}, "rope_theta": 160000})");
  const auto plan = compile(model.groups.front());
  ASSERT_TRUE(plan);
  EXPECT_NEAR(plan->rotate->at(0, 0, 0), std::pow(2.0, -2.0 / 64), 1e-12);
  EXPECT_NEAR(plan->rotate->at(0, 0, 31), std::pow(320000.0, -62.0 / 64) * std::pow(2.0, -2.0 / 64),
              1e-12);
}

// vLLM's ntk_scaling_rope.py: λ_r = e^(a·r^b), r from 1, a = ln s / (d/2)^b; the base stays.
TEST(Families, GtesMixedNtkDividesEachPairByItsOwn) {
  const Model model = read_text(R"({"model_type": "new", "hidden_size": 1024,
      "num_attention_heads": 16, "num_hidden_layers": 1, "max_position_embeddings": 8192,
      "rope_scaling": {"factor": 8.0, "type": "ntk", "mixed_b": 0.625}, "rope_theta": 20000})");
  const auto plan = compile(model.groups.front());
  ASSERT_TRUE(plan);
  const double a = std::log(8.0) / std::pow(32.0, 0.625);
  EXPECT_NEAR(plan->rotate->at(0, 0, 0), std::exp(-a), 1e-12);
  EXPECT_NEAR(plan->rotate->at(0, 0, 31), std::pow(20000.0, -62.0 / 64) / 8, 1e-15);
  EXPECT_TRUE(std::ranges::none_of(model.warnings,
                                   [](const Warning& one) { return one.code == "unknown_key"; }));
}

TEST(Families, InternLmsOwnBaseIsRead) {
  const Model model = read_text(R"({"model_type": "internlm", "hidden_size": 4096,
      "num_attention_heads": 32, "num_hidden_layers": 1,
      "rotary": {"base": 1000000, "type": "origin"}})");
  EXPECT_EQ(rope_of(model).rope_theta, 1e6);
}

TEST(Families, OpenAudiosNeighboursPair) {
  const Model model = read_text(R"({"model_type": "dual_ar", "dim": 1024, "n_head": 16,
      "n_local_heads": 8, "head_dim": 128, "n_layer": 2, "rope_base": 1000000.0,
      "max_seq_len": 8192})");
  EXPECT_EQ(rope_of(model).pairing, Pairing::interleaved);
  EXPECT_EQ(rope_of(model).rope_theta, 1e6);
  EXPECT_EQ(model.groups.front().geometry.kv_heads, 8);
}

TEST(Families, AClassNamesTheTypeThatIsMissing) {
  const Model model = read_text(R"({"architectures": ["QWenLMHeadModel"], "n_embd": 4096,
      "n_head": 32, "n_layer": 1, "kv_channels": 128, "seq_length": 2048})");
  EXPECT_NE(std::ranges::find(model.warnings, "type_from_class", &Warning::code),
            model.warnings.end());
  const auto unknown = read_config(R"({"architectures": ["SomebodysOwnForCausalLM"]})");
  ASSERT_FALSE(unknown);
  const std::string said = unknown.error().message();
  EXPECT_TRUE(said.contains("SomebodysOwnForCausalLM")) << said;
  EXPECT_FALSE(said.contains("somebodys_own")) << said;  // no type is made up of it
}

}  // namespace
}  // namespace posenc
