// RoPE (RoFormer, 2104.09864): pair r of a query or key at position p rotates by p·f_r,
//   (a, b) -> (a cos − b sin, a sin + b cos),   f_r = b^(−2r/d),  r = 0 .. d/2−1
// so that R_iᵀ R_j = R_{j−i}: the logit sees the offset alone. Halves pair (r, r + d/2),
// interleaved (2r, 2r + 1): the same rotation up to a fixed permutation of the channels, and not
// interchangeable.
//
// Partial: the first ⌊p·head_dim⌋ channels rotate, with the exponent over that number. Where it is
// odd, Hugging Face makes ⌈n/2⌉ frequencies with denominator n, and 2·⌈n/2⌉ channels rotate.
// Rotated heads: the first ones rotate, the others have frequencies of 0. Each needs a key head of
// its own. Values that stay: what DeepSeek-V4 rotates back in the output is left as it is, Σ_j α_ij
// R_j v_j, so that the output tells where its keys stand and not how far off.
// Reversed: −f_r, for code that subtracts where others add. The logits are those of other weights,
// in which a pair's channels have changed places.
// Imaginary heads (RoPE++, 2512.07525): the query is rotated by p·f_r − π/2, so that its logits are
// the imaginary part of the complex products whose real part others have. Phase and frequencies
// turn the same way. Trailing: the last channels rotate (DeepSeek: 128 without position, then 64
// rotated). Frequency factors (GGUF rope_freqs) divide the frequencies beside any scaling.
#include "src/scalings/scaling.h"
#include "src/schemes/common.h"
#include "src/schemes/mrope.h"

#include <algorithm>
#include <numbers>
#include <string>

namespace posenc {
namespace {

// −π/2 on the queries of the heads that are imaginary.
Expected<Phase> imaginary_phase(const Rope& rope, std::int64_t heads, std::int64_t pairs) {
  const bool all = rope.imaginary_heads == ImaginaryHeads::all;
  if (!all) {
    POSENC_CHECK(detail::known("rope: imaginary_heads", {{"heads", heads}}));
    POSENC_CHECK(detail::affordable("rope: imaginary_heads", {"heads", heads}, {"pairs", pairs}));
    if (heads % 2 != 0)
      return fail("rope: imaginary_heads", "half of the heads are imaginary",
                  std::to_string(heads) + " heads", "give an even number, or all");
  }
  Phase phase{.heads = all ? 1 : heads};
  const double quarter = rope.reversed ? std::numbers::pi / 2 : -std::numbers::pi / 2;
  for (std::int64_t h = 0; h < phase.heads; ++h) {
    const bool imaginary =
        all || (rope.imaginary_heads == ImaginaryHeads::alternating ? h % 2 == 1 : 2 * h >= heads);
    phase.radians.insert(phase.radians.end(), static_cast<std::size_t>(pairs),
                         imaginary ? quarter : 0.0);
  }
  return phase;
}

// The frequencies of all heads, of which the first ones alone rotate: [heads][axes][pair].
Expected<void> rotate_first_heads(std::int64_t rotated, const Geometry& geometry, Rotate& rotate) {
  const std::int64_t heads = geometry.heads;
  POSENC_CHECK(detail::known("rope: rotated_heads", {{"heads", heads}}));
  POSENC_CHECK(detail::affordable("rope: rotated_heads", {"heads", heads},
                                  {"frequencies", std::ssize(rotate.frequencies.radians)}));
  if (rotated < 1 || rotated > heads)
    return fail("rope: rotated_heads", "must lie within 1 and " + std::to_string(heads) + " heads",
                std::to_string(rotated), "leave it out where all rotate");
  if (geometry.kv_heads > 0 && geometry.kv_heads != heads)
    return fail("rope: rotated_heads", "kv_heads must equal heads, " + std::to_string(heads),
                std::to_string(geometry.kv_heads), "a key rotates as its query does");
  if (rotated == heads) return {};
  const std::vector<double> one = rotate.frequencies.radians;
  rotate.frequencies.heads = heads;
  rotate.frequencies.radians.assign(one.size() * static_cast<std::size_t>(heads), 0.0);
  for (std::int64_t h = 0; h < rotated; ++h)
    std::ranges::copy(one, rotate.frequencies.radians.begin() + h * std::ssize(one));
  return {};
}

// Channels that rotate, before they are made even: the denominator of the exponent.
Expected<std::int64_t> rotated_dim(const Rope& rope, const Geometry& geometry) {
  const std::int64_t head_dim = geometry.head_dim;
  POSENC_CHECK(detail::usable_head_dim("rope", head_dim));
  std::int64_t dim = 0;
  if (rope.rotary_dim) {
    dim = *rope.rotary_dim;
    if (dim % 2 != 0) {
      return fail("rope", "rotary_dim must be even", std::to_string(dim),
                  "every channel needs a partner");
    }
  } else {
    dim = static_cast<std::int64_t>(static_cast<double>(head_dim) * rope.partial_rotary_factor);
    if (rope.partial_rotary_factor == 1 && dim % 2 != 0) {
      return fail("rope", "head_dim must be even", std::to_string(dim),
                  "set rotary_dim or pad the head");
    }
  }
  if (dim < 1 || dim + dim % 2 > head_dim) {
    return fail("rope", "rotary_dim must lie within 2 and head_dim " + std::to_string(head_dim),
                std::to_string(dim + dim % 2), "check partial_rotary_factor and rotary_dim");
  }
  return dim;
}

}  // namespace

template <class Real>
Expected<Scaled<Real>> rope_frequencies(const Rope& rope, const Geometry& geometry) {
  const auto dim = rotated_dim(rope, geometry);
  if (!dim) return std::unexpected(dim.error());
  RopeBase<Real> base{.theta = static_cast<Real>(rope.rope_theta),
                      .dim = *dim,
                      .length = geometry.length,
                      .frequency = {}};
  base.frequency = detail::geometric_frequencies(base.theta, base.dim, base.pairs());
  auto result = std::visit([&](const auto& scaling) { return scaling.scaled(base); }, rope.scaling);
  if (result && rope.reversed)
    for (Real& frequency : result->frequency) frequency = -frequency;
  if (!result || rope.frequency_factors.empty()) return result;

  if (auto ok = detail::one_per_pair("rope: frequency_factors", rope.frequency_factors.size(),
                                     base.pairs());
      !ok)
    return std::unexpected(ok.error());
  // Before or after most scalings is the same. Those that look at the frequency itself
  // (NTK-by-parts, Llama-3) see it undivided, as in the engine that has both.
  for (std::size_t r = 0; r < result->frequency.size(); ++r) {
    result->frequency[r] /= static_cast<Real>(rope.frequency_factors[r]);
  }
  return result;
}

template Expected<Scaled<double>> rope_frequencies(const Rope&, const Geometry&);
template Expected<Scaled<float>> rope_frequencies(const Rope&, const Geometry&);
template Expected<Scaled<long double>> rope_frequencies(const Rope&, const Geometry&);

Expected<Plan> Rope::compiled(const Geometry& geometry) const {
  const auto scaled = rope_frequencies<double>(*this, geometry);
  if (!scaled) return std::unexpected(scaled.error());

  Rotate rotate;
  rotate.slice.pairing = pairing;
  rotate.slice.rotary_dim = 2 * static_cast<std::int64_t>(scaled->frequency.size());
  rotate.slice.first_dim =
      slice == SliceEnd::trailing ? geometry.head_dim - rotate.slice.rotary_dim : 0;
  rotate.frequencies.radians = scaled->frequency;
  rotate.amplitude = scaled->amplitude;
  if (values_stay && !rotate_values)
    return fail("rope", "values stay rotated only where they are rotated", "values_stay alone",
                "set rotate_values too");
  if (rotate_values) rotate.values = values_stay ? Values::rotated : Values::rotated_and_back;
  if (!mrope_section.empty() || !pair_axes.empty()) {
    POSENC_TRY(axis, detail::axis_of_each_pair(*this, rotate.pairs()));
    rotate.frequencies.axes = static_cast<std::int64_t>(mrope_section.size());
    for (const std::int64_t each : pair_axes)
      rotate.frequencies.axes = std::max(rotate.frequencies.axes, each + 1);
    rotate.frequencies.radians =
        detail::spread_over_axes(scaled->frequency, axis, rotate.frequencies.axes);
  }
  if (rotated_heads) POSENC_CHECK(rotate_first_heads(*rotated_heads, geometry, rotate));
  if (imaginary_heads != ImaginaryHeads::none) {
    POSENC_TRY(phase, imaginary_phase(*this, geometry.heads, rotate.pairs()));
    rotate.kind = Plain{.phase = std::move(phase)};
  }
  POSENC_TRY(regions, std::visit([](const auto& map) { return map.regions(); }, distance_map));
  if (regions && rotate.phase())
    return fail("rope", "a distance map must stand without phases beside", "imaginary heads",
                "leave one of the two out");
  if (regions) rotate.kind = std::move(*regions);
  Plan plan;
  plan.rotate = std::move(rotate);
  plan.logits.multiplier = scaled->logit_multiplier;
  plan.valid = scaled->valid;
  return plan;
}

}  // namespace posenc
