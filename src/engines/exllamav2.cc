// exllamav2, which older tabbyAPI runs: one table for the length that it is started for.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// What its code has a class for.
constexpr std::string_view exllamav2_families =
    "cohere cohere2 dbrx gemma gemma2 gemma3 gemmoe glm4 gpt2 gpt_bigcode granite index "
    "internlm2 llama llava minicpm mistral mistral3 mixtral orion phi3 pixtral qwen2 qwen2_5_vl "
    "qwen2_vl qwen3 qwen3_moe starcoder2 Yi yi";

// get_rope_params_yarn sets the ends of the ramp by the length that is served, where the paper has
// the trained one, and does nothing up to that.
void read_exllamav2_yarn(EngineRope& rope, Yarn& yarn) {
  if (!rope.states("factor") || !rope.key("original_max_position_embeddings").contains('.')) {
    rope.refuse("yarn without factor and original_max_position_embeddings beside it is a KeyError");
    return;
  }
  lose_attention_factor(rope);
  if (yarn.mscale && yarn.mscale_all_dim) rope.lost("mscale and mscale_all_dim are not read");
  yarn.mscale.reset();
  yarn.mscale_all_dim.reset();
  lose_betas(rope);
  always_truncate(rope);
  if (rope.length <= yarn.original_max_position_embeddings) {
    rope.fixed("yarn: none, as it is started for no more tokens than were trained");
    rope.rope.scaling = Unscaled{};
    return;
  }
  rope.approximated("the ends of YaRN's ramp depend on the " + std::to_string(rope.length) +
                    " tokens that it is started for, and not by the trained length");
  yarn.original_max_position_embeddings = rope.length;
}

void read_exllamav2_longrope(EngineRope& rope, LongRope& longrope) {
  if (rope.key("original_max_position_embeddings").contains('.')) {
    rope.refuse("longrope needs original_max_position_embeddings outside of rope_scaling");
    return;
  }
  const std::int64_t trained = longrope.original_max_position_embeddings;
  lose_longrope_amplitude(rope);
  if (rope.length > trained)
    longrope.factor = static_cast<double>(rope.length) / static_cast<double>(trained);
  else
    longrope.attention_factor = 1;
  fix_longrope(rope, rope.length);
}

void exllamav2_reads(EngineRope& rope) {
  if (is_named_ntk(rope)) lose_scaling(rope, "no such type is known there");
  if (rope.states("unused_type"))
    rope.refuse("type and rope_type together are an error there: keep one");
  lose_rope_parameters(rope, rope.model_is("gemma3 gemma3_text") ? 1e6 : 10000);
  if (rope.is_new_spelling("partial_rotary_factor")) lose_partial(rope);
  if (auto* yarn = rope.scaling<Yarn>()) read_exllamav2_yarn(rope, *yarn);
  if (auto* longrope = rope.scaling<LongRope>()) read_exllamav2_longrope(rope, *longrope);
  if (rope.scaling<Llama3>() && !rope.key("original_max_position_embeddings").contains('.'))
    rope.refuse("llama3 without original_max_position_embeddings beside it is a KeyError");
  if (rope.scaling<DynamicNtk>() || rope.scaling<Proportional>())
    lose_scaling(rope, "it knows none of that name, and passes over it");
  rope.rounded("cos and sin are kept in float16");
  if (rope.length > 0) rope.table_rows(rope.length);
}

}  // namespace

const EngineProfile exllamav2_profile{
    {"exllamav2", "exl2", "exllamav2", "0.3.2", "exllamav2/rope.py", "", true},
    "config.json",
    Spelling::rope_scaling,
    exllamav2_reads,
    exllamav2_families};

}  // namespace posenc::detail
