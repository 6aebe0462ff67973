// transformers 5: what posenc itself follows, so that nothing of a config.json is left to say; 5.12
// to 5.16 lost a part of the head in one family; transformers 4 knows the old spelling alone.
#include "src/engines/profile.h"
#include "src/model/class_defaults.h"

namespace posenc::detail {
namespace {

// Families that came with transformers 5 and whose code no repository of weights has beside them.
constexpr std::string_view transformers4_lacks =
    "- cwm deepseek_v4 gemma4 gemma4_text gemma4_unified glm4_moe_lite glm_moe_dsa jais2 "
    "ministral3 mistral4 nanochat olmo_hybrid qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text";

// The architectures of GGUF that it reads (GGUF_CONFIG_MAPPING and GGUF_CONFIG_ARCHS of 5.24.0, and
// what it renames).
constexpr std::string_view gguf_architectures =
    "llama mistral qwen2 qwen2moe gpt-oss gpt_oss lfm2 qwen3 qwen3moe qwen35 qwen35moe falcon phi3 "
    "bloom t5 t5encoder stablelm gpt2 starcoder2 mamba nemotron gemma2 gemma3 gemma4 umt5 deci "
    "minimax-m2";

// integrations/ggml.py maps rope.freq_base and the dimensions; scalings are rebuilt for gpt-oss
// alone.
void read_gguf(EngineRope& rope) {
  if (rope.format() != FileFormat::gguf) return;
  if (!rope.model_is(gguf_architectures))
    return rope.refuse("its reader of GGUF has no row for this architecture");
  if (!rope.scaling<Unscaled>() && !rope.model_is("gpt-oss gpt_oss"))
    lose_scaling(rope, "its reader of GGUF takes the base alone");
  if (!rope.rope.frequency_factors.empty()) {
    rope.lost("rope_freqs.weight is not read");
    rope.rope.frequency_factors.clear();
  }
}

void transformers_reads(EngineRope& rope) {
  read_gguf(rope);
  refuse_with_transformers(rope);
  refuse_named_ntk(rope, "KeyError");
  lose_factor_of_nomic(rope);
  if (rope.warned("partial_disputed")) lose_partial(rope);
  if (rope.warned("sections_disputed"))
    rope.lost("sections deal channels to axes, not pairs: pictures are not rotated");
  round_tables(rope);
}

// MiniMax-M2's class read neither rotary_dim nor a factor, and rotated whole heads
// (transformers#48241, mended by #48486).
void transformers5_12_reads(EngineRope& rope) {
  transformers_reads(rope);
  if (!rope.model_is("minimax_m2")) return;
  rope.lost(rope.key(rope.states("rotary_dim") ? "rotary_dim" : "partial_rotary_factor") +
            " is not read for this family from 5.12 to 5.16: whole heads rotate");
  rope.rope.partial_rotary_factor = 1;
  rope.rope.rotary_dim.reset();
}

// Phi-3's class wants type, short_factor and long_factor, and no other key.
bool has_more_than_lists(const EngineRope& rope) {
  for (const char* key : {"attention_factor", "factor", "short_mscale", "long_mscale"})
    if (rope.states(key)) return true;
  return false;
}

// Olmo 3 had one base for all layers.
void share_base_of_full_layers(EngineRope& rope) {
  if (!rope.warned("local_theta_fixed") || !rope.is_sliding()) return;
  for (const LayerGroup& group : rope.model.groups)
    for (const Scheme& scheme : group.schemes)
      if (const auto* full = std::get_if<Rope>(&scheme); full && !group.window)
        rope.rope.rope_theta = full->rope_theta;
}

// It looks for partial_rotary_factor at the top alone.
void lose_part_of_rope_parameters(EngineRope& rope) {
  if (rope.is_latent() || !rope.is_new_spelling("partial_rotary_factor")) return;
  const double part = part_by_default(rope.model.family);
  if (rope.stated_number("partial_rotary_factor").value_or(part) == part) return;
  rope.lost(rope.key("partial_rotary_factor") + " is not read there, and " + number_text(part) +
            " of a head rotates: write it at the top too");
  rope.rope.partial_rotary_factor = part;
  rope.rope.rotary_dim.reset();
}

void transformers4_reads(EngineRope& rope) {
  if (rope.format() == FileFormat::gguf) {  // since 4.41
    read_gguf(rope);
    return round_tables(rope);
  }
  share_base_of_full_layers(rope);
  refuse_named_ntk(rope, "KeyError");
  if (rope.warned("factor_missing"))
    rope.refuse("a scaling without its factor is a KeyError there: write it");
  if (rope.warned("partial_disputed"))
    rope.refuse("a part of the head in a family that knows none is an error of shapes");
  read_type_first(rope);
  if (rope.is_new_spelling("mrope_section"))
    rope.refuse(
        "the class reads mrope_section of rope_scaling, and there is none (AttributeError): write "
        "rope_scaling, and rope_theta beside it");
  lose_rope_parameters(rope, theta_of_transformers4(rope.model.family));
  lose_part_of_rope_parameters(rope);
  const std::string_view original = "original_max_position_embeddings";
  const bool inside = rope.states(original) && rope.key(original).contains('.');
  if (rope.scaling<Llama3>() && !inside)
    rope.refuse(
        "llama3 scaling without original_max_position_embeddings is a KeyError there: write it");
  if (rope.scaling<Yarn>() && rope.model.context > 0)
    default_original_length(rope, rope.model.context);
  if (auto* longrope = rope.scaling<LongRope>()) {
    if (rope.model_is("phi3") && has_more_than_lists(rope))
      rope.refuse(
          "the class wants type, short_factor and long_factor in rope_scaling, and nothing else");
    if (inside) lose_original_length(rope, *longrope);
  }
  round_tables(rope);
}

}  // namespace

const EngineProfile transformers_profile{{"transformers", "hf huggingface", "transformers",
                                          "5.24.0", "modeling_rope_utils.py", "5.17.0"},
                                         "config.json GGUF",
                                         Spelling::rope_parameters,
                                         transformers_reads};
const EngineProfile transformers5_12_profile{{"transformers", "hf huggingface", "transformers",
                                              "5.16.0", "modeling_rope_utils.py", "5.12.0"},
                                             "config.json GGUF",
                                             Spelling::rope_parameters,
                                             transformers5_12_reads};
const EngineProfile transformers4_profile{
    {"transformers", "hf huggingface", "transformers", "4.57.6", "modeling_rope_utils.py"},
    "config.json GGUF",
    Spelling::rope_scaling,
    transformers4_reads,
    transformers4_lacks};

}  // namespace posenc::detail
