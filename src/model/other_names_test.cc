// Configurations in the words of other programs, as their own code writes them.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "posenc/model.h"

namespace posenc {
namespace {

Expected<Model> model_of(std::string_view text) {
  return read_model_bytes(std::as_bytes(std::span(text)), "model");
}

const std::string pythia = R"(bias: true
block_size: 2048
head_size: 64
hf_config:
  name: pythia-160m
  org: EleutherAI
n_embd: 768
n_head: 12
n_layer: 12
n_query_groups: 12
name: pythia-160m
rope_adjustments: null
rope_base: 10000
rope_condense_ratio: 1
rotary_percentage: 0.25
)";

std::string with(std::string text, const std::string& old, const std::string& now) {
  return text.replace(text.find(old), old.size(), now);
}

const Rope& rope_of(const Model& model) {
  return std::get<Rope>(model.groups.front().schemes.front());
}

TEST(OtherNames, LitGptsYamlSaysHowAModelRotates) {
  const auto model = model_of(pythia);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->context, 2048);
  EXPECT_EQ(rope_of(*model).rope_theta, 10000);
  const auto plan = compile(model->groups.front());
  ASSERT_TRUE(plan && plan->rotate);
  EXPECT_EQ(plan->rotate->slice.rotary_dim, 16);
  EXPECT_EQ(plan->rotate->slice.pairing, Pairing::halves);
}

TEST(OtherNames, LitGptsRatioDividesPositions) {
  const auto model = model_of(with(pythia, "rope_condense_ratio: 1", "rope_condense_ratio: 8"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(rope_of(*model).scaling, Scaling(Linear{8}));
}

TEST(OtherNames, LitGptsAdjustmentsAreLlama3s) {
  const auto model = model_of(with(pythia, "rope_adjustments: null",
                                   "rope_adjustments:\n  factor: 8.0\n  high_freq_factor: 4.0\n"
                                   "  low_freq_factor: 1.0\n  original_max_seq_len: 8192"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(rope_of(*model).scaling,
            Scaling(Llama3{.factor = 8, .original_max_position_embeddings = 8192}));
}

TEST(OtherNames, WhispersDimsAreItsConfiguration) {
  const auto model = model_of(R"({"n_mels": 80, "n_vocab": 51865, "n_audio_ctx": 1500,
      "n_audio_state": 512, "n_audio_head": 8, "n_audio_layer": 6, "n_text_ctx": 448,
      "n_text_state": 512, "n_text_head": 8, "n_text_layer": 6})");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->context, 448);
  EXPECT_EQ(model->family, "whisper");
}

TEST(OtherNames, NanoGptIsGpt2) {
  const std::string gpt = R"({"n_layer": 12, "n_head": 12, "n_embd": 768, "block_size": 1024,
      "bias": false, "vocab_size": 50304, "dropout": 0.0})";
  const auto model = model_of(gpt);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->context, 1024);
  EXPECT_TRUE(std::holds_alternative<Learned>(model->groups.front().schemes.front()));
  // Of a program that rotates nothing is known.
  EXPECT_FALSE(model_of(with(gpt, "\"bias\": false", "\"rope\": true")));
}

const std::string deepseek = R"({"vocab_size": 102400, "dim": 2048, "inter_dim": 10944,
    "moe_inter_dim": 1408, "n_layers": 27, "n_dense_layers": 1, "n_heads": 16,
    "n_routed_experts": 64, "n_shared_experts": 2, "n_activated_experts": 6, "q_lora_rank": 0,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "mscale": 0.707})";

TEST(OtherNames, DeepSeeksOwnFileHasItsClassesDefaults) {
  const auto model = model_of(deepseek);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->family, "deepseek_v3");
  EXPECT_EQ(model->context, 16384);
  EXPECT_EQ(rope_of(*model).rope_theta, 10000);
  EXPECT_EQ(rope_of(*model).pairing, Pairing::interleaved);
  EXPECT_EQ(rope_of(*model).scaling, Scaling(Yarn{.factor = 40,
                                                  .original_max_position_embeddings = 4096,
                                                  .max_position_embeddings = 16384,
                                                  .mscale = 0.707,
                                                  .mscale_all_dim = 0.707,
                                                  .scale_logits = true}));
}

TEST(OtherNames, DeepSeeksOwnFileOfAShortTableIsUnscaled) {
  const auto model = model_of(with(deepseek, "\"dim\"", "\"max_seq_len\": 4096, \"dim\""));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(rope_of(*model).scaling, Scaling(Unscaled{}));
}

TEST(OtherNames, DeepSeeksOwnFilesOfAnotherKindAreNotMistrals) {
  const auto model = model_of(with(deepseek, "kv_lora_rank", "o_lora_rank"));
  ASSERT_FALSE(model);
  EXPECT_TRUE(model.error().message().contains("DeepSeek's own")) << model.error().message();
}

std::string own_of_gpt_oss(const std::string& rotation) {
  return R"({"num_hidden_layers": 24, "num_experts": 32, "vocab_size": 201088,
             "hidden_size": 2880, "head_dim": 64, "num_attention_heads": 64,
             "num_key_value_heads": 8, "sliding_window": 128, )" +
         rotation + "}";
}

TEST(OtherNames, OpenAisOwnFileIsYarnWithoutRounding) {
  const auto model = model_of(own_of_gpt_oss(
      R"("initial_context_length": 4096, "rope_theta": 150000, "rope_scaling_factor": 32.0,
         "rope_ntk_alpha": 1, "rope_ntk_beta": 32)"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->family, "gpt_oss");
  EXPECT_EQ(model->context, 131072);
  const auto* yarn = std::get_if<Yarn>(&rope_of(*model).scaling);
  ASSERT_TRUE(yarn);
  EXPECT_EQ(yarn->factor, 32);
  EXPECT_EQ(yarn->original_max_position_embeddings, 4096);
  EXPECT_EQ(yarn->beta_fast, 32);
  EXPECT_EQ(yarn->beta_slow, 1);
  EXPECT_FALSE(yarn->truncate);
  EXPECT_EQ(model->groups.size(), 2);
}

TEST(OtherNames, OpenAisOwnFileWithAFactorOfOneIsUnscaled) {
  const auto model = model_of(own_of_gpt_oss(
      R"("initial_context_length": 4096, "rope_theta": 150000, "rope_scaling_factor": 1.0)"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->context, 4096);
  EXPECT_EQ(rope_of(*model).scaling, Scaling(Unscaled{}));
}

TEST(OtherNames, OpenAisOwnFileWithALengthOfWordsIsRefused) {
  EXPECT_FALSE(model_of(own_of_gpt_oss(
      R"("initial_context_length": "long", "rope_theta": 150000, "rope_scaling_factor": 32.0)")));
}

TEST(OtherNames, FilesBesideAModelAreCalledByTheirName) {
  const auto refusal = [](std::string_view text) {
    const auto model = model_of(text);
    return model ? std::string() : model.error().message();
  };
  EXPECT_TRUE(refusal(R"({"_class_name": "StableDiffusion3Pipeline", "_diffusers_version": "0.31",
      "transformer": ["diffusers", "SD3Transformer2DModel"]})")
                  .contains("transformer/config.json"));
  EXPECT_TRUE(refusal(R"({"feature_extractor_type": "WhisperFeatureExtractor", "hop_length": 160})")
                  .contains("preprocessor_config.json"));
  EXPECT_TRUE(refusal(R"({"processor_class": "Qwen2VLProcessor"})").contains(" processor_config"));
}

TEST(OtherNames, AnotherYamlIsNone) { EXPECT_FALSE(model_of("n_embd: 768\nblock_size: 2048\n")); }

const std::string nemo = R"(micro_batch_size: 1
encoder_seq_length: 16384
max_position_embeddings: ${.encoder_seq_length}
num_layers: 2
hidden_size: 512
num_attention_heads: 8
kv_channels: null # hidden_size / num_attention_heads
position_embedding_type: rope # learned_absolute, rope, alibi
rotary_percentage: 0.5 # of each head
seq_len_interpolation_factor: 4
num_query_groups: 2
mcore_gpt: true
data:
  seq_length: 2048
)";

TEST(OtherNames, NemosYamlRotatesAsMegatron) {
  const auto model = model_of(nemo);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->context, 16384);
  EXPECT_EQ(rope_of(*model).rope_theta, 10000);
  EXPECT_EQ(rope_of(*model).scaling, Scaling(Linear{4}));
  const auto plan = compile(model->groups.front());
  ASSERT_TRUE(plan && plan->rotate);
  EXPECT_EQ(plan->rotate->slice.rotary_dim, 32);
  EXPECT_EQ(plan->rotate->slice.pairing, Pairing::halves);
  EXPECT_EQ(model->groups.front().geometry.kv_heads, 2);
}

TEST(OtherNames, NemosTrainingHasItsModelInASection) {
  std::string text = "trainer:\n  devices: 8\nmodel:\n";
  for (std::string_view rest = nemo; !rest.empty();) {
    const std::size_t end = rest.find('\n') + 1;
    text += "  " + std::string(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  const auto model =
      model_of(with(text, "rotary_percentage: 0.5 # of each head\n", "rotary_base: 5e5\n"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(rope_of(*model).rope_theta, 500000);
  EXPECT_EQ(compile(model->groups.front())->rotate->slice.rotary_dim, 64);
}

TEST(OtherNames, NemosLearnedPositionsAreATable) {
  const auto model = model_of(
      with(with(nemo, "position_embedding_type: rope", "position_embedding_type: learned_absolute"),
           "${.encoder_seq_length}", "2048"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->context, 2048);
  EXPECT_TRUE(std::holds_alternative<Learned>(model->groups.front().schemes.front()));
  EXPECT_FALSE(model_of(with(nemo, "type: rope", "type: kerple")));
}

}  // namespace
}  // namespace posenc
