// Dynamic NTK: the NTK-aware base grows with the current length l = max(length, M):
//   b′ = b·(s·l/M − (s − 1))^(d/(d−2)),   f_r = b′^(−2r/d).
// At l = M nothing changes. Every longer length has frequencies of its own, so a plan compiled past
// M holds for that length alone: keys that were rotated for another length are stale and must be
// rotated again (or be cached unrotated). Serving one static base for it is another scaling under
// the same name.
#include "src/scalings/scaling.h"

namespace posenc {

template <class Real>
Expected<Scaled<Real>> DynamicNtk::scaled(const RopeBase<Real>& base) const {
  if (base.length <= max_position_embeddings) {
    return Scaled<Real>{.frequency = base.frequency, .valid = Lengths{0, max_position_embeddings}};
  }
  const double ratio =
      factor * static_cast<double>(base.length) / static_cast<double>(max_position_embeddings) -
      (factor - 1);
  const auto theta = detail::stretched_base("dynamic", base.theta, base.dim, ratio);
  if (!theta) return std::unexpected(theta.error());
  return Scaled<Real>{.frequency = detail::geometric_frequencies(*theta, base.dim, base.pairs()),
                      .valid = Lengths{base.length, base.length}};
}

template Expected<Scaled<double>> DynamicNtk::scaled(const RopeBase<double>&) const;
template Expected<Scaled<float>> DynamicNtk::scaled(const RopeBase<float>&) const;
template Expected<Scaled<long double>> DynamicNtk::scaled(const RopeBase<long double>&) const;

}  // namespace posenc
