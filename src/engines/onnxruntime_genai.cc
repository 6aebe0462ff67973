// onnxruntime-genai's builder, which bakes tables of cosines and sines into the graph. Each
// family's class says which scalings it knows.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// What its code has a class for.
constexpr std::string_view onnxruntime_genai_families =
    "chatglm ernie4_5 gemma gemma2 gemma3 gemma3_text gemma4 gemma4_text gemma4_unified gpt_oss "
    "granite granitemoehybrid hunyuan_v1_dense internlm2 lfm2 lfm2_audio lfm2_moe lfm2_vl llama "
    "mistral mistral3 nemotron olmo phi phi3 phi3_v phi3small phi4mm phimoe qwen2 qwen2_5_vl "
    "qwen3 qwen3_5 qwen3_5_moe qwen3_vl smollm3 whisper";

// make_rope_init of llama.py knows llama3 alone, and passes over all others.
void read_in_llama(EngineRope& rope) {
  if (rope.scaling<Unscaled>() || rope.scaling<Llama3>()) return;
  const auto* proportional = rope.scaling<Proportional>();
  const double part = proportional ? proportional->partial_rotary_factor : 1;
  lose_scaling(rope, "the class for this family reads llama3 alone");
  if (part < 1) {
    rope.approximated("partial_rotary_factor is taken for the part of the channels that rotate");
    rope.rope.partial_rotary_factor = part;
  }
}

void read_yarn_betas(EngineRope& rope, Yarn& yarn) {
  if (!rope.states("beta_fast") || !rope.states("beta_slow")) {
    rope.refuse(
        "the builder divides by beta_fast and beta_slow, and the file lacks one: write beta_fast "
        "32 and beta_slow 1");
    return;
  }
  if (yarn.truncate) {
    rope.approximated("the ends of YaRN's ramp are not rounded to whole pairs");
    yarn.truncate = false;
  }
  lose_attention_factor(rope);
  if (yarn.mscale.value_or(0) > 0 && !yarn.mscale_all_dim) {
    rope.approximated("mscale without mscale_all_dim is itself the factor on cos and sin");
    yarn.attention_factor = yarn.mscale;
  }
}

// make_rope_init of base.py.
void read_in_base(EngineRope& rope) {
  if (auto* yarn = rope.scaling<Yarn>())
    read_yarn_betas(rope, *yarn);
  else if (!rope.scaling<Unscaled>() && !rope.scaling<Linear>())
    rope.refuse("the class for this family does not know " +
                std::string(info(rope.rope.scaling).name) + " scaling");
}

void onnxruntime_genai_reads(EngineRope& rope) {
  refuse_with_transformers(rope);
  std::int64_t rows = rope.model.context;
  if (rope.model_is("gemma3 gemma3_text") || rope.is_by_layer_type("rope_type")) {
    rope.refuse("parameters by layer type are a KeyError there");
  } else if (rope.model_is("llama")) {
    read_in_llama(rope);
  } else if (const auto* longrope = rope.scaling<LongRope>();
             longrope && rope.model_is("phi3 phimoe")) {
    lose_longrope_amplitude(rope);
    read_mscales(rope);
    const std::int64_t trained = longrope->original_max_position_embeddings;
    if (rope.length <= trained) rows = trained;  // a table for each list
  } else {
    read_in_base(rope);
  }
  if (rows > 0) rope.table_rows(rows);
}

}  // namespace

const EngineProfile onnxruntime_genai_profile{
    {"onnxruntime-genai", "ort-genai ort", "onnxruntime-genai", "0.18.0",
     "onnxruntime_genai/models/builders/base.py"},
    "config.json",
    Spelling::rope_parameters,
    onnxruntime_genai_reads,
    onnxruntime_genai_families};

}  // namespace posenc::detail
