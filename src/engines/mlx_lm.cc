// mlx-lm: rotation inside a kernel, with frequencies that are made once.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// Classes that read rope_parameters; the others read rope_scaling and a rope_theta beside it alone.
constexpr std::string_view mlx_new_spelling =
    "exaone_moe gemma4 gemma4_text glm_moe_dsa granitemoehybrid laguna lfm2 lfm2_moe mellum "
    "minimax_m3_vl ministral3 "
    "mistral4 olmo_hybrid qwen3 qwen3_5 qwen3_5_text";

// rope_theta of the class where the file has none; 10000 in the others.
constexpr struct {
  std::string_view families;
  double theta;
} mlx_thetas[] = {
    {"qwen2 qwen2_moe gemma3_text minicpm minicpm3 mixtral exaone_moe lfm2 lfm2_moe plamo3", 1e6},
    {"cohere", 8e6},
    {"cohere2", 50000},
    {"falcon_h1", 1e11},
    {"gpt_oss", 150000},
    {"starcoder2", 100000},
};

double class_theta(const EngineRope& rope) {
  for (const auto& [families, theta] : mlx_thetas)
    if (rope.model_is(families)) return theta;
  return 10000;
}

void mlx_lm_reads(EngineRope& rope) {
  if (rope.warned("factor_missing"))
    rope.refuse("a scaling without its factor is a KeyError there");
  read_type_first(rope);
  if (!rope.model_is(mlx_new_spelling)) lose_rope_parameters(rope, class_theta(rope));
  lose_attention_factor(rope);
  lose_longrope_amplitude(rope);
  always_truncate(rope);
  if (rope.scaling<Yarn>()) default_original_length(rope, 4096);
  if (rope.scaling<Llama3>()) default_original_length(rope, 8192);
  default_mscales(rope);
  take_long_list(rope);
  if (rope.warned("partial_disputed")) lose_partial(rope);
}

}  // namespace

const EngineProfile mlx_lm_profile{
    {"mlx-lm", "mlx mlx_lm", "mlx-lm", "0.32.2", "mlx_lm/models/rope_utils.py"},
    "config.json",
    Spelling::rope_scaling,
    mlx_lm_reads};

}  // namespace posenc::detail
