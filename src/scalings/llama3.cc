// Llama-3.1's scaling (2407.21783): with turns_r = L·f_r/2π within the trained length L,
//   turns < low  -> f_r/s            turns > high -> f_r
//   between, both ends included: t = (turns − low)/(high − low), (1 − t)·f_r/s + t·f_r.
// It is NTK-by-parts with α = low, β = high and no temperature.
//
// low = high (Llama 4 Scout) leaves nothing between: a step. A pair that makes exactly `low` turns
// then keeps its frequency, where a division by zero would give NaN.
#include "src/scalings/scaling.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> Llama3::scaled(const RopeBase<Real>& base) const {
  if (low_freq_factor > high_freq_factor) {
    return fail("llama3", "low_freq_factor must not exceed high_freq_factor",
                number_text(low_freq_factor) + " and " + number_text(high_freq_factor),
                "swap them; Llama 3.1 has 1 and 4");
  }
  const Real trained = static_cast<Real>(original_max_position_embeddings);
  const Real low = static_cast<Real>(low_freq_factor), high = static_cast<Real>(high_freq_factor);
  const Real s = static_cast<Real>(factor);
  Scaled<Real> result{.frequency = base.frequency};
  for (Real& f : result.frequency) {
    const Real wavelength = 2 * std::numbers::pi_v<Real> / f;
    if (wavelength < trained / high) continue;
    if (wavelength > trained / low) {
      f /= s;
    } else if (low < high) {
      const Real t = (trained / wavelength - low) / (high - low);
      f = (1 - t) * f / s + t * f;
    }
  }
  return result;
}

template Expected<Scaled<double>> Llama3::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> Llama3::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> Llama3::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
