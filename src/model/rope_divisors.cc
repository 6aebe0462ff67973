// The fit. With t the share of the frequency that a pair keeps,
//   1/divisor = (1 − t)/s + t   and   t = (L·f/2π − low)/(high − low):
// t is a straight line in f. The largest divisor is s; the line through two pairs gives low/(high −
// low) and L; what these are, rounded to the numbers that a person would write, must then give
// every divisor again.
#include "src/model/rope_divisors.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace posenc::detail {
namespace {

std::optional<std::vector<double>> frequencies(const Rope& rope, const Geometry& geometry) {
  const auto plan = compile(Scheme{rope}, geometry);
  if (!plan || !plan->rotate) return std::nullopt;
  return plan->rotate->frequencies.radians;
}

}  // namespace

std::optional<Llama3> llama3_of(const Rope& rope, const Geometry& geometry,
                                std::span<const double> divisors) {
  Rope plain = rope;
  plain.scaling = Unscaled{};
  plain.frequency_factors.clear();
  const auto before = frequencies(plain, geometry);
  if (!before || before->size() != divisors.size() || divisors.empty()) return std::nullopt;
  const double s = *std::ranges::max_element(divisors);
  if (!(s > 1) || s > 1e6) return std::nullopt;

  // A converter computes in float32: an error in t becomes one of s times as much in the divisor.
  const double rounding = s * 0x1p-22;
  std::vector<std::size_t> between;
  for (std::size_t r = 0; r < divisors.size(); ++r)
    if (divisors[r] > 1 + rounding && divisors[r] < s * (1 - rounding)) between.push_back(r);
  if (between.size() < 2) return std::nullopt;
  const auto kept = [&](std::size_t r) { return (1 / divisors[r] - 1 / s) / (1 - 1 / s); };
  const std::size_t first = between.front(), last = between.back();
  const double slope = (kept(first) - kept(last)) / ((*before)[first] - (*before)[last]);
  const double at_zero = kept(first) - slope * (*before)[first];
  if (!(slope > 0) || !(at_zero < 0)) return std::nullopt;

  Llama3 found{.factor = s, .low_freq_factor = 1};
  found.high_freq_factor = std::round((1 - 1 / at_zero) * 8) / 8;
  const double trained = 2 * std::numbers::pi * slope * (found.high_freq_factor - 1);
  if (!(found.high_freq_factor > 1) || !(trained >= 1) || trained > 0x1p40) return std::nullopt;
  found.original_max_position_embeddings = std::llround(trained);

  Rope scaled = plain;
  scaled.scaling = found;
  const auto after = frequencies(scaled, geometry);
  if (!after) return std::nullopt;
  for (std::size_t r = 0; r < divisors.size(); ++r)
    if (!(std::abs((*before)[r] / (*after)[r] - divisors[r]) <= rounding * divisors[r]))
      return std::nullopt;
  return found;
}

std::string call_of(const Llama3& scaling) {
  return "llama3(" + number_text(scaling.factor) + ", " + number_text(scaling.low_freq_factor) +
         ", " + number_text(scaling.high_freq_factor) + ", " +
         std::to_string(scaling.original_max_position_embeddings) + ")";
}

}  // namespace posenc::detail
