// Frequencies given one by one (a published inverse-frequency buffer, next year's paper). The base
// and its exponent no longer matter; the list is taken as it stands, zero and negative turns
// included.
#include "src/scalings/scaling.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> Explicit::scaled(const RopeBase<Real>& base) const {
  if (auto ok = detail::one_per_pair("explicit: frequencies", frequencies.size(), base.pairs());
      !ok)
    return std::unexpected(ok.error());
  Scaled<Real> result{.frequency = {}, .amplitude = static_cast<Real>(attention_factor)};
  result.frequency.assign(frequencies.begin(), frequencies.end());
  return result;
}

template Expected<Scaled<double>> Explicit::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> Explicit::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> Explicit::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
