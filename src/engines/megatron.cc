// Megatron-core, which reads no file: what is asked of it by arguments (--rotary-base,
// --rotary-percent, --rotary-seq-len-interpolation-factor, --use-rope-scaling, or YaRN's) for the
// configuration that is given.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void read_llama3_argument(EngineRope& rope, Llama3& llama3) {
  const Llama3 fixed{.factor = 8, .original_max_position_embeddings = 8192};
  if (llama3 == fixed) return;
  if (llama3.factor != 8)
    rope.lost(
        "--rope-scaling-factor is not handed on to the model (Megatron-LM#6305): factor 8 holds");
  rope.approximated(
      "--use-rope-scaling has low_freq_factor 1, high_freq_factor 4 and a trained length of 8192 "
      "of its own");
  llama3 = fixed;
}

void megatron_reads(EngineRope& rope) {
  if (rope.warned("two_spellings"))
    rope.refuse("it takes one set of arguments: keep rope_scaling or rope_parameters");
  if (rope.warned("factor_missing")) rope.refuse("no argument says YaRN without its factor");
  if (rope.has_several_bases()) rope.refuse("there is one --rotary-base for all layers");
  if (rope.scaling<DynamicNtk>() || rope.scaling<LongRope>() || rope.scaling<Proportional>())
    rope.refuse("no argument says " + std::string(info(rope.rope.scaling).name) + " scaling");
  if (auto* llama3 = rope.scaling<Llama3>()) read_llama3_argument(rope, *llama3);
  if (rope.scaling<Yarn>()) {
    lose_attention_factor(rope);
    default_mscales(rope);
    if (!rope.states("original_max_position_embeddings")) default_original_length(rope, 4096);
  }
}

}  // namespace

const EngineProfile megatron_profile{{"megatron-core", "megatron", "Megatron-core", "0.16.1",
                                      "megatron/core/models/common/embeddings/"},
                                     "config.json",
                                     Spelling::megatron_flags,
                                     megatron_reads};

}  // namespace posenc::detail
