// Rotations as other engines compute them. Hugging Face's frequencies are rope_frequencies<float>:
// every scaling is a template on the number type and does its operations in Hugging Face's order.
// The remaining difference is torch's vectorised pow, which is not correctly rounded: of some
// 19,000 published float32 frequencies about one in a hundred is one unit in the last place away.
// ggml's numbers are in parity_ggml.cc.
#include "src/schemes/parity.h"

#include <string>
#include <variant>

#include "src/scalings/scaling.h"

namespace posenc::detail {
namespace {

constexpr std::string_view exact_instead = "use exact angles";

// Each pair's frequency, on the axis it has.
void replace_frequencies(Rotate& rotate, const std::vector<float>& frequency) {
  for (std::size_t i = 0; i < rotate.frequencies.radians.size(); ++i) {
    double& own = rotate.frequencies.radians[i];
    if (own != 0) own = frequency[i % frequency.size()];
  }
}

Expected<void> hf_float(const Rope& rope, const Geometry& geometry, Rotate& rotate) {
  const auto scaled = rope_frequencies<float>(rope, geometry);
  if (!scaled) return std::unexpected(scaled.error());
  replace_frequencies(rotate, scaled->frequency);
  rotate.amplitude = scaled->amplitude;
  rotate.kind = HfFloat{};
  return {};
}

Expected<void> hf_float(const Axial& axial, const Geometry& geometry, Rotate& rotate) {
  if (axial.normalised || !axial.axes_dim.empty()) {
    return fail("axial: hf_float", "no code of Hugging Face forms these angles in float",
                "normalised or axes_dim", exact_instead);
  }
  const auto series = geometric_frequencies(static_cast<float>(axial.rope_theta), geometry.head_dim,
                                            geometry.head_dim / 2);
  const bool alternates = axial.frequencies == AxisFrequencies::alternating,
             in_turns = axial.frequencies == AxisFrequencies::in_turns;
  const std::size_t pairs = series.size();
  std::vector<float> frequency(2 * pairs);
  for (std::size_t i = 0; i < frequency.size(); ++i) {
    const std::size_t odd = alternates && i >= pairs ? 1 : 0;  // the second axis
    const std::size_t r = in_turns ? i % pairs / 2 : i % (pairs / 2);
    frequency[i] = series[2 * r + odd];
  }
  replace_frequencies(rotate, frequency);
  rotate.kind = HfFloat{};
  return {};
}

Expected<void> ggml_float(const Rope& rope, const Geometry& geometry, Rotate& rotate) {
  auto ggml = ggml_rope(rope, geometry, rotate);
  if (!ggml) return std::unexpected(ggml.error());
  // The pairs of an interleaved M-RoPE in no section take ggml's fourth stream, 0 for text.
  if (rope.mrope_interleaved && !rope.mrope_section.empty()) {
    const auto axes = static_cast<std::size_t>(rotate.frequencies.axes);
    const auto pairs = static_cast<std::size_t>(rotate.pairs());
    for (std::size_t i = 0; i < rotate.frequencies.radians.size(); ++i) {
      const std::size_t r = i % pairs;
      const std::int64_t section = rope.mrope_section[r % axes];
      if (static_cast<std::int64_t>(r) >= rotate.frequencies.axes * section)
        rotate.frequencies.radians[i] = 0;
    }
  }
  rotate.kind = std::move(*ggml);
  return {};
}

Expected<void> ggml_float(const Axial& axial, const Geometry& geometry, Rotate& rotate) {
  auto ggml = ggml_rope(axial, geometry);
  if (!ggml) return std::unexpected(ggml.error());
  rotate.kind = std::move(*ggml);
  return {};
}

}  // namespace

Expected<void> take_angles(const Scheme& scheme, const Geometry& geometry, Angles angles,
                           Rotate& rotate) {
  const bool hf = angles == Angles::hf_float;
  const auto* const rope = std::get_if<Rope>(&scheme);
  const auto* const axial = std::get_if<Axial>(&scheme);
  const auto* const plain = std::get_if<Plain>(&rotate.kind);
  if (rope == nullptr && axial == nullptr)
    return fail(std::string(info(scheme).name) + (hf ? ": hf_float" : ": ggml_float"),
                hf ? "no code of Hugging Face rotates so" : "ggml's rope does not rotate so", "",
                exact_instead);
  if (plain == nullptr || plain->phase)
    return fail(
        "plan: angles " + std::string(name(angles)), "an engine's arithmetic is of plain rotations",
        plain != nullptr ? "phases"
                         : std::visit([](const auto& kind) { return kind.name; }, rotate.kind),
        exact_instead);
  if (rope != nullptr)
    return hf ? hf_float(*rope, geometry, rotate) : ggml_float(*rope, geometry, rotate);
  return hf ? hf_float(*axial, geometry, rotate) : ggml_float(*axial, geometry, rotate);
}

}  // namespace posenc::detail
