// 2-D axial RoPE (2403.13298, and the vision towers): half of a head's pairs rotate by the patch's
// row, half by its column. Positions have two axes, [0] the height h and [1] the width w, in the
// order that patch_positions gives them; d = head_dim is a multiple of 4, and for r = 0 .. d/4−1:
//   shared:       each axis has b^(−4r/d)
//   alternating:  of the series b^(−2r/d), h takes the even entries and w the odd ones (Pixtral)
//   in_turns:     each axis has b^(−4r/d), and its pairs are every second one (Kimi)
// Frequencies: [2][d/2], with zeros where a pair belongs to the other axis. `order` names the axis
// of the first half of the pairs:
//   RoPE-ViT                 b = 100,   interleaved, width first
//   Qwen-VL vision, ggml     b = 10000, halves, height first
//   Pixtral                  b = 10000, halves, height first, alternating
//   Kimi K2.5 vision         b = 10000, halves, width first, in turns
//   Gemma 4 vision           b = 100,   halves, width first, blocks: an axis pairs its own half
//   DINOv3                   b = 100,   halves, height first, normalised
//   SAM 3                    b = 10000, interleaved, width first, position_scale window/grid in
//                            layers without windows
// Pitfall: swapping the axes goes unnoticed on square pictures until the loss is looked at.
//
// Normalised (DINOv3): the angle is 2π·c·b^(−4r/d) with the patch centre c = (2i + 1 − G)/G in
// [−1, 1], G the patches along the axis. So the position is the integer 2i + 1 − G, the frequency
// 2π/(G·b^(4r/d)). Positions here are not negative: pass 2i + 1. Every token then rotates by the
// same G·f more, and logits do not change; tokens that DINOv3 leaves alone (class, registers) stand
// in the centre and have (G_h, G_w). Patches of another picture size need another plan.
//
// Tiled (V-JEPA 2, axes_dim of time, height and width): channel c of an axis' D has the frequency
// b^(−2(c mod D/2)/D), and pairs are neighbours, so that the two channels of a pair have two. The
// other way round (ERNIE-Image): channel c of all has the frequency and the axis of pair ⌊c/2⌋, and
// pairs are halves, so that the two channels of a pair have two axes as well.
//
// axes_dim (diffusion transformers: Flux 16, 56, 56 of time, height, width): axis a has the next
// D_a/2 pairs, and their frequencies b_a^(−2k/D_a) begin anew. Positions have as many axes;
// channels beyond Σ D_a do not rotate. axis_scaling stretches axes (axis_scalings.cc).
#include <algorithm>
#include <array>
#include <numbers>
#include <string>

#include "src/core/try.h"
#include "src/scalings/scaling.h"
#include "src/schemes/common.h"
#include "src/schemes/mrope.h"

namespace posenc {
namespace {

bool can_be_dealt_out(const Axial& axial, std::int64_t head_dim) {
  constexpr std::size_t most_axes = 8;
  const std::vector<std::int64_t>& dims = axial.axes_dim;
  std::int64_t left = dims.size() > most_axes ? -1 : head_dim;
  for (const std::int64_t dim : dims)
    left = dim < 2 || dim % 2 != 0 || dim > left ? -1 : left - dim;
  return left >= 0 && (axial.axis_theta.empty() || axial.axis_theta.size() == dims.size()) &&
         (!axial.tiled || std::holds_alternative<NoAxisScaling>(axial.axis_scaling)) &&
         axial.order == AxisOrder::width_height && !axial.blocks && !axial.normalised &&
         axial.frequencies == AxisFrequencies::shared;
}

Expected<Plan> compile_axes(const Axial& axial) {
  std::vector<double> frequency, second, magnitudes;
  std::vector<std::int64_t> axis_of_pair;
  const auto axes = std::ssize(axial.axes_dim);
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t dim = axial.axes_dim[a];
    const double theta = axial.axis_theta.empty() ? axial.rope_theta : axial.axis_theta[a];
    AxisBase base{.axis = a,
                  .axes = axial.axes_dim.size(),
                  .theta = theta,
                  .dim = dim,
                  .frequency = detail::geometric_frequencies(theta, dim, dim / 2)};
    POSENC_TRY(scaled, std::visit([&](const auto& by) { return by.scaled(std::move(base)); },
                                  axial.axis_scaling));
    const std::vector<double>& series = scaled.frequency;
    magnitudes.insert(magnitudes.end(), series.size(), scaled.magnitude);
    const double scale = detail::of_axis(axial.position_scale, a);
    const bool tiled = axial.tiled && axial.pairing == Pairing::interleaved;
    for (std::size_t r = 0; r < series.size(); ++r) {
      const std::size_t channel = tiled ? 2 * r % series.size() : r;
      frequency.push_back(scale * series[channel]);
      second.push_back(scale * series[(channel + 1) % series.size()]);
      axis_of_pair.push_back(axis);
    }
  }
  std::vector<std::int64_t> axis_of_second = axis_of_pair;
  if (axial.tiled && axial.pairing == Pairing::halves) {
    const std::vector<double> of_pair = frequency;
    const std::vector<std::int64_t> axis = axis_of_pair;
    for (std::size_t r = 0; r < of_pair.size(); ++r) {
      const std::size_t partner = (r + of_pair.size()) / 2;
      frequency[r] = of_pair[r / 2];
      axis_of_pair[r] = axis[r / 2];
      second[r] = of_pair[partner];
      axis_of_second[r] = axis[partner];
    }
  }
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.pairing = axial.pairing, .rotary_dim = 2 * std::ssize(frequency)},
             .frequencies = {.axes = axes,
                             .radians = detail::spread_over_axes(frequency, axis_of_pair, axes)}};
  // One magnitude for all pairs is an amplitude.
  if (std::ranges::all_of(magnitudes, [&](double m) { return m == magnitudes.front(); }))
    plan.rotate->amplitude = magnitudes.front();
  else
    plan.rotate->kind = Plain{.magnitudes = std::move(magnitudes)};
  if (axial.tiled)
    plan.rotate->kind = TwoAngles{detail::spread_over_axes(second, axis_of_second, axes)};
  return plan;
}

}  // namespace

Expected<Plan> Axial::compiled(const Geometry& geometry) const {
  const std::int64_t head_dim = geometry.head_dim;
  POSENC_CHECK(detail::usable_head_dim("axial", head_dim));
  const std::size_t axes = axes_dim.empty() ? 2 : axes_dim.size();
  POSENC_CHECK(detail::check_position_scale("axial", position_scale, axes));
  if (!axes_dim.empty() || !axis_theta.empty()) {
    if (!can_be_dealt_out(*this, head_dim)) {
      return fail(
          "axial: axes_dim",
          "must be at most 8 even numbers, head_dim at most in sum, with as many of axis_theta "
          "or none, and no order, frequencies, blocks or normalised; tiled ones not scaled",
          "", "count the channels of each axis");
    }
    return compile_axes(*this);
  }
  if (tiled || !std::holds_alternative<NoAxisScaling>(axis_scaling))
    return fail("axial", "tiled angles and scalings by axis must be of axes_dim", "none",
                "give the channels of each axis");
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
    const bool in_turns = frequencies == AxisFrequencies::in_turns;
    const std::size_t first = leads ? 0 : in_turns ? 1 : pairs / 2, step = in_turns ? 2 : 1;
    for (std::size_t r = 0; r < pairs / 2; ++r)
      frequency[axis * pairs + first + step * r] =
          detail::of_axis(position_scale, axis) * unit[axis] * series[2 * r + odd];
  }
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.pairing = pairing, .rotary_dim = head_dim, .blocks = blocks ? 2 : 1},
             .frequencies = {.axes = 2, .radians = std::move(frequency)}};
  return plan;
}

}  // namespace posenc
