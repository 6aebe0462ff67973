// LongRoPE (2402.13753): a divisor λ_r for each pair, found by search, in two lists:
//   f′_r = f_r / λ_r,  λ = long_factor if length > L (strictly) else short_factor
//   cos, sin × A:  A = attention_factor if given, else √(1 + ln s/ln L) for s > 1, else 1, for both
//                  lists
//   (Phi-3.5-MoE gives short_mscale and long_mscale instead);  s = factor, or M/L.
//
// The lists switch when the length crosses L, and keys rotated before are stale: a plan says on
// which side of L it holds. "As constructed" means the short side.
#include "src/scalings/scaling.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> LongRope::scaled(const RopeBase<Real>& base) const {
  const std::int64_t trained = original_max_position_embeddings;
  if (auto ok = detail::one_per_pair("longrope: short_factor", short_factor.size(), base.pairs());
      !ok)
    return std::unexpected(ok.error());
  if (auto ok = detail::one_per_pair("longrope: long_factor", long_factor.size(), base.pairs());
      !ok)
    return std::unexpected(ok.error());

  const bool is_long = base.length > trained;
  const std::vector<double>& divisor = is_long ? long_factor : short_factor;
  Scaled<Real> result{.frequency = base.frequency};
  for (std::size_t r = 0; r < result.frequency.size(); ++r) {
    // Hugging Face multiplies the divisor into the power before it inverts.
    result.frequency[r] = 1 / (static_cast<Real>(divisor[r]) * detail::power(base, r));
  }
  if (short_factor != long_factor) {
    result.valid = is_long ? Lengths{.from = trained + 1} : Lengths{.from = 0, .to = trained};
  }

  const std::optional<double>& side = is_long ? long_mscale : short_mscale;
  if (attention_factor) {
    result.amplitude = static_cast<Real>(*attention_factor);
  } else if (side) {
    result.amplitude = static_cast<Real>(*side);
  } else {
    const auto s = detail::factor_or_ratio("longrope", factor, max_position_embeddings, trained);
    if (!s) return std::unexpected(s.error());
    if (*s > 1) {
      if (trained < 2) {
        return fail("longrope", "original_max_position_embeddings must be at least 2, ln L divides",
                    std::to_string(trained), "give the trained length or attention_factor");
      }
      result.amplitude =
          static_cast<Real>(std::sqrt(1 + std::log(*s) / std::log(static_cast<double>(trained))));
    }
  }
  return result;
}

template Expected<Scaled<double>> LongRope::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> LongRope::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> LongRope::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
