// TensorRT-LLM's PyTorch backend: RopeParams.from_config, then tables of cosines and sines in
// float32 made when it starts. Its package is on no public index, so that this profile was read and
// never run.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void tensorrt_llm_reads(EngineRope& rope) {
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
    tensorrt_llm_reads};

}  // namespace posenc::detail
