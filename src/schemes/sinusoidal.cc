// Sinusoidal vectors (1706.03762, section 3.5), one [width] vector for each position p:
//   PE[p, 2r] = sin(p·ω_r),  PE[p, 2r+1] = cos(p·ω_r),  ω_r = base^(−2r/d),  r = 0 .. d/2−1
//
// The published programs differ, and a checkpoint works with its own only:
//   layout    interleaved as printed (DistilBERT, XLM), or all sines before all cosines (Marian,
//             RoFormer, Whisper, fairseq, tensor2tensor)
//   spacing   width: base^(−2r/d) as printed, so the last wavelength is 2π·base^((d−2)/d): 47,117
//             at d = 64 and not 62,832; ends: base^(−r/(d/2−1)), which does end at 2π·base
//             (Whisper, fairseq, tensor2tensor; its comment admits the difference)
//   odd d     a sine more than cosines (Marian), or a zero in the last channel (fairseq,
//             tensor2tensor)
//   rows      fairseq counts from padding_idx + 1 and keeps row padding_idx zero: row_offset,
//             padding_idx
//   scale     token embeddings are multiplied by √d first, in the paper and where the config says
//             so; Canary divides the vectors by √d as well
//   order     all cosines before all sines (MusicGen, and the time steps of diffusion:
//             flip_sin_to_cos)
//
// Of several axes each has D_a channels side by side, and the series of an embedding that is D_a
// wide: pictures half and half, the rows first (RT-DETR, DETR) or the columns (MAE, diffusers),
// videos a quarter for the time (CogVideoX). Both a shift and a distance then act by axis: PE(p +
// k) = M_k·PE(p) with a block of M_k for each.
//
// What we chose: one cosine less counts as a pair, so `ends` divides by (pairs − 1) with any odd.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {
namespace {

// Channels, bases and scales of axes fit each other and the width.
Expected<void> dealt_out(const Sinusoidal& scheme, std::int64_t width) {
  const std::size_t axes = std::max<std::size_t>(1, scheme.axes_dim.size());
  std::int64_t channels = 0;
  bool fits = scheme.axes_dim.size() <= 8;
  for (const std::int64_t each : scheme.axes_dim) {
    fits = fits && each >= 2 && each % 2 == 0 && each <= width - channels;
    if (fits) channels += each;
  }
  if (!fits)
    return fail("sinusoidal: axes_dim", "must be at most 8 even numbers, the width at most in sum",
                "", "count the channels of each axis");
  if (!scheme.axis_base.empty() && scheme.axis_base.size() != axes)
    return fail("sinusoidal",
                "axis_base must have a base for each of " + std::to_string(axes) +
                    (axes == 1 ? " axis" : " axes"),
                std::to_string(scheme.axis_base.size()), "leave it out to have base on all");
  POSENC_CHECK(detail::check_position_scale("sinusoidal", scheme.position_scale, axes));
  std::vector<std::int64_t> order = scheme.axis_order;
  std::ranges::sort(order);
  for (std::size_t a = 0; a < order.size(); ++a) fits = fits && std::cmp_equal(order[a], a);
  if (!fits || (!order.empty() && order.size() != axes))
    return fail("sinusoidal: axis_order",
                "must have each of the axes 0 to " + std::to_string(axes - 1) + " once", "",
                "leave it out for 0, 1, …");
  if (axes > 1 && scheme.padding_idx >= 0)
    return fail("sinusoidal", "a row of zeros must be of one axis",
                "padding_idx " + std::to_string(scheme.padding_idx), "set it to -1");
  return {};
}

}  // namespace

Expected<Plan> Sinusoidal::compiled(const Geometry& geometry) const {
  const std::int64_t width = geometry.width;
  if (auto ok = detail::known("sinusoidal", {{"width", width}}); !ok) {
    return std::unexpected(ok.error());
  }
  if (auto ok = detail::affordable("sinusoidal", {"width", width}); !ok) {
    return std::unexpected(ok.error());
  }
  constexpr std::int64_t exact = std::int64_t{1} << 53;  // beyond, a double misses rows
  if (row_offset < -exact || row_offset > exact) {
    return fail("sinusoidal", "row_offset must lie within ±2^53", std::to_string(row_offset),
                "use the model's padding_idx + 1, or 0");
  }
  const auto scale_of = [&](std::size_t axis) { return detail::of_axis(position_scale, axis); };
  const auto series = [&](double of_base, std::int64_t channels, std::int64_t pairs, double scale) {
    const std::int64_t dim =
        spacing == WaveSpacing::width ? channels : 2 * std::max<std::int64_t>(1, pairs - 1);
    std::vector<double> frequency = detail::geometric_frequencies(of_base, dim, pairs);
    for (double& f : frequency) f *= scale;
    return frequency;
  };
  Waves waves{.width = width,
              .layout = layout,
              .row_offset = row_offset,
              .zero_row = padding_idx,
              .cosine_first = cosine_first,
              .amplitude = divide_vectors ? 1 / std::sqrt(static_cast<double>(width)) : 1.0};
  const std::size_t axes = std::max<std::size_t>(1, axes_dim.size());
  if (auto ok = dealt_out(*this, width); !ok) return std::unexpected(ok.error());
  if (axes_dim.empty()) {
    const bool sine = odd == OddWidth::sine;
    waves.frequency = series(axis_base.empty() ? base : axis_base[0], width,
                             sine ? (width + 1) / 2 : width / 2, scale_of(0));
  } else {
    waves.axes = static_cast<std::int64_t>(axes);
    waves.blocks = axes_dim;
    std::int64_t pairs = 0;
    const auto axis_at = [&](std::size_t place) {
      return axis_order.empty() ? place : static_cast<std::size_t>(axis_order[place]);
    };
    for (std::size_t place = 0; place < axes; ++place) {
      waves.blocks[place] = axes_dim[axis_at(place)];
      pairs += waves.blocks[place] / 2;
    }
    waves.frequency.resize(axes * static_cast<std::size_t>(pairs));
    auto to = waves.frequency.begin();                    // a column further with every block
    for (std::size_t place = 0; place < axes; ++place) {  // an axis has its own pairs alone
      const std::size_t a = axis_at(place);
      const std::int64_t channels = axes_dim[a];
      const auto own =
          series(axis_base.empty() ? base : axis_base[a], channels, channels / 2, scale_of(a));
      std::ranges::copy(own, to + static_cast<std::int64_t>(a) * pairs);
      to += channels / 2;
    }
  }
  Plan plan;
  plan.add = Add{.kind = std::move(waves),
                 .embedding_scale = scale_embedding ? std::sqrt(static_cast<double>(width)) : 1.0};
  return plan;
}

}  // namespace posenc
