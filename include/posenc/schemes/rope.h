// Rotary position embedding (RoPE). The mathematics is in src/schemes/rope.cc.
#pragma once

#include "posenc/distance_maps.h"
#include "posenc/scalings.h"
#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

enum class SliceEnd { leading, trailing };

// Which query heads are RoPE++'s imaginary ones (2512.07525), of a phase of −π/2; alternating:
// every second, beside the real head of the same query.
enum class ImaginaryHeads { none, alternating, second_half, all };

struct Rope {
  double rope_theta = 10000;
  Pairing pairing = Pairing::halves;
  double partial_rotary_factor = 1;
  std::optional<std::int64_t> rotary_dim = {};
  SliceEnd slice = SliceEnd::leading;
  std::vector<std::int64_t> mrope_section = {};
  bool mrope_interleaved = false;
  std::vector<std::int64_t> pair_axes = {};
  std::vector<double> frequency_factors = {};
  bool rotate_values = false;
  bool values_stay = false;
  std::optional<std::int64_t> rotated_heads = {};
  bool reversed = false;
  ImaginaryHeads imaginary_heads = ImaginaryHeads::none;
  DistanceMap distance_map = {};
  Scaling scaling = {};

  static constexpr std::string_view
      name = "rope",
      aliases = "rotary", title = "rotary position embedding (RoPE)",
      formula = "pair r rotates by p·f_r, f_r = b^(−2r/d); the logit depends on i−j alone",
      paper = "2104.09864";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rope_theta", &Rope::rope_theta, "base of the frequencies", above_one, "",
              "theta base rotary_emb_base freq_base"},
        detail::pairing_field<Rope>(),
        Field{"partial_rotary_factor", &Rope::partial_rotary_factor,
              "fraction of the head that is rotated", fraction, "", "rotary_pct"},
        Field{"rotary_dim", &Rope::rotary_dim, "channels rotated, instead of the fraction",
              Range{.least = 2}, "channels"},
        Field{"slice", &Rope::slice, "which end of the head is rotated"},
        Field{"mrope_section", &Rope::mrope_section, "pairs for time, height and width",
              not_negative, "pairs"},
        Field{"mrope_interleaved", &Rope::mrope_interleaved,
              "axes alternate pair by pair instead of section by section"},
        Field{"pair_axes", &Rope::pair_axes, "axis of each pair, instead of sections",
              not_negative},
        Field{"frequency_factors", &Rope::frequency_factors,
              "divisor of each pair beside any scaling (GGUF rope_freqs)", positive, "",
              "freq_factors rope_freqs"},
        Field{"rotate_values", &Rope::rotate_values, "values rotated, and the output rotated back"},
        Field{"values_stay", &Rope::values_stay,
              "with rotate_values: the output is not rotated back (RoFormer's rotary_value, CLVP)"},
        Field{"rotated_heads", &Rope::rotated_heads,
              "heads that rotate, the first ones (Qwen2.5-Omni's writer of sound: 1); none: all",
              at_least_one, "heads"},
        Field{"reversed", &Rope::reversed, "every pair rotates the other way (nanochat)"},
        Field{"imaginary_heads", &Rope::imaginary_heads,
              "query heads that have a phase of −π/2 (RoPE++)", any_number, "", "imaginary"},
        Field{"distance_map", &Rope::distance_map, "what far distances are taken for"}};
  }
  // Needs head_dim; where some heads are imaginary or do not rotate, heads.
  Expected<Plan> compiled(const Geometry& geometry) const;
  bool operator==(const Rope&) const = default;
};

// Frequencies of RoPE alone: in double, in float as Hugging Face computes them, or in long double,
// to measure the others against.
template <class Real>
Expected<Scaled<Real>> rope_frequencies(const Rope& rope, const Geometry& geometry);

}  // namespace posenc
