// 2-D axial RoPE (2403.13298, and the vision towers): half of a head's pairs rotate by the patch's
// row, half by its column. Positions have two axes, [0] the height h and [1] the width w, in the
// order that patch_positions gives them; d = head_dim is a multiple of 4, and for r = 0 .. d/4−1:
//   shared:       each axis has b^(−4r/d)
//   alternating:  of the series b^(−2r/d), h takes the even entries and w the odd ones (Pixtral)
// Frequencies: [2][d/2], with zeros where a pair belongs to the other axis. `order` names the axis
// of the first half of the pairs:
//   RoPE-ViT                 b = 100,   interleaved, width first
//   Qwen-VL vision, ggml     b = 10000, halves, height first
//   Pixtral                  b = 10000, halves, height first, alternating
//   Gemma 4 vision           b = 100,   halves, width first, blocks: an axis pairs its own half
//   DINOv3                   b = 100,   halves, height first, normalised
// Pitfall: swapping the axes goes unnoticed on square pictures until the loss is looked at.
//
// Normalised (DINOv3): the angle is 2π·c·b^(−4r/d) with the patch centre c = (2i + 1 − G)/G in
// [−1, 1], G the patches along the axis. So the position is the integer 2i + 1 − G, the frequency
// 2π/(G·b^(4r/d)). Positions here are not negative: pass 2i + 1. Every token then rotates by the same
// G·f more, and logits do not change; tokens that DINOv3 leaves alone (class, registers) stand in
// the centre and have (G_h, G_w). Patches of another picture size need another plan.
//
// axes_dim (diffusion transformers: Flux 16, 56, 56 of time, height, width): axis a has the next D_a/2 pairs, and their
// frequencies b_a^(−2k/D_a) begin anew. Positions have as many axes; channels beyond Σ D_a do not rotate.
#include <array>
#include <numbers>
#include <numeric>
#include <string>

#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {
namespace {

Expected<void> check_axes(const Axial& axial, std::int64_t head_dim) {
  constexpr std::size_t most_axes = 8;
  const std::vector<std::int64_t>& dims = axial.axes_dim;
  if (dims.size() > most_axes) {
    return fail("axial: axes_dim", "must have at most 8 axes", std::to_string(dims.size()),
                "one number for each axis of the positions");
  }
  std::int64_t sum = 0;
  for (const std::int64_t dim : dims) {
    if (dim < 2 || dim % 2 != 0 || dim > head_dim) {
      return fail("axial: axes_dim", "each must be even, at least 2 and within head_dim",
                  std::to_string(dim), "every channel needs a partner on its own axis");
    }
    sum += dim;
  }
  if (sum > head_dim) {
    return fail("axial: axes_dim", "must sum to head_dim " + std::to_string(head_dim) + " at most",
                std::to_string(sum), "they count channels, not pairs");
  }
  if (!axial.axis_theta.empty() && axial.axis_theta.size() != dims.size()) {
    return fail("axial: axis_theta", "needs a base for each of axes_dim",
                std::to_string(axial.axis_theta.size()) + " for " + std::to_string(dims.size()),
                "drop it where rope_theta is the base of all");
  }
  const Axial usual;
  if (axial.order != usual.order || axial.frequencies != usual.frequencies || axial.blocks ||
      axial.normalised) {
    return fail("axial: axes_dim",
                "cannot stand beside order, frequencies, blocks or normalised, which deal a head "
                "to two axes",
                "", "drop them: axes_dim says the order");
  }
  return {};
}

Plan compile_axes(const Axial& axial) {
  const auto axes = axial.axes_dim.size();
  const std::int64_t rotary_dim =
      std::accumulate(axial.axes_dim.begin(), axial.axes_dim.end(), std::int64_t{0});
  const auto pairs = static_cast<std::size_t>(rotary_dim / 2);
  std::vector<double> frequency(axes * pairs);
  std::size_t first = 0;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::int64_t dim = axial.axes_dim[axis];
    const double theta = axial.axis_theta.empty() ? axial.rope_theta : axial.axis_theta[axis];
    for (const double f : detail::geometric_frequencies(theta, dim, dim / 2))
      frequency[axis * pairs + first++] = f;
  }
  Plan plan;
  plan.rotate = Rotate{.pairing = axial.pairing,
                       .rotary_dim = rotary_dim,
                       .axes = static_cast<std::int64_t>(axes),
                       .frequency = std::move(frequency)};
  return plan;
}

}  // namespace

Expected<Plan> Axial::compiled(const Geometry& geometry) const {
  const std::int64_t head_dim = geometry.head_dim;
  POSENC_CHECK(detail::usable_head_dim("axial", head_dim));
  if (!axes_dim.empty() || !axis_theta.empty()) {
    POSENC_CHECK(check_axes(*this, head_dim));
    return compile_axes(*this);
  }
  if (head_dim % 4 != 0) {
    return fail("axial", "head_dim must be divisible by 4", std::to_string(head_dim),
                "both axes need whole pairs: pad the head");
  }
  std::array<double, 2> unit{1, 1};  // of position, for the height and the width
  if (normalised) {
    if (auto ok = detail::known(
            "axial", {{"grid_height", geometry.grid_height}, {"grid_width", geometry.grid_width}});
        !ok) {
      return std::unexpected(ok.error());
    }
    unit = {2 * std::numbers::pi / static_cast<double>(geometry.grid_height),
            2 * std::numbers::pi / static_cast<double>(geometry.grid_width)};
  }
  const auto pairs = static_cast<std::size_t>(head_dim / 2);
  const std::vector<double> series =
      detail::geometric_frequencies(rope_theta, head_dim, head_dim / 2);
  std::vector<double> frequency(2 * pairs);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const bool leads = (axis == 0) == (order == AxisOrder::height_width);
    const std::size_t odd = frequencies == AxisFrequencies::alternating && axis == 1 ? 1 : 0;
    double* const own = frequency.data() + axis * pairs + (leads ? 0 : pairs / 2);
    for (std::size_t r = 0; r < pairs / 2; ++r) own[r] = unit[axis] * series[2 * r + odd];
  }
  Plan plan;
  plan.rotate = Rotate{.pairing = pairing,
                       .rotary_dim = head_dim,
                       .blocks = blocks ? 2 : 1,
                       .axes = 2,
                       .frequency = std::move(frequency)};
  return plan;
}

}  // namespace posenc
