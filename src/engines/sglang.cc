// SGLang: vLLM's tables in a branch of their own, with the key attn_factor that vLLM no longer has.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void sglang_reads(EngineRope& rope) {
  lose_attention_factor(rope);
  if (auto* yarn = rope.scaling<Yarn>()) {
    if (const auto attn_factor = rope.stated_number("attn_factor");
        attn_factor && !yarn->scale_logits) {
      yarn->attention_factor = rope.amplitude() * *attn_factor;
      rope.approximated(rope.key("attn_factor") + " " + number_text(*attn_factor) +
                        " multiplies YaRN's own factor on cos and sin");
    }
  }
  lose_proportional_factor(rope);
  fix_dynamic(rope);
  if (const auto* longrope = rope.scaling<LongRope>())
    fix_longrope(rope, rope.length > longrope->original_max_position_embeddings);
}

}  // namespace

const EngineProfile sglang_profile{
    {"sglang", "", "SGLang", "0.5.23", "sglang/srt/layers/rotary_embedding.py"},
    "config.json",
    sglang_reads};

}  // namespace posenc::detail
