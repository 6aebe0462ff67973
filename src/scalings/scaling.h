// What the files of scalings share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/schemes.h"

namespace posenc::detail {

// b^(2r/dim).
template <class Real>
Real power(Real theta, std::int64_t dim, std::size_t r) {
  return std::pow(theta, static_cast<Real>(2 * r) / static_cast<Real>(dim));
}
template <class Real>
Real power(const RopeBase<Real>& base, std::size_t r) {
  return power(base.theta, base.dim, r);
}

// f_r = b^(−2r/dim), computed as Hugging Face does: 1 / b^(2r/dim).
template <class Real>
std::vector<Real> geometric_frequencies(Real theta, std::int64_t dim, std::int64_t pairs) {
  std::vector<Real> frequency(static_cast<std::size_t>(pairs));
  for (std::size_t r = 0; r < frequency.size(); ++r) frequency[r] = 1 / power(theta, dim, r);
  return frequency;
}

// The base that stretches the last pair of `dim` channels by `ratio` and leaves the first alone.
template <class Real>
Expected<Real> stretched_base(std::string_view where, Real theta, std::int64_t dim, double ratio) {
  if (dim <= 2) {
    return fail(where, "needs more than one pair: the exponent is d/(d − 2)",
                "rotary_dim " + std::to_string(dim), "use linear scaling");
  }
  const double exponent = static_cast<double>(dim) / static_cast<double>(dim - 2);
  return static_cast<Real>(static_cast<double>(theta) * std::pow(ratio, exponent));
}

// Checks a list that must have one entry for each pair.
inline Expected<void> one_per_pair(std::string_view where, std::size_t count, std::int64_t pairs) {
  if (static_cast<std::int64_t>(count) == pairs) return {};
  return fail(where, "must have one entry for each of " + std::to_string(pairs) + " pairs",
              std::to_string(count) + " entries", "give rotary_dim/2 numbers");
}

// s where it may be left out: M/L, as Hugging Face derives it.
inline Expected<double> factor_or_ratio(std::string_view where, std::optional<double> factor,
                                        std::optional<std::int64_t> max_length,
                                        std::int64_t original_length) {
  if (factor) return *factor;
  if (!max_length) {
    return fail(where, "factor is not given and cannot be derived", "",
                "give factor, or max_position_embeddings for factor = M/L");
  }
  return static_cast<double>(*max_length) / static_cast<double>(original_length);
}

// 0.1·m·ln s + 1: by how much attention sharpens when s times more keys compete (YaRN, §3.4).
inline double yarn_magnitude(double s, double m = 1) {
  return s <= 1 ? 1 : 0.1 * m * std::log(s) + 1;
}

// 0 at or below `low`, 1 at or above `high`, linear between. The ends stay double: where they are
// close, their difference in float would be all rounding, and Hugging Face subtracts them before it
// rounds.
template <class Real>
Real ramp(Real x, double low, double high) {
  return std::clamp((x - static_cast<Real>(low)) / static_cast<Real>(high - low), Real{0}, Real{1});
}

}  // namespace posenc::detail
