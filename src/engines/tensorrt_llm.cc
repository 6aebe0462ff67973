// TensorRT-LLM's PyTorch backend: RopeParams.from_config, then tables of cosines and sines in
// float32 made when it starts. Its package is on no public index, so that this profile was read and
// never run.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// What its zoo (_arch_index.py) has a class for.
constexpr std::string_view tensorrt_llm_families =
    "afmoe bart bert cohere2 deepseek_v3 deepseek_v32 deepseek_v4 eagle3 exaone4 exaone4_5 "
    "exaone_moe gemma3 gemma3_text gemma4 gemma4_text gemma4_unified glm4_moe glm_moe_dsa gpt_oss "
    "hunyuan hunyuan_v1_dense hunyuan_v1_moe hyperclovax_vlm kimi_k2 kimi_k25 kimi_k3 "
    "kimi_linear laguna llama llama4 llama4_text llava_llama llava_next mbart minicpmv4_6 "
    "minimax_m2 minimax_m3 minimax_m3_vl ministral3 mistral mistral3 mistral_large_3 mixtral "
    "mllama nemotron nemotron-nas nemotron_h phi3 phi4mm pixtral qwen2 qwen2_5_vl qwen2_moe "
    "qwen2_vl qwen3 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next "
    "qwen3_vl qwen3_vl_moe seed_oss starcoder2 step3p5 step3p7 t5 whisper";

void tensorrt_llm_reads(EngineRope& rope) {
  refuse_named_ntk(rope, "ValueError: Unsupported rotary scaling type");
  refuse_with_transformers(rope);
  if (rope.stated("rope_type") == "su")
    rope.refuse("it knows no scaling su: write rope_type longrope");
  if (rope.scaling<Proportional>() && !rope.model_is("gemma4 gemma4_text"))
    rope.refuse("it knows no proportional scaling, and raises ValueError");
  if (rope.scaling<DynamicNtk>())
    lose_scaling(rope, "factor is not read, and alpha alone stretches the base, once for all");
  if (rope.scaling<Yarn>()) {
    lose_attention_factor(rope);
    default_mscales(rope);
    always_truncate(rope);
  }
  if (rope.scaling<LongRope>()) {
    lose_longrope_amplitude(rope);
    take_long_list(rope);  // unless a configuration has max_seq_len besides
  }
}

}  // namespace

const EngineProfile tensorrt_llm_profile{
    {"tensorrt-llm", "trtllm tensorrt", "TensorRT-LLM", "1.4.0",
     "tensorrt_llm/_torch/attention_backend/interface.py"},
    "config.json",
    Spelling::rope_parameters,
    tensorrt_llm_reads,
    tensorrt_llm_families};

}  // namespace posenc::detail
