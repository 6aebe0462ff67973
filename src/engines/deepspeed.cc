// DeepSpeed's inference engine v2 (FastGen, MII): RotateHalfConfig has a base and a size, and the
// kernel makes the angles.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// What its code has a class for.
constexpr std::string_view deepspeed_families =
    "exaone4 exaone4_5 falcon llama mistral mixtral opt phi phi3 qwen qwen2 qwen2_moe";

void deepspeed_reads(EngineRope& rope) {
  if (rope.is_new_spelling("rope_theta"))
    rope.refuse(
        "it reads rope_theta of the configuration, which transformers 5 has in rope_parameters "
        "alone: an AttributeError; run it with transformers 4.57, and write rope_theta at the top");
  if (!std::holds_alternative<Unscaled>(rope.rope.scaling))
    lose_scaling(rope, "the rotation is made of rope_theta alone");
  if (!rope.model_is("phi") && rope.rope.partial_rotary_factor < 1) lose_partial(rope);
  rope.rounded(
      "the kernel rounds frequencies to the model's 16 bits for keys and the first queries of each "
      "group, and not for the group's other queries");
}

}  // namespace

const EngineProfile deepspeed_profile{
    {"deepspeed", "deepspeed-fastgen deepspeed-mii", "DeepSpeed inference v2", "0.19.6",
     "deepspeed/inference/v2/kernels/ragged_ops/linear_blocked_kv_rotary/", "", true},
    "config.json",
    Spelling::rope_scaling,
    deepspeed_reads,
    deepspeed_families};

}  // namespace posenc::detail
