// transformers 5: what posenc itself follows, so that nothing of a config.json is left to say; transformers 4 knows
// the old spelling alone.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void transformers_reads(EngineRope& rope) {
  if (rope.format() == FileFormat::gguf) {
    // integrations/ggml.py maps rope.freq_base and the dimensions; scalings are rebuilt for gpt-oss alone.
    if (!rope.scaling<Unscaled>() && !rope.model_is("gpt_oss"))
      lose_scaling(rope, "its reader of GGUF takes the base alone");
    if (!rope.rope.frequency_factors.empty()) {
      rope.lost("rope_freqs.weight is not read");
      rope.rope.frequency_factors.clear();
    }
  }
  refuse_with_transformers(rope);
  if (rope.warned("partial_disputed")) lose_partial(rope);
  round_tables(rope);
}

void transformers4_reads(EngineRope& rope) {
  if (rope.key("rope_theta").starts_with("rope_parameters") ||
      rope.key("rope_type").starts_with("rope_parameters"))
    rope.refuse(
        "it knows rope_scaling and rope_theta, and reads nothing of rope_parameters: write both "
        "spellings");
  if (rope.scaling<Proportional>()) rope.refuse("rope_type proportional came with transformers 5");
  round_tables(rope);
}

}  // namespace

const EngineProfile transformers_profile{
    {"transformers", "hf huggingface", "transformers", "5.23.0", "modeling_rope_utils.py"},
    "config.json GGUF",
    transformers_reads};
const EngineProfile transformers4_profile{
    {"transformers", "hf huggingface", "transformers", "4.57.1", "modeling_rope_utils.py"},
    "config.json",
    transformers4_reads};

}  // namespace posenc::detail
