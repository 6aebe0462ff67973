// Proportional RoPE (p-RoPE, 2410.06205; Gemma 4): the slow pairs do not turn at all.
//   f_r = b^(−2r/d)/s for r < ⌊p·d/2⌋, else 0, with the exponent over the whole head d.
//
// Not the same as a partial rotation: there the exponent runs over the rotated part only, and the
// pairs' partners differ (in halves, channel r still pairs with r + d/2 of the whole head).
#include "src/scalings/scaling.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> Proportional::scaled(const RopeBase<Real>& base) const {
  // Hugging Face: int(p·d // 2) pairs.
  const auto turning = static_cast<std::size_t>(
      std::floor(partial_rotary_factor * static_cast<double>(base.dim) / 2));
  Scaled<Real> result{.frequency = base.frequency};
  for (std::size_t r = 0; r < result.frequency.size(); ++r) {
    result.frequency[r] = r < turning ? result.frequency[r] / static_cast<Real>(factor) : Real{0};
  }
  return result;
}

template Expected<Scaled<double>> Proportional::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> Proportional::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> Proportional::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
