// LightLLM: LlamaTpPartModel._init_custom, whose tables most of its classes share.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// What its code has a class for.
constexpr std::string_view lightllm_families =
    "bloom deepseek_v2 deepseek_v3 deepseek_v32 gemma gemma3 gemma3_text gemma4 glm4_moe_lite "
    "gpt_bigcode gpt_oss internlm internlm2 internvl_chat llama llava minicpm mistral mixtral "
    "phi3 qwen qwen2 qwen2_5_vl qwen2_vl qwen3 qwen3_5 qwen3_5_moe qwen3_moe qwen3_next "
    "qwen3_omni_moe qwen3_vl qwen3_vl_moe stablelm starcoder2";

// Classes that make their table by the factor alone, whatever type stands beside it.
constexpr std::string_view by_the_factor = "mistral mixtral starcoder2";

void read_yarn_by_llama(EngineRope& rope, Yarn& yarn) {
  if (!yarn.factor) rope.refuse("a scaling without its factor is read as 1: write it");
  if (!rope.states("original_max_position_embeddings")) default_original_length(rope, 2048);
  if (rope.is_latent()) return default_mscales(rope);
  if (yarn.mscale || yarn.mscale_all_dim) {
    rope.lost("mscale and mscale_all_dim are read by its class of DeepSeek alone");
    yarn.mscale.reset();
    yarn.mscale_all_dim.reset();
  }
  lose_attention_factor(rope);
  lose_betas(rope);
  always_truncate(rope);
  if (rope.rope.partial_rotary_factor < 1) lose_partial(rope);
}

void lightllm_reads(EngineRope& rope) {
  // Two of its classes look into rope_parameters.
  if (!rope.model_is("qwen3_5 qwen3_5_moe gemma4")) lose_rope_parameters(rope, 10000);
  const double factor = rope.stated_number("factor").value_or(1);
  const bool scales = !std::holds_alternative<Unscaled>(rope.rope.scaling);
  if (scales && (rope.model_is(by_the_factor) || rope.states("mrope_section"))) {
    if (!rope.scaling<Linear>())
      rope.lost("the type of the scaling is not read: positions are divided by its factor " +
                number_text(factor));
    rope.rope.scaling = factor == 1 ? Scaling(Unscaled{}) : Scaling(Linear{factor});
  } else if (auto* yarn = rope.scaling<Yarn>()) {
    read_yarn_by_llama(rope, *yarn);
  } else if (rope.scaling<DynamicNtk>()) {
    rope.approximated(
        "dynamic: each position beyond the context has the base of a text that ends there, within "
        "one text, too");
  } else if (rope.scaling<LongRope>()) {
    if (rope.stated("rope_type") != "su")
      rope.refuse("it knows type su and not " +
                  std::string(rope.stated("rope_type").value_or("longrope")) +
                  ", and raises ValueError");
    lose_longrope_amplitude(rope);
    rope.approximated(
        "longrope: within one text positions below the trained length have the short list and "
        "those beyond it the long one");
  } else if (scales && !rope.scaling<Llama3>() && !rope.model_is("gemma3 gemma3_text gemma4")) {
    rope.refuse("it knows no " + rope.scaling_name() + " scaling, and raises ValueError");
  }
  round_tables(rope);
}

}  // namespace

const EngineProfile lightllm_profile{
    {"lightllm", "", "LightLLM", "1.2.0", "lightllm/models/llama/model.py at 87881ae", "", true},
    "config.json",
    Spelling::rope_scaling,
    lightllm_reads,
    lightllm_families};

}  // namespace posenc::detail
