// Sinusoidal vectors (1706.03762, section 3.5), one [width] vector for each position p:
//   PE[p, 2r] = sin(p·ω_r),  PE[p, 2r+1] = cos(p·ω_r),  ω_r = base^(−2r/d),  r = 0 .. d/2−1
//
// The published programs differ, and a checkpoint works with its own only:
//   layout    interleaved as printed (DistilBERT, XLM), or all sines before all cosines (Marian,
//             RoFormer, Whisper, fairseq, tensor2tensor)
//   spacing   width: base^(−2r/d) as printed, so the last wavelength is 2π·base^((d−2)/d): 47,117 at
//             d = 64 and not 62,832; ends: base^(−r/(d/2−1)), which does end at 2π·base (Whisper,
//             fairseq, tensor2tensor; its comment admits the difference)
//   odd d     a sine more than cosines (Marian), or a zero in the last channel (fairseq, tensor2tensor)
//   rows      fairseq counts from padding_idx + 1 and keeps row padding_idx zero: row_offset, padding_idx
//   scale     token embeddings are multiplied by √d first, in the paper and where the config says so
//
// What we chose: one cosine less counts as a pair, so `ends` divides by (pairs − 1) with any odd.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {

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
  const std::int64_t pairs = odd == OddWidth::sine ? (width + 1) / 2 : width / 2;
  const std::int64_t dim =
      spacing == WaveSpacing::width ? width : 2 * std::max<std::int64_t>(1, pairs - 1);

  Waves waves{.width = width, .layout = layout, .row_offset = row_offset, .zero_row = padding_idx};
  waves.frequency = detail::geometric_frequencies(base, dim, pairs);
  Plan plan;
  plan.add = Add{.kind = std::move(waves),
                 .embedding_scale = scale_embedding ? std::sqrt(static_cast<double>(width)) : 1.0};
  return plan;
}

}  // namespace posenc
