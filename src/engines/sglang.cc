// SGLang: vLLM's tables in a branch of their own, with the key attn_factor that vLLM no longer has.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void read_sglang_yarn(EngineRope& rope, Yarn& yarn) {
  lose_attention_factor(rope);
  if (rope.is_latent()) {
    default_mscales(rope);
    return;
  }
  const auto attn_factor = rope.stated_number("attn_factor");
  if (!attn_factor) return;
  yarn.attention_factor = rope.amplitude() * *attn_factor;
  rope.approximated(rope.key("attn_factor") + " " + number_text(*attn_factor) +
                    " multiplies YaRN's own factor on cos and sin");
}

void sglang_reads(EngineRope& rope) {
  refuse_with_transformers(rope);
  lose_growth_of_qwen(rope);
  take_ratio_for_base(rope);
  if (auto* yarn = rope.scaling<Yarn>()) read_sglang_yarn(rope, *yarn);
  if (rope.scaling<LongRope>()) {
    lose_longrope_amplitude(rope);
    read_mscales(rope);
    rope.approximated(
        "longrope: each call takes the list of its last position: cached keys keep the one they "
        "had, and short texts beside a long one have the long one");
  }
  if (rope.scaling<Proportional>() && !rope.model_is("gemma4 gemma4_text"))
    lose_scaling(rope, "no class but Gemma 4's reads it");
  // models/gemma3_causal.py: the model makes cos and sin of the whole rope_parameters and hands them
  // to its layers, whose own module, of the base alone, runs on processors with AMX.
  if (rope.scaling<Linear>() && rope.model_is("gemma3 gemma3_text"))
    rope.approximated("on processors with AMX (and no GPU) Gemma 3 has the base alone, unscaled");
  refuse_named_ntk(rope, "ValueError: Unknown RoPE scaling type");
  lose_factor_of_nomic(rope);
  fix_dynamic(rope);
  round_tables(rope);
}

}  // namespace

const EngineProfile sglang_profile{
    {"sglang", "", "SGLang", "0.5.23", "sglang/srt/layers/rotary_embedding.py"},
    "config.json",
    Spelling::sglang_flags,
    sglang_reads,
    {},
    "SGLang takes a GGUF by transformers' reader (--load-format gguf), of which posenc has no "
    "profile "
    "there: posenc diff MODEL --engine transformers"};

}  // namespace posenc::detail
