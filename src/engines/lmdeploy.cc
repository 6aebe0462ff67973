// LMDeploy's PyTorch engine, which reads configurations with transformers.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// What its code has a class for.
constexpr std::string_view lmdeploy_families =
    "baichuan chatglm cogvlm deepseek deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 "
    "deepseek_vl_v2 gemma gemma2 gemma3 gemma3_text glm4 glm4_moe glm4_moe_lite glm4v "
    "glm_moe_dsa gpt_oss hy_v3 internlm internlm2 internlm3 interns1 interns1_pro internvl "
    "internvl_chat kimi_k2 kimi_k25 llama llama4 llava llava_next minicpm3 minicpmv mistral "
    "mixtral mllama phi3 phi3_v phimoe qwen qwen2 qwen2_5_vl qwen2_moe qwen2_vl qwen3 qwen3_5 "
    "qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl "
    "qwen3_vl_moe sdar sdar_moe starcoder2";

void lmdeploy_reads(EngineRope& rope) {
  refuse_named_ntk(rope, "RuntimeError: Unsupported rope type");
  refuse_with_transformers(rope);
  take_ratio_for_base(rope);
  if (rope.scaling<Proportional>()) rope.refuse("it knows no proportional scaling: a KeyError");
  if (rope.scaling<Yarn>()) default_original_length(rope, rope.model.context);
  // minicpm3.py has a reader of its own.
  if (auto* longrope = rope.scaling<LongRope>();
      longrope && rope.model_is("minicpm3") &&
      rope.key("original_max_position_embeddings").contains('.'))
    lose_original_length(rope, *longrope);
  lose_longrope_amplitude(rope);
}

}  // namespace

const EngineProfile lmdeploy_profile{
    {"lmdeploy", "", "LMDeploy", "0.18.0", "lmdeploy/pytorch/backends/default/rotary_embedding.py"},
    "config.json",
    Spelling::rope_parameters,
    lmdeploy_reads,
    lmdeploy_families};

}  // namespace posenc::detail
