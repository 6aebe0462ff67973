// The numbers that ggml's rope is called with, as llama.cpp calls it:
//   linear                   freq_scale = 1/s
//   yarn                     freq_scale = 1/s, ext_factor = 1 and the ramp's ends in float; ggml
//                            multiplies by 1 + 0.1 ln s itself, attn_factor is what is left of A
//   ntk, dynamic             another base
//   longrope                 the list for the length as freq_factors, attn_factor = A
//   llama3, proportional,    freq_factors f_r/f′_r, 1e30 for pairs that do not rotate. llama.cpp's
//   clipped                  converter, which knows the first two, makes them in float, which may
//                            differ in the last place or two; factors read from a GGUF file are
//                            taken as they stand
// Others have no number there. ggml always rounds YaRN's ramp to whole pairs.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "src/scalings/scaling.h"
#include "src/schemes/parity.h"

namespace posenc::detail {
namespace {

constexpr std::string_view where = "rope: ggml_float", cure = "use exact angles";

// f_r / f′_r of every pair.
Expected<std::vector<float>> factors(const Rope& rope, const Geometry& geometry) {
  Rope plain = rope;
  plain.scaling = Unscaled{};
  const auto before = rope_frequencies<double>(plain, geometry);
  const auto after = rope_frequencies<double>(rope, geometry);
  if (!before) return std::unexpected(before.error());
  if (!after) return std::unexpected(after.error());
  std::vector<float> result;
  for (std::size_t r = 0; r < after->frequency.size(); ++r) {
    const double f = after->frequency[r];
    result.push_back(f == 0 ? 1e30f : static_cast<float>(before->frequency[r] / f));
  }
  return result;
}

struct Numbers {
  const Rope& rope;
  const Geometry& geometry;
  const Rotate& exact;
  GgmlRope ggml = {};
  double base = rope.rope_theta;

  std::int64_t dim() const { return exact.slice.rotary_dim; }

  Expected<void> take(const Unscaled&) { return {}; }
  Expected<void> take(const Linear& linear) {
    ggml.freq_scale = 1.0f / static_cast<float>(linear.factor);
    return {};
  }
  Expected<void> take(const Yarn& yarn) {
    if (!yarn.truncate || yarn.dynamic) {
      return fail(where, "ggml rounds YaRN's ramp to whole pairs and fixes its factor",
                  yarn.dynamic ? "dynamic" : "truncate false", cure);
    }
    const auto s = factor_or_ratio("yarn", yarn.factor, yarn.max_position_embeddings,
                                   yarn.original_max_position_embeddings);
    if (!s) return std::unexpected(s.error());
    ggml.freq_scale = 1.0f / static_cast<float>(*s);
    ggml.ext_factor = 1;
    const auto trained = static_cast<float>(yarn.original_max_position_embeddings);
    const auto pair_with_turns = [&](double turns) {
      return static_cast<float>(dim()) *
             std::log(trained / (static_cast<float>(turns) * 2 * std::numbers::pi_v<float>)) /
             (2 * std::log(static_cast<float>(base)));
    };
    const float low = pair_with_turns(yarn.beta_fast == 0 ? 32 : yarn.beta_fast);
    const float high = pair_with_turns(yarn.beta_slow == 0 ? 1 : yarn.beta_slow);
    ggml.ramp_low = std::max(0.0f, std::floor(low));
    ggml.ramp_high = std::min(static_cast<float>(dim() - 1), std::ceil(high));
    const double own = 1 + 0.1 * std::log(*s);  // below 1 where s is, as in ggml
    ggml.attn_factor = static_cast<float>(exact.amplitude / own);
    return {};
  }
  // The base that gives the second pair its frequency; with one pair there is no base.
  Expected<void> take_base() {
    const auto scaled = rope_frequencies<double>(rope, geometry);
    if (!scaled) return std::unexpected(scaled.error());
    if (dim() > 2) base = std::pow(scaled->frequency[1], -static_cast<double>(dim()) / 2);
    return {};
  }
  Expected<void> take(const NtkAware&) { return take_base(); }
  Expected<void> take(const DynamicNtk&) { return take_base(); }
  Expected<void> take(const LongRope& longrope) {
    const bool is_long = geometry.length > longrope.original_max_position_embeddings;
    const std::vector<double>& list = is_long ? longrope.long_factor : longrope.short_factor;
    for (const double factor : list) ggml.freq_factors.push_back(static_cast<float>(factor));
    ggml.attn_factor = static_cast<float>(exact.amplitude);
    return {};
  }
  Expected<void> take_factors() {
    auto list = factors(rope, geometry);
    if (!list) return std::unexpected(list.error());
    ggml.freq_factors = std::move(*list);
    return {};
  }
  Expected<void> take(const Llama3&) { return take_factors(); }
  Expected<void> take(const Proportional&) { return take_factors(); }
  Expected<void> take(const Clipped&) { return take_factors(); }
  template <class Other>
  Expected<void> take(const Other&) {
    return fail(where, "ggml's rope has no numbers for this scaling", std::string(Other::name),
                cure);
  }
};

// base^(−2/dim), as ggml steps from pair to pair.
float step(double base, std::int64_t dim) {
  return std::pow(static_cast<float>(base), -2.0f / static_cast<float>(dim));
}

}  // namespace

Expected<GgmlRope> ggml_rope(const Rope& rope, const Geometry& geometry, const Rotate& exact) {
  if (!rope.pair_axes.empty()) {
    return fail(where, "ggml's rope knows axes by sections", "pair_axes", cure);
  }
  if (rope.reversed) return fail(where, "ggml's rope rotates one way alone", "reversed", cure);
  Rope scaled_only = rope;
  scaled_only.frequency_factors.clear();
  Numbers numbers{scaled_only, geometry, exact};
  if (!rope.rotary_dim) {
    const auto turned = static_cast<std::int64_t>(static_cast<double>(geometry.head_dim) *
                                                  rope.partial_rotary_factor);
    if (turned % 2 != 0) {
      return fail(where, "the rotated channels must be even in number", std::to_string(turned),
                  cure);
    }
  }
  auto ok = std::visit([&](const auto& scaling) { return numbers.take(scaling); }, rope.scaling);
  if (!ok) return std::unexpected(ok.error());
  GgmlRope& ggml = numbers.ggml;
  if (!rope.frequency_factors.empty()) {
    if (!ggml.freq_factors.empty()) {
      return fail(where, "ggml's rope takes one list of frequency factors",
                  "one of the scaling and frequency_factors", "give one of them");
    }
    for (const double f : rope.frequency_factors)
      ggml.freq_factors.push_back(static_cast<float>(f));
  }
  ggml.theta_scale = step(numbers.base, exact.slice.rotary_dim);
  return std::move(ggml);
}

Expected<GgmlRope> ggml_rope(const Axial& axial, const Geometry& geometry) {
  if (axial.pairing != Pairing::halves || axial.order != AxisOrder::height_width || axial.blocks ||
      axial.normalised || axial.frequencies != AxisFrequencies::shared || !axial.axes_dim.empty()) {
    return fail("axial: ggml_float",
                "ggml's rope for pictures has halves, the height first and shared frequencies",
                "another axial rotation", cure);
  }
  return GgmlRope{.theta_scale = step(axial.rope_theta, geometry.head_dim / 2), .restart = true};
}

}  // namespace posenc::detail
