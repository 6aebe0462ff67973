// What a GGUF's rotation and logits are in llama.cpp, where keys and architectures make them
// special.
#include <algorithm>
#include <cmath>

#include "posenc/engines.h"
#include "src/model/small_gguf_test.h"

namespace posenc {
namespace {

using namespace test;

// --- rotation ------------------------------------------------------------------------------------

TEST(GgufRotation, TwoSectionsOrMoreTurnNeighboursIntoHalves) {
  for (const char* arch : {"glm4", "bailingmoe3"}) {
    SCOPED_TRACE(arch);
    SmallGguf file(arch);
    file.set("attention.key_length_mla", 192).set("attention.kv_lora_rank", 512);
    file.set("rope.dimension_count", 64);
    EXPECT_EQ(rope_of_layer(file.model(), 0).pairing, Pairing::interleaved);
    file.set("rope.dimension_sections", LayerList{32, 0, 0, 0});
    EXPECT_EQ(rope_of_layer(file.model(), 0).pairing, Pairing::interleaved);
    const Model model = file.set("rope.dimension_sections", LayerList{8, 12, 12, 0}).model();
    EXPECT_EQ(rope_of_layer(model, 0).pairing, Pairing::halves);
    EXPECT_EQ(rope_of_layer(model, 0).mrope_section, (std::vector<std::int64_t>{8, 12, 12}));
  }
}
TEST(GgufRotation, APartOfEachHeadThatNoKeySaysIsToldToBeLost) {
  SmallGguf file("glm4");
  const auto lost = [](const Model& model) {
    return std::ranges::any_of(
        model.warnings, [](const Warning& one) { return one.code == "gguf_rotary_dim_defaulted"; });
  };
  EXPECT_TRUE(lost(file.model()));
  EXPECT_FALSE(lost(file.set("rope.dimension_count", 32).model()));
}
TEST(GgufRotation, LlamaCppDemandsFourSections) {
  SmallGguf file("qwen2vl");
  const Model model = file.set("rope.dimension_sections", LayerList{8, 12, 12}).model();
  EXPECT_TRUE(says(model, "sections_count", "has 3 numbers"));
  EXPECT_TRUE(says(model, "sections_count", "[8, 12, 12, 0]"));
  EXPECT_EQ(rope_of_layer(model, 0).mrope_section, (std::vector<std::int64_t>{8, 12, 12}));
  EXPECT_FALSE(
      says(file.set("rope.dimension_sections", LayerList{8, 12, 12, 0}).model(), "sections_count"));
}
TEST(GgufRotation, ThreeSectionsAreRefusedByLlamaCppAndRunInOllama) {
  const Model model =
      SmallGguf("qwen2vl").set("rope.dimension_sections", LayerList{8, 12, 12}).model();
  EXPECT_TRUE(read_as(model, "llama.cpp")->refused.contains("four numbers"));
  EXPECT_EQ(read_as(model, "ollama")->refused, "");
}
TEST(GgufRotation, AFactorThatIsWrittenIntoAMixIsOutOfItsRange) {
  SmallGguf file("laguna");
  const Model model = file.set("rope.scaling.type", "yarn")
                          .set("rope.scaling.factor", 64.0)
                          .set("rope.scaling.yarn_ext_factor", 64.0)
                          .model();
  EXPECT_TRUE(says(model, "gguf_key_out_of_range", "wrote the factor into it"));
  EXPECT_FALSE(
      says(file.set("rope.scaling.yarn_ext_factor", 1.0).model(), "gguf_key_out_of_range"));
  EXPECT_FALSE(
      says(file.set("rope.scaling.yarn_ext_factor", -1.0).model(), "gguf_key_out_of_range"));
}
TEST(GgufRotation, HunYuansPicturesHaveFourAxesAndABaseByAlpha) {
  const Model model = SmallGguf("hunyuan_vl")
                          .set("rope.freq_base", 10000.0)
                          .set("rope.scaling.alpha", 1000.0)
                          .set("rope.dimension_sections", LayerList{8, 8, 8, 8})
                          .model();
  EXPECT_NEAR(rope_of_layer(model, 0).rope_theta, 10000 * std::pow(1000.0, 64.0 / 62), 1e-3);
  EXPECT_EQ(compile(group_of(model, 0), 0)->rotate->frequencies.axes, 4);
}
TEST(GgufRotation, CogVlmRotatesByGgmlsOwnBase) {
  const Model model = SmallGguf("cogvlm").set("rope.dimension_count", 32).model();
  EXPECT_EQ(rope_of_layer(model, 0).rope_theta, 10000);
  EXPECT_FALSE(rope_of_layer(model, 0).rotary_dim);
  EXPECT_TRUE(says(model, "gguf_key_not_read", "cogvlm.rope.freq_base"));
}
TEST(GgufRotation, DeepSeekOcrHasPlainHeadsAndNoScaling) {
  const Model model = SmallGguf("deepseek2-ocr")
                          .set("rope.scaling.type", "linear")
                          .set("rope.scaling.factor", 4.0)
                          .model();
  EXPECT_TRUE(std::holds_alternative<Unscaled>(rope_of_layer(model, 0).scaling));
  EXPECT_EQ(rope_of_layer(model, 0).pairing, Pairing::halves);
}
TEST(GgufRotation, LatentAttentionWithoutPositionKeepsItsCompressedKeys) {
  SmallGguf file("kimi-k3");
  file.set("attention.key_length_mla", 192).set("attention.value_length_mla", 128);
  file.set("attention.kv_lora_rank", 512).set("rope.dimension_count", 64);
  const Model model = file.model();
  EXPECT_EQ(letters_of(model), "oooooooo");
  EXPECT_EQ(group_of(model, 0).cache_elements, 512 + 64);
}
TEST(GgufRotation, PlmsHeadsEndInWhatRotates) {
  const Model model = SmallGguf("plm")
                          .set("attention.key_length", 192)
                          .set("attention.value_length", 128)
                          .set("attention.kv_lora_rank", 512)
                          .set("rope.dimension_count", 64)
                          .model();
  const auto plan = compile(group_of(model, 0), 0);
  ASSERT_TRUE(plan && plan->rotate);
  EXPECT_EQ(plan->rotate->slice.first_dim, 128);
}

// --- logits --------------------------------------------------------------------------------------

TEST(GgufRotation, GroksLogitsAreCappedAndItsRampStartsAtEight) {
  SmallGguf file("grok");
  file.set("rope.scaling.type", "yarn").set("rope.scaling.factor", 16.0);
  file.set("rope.scaling.original_context_length", 1024);
  const Model model = file.model();
  EXPECT_EQ(group_of(model, 0).logits.softcap, 30);
  EXPECT_NEAR(group_of(model, 0).logits.multiplier, 0.08838834764831845 * 8, 1e-12);
  EXPECT_EQ(std::get<Yarn>(rope_of_layer(model, 0).scaling).beta_fast, 8);
  const Model other = file.set("attention.output_scale", 0.125)
                          .set("attn_logit_softcapping", 50.0)
                          .set("rope.scaling.yarn_beta_fast", 32.0)
                          .set("attention.temperature_length", 1024)
                          .model();
  EXPECT_EQ(group_of(other, 0).logits.softcap, 50);
  EXPECT_EQ(group_of(other, 0).logits.multiplier, 1);
  EXPECT_EQ(std::get<Yarn>(rope_of_layer(other, 0).scaling).beta_fast, 32);
  EXPECT_TRUE(says(other, "gguf_key_not_read", "attention.temperature_length"));
}
TEST(GgufRotation, ALengthOfItsOwnBeginsDeepSeeksTemperature) {
  SmallGguf file("mistral4");
  file.set("attention.key_length_mla", 192).set("attention.kv_lora_rank", 512);
  file.set("rope.dimension_count", 64).set("attention.temperature_scale", 0.1);
  EXPECT_TRUE(file.error().contains("temperature_length: is missing"));
  const Model model = file.set("attention.temperature_length", 2048).model();
  EXPECT_EQ(group_of(model, 0).logits.beta, 0.1);
  EXPECT_EQ(group_of(model, 0).logits.floor, 2048);
}
TEST(GgufRotation, TheTrainedLengthBeginsMistrals) {
  const Model model = SmallGguf("mistral3")
                          .set("attention.temperature_scale", 0.1)
                          .set("attention.temperature_length", 2048)
                          .set("rope.scaling.original_context_length", 1024)
                          .model();
  EXPECT_EQ(group_of(model, 0).logits.floor, 1024);
  EXPECT_TRUE(says(model, "gguf_key_not_read", "attention.temperature_length"));
}
// A converter that writes the whole factor has it multiplied once more.
TEST(GgufRotation, AFactorOfYarnIsShownAsTheFileHoldsIt) {
  SmallGguf file("olmo2");
  file.set("rope.scaling.type", "yarn").set("rope.scaling.factor", 8.0);
  file.set("rope.scaling.original_context_length", 1024);
  file.set("rope.scaling.attn_factor", 1.2079441541679836);
  EXPECT_TRUE(says(file.model(), "attention_factor_given",
                   "attn_factor 1.2079 multiplies YaRN's own 1.2079: cos and sin × 1.4591, as "
                   "where a converter wrote attention_factor"));
  file.set("rope.scaling.attn_factor", 0.5);
  EXPECT_TRUE(says(file.model(), "attention_factor_given", "cos and sin × 0.604;"));
}
// amplitude 1 on cos and sin and (0.1 ln s + 1)² on the logits where the file has a multiplier of
// 0.1; without one YaRN's own amplitude on both.
TEST(GgufRotation, DeepSeeksLogitsHaveYarnsAmplitudeSquared) {
  SmallGguf file("deepseek2");
  file.set("attention.key_length_mla", 192).set("attention.kv_lora_rank", 512);
  file.set("rope.dimension_count", 64).set("rope.scaling.type", "yarn");
  file.set("rope.scaling.factor", 40.0).set("rope.scaling.original_context_length", 1024);
  const double own = 0.1 * std::log(40) + 1;
  const Model without = file.model();
  const auto twice = compile(group_of(without, 0), 0);
  ASSERT_TRUE(twice && twice->rotate);
  EXPECT_NEAR(twice->rotate->amplitude, own, 1e-12);
  EXPECT_NEAR(twice->logits.multiplier, own * own, 1e-12);
  EXPECT_TRUE(says(without, "gguf_log_multiplier", "1.3689"));
  const Model with = file.set("rope.scaling.yarn_log_multiplier", 0.1).model();
  const auto once = compile(group_of(with, 0), 0);
  ASSERT_TRUE(once && once->rotate);
  EXPECT_NEAR(once->rotate->amplitude, 1, 1e-12);
  EXPECT_NEAR(once->logits.multiplier, own * own, 1e-12);
}
TEST(GgufRotation, AScaleIsReadForGranitesAlone) {
  const Model granite = SmallGguf("granite").set("attention.scale", 0.0625).model();
  EXPECT_DOUBLE_EQ(group_of(granite, 0).logits.multiplier, 0.5);
  const Model llama = SmallGguf("llama").set("attention.scale", 0.0625).model();
  EXPECT_EQ(group_of(llama, 0).logits.multiplier, 1);
  EXPECT_TRUE(says(llama, "gguf_key_not_read", "attention.scale"));
}
TEST(GgufRotation, ADraftOfBlocksIsRefusedWhereItIsDeepSeeks) {
  EXPECT_EQ(letters_of(SmallGguf("dflash").model()), "hhhhhhhh");
  EXPECT_TRUE(SmallGguf("dflash").set("attention.q_lora_rank", 64).error().contains("DeepSeek-V4"));
}

}  // namespace
}  // namespace posenc
