// Scalings by axis. Of an axis with D channels, base b, f_k = b^(−2k/D) and s = its factor:
//   linear       f/s
//   ntk          b′ = b·s^(κ·D/(D−2)), f′_k = b′^(−2k/D); κ = λ·t^e of a step, 1 without steps
//   yarn         two ramps over the pairs, each between c(n₁) and c(n₂) for pairs that turn n times
//                in L, c(n) = D·ln(L/2πn)/(2 ln b), rounded outwards and kept within [0, D/2]:
//                  g  = f/s with f′ where a pair turns more than some 0.75^κ to 1.25^κ times
//                  f″ = g with f where it turns more than some 2^κ to 16^κ times
//   vision_yarn  s of the axis in f/s, the largest s in f′
//   riflex       f_(k−1) = 0.9·2π/length
// Published code: guyyariv/DyPE and wildminder/ComfyUI-DyPE (src/rope.py, src/base.py);
// thu-ml/RIFLEx (riflex_utils.py).
#include "posenc/axis_scalings.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "src/core/try.h"
#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {
namespace {

constexpr std::string_view mend = "give one number for each of axes_dim";

double of(const std::vector<double>& by_axis, std::size_t axis, double otherwise) {
  return axis < by_axis.size() ? by_axis[axis] : otherwise;
}

double largest(const std::vector<double>& factors) {
  return factors.empty() ? 1 : std::ranges::max(factors);
}

double strength(std::optional<double> timestep, double scale, double exponent) {
  return timestep ? scale * std::pow(*timestep, exponent) : 1;
}

Expected<std::vector<double>> ntk_frequencies(const AxisBase& base, double factor, double power) {
  if (factor == 1) return base.frequency;
  if (base.dim <= 2)
    return fail("axial: axis_factor", "an axis of two channels has one frequency, which NTK leaves",
                number_text(factor), "take linear, or a factor of 1 for that axis");
  const double d = static_cast<double>(base.dim);
  const double grown = std::pow(std::pow(factor, d / (d - 2)), power);
  return detail::geometric_frequencies(base.theta * std::max(grown, 1.0), base.dim, base.dim / 2);
}

// From 1 for the pairs that turn more than `more` times in the length down to 0 for those that turn
// fewer than `fewer` times.
std::vector<double> share_of_fast_pairs(const AxisBase& base, double length, double more,
                                        double fewer) {
  const double d = static_cast<double>(base.dim);
  const auto pair_of = [&](double turns) {
    return d * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(base.theta));
  };
  const double low = std::max(std::floor(pair_of(more)), 0.0);
  const std::int64_t pairs = base.dim / 2;
  double high = std::min({std::ceil(pair_of(fewer)), d - 1, static_cast<double>(pairs)});
  if (low == high) high += 0.001;
  std::vector<double> share(base.frequency.size());
  for (std::size_t k = 0; k < share.size(); ++k)
    share[k] = 1 - std::clamp((static_cast<double>(k) - low) / (high - low), 0.0, 1.0);
  return share;
}

Expected<std::vector<double>> yarn_frequencies(const AxisBase& base, double factor, double widest,
                                               double length, double power) {
  POSENC_TRY(ntk, ntk_frequencies(base, widest, 1));
  const std::vector<double> around_a_turn =
      share_of_fast_pairs(base, length, std::pow(1.25, power), std::pow(0.75, power));
  const std::vector<double> fast =
      share_of_fast_pairs(base, length, std::pow(16, power), std::pow(2, power));
  std::vector<double> made(base.frequency.size());
  for (std::size_t k = 0; k < made.size(); ++k) {
    const double f = base.frequency[k];
    const double slow = std::lerp(f / factor, ntk[k], around_a_turn[k]);
    made[k] = std::lerp(slow, f, fast[k]);
  }
  return made;
}

Expected<void> one_for_each(std::string_view field, const std::vector<double>& by_axis,
                            std::size_t axes) {
  if (by_axis.size() == axes) return {};
  return fail("axial: " + std::string(field), "must have a number for each axis",
              std::to_string(by_axis.size()) + " for " + std::to_string(axes) + " axes", mend);
}

}  // namespace

Expected<ScaledAxis> NoAxisScaling::scaled(AxisBase base) const {
  return ScaledAxis{std::move(base.frequency)};
}

Expected<ScaledAxis> AxisLinear::scaled(AxisBase base) const {
  POSENC_CHECK(one_for_each("axis_factor", axis_factor, base.axes));
  for (double& f : base.frequency) f /= axis_factor[base.axis];
  return ScaledAxis{std::move(base.frequency)};
}

Expected<ScaledAxis> AxisNtk::scaled(const AxisBase& base) const {
  POSENC_CHECK(one_for_each("axis_factor", axis_factor, base.axes));
  const double power = strength(timestep, step_scale, step_exponent);
  POSENC_TRY(made, ntk_frequencies(base, axis_factor[base.axis], power));
  return ScaledAxis{std::move(made)};
}

Expected<ScaledAxis> AxisYarn::scaled(AxisBase base) const {
  POSENC_CHECK(one_for_each("axis_factor", axis_factor, base.axes));
  POSENC_CHECK(one_for_each("axis_length", axis_length, base.axes));
  if (!axis_magnitude.empty())
    POSENC_CHECK(one_for_each("axis_magnitude", axis_magnitude, base.axes));
  const double s = axis_factor[base.axis], length = axis_length[base.axis];
  const double by_rule = s > 1 && length > 0 ? 1 + 0.1 * std::log(s) / std::sqrt(s) : 1;
  const double magnitude = of(axis_magnitude, base.axis, by_rule);
  if (length == 0) return ScaledAxis{std::move(base.frequency), magnitude};
  POSENC_TRY(made,
             yarn_frequencies(base, s, s, length, strength(timestep, step_scale, step_exponent)));
  return ScaledAxis{std::move(made), magnitude};
}

Expected<ScaledAxis> VisionYarn::scaled(AxisBase base) const {
  POSENC_CHECK(one_for_each("axis_factor", axis_factor, base.axes));
  POSENC_CHECK(one_for_each("axis_length", axis_length, base.axes));
  const double widest = largest(axis_factor), length = axis_length[base.axis];
  if (length == 0 || widest == 1) return ScaledAxis{std::move(base.frequency)};
  POSENC_TRY(made, yarn_frequencies(base, axis_factor[base.axis], widest, length,
                                    strength(timestep, step_scale, step_exponent)));
  const double left = std::min(1.0, timestep / start);
  return ScaledAxis{std::move(made), 1 + 0.1 * std::log(widest) * std::pow(left, step_exponent)};
}

Expected<ScaledAxis> Riflex::scaled(AxisBase base) const {
  if (static_cast<std::size_t>(axis) >= base.axes)
    return fail("axial: riflex_axis", "must be one of the " + std::to_string(base.axes) + " axes",
                std::to_string(axis), "0 is the first of axes_dim");
  if (static_cast<std::size_t>(axis) != base.axis) return ScaledAxis{std::move(base.frequency)};
  if (length < 1)
    return fail("axial: riflex_length", "must be the positions that are wanted",
                std::to_string(length), "give the latent frames of the video");
  if (pair < 1 || pair > std::ssize(base.frequency))
    return fail("axial: riflex_pair",
                "must be one of the axis' " + std::to_string(base.frequency.size()) + " pairs",
                std::to_string(pair), "they are counted from 1");
  constexpr double turns = 0.9;  // the authors' margin: some videos repeat in their last frames
  base.frequency[static_cast<std::size_t>(pair - 1)] =
      turns * 2 * std::numbers::pi / static_cast<double>(length);
  return ScaledAxis{std::move(base.frequency)};
}

}  // namespace posenc
