// 2-D axial RoPE. The mathematics is in src/schemes/axial.cc.
#pragma once

#include "posenc/axis_scalings.h"
#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

enum class AxisOrder { height_width, width_height };
enum class AxisFrequencies {
  shared,       // both axes have b^(−4r/d)
  alternating,  // height has the even frequencies b^(−4r/d), width the odd ones (Pixtral)
  in_turns,     // both axes have b^(−4r/d), and pair by pair they take turns (Kimi)
};

struct Axial {
  double rope_theta = 100;
  Pairing pairing = Pairing::interleaved;
  AxisOrder order = AxisOrder::width_height;
  AxisFrequencies frequencies = AxisFrequencies::shared;
  bool blocks = false;
  bool normalised = false;
  bool tiled = false;
  std::vector<std::int64_t> axes_dim = {};
  std::vector<double> axis_theta = {};
  std::vector<double> position_scale = {};
  AxisScaling axis_scaling = {};

  static constexpr std::string_view
      name = "axial",
      aliases = "rope2d rope-2d 2d", title = "2-D axial RoPE",
      formula =
          "half of the pairs rotate by x·b^(−4r/d), half by y·b^(−4r/d); with axes_dim, pair k of "
          "axis a by p_a·b_a^(−2k/D_a)",
      paper = "2403.13298";
  static constexpr auto fields() {
    return std::tuple{
        detail::theta_field<Axial>(),
        detail::pairing_field<Axial>(),
        Field{"order", &Axial::order, "axis of the first half of the pairs"},
        Field{"frequencies", &Axial::frequencies,
              "the same for both axes; alternating (Pixtral); in_turns, pair by pair (Kimi)"},
        Field{"blocks", &Axial::blocks, "each axis pairs its own half of the head (Gemma 4)"},
        Field{"normalised", &Axial::normalised,
              "patch centres in [−1, 1] times 2π (DINOv3): positions are 2i + 1 − grid"},
        Field{"tiled", &Axial::tiled,
              "with axes_dim: cos and sin are laid out for the other pairing, so that the channels "
              "of a "
              "pair rotate by two angles (V-JEPA 2; by halves ERNIE-Image)"},
        Field{"axes_dim", &Axial::axes_dim,
              "D_a, channels of each axis (Flux: 16,56,56); none: two halves", Range{.least = 2},
              "channels"},
        Field{"axis_theta", &Axial::axis_theta, "b_a, base of each axis; none: rope_theta",
              above_one},
        Field{"position_scale", &Axial::position_scale,
              "positions times this first, one or one for each axis (SAM 3: window/grid; ComfyUI's "
              "ScaleROPE)",
              positive},
        Field{"axis_scaling", &Axial::axis_scaling,
              "with axes_dim: what is made of axes that are longer than training showed"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim
  bool operator==(const Axial&) const = default;
};

}  // namespace posenc
