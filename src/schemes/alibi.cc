// Attention with linear biases (ALiBi, 2108.12409): logit_ij += −m_h·(i − j), after the 1/√d, with
//   m_h = 2^(−max·h/P),  h = 1 .. H,  P the smallest power of two not below H,  max = 8
// Where H is not a power of two the even h of that series come first, then the odd ones, until
// there are H: the same as the slopes of P/2 heads followed by every other slope of P. 12 heads:
//   1/2 1/4 ... 1/256, then .7071 .3536 .1768 .0884
//
// Encoders use −m·|i − j| (symmetric). Pitfalls: adding +m·j instead is the same under a causal
// softmax only (BLOOM stores that; its masked keys then have a wrong number nobody sees). A
// tensor-parallel shard needs the slopes of its own heads out of all H, not those of a model with
// fewer heads. Falcon keeps the slopes in bfloat16 and adds the bias before the 1/√d, which shrinks
// it by √d.
#include <string>

#include "src/core/alibi_slope.h"
#include "src/schemes/common.h"

namespace posenc {

Expected<std::vector<double>> alibi_slopes(std::int64_t heads, double bias_max,
                                           SlopeRounding rounding) {
  if (auto ok = detail::known("alibi", {{"heads", heads}}); !ok) return std::unexpected(ok.error());
  if (auto ok = detail::affordable("alibi", {"heads", heads}); !ok) {
    return std::unexpected(ok.error());
  }
  // Up to 126 a slope stays a normal number even in bfloat16. A NaN fails too.
  if (!(bias_max > 0 && bias_max <= 126)) {
    return fail("alibi", "alibi_bias_max must be above 0 and at most 126", number_text(bias_max),
                "use 8, or the value in the model's config");
  }
  std::vector<double> slopes;
  slopes.reserve(static_cast<std::size_t>(heads));
  for (std::int64_t i = 0; i < heads; ++i) {
    const double slope = detail::alibi_slope(i, heads, bias_max);
    slopes.push_back(rounding == SlopeRounding::exact
                         ? slope
                         : bfloat16_to_float(float_to_bfloat16(static_cast<float>(slope))));
  }
  return slopes;
}

Expected<Plan> Alibi::compiled(const Geometry& geometry) const {
  auto slopes = alibi_slopes(geometry.heads, alibi_bias_max, rounding);
  if (!slopes) return std::unexpected(slopes.error());
  Plan plan;
  plan.bias =
      Slopes{.slope = std::move(*slopes), .bidirectional = symmetric, .before_scale = before_scale};
  return plan;
}

}  // namespace posenc
