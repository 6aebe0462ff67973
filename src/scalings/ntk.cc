// NTK-aware scaling: b′ = b·s^(d/(d−2)), f_r = b′^(−2r/d). The first pair keeps its frequency, the
// last is divided by exactly s, the others lie between. First told in a forum post; written down in
// YaRN (2309.00071 §3.1). HunYuan's `alpha` is s itself (its files say rope_type "dynamic").
//
// Pitfall: middle pairs are stretched by less than s, so unseen angles begin before s·L.
#include "src/scalings/scaling.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> NtkAware::scaled(const RopeBase<Real>& base) const {
  const auto theta = detail::stretched_base("ntk", base.theta, base.dim, factor);
  if (!theta) return std::unexpected(theta.error());
  return Scaled<Real>{.frequency = detail::geometric_frequencies(*theta, base.dim, base.pairs())};
}

template Expected<Scaled<double>> NtkAware::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> NtkAware::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> NtkAware::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
