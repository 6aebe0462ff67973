// Sinusoidal vectors. The mathematics is in src/schemes/sinusoidal.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

enum class WaveSpacing {
  width,  // base^(−2r/d): the last wavelength is 2π·base^((d−2)/d)
  ends,   // base^(−r/(d/2−1)): the last wavelength is 2π·base
};
enum class OddWidth {
  zero,  // ⌊d/2⌋ pairs, the last channel stays zero
  sine,  // one sine more than cosines
};

struct Sinusoidal {
  WaveLayout layout = WaveLayout::interleaved;
  WaveSpacing spacing = WaveSpacing::width;
  OddWidth odd = OddWidth::sine;
  double base = 10000;
  std::int64_t row_offset = 0;
  std::int64_t padding_idx = -1;
  bool scale_embedding = false;
  bool cosine_first = false;
  std::vector<std::int64_t> axes_dim = {};
  std::vector<std::int64_t> axis_order = {};
  std::vector<double> axis_base = {};
  std::vector<double> position_scale = {};
  bool divide_vectors = false;

  static constexpr std::string_view
      name = "sinusoidal",
      aliases = "sinusoid sincos timesteps", title = "sinusoidal vectors",
      formula =
          "sin(p·ω_r), cos(p·ω_r), interleaved or concatenated; ω_r = base^(−2r/d), or "
          "base^(−r/(d/2−1)) with spacing ends; with axes_dim the same of p_a in D_a channels",
      paper = "1706.03762";
  static constexpr auto fields() {
    return std::tuple{
        Field{"layout", &Sinusoidal::layout, "sin,cos,sin,cos... or all sines, then all cosines"},
        Field{"spacing", &Sinusoidal::spacing,
              "width: base^(−2r/d) as printed; ends: base^(−r/(d/2−1)) as tensor2tensor does"},
        Field{"odd", &Sinusoidal::odd, "the odd channel of an odd width: zero, or a sine alone"},
        Field{"base", &Sinusoidal::base, "b: longest wavelength over 2π, nearly", above_one, "",
              "max_timescale rope_theta theta"},
        Field{"row_offset", &Sinusoidal::row_offset, "position p has the vector of p + offset",
              any_number, "rows"},
        Field{"padding_idx", &Sinusoidal::padding_idx, "a row of zeros (fairseq); -1: none",
              row_index, "row"},
        Field{"scale_embedding", &Sinusoidal::scale_embedding,
              "token embeddings × √d before the sum"},
        Field{"cosine_first", &Sinusoidal::cosine_first,
              "a pair's cosine, or all cosines, before the sine (MusicGen, time steps)", any_number,
              "", "flip_sin_to_cos"},
        Field{"axes_dim", &Sinusoidal::axes_dim,
              "D_a, channels of each axis side by side (a picture: d/2, d/2); none: one axis",
              Range{.least = 2}, "channels"},
        Field{"axis_order", &Sinusoidal::axis_order,
              "the axis whose channels stand first, and so on (MAE: 1, 0); none: 0, 1, …",
              Range{.least = 0, .most = 7}},
        Field{"axis_base", &Sinusoidal::axis_base, "b_a, base of each axis; none: base", above_one},
        Field{"position_scale", &Sinusoidal::position_scale,
              "multiplies positions, a number for each axis or one for all (DETR: 2π, of shares "
              "of the picture); none: 1",
              any_number, "", "scale"},
        Field{"divide_vectors", &Sinusoidal::divide_vectors, "the vectors / √d (Canary)"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs width
  bool operator==(const Sinusoidal&) const = default;
};

}  // namespace posenc
