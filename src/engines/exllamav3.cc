// exllamav3, which tabbyAPI runs.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// What its code has a class for.
constexpr std::string_view exllamav3_families =
    "afmoe apertus arcee bailing_hybrid bailing_moe_v3 cohere cohere2 deepseek_v3 deepseek_v4 "
    "dots1 ernie4_5 ernie4_5_moe exaone4 gemma2 gemma3 gemma3_text gemma4 gemma4_text "
    "gemma4_unified glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm5_next glm_moe_dsa gpt_oss "
    "hy_v3 hyperclovax hyperclovax_vision_v2 iquestcoder kimi_linear laguna lfm2 lfm2_moe "
    "lfm2_vl llama mimo mimo_v2 mimo_v2_flash minimax_m2 ministral3 mistral mistral3 mixtral "
    "muse_glimmer nemotron-nas nemotron_h olmo3 olmo_hybrid phi3 qwen2 qwen2_5_vl qwen3 qwen3_5 "
    "qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe "
    "qwen4_exp seed_oss smollm3 solar_open spark2_5 step3p5 step3p7";

void read_exllama_yarn(EngineRope& rope, Yarn& yarn) {
  // read_rope_settings_default hands the ratio of DeepSeek's magnitudes to that family alone.
  // Ministral's temperature by position stands in for the magnitude.
  if (rope.states("llama_4_scaling_beta") && !yarn.attention_factor) yarn.attention_factor = 1;
  if (!rope.is_latent() && !yarn.attention_factor && yarn.mscale && yarn.mscale_all_dim) {
    rope.lost("mscale and mscale_all_dim are not read for this family");
    yarn.mscale.reset();
    yarn.mscale_all_dim.reset();
  }
  const bool trained = rope.states("original_max_position_embeddings") &&
                       rope.key("original_max_position_embeddings").contains('.');
  if (rope.model.context == 0) return;
  default_original_length(rope, rope.model.context);
  if (!trained) return;
  const double ratio = static_cast<double>(rope.model.context) /
                       static_cast<double>(yarn.original_max_position_embeddings);
  if (yarn.factor && *yarn.factor != ratio)
    rope.lost(rope.key("factor") +
              " is not read where the trained length is given: the factor is " +
              number_text(ratio) + ", max_position_embeddings over that length");
  yarn.factor = ratio;
}

void exllamav3_reads(EngineRope& rope) {
  refuse_named_ntk(rope, "ValueError: Unknown rope_type");
  if (rope.scaling<DynamicNtk>()) rope.refuse("it knows no dynamic scaling, and raises ValueError");
  if (rope.is_by_layer_type("rope_type") && !rope.scaling<Unscaled>() &&
      !rope.model_is("gemma4 gemma4_text"))
    lose_scaling(rope, "parameters by layer type are not read for this family");
  if (const auto theta = rope.stated_number("unused_rope_theta")) default_base(rope, *theta);
  if (auto* yarn = rope.scaling<Yarn>()) read_exllama_yarn(rope, *yarn);
  if (rope.scaling<Llama3>()) default_original_length(rope, 8192);
  if (rope.scaling<LongRope>()) {
    lose_longrope_amplitude(rope);
    // Phi-3's class alone is told the length that it is started for.
    const std::int64_t served = rope.model_is("phi3") ? rope.length : rope.model.context;
    fix_longrope(rope, served);
  }
}

}  // namespace

const EngineProfile exllamav3_profile{
    {"exllamav3", "exl3 tabbyapi", "exllamav3", "1.6.5", "exllamav3/util/rope.py"},
    "config.json",
    Spelling::rope_scaling,
    exllamav3_reads,
    exllamav3_families};

}  // namespace posenc::detail
