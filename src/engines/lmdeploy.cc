// LMDeploy's PyTorch engine, which reads configurations with transformers.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void lmdeploy_reads(EngineRope& rope) {
  refuse_with_transformers(rope);
  if (rope.scaling<Proportional>()) rope.refuse("it knows no proportional scaling: a KeyError");
  if (rope.scaling<Yarn>()) default_original_length(rope, rope.model.context);
  lose_longrope_amplitude(rope);
}

}  // namespace

const EngineProfile lmdeploy_profile{
    {"lmdeploy", "", "LMDeploy", "0.18.0", "lmdeploy/pytorch/backends/default/rotary_embedding.py"},
    "config.json",
    Spelling::rope_parameters,
    lmdeploy_reads};

}  // namespace posenc::detail
