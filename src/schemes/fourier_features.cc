// Random Fourier features (Rahimi and Recht 2007; for coordinates Tancik and others, 2006.10739): a
// point p of real coordinates has the vector
//   sin(2π·Σ_a p_a·B[a][r]), cos(the same)      r = 0 .. d/2−1, B[a][r] ~ N(0, σ²)
// whose dot product with another point's is close to a Gaussian of their distance, d/2·exp(−2π²σ²|p
// − q|²), since sin a sin b + cos a cos b = cos(a − b) is averaged over B.
//
// B is drawn once and then part of the checkpoint: SAM's clicks and boxes, in coordinates from −1
// to 1, and with one axis the noise levels of score-based diffusion. Where none is given we draw
// one of a fixed seed, good for pictures and for training anew, and of no use to a checkpoint.
#include <cmath>
#include <numbers>
#include <string>

#include "src/core/random.h"
#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> FourierFeatures::compiled(const Geometry& geometry) const {
  const std::int64_t width = geometry.width;
  POSENC_CHECK(detail::known("fourier_features", {{"width", width}, {"axes", axes}}));
  POSENC_CHECK(detail::affordable("fourier_features", {"width", width}, {"axes", axes}));
  if (width % 2 != 0) {
    return fail("fourier_features", "width must be even", std::to_string(width),
                "a sine needs its cosine");
  }
  const std::int64_t pairs = width / 2;
  POSENC_CHECK(detail::shaped("fourier_features: frequencies", frequencies, {axes, pairs}));
  Waves waves{.width = width, .layout = layout, .axes = axes, .cosine_first = cosine_first};
  waves.frequency.reserve(static_cast<std::size_t>(axes * pairs));
  detail::SplitMix64 engine(1);
  for (std::int64_t a = 0; a < axes; ++a) {
    for (std::int64_t r = 0; r < pairs; ++r) {
      const Tensor& b = frequencies.values;
      const double turns = frequencies ? b.get(b.offset(a, r)) : sigma * detail::normal(engine);
      waves.frequency.push_back(2 * std::numbers::pi * turns);
    }
  }
  Plan plan;
  plan.add = Add{.kind = std::move(waves)};
  return checked(std::move(plan));
}

}  // namespace posenc
