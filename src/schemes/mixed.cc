// 2-D mixed RoPE (2403.13298): every pair rotates by both coordinates, with frequencies learned for
// each head and layer:  angle = f^x_r·x + f^y_r·y.
// They start as, for r = 0 .. d/4−1 and mag_r = b^(−4r/d),
//   pair r:        (f^x, f^y) = mag_r·(cos φ_h, sin φ_h)
//   pair d/4 + r:  (f^x, f^y) = mag_r·(cos(φ_h + π/2), sin(φ_h + π/2)) = mag_r·(−sin φ_h, cos φ_h)
// The paper draws φ_h at random; we spread the heads evenly, φ_h = 2πh/H, and take a list where
// given. b is 10 here, against 100 in the axial form.
//
// Pitfall: x is the width and y the height, as in the paper, and `frequencies` is
// [head][x, y][pair]; positions are [h, w] = [y, x], so the plan's axis 0 holds f^y and axis 1 f^x.
// A key rotates by its query's frequencies, so there must be as many key heads as query heads.
#include <cmath>
#include <numbers>
#include <string>

#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> Mixed::compiled(const Geometry& geometry) const {
  const std::int64_t heads = geometry.heads, head_dim = geometry.head_dim;
  POSENC_CHECK(detail::known("mixed", {{"heads", heads}}));
  POSENC_CHECK(detail::usable_head_dim("mixed", head_dim));
  POSENC_CHECK(detail::affordable("mixed", {"heads", heads}, {"head_dim", head_dim}));
  if (head_dim % 4 != 0) {
    return fail("mixed", "head_dim must be divisible by 4", std::to_string(head_dim),
                "pad the head");
  }
  if (geometry.kv_heads > 0 && geometry.kv_heads != heads) {
    return fail("mixed", "kv_heads must equal heads, " + std::to_string(heads),
                std::to_string(geometry.kv_heads), "frequencies belong to one query and its key");
  }
  const auto h_count = static_cast<std::size_t>(heads),
             pairs = static_cast<std::size_t>(head_dim / 2);
  if (!frequencies.empty() && frequencies.size() != h_count * 2 * pairs) {
    return fail(
        "mixed",
        "frequencies must have heads·2·pairs = " + std::to_string(h_count * 2 * pairs) + " entries",
        std::to_string(frequencies.size()), "give [head][x, y][pair]");
  }
  if (!angles.empty() && angles.size() != h_count) {
    return fail("mixed",
                "angles must have one entry for each of " + std::to_string(heads) + " heads",
                std::to_string(angles.size()), "leave them out to spread the heads evenly");
  }

  std::vector<double> frequency(h_count * 2 * pairs);
  const std::vector<double> magnitude =
      detail::geometric_frequencies(rope_theta, head_dim / 2, head_dim / 4);
  for (std::size_t h = 0; h < h_count; ++h) {
    double* const y = frequency.data() + h * 2 * pairs;
    double* const x = y + pairs;
    if (!frequencies.empty()) {
      const double* const given = frequencies.data() + h * 2 * pairs;
      std::copy_n(given, pairs, x);
      std::copy_n(given + pairs, pairs, y);
      continue;
    }
    const double phi =
        angles.empty() ? 2 * std::numbers::pi * static_cast<double>(h) / static_cast<double>(heads)
                       : angles[h];
    for (std::size_t r = 0; r < pairs / 2; ++r) {
      x[r] = magnitude[r] * std::cos(phi);
      y[r] = magnitude[r] * std::sin(phi);
      x[pairs / 2 + r] = -y[r];
      y[pairs / 2 + r] = x[r];
    }
  }
  Plan plan;
  plan.rotate = Rotate{.slice = {.pairing = pairing, .rotary_dim = head_dim},
                       .frequencies = {.heads = heads, .axes = 2, .radians = std::move(frequency)}};
  return plan;
}

}  // namespace posenc
