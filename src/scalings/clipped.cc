// Clipped RoPE ("CoPE", 2602.05258): the slow pairs, which make less than a turn within the trained
// length L, fade out. Of R pairs the last n are multiplied by half a Hann window,
//   f_r·(1 + cos(π·i/(n − 1)))/2,  i = r − (R − n) = 0 .. n−1,
// so the first of them keeps its frequency and the last stands still. A hard cut at R − n would
// ring in the logits.
//
// The authors' code has n as a number (clip_low_n = 20 for Llama 3's 64 pairs). Where none is
// given, n is the number of pairs with 2π/f_r > L, as the pull request to mlx-lm chooses it. One
// pair alone stays as it is, as torch.linspace gives it.
#include "src/scalings/scaling.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> Clipped::scaled(const RopeBase<Real>& base) const {
  constexpr Real pi = std::numbers::pi_v<Real>;
  const Real trained = static_cast<Real>(original_max_position_embeddings);
  const auto unfinished =
      std::ranges::count_if(base.frequency, [&](Real f) { return 2 * pi / f > trained; });
  const std::int64_t n = std::min<std::int64_t>(clip_low_n.value_or(unfinished), base.pairs());
  Scaled<Real> result{.frequency = base.frequency};
  for (std::int64_t i = 1; i < n; ++i) {
    const Real angle = pi * static_cast<Real>(i) / static_cast<Real>(n - 1);
    *(result.frequency.end() - n + i) *= (1 + std::cos(angle)) / 2;
  }
  return result;
}

template Expected<Scaled<double>> Clipped::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> Clipped::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> Clipped::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
