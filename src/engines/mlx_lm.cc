// mlx-lm: rotation inside a kernel, with frequencies that are made once.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// What its code has a class for.
constexpr std::string_view mlx_families =
    "afm7 afmoe apertus baichuan_m1 bailing_hybrid bailing_moe bailing_moe_linear "
    "bailing_moe_v3 bitnet cohere cohere2 dbrx deepseek deepseek_v2 deepseek_v3 deepseek_v32 "
    "deepseek_v41 dots1 ernie4_5 ernie4_5_moe exaone exaone4 exaone_moe falcon_h1 falcon_mamba "
    "gemma gemma2 gemma3 gemma3_text gemma3n gemma4 gemma4_text gemma4_unified glm glm4 "
    "glm4_moe glm4_moe_lite glm_moe_dsa gpt2 gpt_bigcode gpt_neox gpt_oss gptj granite "
    "granitemoe granitemoehybrid helium hunyuan hunyuan_v1_dense internlm2 internlm3 "
    "iquestcoder iquestloopcoder jamba joyai_llm_flash kimi_k2 kimi_k25 kimi_k3 kimi_linear "
    "kimi_vl Klear laguna lfm2 lfm2-vl lfm2_moe lille-130m llama llama4 llama4_text llava "
    "longcat_flash longcat_flash_ngram mamba mamba2 mellum mimo mimo_v2_flash minicpm minicpm3 "
    "minimax minimax_m2 minimax_m3_vl ministral3 mistral mistral3 mistral4 mixtral muse_glimmer "
    "muse_spark nanbeige nanochat nemotron nemotron-nas nemotron_h olmo olmo2 olmo3 olmo_hybrid "
    "olmoe openelm phi phi-msft phi3 phi3small phimoe phixtral pixtral plamo plamo2 plamo3 qwen "
    "qwen2 qwen2_5_vl qwen2_moe qwen2_vl qwen3 qwen3_5 qwen3_5_moe qwen3_5_moe_text "
    "qwen3_5_text qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe recurrent_gemma rwkv7 seed_oss "
    "smollm3 solar_open spark2_5 stablelm starcoder2 step3p5 talkie telechat3 xverse youtu_llm";

// Classes that read rope_parameters; the others read rope_scaling and a rope_theta beside it alone.
constexpr std::string_view mlx_new_spelling =
    "exaone_moe gemma4 gemma4_text glm_moe_dsa granitemoehybrid laguna lfm2 lfm2_moe lfm2_vl "
    "mellum minimax_m3_vl ministral3 mistral4 olmo_hybrid qwen3 qwen3_5 qwen3_5_text qwen3_5_moe "
    "qwen3_5_moe_text qwen3_vl qwen3_vl_text";

// Classes without a default of rope_theta: a file that has it in rope_parameters alone is a
// TypeError.
constexpr std::string_view mlx_needs_theta =
    "Klear apertus bailing_hybrid bailing_moe bailing_moe_linear dots1 ernie4_5 ernie4_5_moe "
    "exaone exaone4 gemma3n gemma3n_text glm4 glm4_moe granite granitemoe helium hunyuan "
    "kimi_linear llama4 llama4_text longcat_flash longcat_flash_ngram mimo_v2_flash minimax "
    "minimax_m2 olmo3 qwen3_moe qwen3_next qwen3_vl_moe qwen3_vl_moe_text recurrent_gemma "
    "solar_open stablelm telechat3";

// Classes whose rotation is made of the base alone, whatever rope_scaling says.
constexpr std::string_view mlx_unscaled =
    "Klear cohere cohere2 dbrx gemma gemma2 gemma3n gemma3n_text glm glm4 glm4_moe gpt_neox helium "
    "lfm2 lfm2_moe llama4_text mimo_v2_flash minimax minimax_m2 mixtral olmo phi qwen2_moe "
    "qwen3_moe qwen3_vl_moe qwen3_vl_moe_text recurrent_gemma stablelm starcoder2";

// rope_theta of the class where the file has none; 10000 in the others.
constexpr struct {
  std::string_view families;
  double theta;
} mlx_thetas[] = {
    {"qwen2 qwen2_moe gemma3 gemma3_text minicpm minicpm3 mixtral exaone_moe lfm2 lfm2_moe plamo3",
     1e6},
    {"cohere", 8e6},
    {"cohere2", 50000},
    {"falcon_h1", 1e11},
    {"gpt_oss", 150000},
    {"starcoder2", 100000},
};

double class_theta(const EngineRope& rope) {
  for (const auto& [families, theta] : mlx_thetas)
    if (rope.model_is(families)) return theta;
  return 10000;
}

void need_theta(EngineRope& rope) {
  if (!rope.model_is(mlx_needs_theta) || (rope.is_sliding() && rope.has_several_bases())) return;
  const bool beside = rope.states("rope_theta") && !rope.is_new_spelling("rope_theta");
  if (beside || rope.states("unused_rope_theta")) return;
  rope.refuse(
      "the class has no default of rope_theta and reads no rope_parameters, so that it is missing "
      "(TypeError): write rope_theta beside them");
}

void mlx_lm_reads(EngineRope& rope) {
  refuse_named_ntk(rope, "ValueError: Unsupported RoPE type");
  need_theta(rope);
  if (rope.warned("factor_missing"))
    rope.refuse("a scaling without its factor is a KeyError there");
  read_type_first(rope);
  // mistral3.py hands a text_config of Ministral, which has this key, to ministral3.py.
  const bool is_ministral = rope.model_is("mistral3") && rope.states("llama_4_scaling_beta");
  if (!is_ministral && !rope.model_is(mlx_new_spelling))
    lose_rope_parameters(rope, class_theta(rope));
  if (rope.model_is(mlx_unscaled) && !rope.scaling<Unscaled>())
    lose_scaling(rope, "the class for this family rotates by the base alone");
  lose_attention_factor(rope);
  lose_longrope_amplitude(rope);
  always_truncate(rope);
  if (rope.scaling<Yarn>()) default_original_length(rope, 4096);
  if (rope.scaling<Llama3>()) default_original_length(rope, 8192);
  default_mscales(rope);
  take_long_list(rope);
  // models/glm.py rotates whole heads, where GLM's class has a half as its default.
  if (rope.warned("partial_disputed") || rope.model_is("glm")) lose_partial(rope);
}

}  // namespace

const EngineProfile mlx_lm_profile{{"mlx-lm", "mlx mlx_lm", "mlx-lm", "0.32.2", "mlx_lm/models/"},
                                   "config.json",
                                   Spelling::rope_scaling,
                                   mlx_lm_reads,
                                   mlx_families};

}  // namespace posenc::detail
