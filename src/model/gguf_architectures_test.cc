// Every architecture of llama.cpp's list, and layers that are not alike, against what its loaders
// and graphs make of the same files (0.3.36 of llama-cpp-python).
#include <algorithm>
#include <string>
#include <vector>

#include "src/model/small_gguf_test.h"

namespace posenc {
namespace {

using namespace test;

// --- all of them ---------------------------------------------------------------------------------

// Keys that an architecture's loader asks for, beside those of all.
enum Keys : unsigned {
  plain = 0,
  windows = 1,  // a size, and no list
  listed = 2,   // a size, and which layers
  latent = 4,   // compressed keys
  hybrid = 8,   // attention in layers 2 and 6 alone
  sections = 16,
  slopes = 32,
  buckets = 64,
};

struct Known {
  std::string_view name;
  std::string_view layers;  // "": refused
  unsigned keys = plain;
  std::string_view reason = {};
};

constexpr Known all_known[] = {
    {"clip", "", plain, "not a model"},
    {"llama", "nnnnnnnn"},
    {"llama4", "NNNoNNNo", windows},
    {"deci", "nnnnnnnn"},
    {"falcon", "hhhhhhhh"},
    {"grok", "hhhhhhhh"},
    {"gpt2", "tttttttt"},
    {"gptj", "", plain, "builds no such model"},
    {"gptneox", "hhhhhhhh"},
    {"mpt", "aaaaaaaa", slopes},
    {"baichuan", "nnnnnnnn"},
    {"starcoder", "tttttttt"},
    {"refact", "aaaaaaaa"},
    {"bert", "tttttttt"},
    {"modern-bert", "hHHhHHhH", windows},
    {"nomic-bert", "hhhhhhhh"},
    {"nomic-bert-moe", "hhhhhhhh"},
    {"neo-bert", "nnnnnnnn"},
    {"jina-bert-v2", "aaaaaaaa"},
    {"jina-bert-v3", "hhhhhhhh"},
    {"eurobert", "hhhhhhhh"},
    {"bloom", "aaaaaaaa"},
    {"stablelm", "hhhhhhhh"},
    {"qwen", "hhhhhhhh"},
    {"qwen2", "hhhhhhhh"},
    {"qwen2moe", "hhhhhhhh"},
    {"qwen2vl", "hhhhhhhh", sections},
    {"qwen3", "hhhhhhhh"},
    {"qwen3moe", "hhhhhhhh"},
    {"qwen3next", "...h...h"},
    {"qwen3vl", "hhhhhhhh", sections},
    {"qwen3vlmoe", "hhhhhhhh", sections},
    {"qwen35", "...h...h", sections},
    {"qwen35moe", "...h...h", sections},
    {"qwen4exp", "...h...h", sections},
    {"phi2", "hhhhhhhh"},
    {"phi3", "hhhhhhhh"},
    {"phimoe", "hhhhhhhh"},
    {"plamo", "hhhhhhhh"},
    {"plamo2", "..h...h.", hybrid},
    {"plamo3", "HHHHHHHh", windows},
    {"codeshell", "hhhhhhhh"},
    {"orion", "hhhhhhhh"},
    {"internlm2", "nnnnnnnn"},
    {"minicpm", "nnnnnnnn"},
    {"minicpm3", "hhhhhhhh", latent},
    {"gemma", "hhhhhhhh"},
    {"gemma2", "HhHhHhHh", windows},
    {"gemma3", "HHHHHhHH", windows},
    {"gemma3n", "HHHHhHHH", windows},
    {"gemma4", "HHHhHHHh", listed},
    {"gemma4-assistant", "HHHhHHHh", listed},
    {"gemma-embedding", "HHHHHhHH", windows},
    {"starcoder2", "hhhhhhhh"},
    {"mamba", "........"},
    {"mamba2", "........"},
    {"maple", "HHHoHHHo", listed},
    {"jamba", "..o...o.", hybrid},
    {"falcon-h1", "hhhhhhhh"},
    {"xverse", "nnnnnnnn"},
    {"command-r", "nnnnnnnn"},
    {"cohere2", "NNNoNNNo", windows},
    {"cohere2moe", "nNNNoNNN", windows},
    {"dbrx", "hhhhhhhh"},
    {"olmo", "nnnnnnnn"},
    {"olmo2", "HHHhHHHh", windows},
    {"olmoe", "hhhhhhhh"},
    {"muse-glimmer", "NNNoNNNo", windows},
    {"openelm", "hhhhhhhh"},
    {"arctic", "nnnnnnnn"},
    {"deepseek", "nnnnnnnn"},
    {"deepseek2", "nnnnnnnn", latent},
    {"deepseek2-ocr", "hhhhhhhh"},
    {"deepseek32", "nnnnnnnn", latent},
    {"deepseek4", "", plain, "config.json alone"},
    {"chatglm", "nnnnnnnn"},
    {"glm4", "nnnnnnnn"},
    {"glm4moe", "hhhhhhhh"},
    {"glm-dsa", "nnnnnnnn", latent},
    {"bitnet", "hhhhhhhh"},
    {"t5", "bbbbbbbb", buckets},
    {"t5encoder", "bbbbbbbb", buckets},
    {"jais", "aaaaaaaa"},
    {"jais2", "hhhhhhhh"},
    {"nemotron", "hhhhhhhh"},
    {"nemotron_h", "..o...o.", hybrid},
    {"nemotron_h_moe", "..o...o.", hybrid},
    {"exaone", "hhhhhhhh"},
    {"exaone4", "hhhhhhhh", windows},
    {"exaone-moe", "HHHoHHHo", windows},
    {"rwkv6", "........"},
    {"rwkv6qwen2", "........"},
    {"rwkv7", "........"},
    {"arwkv7", "........"},
    {"granite", "nnnnnnnn"},
    {"granitemoe", "nnnnnnnn"},
    {"granitehybrid", "..n...n.", hybrid},
    {"graniteswitch", "nnnnnnnn"},
    {"granite_swa", "NNNnNNNn", listed},
    {"chameleon", "nnnnnnnn"},
    {"wavtokenizer-dec", "", plain, "has no position"},
    {"plm", "nnnnnnnn", latent},
    {"bailingmoe", "nnnnnnnn"},
    {"bailingmoe2", "hhhhhhhh"},
    {"bailingmoe3", "..n...n.", hybrid | latent},
    {"dots1", "hhhhhhhh"},
    {"dots3note", "", plain, "latent heads of another width"},
    {"arcee", "nnnnnnnn"},
    {"afmoe", "HHHoHHHo", windows},
    {"laguna", "hHHHhHHH", windows},
    {"ernie4_5", "nnnnnnnn"},
    {"ernie4_5-moe", "nnnnnnnn"},
    {"hunyuan-moe", "hhhhhhhh"},
    {"hunyuan-dense", "hhhhhhhh"},
    {"hunyuan_vl", "hhhhhhhh"},
    {"hy_v3", "hhhhhhhh"},
    {"hy_v4", "nnnnnnnn", latent},
    {"smollm3", "nnnonnno"},
    {"gpt-oss", "HhHhHhHh", windows},
    {"lfm2", "..H...H.", hybrid | windows},
    {"lfm2moe", "..h...h.", hybrid},
    {"dream", "hhhhhhhh"},
    {"smallthinker", "oHHHoHHH", windows},
    {"llada", "nnnnnnnn"},
    {"llada-moe", "hhhhhhhh"},
    {"seed_oss", "hhhhhhhh"},
    {"grovemoe", "hhhhhhhh"},
    {"apertus", "hhhhhhhh"},
    {"minimax-01", ".......h"},
    {"hrm_text", "hhhhhhhh"},
    {"minimax-m2", "hhhhhhhh"},
    {"minimax-m3", "hhhhhhhh"},
    {"cogvlm", "hhhhhhhh"},
    {"rnd1", "hhhhhhhh"},
    {"pangu-embedded", "hhhhhhhh"},
    {"mistral3", "nnnnnnnn"},
    {"eagle3", "nnnnnnnn"},
    {"dflash", "HHHhHHHh", listed},
    {"mistral4", "nnnnnnnn", latent},
    {"paddleocr", "hhhhhhhh", sections},
    {"mimo2", "HHHhHHHh", listed},
    {"step35", "HHHhHHHh", listed},
    {"spark2_5", "HHHhHHHh", listed},
    {"llama-embed", "nnnnnnnn"},
    {"maincoder", "nnnnnnnn"},
    {"kimi-linear", "..o...o.", hybrid | latent},
    {"kimi-k3", "..o...o.", hybrid | latent},
    {"glm5-next", "..o...o.", hybrid | latent},
    {"talkie", "hhhhhhhh"},
    {"mellum", "HHHhHHHh", windows},
    {"nanbeige", "nnnnnnnn"},
    {"qwen3tts", "hhhhhhhh", sections},
    {"pockettts", "nnnnnnnn"},
};

SmallGguf file_of(const Known& known) {
  SmallGguf file{std::string(known.name)};
  file.set("rope.freq_base", 10000.0);
  if (known.keys & (windows | listed))
    file.set("attention.sliding_window", 512).set("leading_dense_block_count", 1);
  if (known.keys & listed)
    file.set("attention.sliding_window_pattern", LayerList{1, 1, 1, 0, 1, 1, 1, 0});
  if (known.keys & latent) {
    file.set("attention.key_length_mla", 192).set("attention.value_length_mla", 128);
    file.set("attention.key_length", 192).set("attention.value_length", 128);
    file.set("attention.kv_lora_rank", 512).set("rope.dimension_count", 64);
  }
  if (known.keys & hybrid) file.set("attention.head_count_kv", LayerList{0, 0, 4, 0, 0, 0, 4, 0});
  if (known.keys & sections) file.set("rope.dimension_sections", LayerList{11, 11, 10, 0});
  if (known.keys & slopes) file.set("attention.max_alibi_bias", 8.0);
  if (known.keys & buckets)
    file.set("attention.relative_buckets_count", 32).set("attention.key_length", 64);
  return file;
}

TEST(GgufArchitectures, EachOfTheListIsExplainedOrRefusedForAReasonOfItsOwn) {
  for (const Known& known : all_known) {
    SCOPED_TRACE(known.name);
    if (known.layers.empty()) {
      EXPECT_TRUE(file_of(known).error().contains(known.reason)) << file_of(known).error();
      continue;
    }
    const Model model = file_of(known).model();
    EXPECT_TRUE(model.known_family);
    EXPECT_EQ(letters_of(model), known.layers);
    EXPECT_FALSE(says(model, "gguf_key_not_read"));
  }
}
TEST(GgufArchitectures, TheListHasEachNameOnce) {
  std::vector<std::string_view> names;
  for (const Known& known : all_known) names.push_back(known.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  EXPECT_EQ(names.size(), 153U);
}

// --- windows and bases ---------------------------------------------------------------------------

TEST(GgufArchitectures, SlidingLayersHaveTheirBaseAndScalingAsLlamaCppHasThem) {
  struct Local {
    std::string arch;
    double said, unsaid;  // base of layers that slide, with and without rope.freq_base_swa
    bool scaled;
  };
  const Local each[] = {
      {"gemma2", 1000, 500000, true},        {"gpt-oss", 1000, 500000, true},
      {"afmoe", 1000, 500000, true},         {"llama4", 1000, 500000, true},
      {"smallthinker", 1000, 500000, true},  {"gemma3", 1000, 10000, false},
      {"gemma3n", 1000, 10000, false},       {"plamo3", 1000, 10000, false},
      {"modern-bert", 1000, 10000, false},   {"laguna", 1000, 500000, false},
      {"muse-glimmer", 1000, 500000, false}, {"olmo2", 500000, 500000, false},
      {"mellum", 500000, 500000, false},     {"cohere2", 500000, 500000, true},
      {"exaone-moe", 500000, 500000, true},
  };
  for (const Local& local : each) {
    SCOPED_TRACE(local.arch);
    SmallGguf file(local.arch);
    file.set("attention.sliding_window", 512);
    file.set("rope.scaling.type", "linear").set("rope.scaling.factor", 4.0);
    const std::int64_t sliding = local.arch == "gemma2" || local.arch == "gpt-oss" ? 0 : 1;
    EXPECT_EQ(rope_of_layer(file.model(), sliding).rope_theta, local.unsaid);
    const Model model = file.set("rope.freq_base_swa", 1000.0).model();
    const Rope& rope = rope_of_layer(model, sliding);
    EXPECT_EQ(rope.rope_theta, local.said);
    EXPECT_EQ(std::holds_alternative<Linear>(rope.scaling), local.scaled);
    EXPECT_EQ(says(model, "gguf_key_not_read", "rope.freq_base_swa"), local.said == 500000);
  }
}

TEST(GgufArchitectures, AWindowIsNotReadForMostAndTheFileIsToldSo) {
  for (const char* arch : {"phi3", "mistral3", "llama", "qwen2", "starcoder2"}) {
    SCOPED_TRACE(arch);
    const Model model = SmallGguf(arch).set("attention.sliding_window", 512).model();
    EXPECT_FALSE(group_of(model, 0).window);
    EXPECT_TRUE(says(model, "gguf_key_not_read", "attention.sliding_window"));
  }
}
TEST(GgufArchitectures, AWindowThatTheContextNeverFillsIsNoWarning) {
  EXPECT_TRUE(SmallGguf("phi3").set("attention.sliding_window", 4096).model().warnings.empty());
}
TEST(GgufArchitectures, Llama4sChunksAreOf8192WhateverTheFileSays) {
  const Model model = SmallGguf("llama4").set("attention.sliding_window", 512).model();
  EXPECT_EQ(group_of(model, 0).window, 8192);
  EXPECT_TRUE(group_of(model, 0).chunked);
  EXPECT_EQ(group_of(model, 3).logits.beta, 0.1);
  EXPECT_EQ(group_of(model, 3).logits.floor, 8192);
  EXPECT_EQ(group_of(model, 3).logits.offset, 1);
  EXPECT_EQ(group_of(model, 0).logits.beta, 0);
}
TEST(GgufArchitectures, Llama4WithoutChunksStopsLlamaCpp) {
  EXPECT_TRUE(SmallGguf("llama4").set("attention.sliding_window", 0).error().contains("stops"));
}
TEST(GgufArchitectures, ACountOfLayersThatNoModelHasIsRefused) {
  const SmallGguf file =
      SmallGguf("lfm2").set("block_count", 2000000000).set("attention.sliding_window", 512);
  EXPECT_TRUE(file.error().contains("block_count"));
}
TEST(GgufArchitectures, SmallThinkersWindowIsOf4096AndWithoutOneAllRotate) {
  EXPECT_EQ(
      group_of(SmallGguf("smallthinker").set("attention.sliding_window", 512).model(), 1).window,
      4096);
  EXPECT_EQ(letters_of(SmallGguf("smallthinker").model()), "hhhhhhhh");
}
TEST(GgufArchitectures, WithoutAWindowNothingSlides) {
  for (const char* arch : {"gemma3", "olmo2", "laguna", "mellum", "plamo3", "modern-bert", "lfm2"})
    EXPECT_EQ(letters_of(SmallGguf(arch).model()), "hhhhhhhh") << arch;
  EXPECT_EQ(letters_of(SmallGguf("afmoe").model()), "hhhohhho");
}
TEST(GgufArchitectures, APeriodOfTheFileBeatsTheArchitectures) {
  EXPECT_EQ(letters_of(SmallGguf("gemma3")
                           .set("attention.sliding_window", 512)
                           .set("attention.sliding_window_pattern", 2)
                           .model()),
            "HhHhHhHh");
}
TEST(GgufArchitectures, AListThatTheLoaderAsksForMustBeThere) {
  EXPECT_TRUE(SmallGguf("mimo2")
                  .set("attention.sliding_window", 512)
                  .error()
                  .contains("mimo2.attention.sliding_window_pattern: is missing"));
}
TEST(GgufArchitectures, Exaone4SlidesIfItHas64Layers) {
  const Model model = SmallGguf("exaone4").set("block_count", 64).model();
  EXPECT_EQ(group_of(model, 0).window, 4096);
  EXPECT_EQ(letters_of(model), "HHHoHHHo");
}

// --- layers that are not alike -------------------------------------------------------------------

TEST(GgufArchitectures, Step35RotatesHalfOfItsFullLayersAndHasHeadsOfTheirOwn) {
  const Model model =
      SmallGguf("step35")
          .set("attention.sliding_window", 512)
          .set("attention.sliding_window_pattern", LayerList{0, 1, 1, 1, 0, 1, 1, 1})
          .set("attention.head_count", LayerList{4, 8, 8, 8, 4, 8, 8, 8})
          .set("attention.head_count_kv", LayerList{2, 4, 4, 4, 2, 4, 4, 4})
          .set("attention.key_length", 64)
          .set("attention.value_length", 64)
          .set("rope.dimension_count", 64)
          .model();
  EXPECT_EQ(rope_of_layer(model, 0).rotary_dim, 32);
  EXPECT_EQ(rope_of_layer(model, 1).rotary_dim, 64);
  EXPECT_EQ(group_of(model, 0).geometry.heads, 4);
  EXPECT_EQ(group_of(model, 1).geometry.heads, 8);
  EXPECT_EQ(group_of(model, 0).cache_elements, 2 * 2 * 64);
  EXPECT_EQ(group_of(model, 1).cache_elements, 2 * 4 * 64);
}
TEST(GgufArchitectures, LagunaSaysHowMuchRotatesWhereItSlides) {
  const Model model = SmallGguf("laguna")
                          .set("attention.sliding_window", 512)
                          .set("rope.dimension_count", 32)
                          .set("rope.dimension_count_swa", 64)
                          .set("rope.scaling.type", "yarn")
                          .set("rope.scaling.factor", 4.0)
                          .set("rope.scaling.original_context_length", 1024)
                          .model();
  EXPECT_EQ(rope_of_layer(model, 0).rotary_dim, 32);
  EXPECT_TRUE(std::holds_alternative<Yarn>(rope_of_layer(model, 0).scaling));
  EXPECT_EQ(rope_of_layer(model, 1).rotary_dim, 64);
  EXPECT_TRUE(std::holds_alternative<Unscaled>(rope_of_layer(model, 1).scaling));
}
TEST(GgufArchitectures, HeadsThatDoNotDivideAreRefusedWithTheirLayer) {
  EXPECT_TRUE(SmallGguf("deci")
                  .set("attention.head_count_kv", LayerList{4, 4, 3, 4, 4, 4, 4, 4})
                  .error()
                  .contains("3 for 4 in layer 2"));
}
TEST(GgufArchitectures, WhereNoReaderKnowsUnlikeHeadsTheyAreRefused) {
  EXPECT_TRUE(SmallGguf("bloom")
                  .set("attention.head_count_kv", LayerList{4, 4, 2, 4, 4, 4, 4, 4})
                  .error()
                  .contains("unlike heads"));
}
TEST(GgufArchitectures, AMaskBothWaysIsTheFilesUnlessTheLoaderSetsIt) {
  EXPECT_TRUE(group_of(SmallGguf("nomic-bert").model(), 0).causal);
  EXPECT_FALSE(group_of(SmallGguf("nomic-bert").set("attention.causal", false).model(), 0).causal);
  EXPECT_FALSE(group_of(SmallGguf("llada").set("attention.causal", true).model(), 0).causal);
  EXPECT_TRUE(SmallGguf("bloom").set("attention.causal", false).error().contains("both ways"));
}
TEST(GgufArchitectures, Mimo2sSinksAreTensorsOfTheFile) {
  SmallGguf file("mimo2");
  file.set("attention.sliding_window", 128)
      .set("attention.sliding_window_pattern", LayerList{0, 1, 1, 1, 0, 1, 1, 1})
      .set("attention.value_scale", 0.707);
  EXPECT_FALSE(group_of(file.model(), 1).sink_logits);
  for (const int layer : {1, 2, 3, 5, 6, 7}) file.sinks_in(layer);
  const Model model = file.model();
  EXPECT_TRUE(group_of(model, 1).sink_logits);
  EXPECT_FALSE(group_of(model, 0).sink_logits);
  EXPECT_TRUE(says(model, "family_remark", "multiplied"));
}
TEST(GgufArchitectures, GraniteSwaListsWhatRotates) {
  SmallGguf file("granite_swa");
  file.set("attention.sliding_window", 512)
      .set("attention.sliding_window_pattern", LayerList{0, 1, 1, 1, 0, 1, 1, 1})
      .set("attention.rope_pattern", LayerList{0, 1, 1, 1, 0, 1, 1, 1})
      .set("attention.scale", 0.0625);
  const Model model = file.model();
  EXPECT_EQ(letters_of(model), "oNNNoNNN");
  EXPECT_TRUE(group_of(model, 0).sink_logits);
  EXPECT_DOUBLE_EQ(group_of(model, 1).logits.multiplier, 0.0625 * 8);
}
TEST(GgufArchitectures, GranitesRotateUnlessTheirSwitchIsOff) {
  for (const char* arch : {"granite", "granitehybrid", "graniteswitch"}) {
    EXPECT_EQ(letters_of(SmallGguf(arch).model()), "nnnnnnnn") << arch;
    EXPECT_EQ(letters_of(SmallGguf(arch).set("rope.scaling.finetuned", false).model()), "oooooooo")
        << arch;
  }
  EXPECT_EQ(letters_of(SmallGguf("granitemoe").set("rope.scaling.finetuned", false).model()),
            "nnnnnnnn");
}
TEST(GgufArchitectures, NanbeigesLayersAreRunAgain) {
  const Model model = SmallGguf("nanbeige").set("num_loops", 2).model();
  EXPECT_EQ(group_of(model, 0).layers.size(), 16U);
}
TEST(GgufArchitectures, Gemma3nSharesKeysFromItsTwentiethLayerOn) {
  const Model model =
      SmallGguf("gemma3n").set("block_count", 24).set("attention.sliding_window", 512).model();
  EXPECT_GT(group_of(model, 19).cache_elements, 0);
  EXPECT_EQ(group_of(model, 20).cache_elements, 0);
}
TEST(GgufArchitectures, ADraftOfGemma4KeepsNoKeys) {
  const Model model =
      SmallGguf("gemma4-assistant")
          .set("attention.sliding_window", 512)
          .set("attention.sliding_window_pattern", LayerList{1, 1, 1, 0, 1, 1, 1, 0})
          .set("attention.key_length", 128)
          .set("attention.key_length_swa", 64)
          .model();
  for (const std::int64_t layer : {0, 3}) {
    EXPECT_EQ(group_of(model, layer).cache_elements, 0);
    EXPECT_EQ(group_of(model, layer).geometry.head_dim, layer == 3 ? 128 : 64);
  }
}
TEST(GgufArchitectures, AListSaysWhichLayersAreRecurrent) {
  EXPECT_EQ(letters_of(SmallGguf("minimax-01")
                           .set("attention.recurrent_layers", LayerList{1, 0, 1, 0, 1, 0, 1, 0})
                           .model()),
            ".h.h.h.h");
}
TEST(GgufArchitectures, AnIndexersKeysAreCachedWhereTheFileSaysThem) {
  SmallGguf file("deepseek32");
  file.set("attention.key_length", 192).set("attention.key_length_mla", 192);
  file.set("attention.kv_lora_rank", 512).set("rope.dimension_count", 64);
  EXPECT_FALSE(group_of(file.model(), 0).picked);
  file.set("attention.indexer.top_k", 1024).set("attention.indexer.key_length", 96);
  const Model model = file.model();
  EXPECT_EQ(group_of(model, 0).picked, (Picked{.count = 1024}));
  ASSERT_EQ(group_of(model, 0).cache_beside.size(), 1U);
  EXPECT_EQ(group_of(model, 0).cache_beside[0].elements, 96);
}
TEST(GgufArchitectures, NemotronNasLeavesAttentionOutAndPutsNothingInItsPlace) {
  const Model model =
      SmallGguf("deci").set("attention.head_count_kv", LayerList{4, 0, 2, 4, 0, 0, 4, 1}).model();
  EXPECT_EQ(group_of(model, 1).mixer, Mixer::none);
  EXPECT_EQ(group_of(model, 2).geometry.kv_heads, 2);
}
TEST(GgufArchitectures, ALayerWithAPerceptronHasNoRecurrence) {
  SmallGguf file("nemotron_h");
  file.set("attention.head_count_kv", LayerList{0, 0, 4, 0, 0, 0, 4, 0});
  EXPECT_EQ(group_of(file.model(), 0).mixer, Mixer::unsaid);
  const Model model =
      file.set("feed_forward_length", LayerList{0, 512, 0, 512, 0, 512, 0, 512}).model();
  EXPECT_EQ(group_of(model, 0).mixer, Mixer::recurrence);
  EXPECT_EQ(group_of(model, 1).mixer, Mixer::none);
  EXPECT_EQ(group_of(model, 2).mixer, Mixer::attention);
}

}  // namespace
}  // namespace posenc
