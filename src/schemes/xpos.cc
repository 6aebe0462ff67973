// xPos (2212.10554): RoPE whose logits also decay with the distance. Pair r rotates by p·b^(−2r/d),
//   query × ζ_r^((p−c)/s),  key × ζ_r^(−(p−c)/s),  ζ_r = (2r/d + γ)/(1 + γ),  γ = 0.4, s = 512
// so that pair r of a logit has the factor ζ_r^((i−j)/s): below 1 for keys in the past, above 1 for
// keys in the future, so xPos is for causal attention. Frequencies: [head_dim/2], shared by all
// heads.
//
// The centre c cancels in every logit; it is there because ζ_0 = 0.286 and the keys' own factor
// passes 65,504, the largest half, at |p − c| ≈ 4,532 (and a float's range near 36,000).
// Pitfall: the public programs centre at the middle of the current length, so a cache that grows
// moves c and the keys already stored no longer match. Give a centre, or compile once for the final
// length. An odd length L: torchscale centres at ⌈L/2⌉, FlashAttention at ⌊L/2⌋; we take the
// latter. With no length known the centre is 0.
#include <string>

#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> XPos::compiled(const Geometry& geometry) const {
  const std::int64_t head_dim = geometry.head_dim;
  POSENC_CHECK(detail::usable_head_dim("xpos", head_dim));
  if (head_dim % 2 != 0) {
    return fail("xpos", "head_dim must be even", std::to_string(head_dim), "pad the head");
  }
  const std::int64_t middle = geometry.length / 2;
  XposDecay growth{
      .factor = {}, .scale = scale_base, .centre = centre.value_or(static_cast<double>(middle))};
  for (std::int64_t r = 0; r < head_dim / 2; ++r) {
    const double position = static_cast<double>(2 * r) / static_cast<double>(head_dim);
    growth.factor.push_back((position + gamma) / (1 + gamma));
  }
  Plan plan;
  plan.rotate = Rotate{
      .slice = {.pairing = pairing, .rotary_dim = head_dim},
      .frequencies = {.radians = detail::geometric_frequencies(rope_theta, head_dim, head_dim / 2)},
      .kind = Plain{.growth = std::move(growth)}};
  return plan;
}

}  // namespace posenc
