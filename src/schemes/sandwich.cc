// Sandwich (2212.10356): the inner product of two sinusoidal vectors as a bias, less its value at
// distance 0, and steeper for the first heads. Added after the 1/√d, with h = 1 .. H:
//   bias_h(i − j) = [Σ_{r=1..d/2} cos((i−j)·base^(−2r/d)) − d/2] · H/(8h)
// Summed here as −2·Σ sin²((i−j)·ω_r/2), which is the same and loses nothing near distance 0, where
// it is exactly 0. d is a number of its own (NeMo: the head's), not a size of any tensor.
//
// Pitfall: r starts at 1 and reaches d/2, unlike the sinusoid's 0 .. d/2−1; so the fastest wave has
// base^(−2/d). Public ports stop at d/2−1 or forget the cosine. The sum is even in i − j and
// oscillates: the bias falls with the distance only on the whole, and it covers the length compiled
// for.
#include <cmath>
#include <string>

#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> Sandwich::compiled(const Geometry& geometry) const {
  const std::int64_t heads = geometry.heads, length = geometry.length;
  if (auto ok = detail::known("sandwich", {{"heads", heads}, {"length", length}, {"dim", dim}});
      !ok) {
    return std::unexpected(ok.error());
  }
  if (dim % 2 != 0) {
    return fail("sandwich", "dim must be even", std::to_string(dim), "a sinusoid has pairs");
  }
  if (auto ok = detail::affordable("sandwich", {"length", length}, {"heads", heads}); !ok) {
    return std::unexpected(ok.error());
  }
  if (constexpr std::int64_t most_sines = std::int64_t{1} << 28; dim / 2 > most_sines / length) {
    return fail("sandwich", "length·dim/2 must be at most 2^28",
                std::to_string(length) + "·" + std::to_string(dim) + "/2",
                "give a smaller dim or length");
  }
  auto rows = detail::every_distance("sandwich", length);
  if (!rows) return std::unexpected(rows.error());

  const std::vector<double> frequency = detail::geometric_frequencies(base, dim, dim / 2 + 1);
  std::vector<double> values(static_cast<std::size_t>(heads * length));
  for (std::int64_t n = 1; n < length; ++n) {
    double sum = 0;
    for (std::size_t r = 1; r < frequency.size(); ++r) {
      const double sine = std::sin(static_cast<double>(n) * frequency[r] / 2);
      sum -= 2 * sine * sine;
    }
    for (std::int64_t h = 0; h < heads; ++h) {
      values[static_cast<std::size_t>(h * length + n)] =
          sum * static_cast<double>(heads) / static_cast<double>(8 * (h + 1));
    }
  }
  return detail::plan_of_curves(std::move(*rows), std::move(values), heads, length);
}

}  // namespace posenc
