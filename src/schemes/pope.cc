// PoPE (2509.10534): channel c of a head is a complex number of its own, whose length is softplus
// of what the projection gave and whose angle is the position's alone,
//   q_c -> sp(q_c)·e^(i p f_c),  k_c -> sp(k_c)·e^(i (p f_c + δ_c)),  f_c = b^(−c/d),  c = 0 .. d−1
//   q·k = Re Σ q_c conj(k_c) = Σ_c sp(q_c)·sp(k_c)·cos((i−j)·f_c − δ_c)
// so that content decides how much a channel says, and position alone at which distance: in RoPE
// the angle between a query's pair and a key's is content too. There are d frequencies where RoPE
// has d/2, twice as dense. δ is learned, one for each key head and channel (or shared), and clamped
// to [−2π, 0]; it begins at 0, or spread evenly.
//
// Rotated, a head is twice as wide (here [cosines, sines], PoPE-pytorch interleaves them: no logit
// differs); the logits' scale stays 1/√head_dim. Fewer channels than the head has: the others are
// multiplied as they come, without softplus.
#include <algorithm>
#include <numbers>
#include <string>

#include "src/core/saturating.h"
#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> Pope::compiled(const Geometry& geometry) const {
  const std::int64_t head_dim = geometry.head_dim;
  POSENC_CHECK(detail::usable_head_dim("pope", head_dim));
  const std::int64_t dim = rotary_dim.value_or(head_dim);
  if (dim > head_dim) {
    return fail("pope", "rotary_dim must lie within head_dim " + std::to_string(head_dim),
                std::to_string(dim), "a channel turns by itself: head_dim of them at most");
  }
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.rotary_dim = 2 * dim},
             .frequencies = {.radians = detail::geometric_frequencies(rope_theta, 2 * dim, dim)},
             .kind = Polar{}};
  if (phases.empty()) return plan;
  const auto given = static_cast<std::int64_t>(phases.size());
  const std::int64_t kv_heads = geometry.kv_heads > 0 ? geometry.kv_heads : geometry.heads;
  if (given != dim && given != detail::product(kv_heads, dim)) {
    return fail("pope",
                "phases must be [channel] or [kv_head][channel] of " + std::to_string(dim) +
                    " channels and " + std::to_string(kv_heads) + " key heads",
                std::to_string(given) + " numbers", "say kv_heads, or give one phase a channel");
  }
  Phase phase{.side = Side::key, .heads = given / dim};
  for (const double each : phases)
    phase.radians.push_back(std::clamp(each, -2 * std::numbers::pi, 0.0));
  plan.rotate->kind = Polar{.phase = std::move(phase)};
  return plan;
}

}  // namespace posenc
