// NTK-by-parts, as YaRN's paper prints it (2309.00071, eq. 10-13), with its temperature left out:
//   ρ_r = L·f_r/2π   (turns of pair r within the trained length L)
//   γ_r = clamp((ρ_r − α)/(β − α), 0, 1)
//   f′_r = (1 − γ_r)·f_r/s + γ_r·f_r
//
// The ramp is linear in turns. The authors' code ramps by pair index instead (see yarn.cc), which
// gives frequencies up to 3 times apart; both are offered because models of both kinds exist.
// Llama-3's scaling is this one with α = 1, β = 4.
#include "src/scalings/scaling.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> NtkByParts::scaled(const RopeBase<Real>& base) const {
  if (!(alpha < beta)) {
    return fail("ntk_by_parts", "alpha must be below beta",
                number_text(alpha) + " and " + number_text(beta), "the paper has 1 and 32");
  }
  const Real turns_per_radian = static_cast<Real>(
      static_cast<double>(original_max_position_embeddings) / (2 * std::numbers::pi));
  Scaled<Real> result{.frequency = base.frequency};
  for (Real& f : result.frequency) {
    const Real keep = detail::ramp(f * turns_per_radian, alpha, beta);
    f = (1 - keep) * f / static_cast<Real>(factor) + keep * f;
  }
  return result;
}

template Expected<Scaled<double>> NtkByParts::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> NtkByParts::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> NtkByParts::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
