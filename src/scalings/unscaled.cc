// The default: f_r = b^(−2r/d), r = 0 .. ⌈d/2⌉−1, in radians per position (RoFormer, 2104.09864).
//
// The first pair is the fastest (1 rad/token), the last the slowest: 2π·b^((d−2)/d) a turn.
#include "posenc/schemes.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> Unscaled::scaled(const RopeBase<Real>& base) const {
  return Scaled<Real>{.frequency = base.frequency};
}

template Expected<Scaled<double>> Unscaled::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> Unscaled::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> Unscaled::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
