// YaRN as its authors' code does it (2309.00071; Hugging Face, ggml, MLX, DeepSeek have this ramp):
//   c(n)   = d·ln(L/(2πn)) / (2 ln b)             pair index that makes n turns within L
//   low    = max(⌊c(β_fast)⌋, 0),  high = min(⌈c(β_slow)⌉, d − 1)  (truncate false: no rounding)
//   ramp_r = clamp((r − low)/(high − low), 0, 1)                       (low = high: high += 0.001)
//   f′_r   = ramp_r·f_r/s + (1 − ramp_r)·f_r
//   cos, sin × A:  A = attention_factor if given, else g(s, mscale)/g(s, mscale_all_dim) if both
//                  are given and not zero, else g(s, 1);
//                  g(s, m) = 0.1·m·ln s + 1 for s > 1, else 1.
// DeepSeek also multiplies the logits by g(s, mscale_all_dim)² (scale_logits).
//
// Where peers differ we follow Hugging Face: an explicit attention_factor is absolute, mscale alone
// is ignored, zero betas mean their defaults, and truncate is true unless the file says otherwise.
#include "src/scalings/scaling.h"

namespace posenc {
namespace {

double given(const std::optional<double>& x) { return x.value_or(0); }

}  // namespace

template <class Real>
Expected<Scaled<Real>> Yarn::scaled(const RopeBase<Real>& base) const {
  const std::int64_t trained = original_max_position_embeddings;
  double s = 1;
  std::optional<Lengths> valid;
  if (dynamic) {
    s = std::max(1.0, static_cast<double>(base.length) / static_cast<double>(trained));
    valid = base.length <= trained ? Lengths{0, trained} : Lengths{base.length, base.length};
  } else {
    const auto resolved = detail::factor_or_ratio("yarn", factor, max_position_embeddings, trained);
    if (!resolved) return std::unexpected(resolved.error());
    s = *resolved;
  }

  const double dim = static_cast<double>(base.dim);
  const double theta = static_cast<double>(base.theta);
  const auto pair_with_turns = [&](double turns) {
    return dim * std::log(static_cast<double>(trained) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = pair_with_turns(beta_fast == 0 ? 32 : beta_fast);
  double high = pair_with_turns(beta_slow == 0 ? 1 : beta_slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;

  Scaled<Real> result{.frequency = base.frequency, .valid = valid};
  for (std::size_t r = 0; r < result.frequency.size(); ++r) {
    // Hugging Face's order, for the float kind: s multiplies the power before it is inverted.
    const Real keep = 1 - detail::ramp(static_cast<Real>(r), low, high);
    const Real interpolated = 1 / (static_cast<Real>(s) * detail::power(base, r));
    Real& f = result.frequency[r];
    f = interpolated * (1 - keep) + f * keep;
  }

  double amplitude = detail::yarn_magnitude(s);
  if (attention_factor) {
    amplitude = *attention_factor;
  } else if (given(mscale) != 0 && given(mscale_all_dim) != 0) {
    amplitude = detail::yarn_magnitude(s, *mscale) / detail::yarn_magnitude(s, *mscale_all_dim);
  }
  result.amplitude = static_cast<Real>(amplitude);
  if (scale_logits && given(mscale_all_dim) != 0) {
    const double magnitude = detail::yarn_magnitude(s, *mscale_all_dim);
    result.logit_multiplier = static_cast<Real>(magnitude * magnitude);
  }
  return result;
}

template Expected<Scaled<double>> Yarn::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> Yarn::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> Yarn::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
