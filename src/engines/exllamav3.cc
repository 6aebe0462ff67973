// exllamav3, which tabbyAPI runs.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void read_exllama_yarn(EngineRope& rope, Yarn& yarn) {
  // read_rope_settings_default hands the ratio of DeepSeek's magnitudes to that family alone.
  // Ministral's temperature by position stands in for the magnitude.
  if (rope.states("llama_4_scaling_beta") && !yarn.attention_factor) yarn.attention_factor = 1;
  if (!rope.is_latent() && !yarn.attention_factor && yarn.mscale && yarn.mscale_all_dim) {
    rope.lost("mscale and mscale_all_dim are not read for this family");
    yarn.mscale.reset();
    yarn.mscale_all_dim.reset();
  }
  const bool trained = rope.states("original_max_position_embeddings") &&
                       rope.key("original_max_position_embeddings").contains('.');
  if (rope.model.context == 0) return;
  default_original_length(rope, rope.model.context);
  if (!trained) return;
  const double ratio = static_cast<double>(rope.model.context) /
                       static_cast<double>(yarn.original_max_position_embeddings);
  if (yarn.factor && *yarn.factor != ratio)
    rope.lost(rope.key("factor") +
              " is not read where the trained length is given: the factor is " +
              number_text(ratio) + ", max_position_embeddings over that length");
  yarn.factor = ratio;
}

void exllamav3_reads(EngineRope& rope) {
  if (rope.scaling<DynamicNtk>()) rope.refuse("it knows no dynamic scaling, and raises ValueError");
  if (rope.is_by_layer_type("rope_type") && !rope.scaling<Unscaled>() &&
      !rope.model_is("gemma4 gemma4_text"))
    lose_scaling(rope, "parameters by layer type are not read for this family");
  if (const auto theta = rope.stated_number("unused_rope_theta")) default_base(rope, *theta);
  if (auto* yarn = rope.scaling<Yarn>()) read_exllama_yarn(rope, *yarn);
  if (rope.scaling<Llama3>()) default_original_length(rope, 8192);
  if (rope.scaling<LongRope>()) {
    lose_longrope_amplitude(rope);
    // Phi-3's class alone is told the length that it is started for.
    const std::int64_t served = rope.model_is("phi3") ? rope.length : rope.model.context;
    fix_longrope(rope, served);
  }
}

}  // namespace

const EngineProfile exllamav3_profile{
    {"exllamav3", "exl3 tabbyapi", "exllamav3", "1.6.5", "exllamav3/util/rope.py"},
    "config.json",
    Spelling::rope_scaling,
    exllamav3_reads};

}  // namespace posenc::detail
