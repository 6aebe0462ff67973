// mlx-lm: rotation inside a kernel, with frequencies that are made once.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void mlx_lm_reads(EngineRope& rope) {
  lose_attention_factor(rope);
  always_truncate(rope);
  if (auto* yarn = rope.scaling<Yarn>()) {
    constexpr std::int64_t usual = 4096;
    if (!rope.states("original_max_position_embeddings")) {
      rope.defaulted("original_max_position_embeddings is not in the file: 4096 is taken");
      yarn->original_max_position_embeddings = usual;
    }
  }
  if (auto* longrope = rope.scaling<LongRope>()) {
    rope.fixed("longrope: the long list is taken at every length");
    longrope->short_factor = longrope->long_factor;
    longrope->short_mscale = longrope->long_mscale;
  }
}

}  // namespace

const EngineProfile mlx_lm_profile{
    {"mlx-lm", "mlx mlx_lm", "mlx-lm", "0.32.2", "mlx_lm/models/rope_utils.py"},
    "config.json",
    mlx_lm_reads};

}  // namespace posenc::detail
