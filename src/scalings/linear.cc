// Position interpolation (2306.15595): f_r / s. Positions p are read as p/s, where
// s = new length / trained length (a ratio: not the new length itself).
//
// Pitfall: it blurs the fast pairs, which told neighbours apart; the later scalings spare them.
#include "posenc/schemes.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> Linear::scaled(const RopeBase<Real>& base) const {
  Scaled<Real> result{.frequency = base.frequency};
  for (Real& f : result.frequency) f /= static_cast<Real>(factor);
  return result;
}

template Expected<Scaled<double>> Linear::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> Linear::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> Linear::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
