// Scalings of pictures and videos: what axial RoPE makes of axes that are longer than training
// showed, each axis by a factor of its own. A scaling is a struct here, a word in the list at the
// end, and one function in src/schemes/axis_scalings.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "posenc/error.h"
#include "posenc/fields.h"

namespace [[gnu::visibility("default")]] posenc {

// The pairs of one axis.
struct AxisBase {
  std::size_t axis = 0, axes = 1;      // which of how many
  double theta = 0;                    // base of its geometric series, > 1
  std::int64_t dim = 0;                // D, its channels: frequency k = theta^(−2k/D)
  std::vector<double> frequency = {};  // [D/2], unscaled
};

// What a scaling makes of them.
struct ScaledAxis {
  std::vector<double> frequency = {};  // [D/2], radians per position
  double magnitude = 1;                // multiplies cos and sin of these pairs
};

namespace detail {
inline constexpr Range from_zero_to_one{.least = 0, .most = 1};
template <class S>
constexpr auto axis_factor_field() {
  return Field{"axis_factor", &S::axis_factor,
               "s of each axis: wanted positions over trained ones; 1: it stays", at_least_one,
               "×"};
}
template <class S>
constexpr auto axis_length_field() {
  return Field{"axis_length", &S::axis_length,
               "L of each axis: positions that training showed; 0: the axis is left alone",
               not_negative, "positions"};
}
template <class S>
constexpr auto timestep_field() {
  return Field{"timestep", &S::timestep,
               "t of the denoising, from 1 (noise) to 0, by whose λ·t^e power the scaling counts "
               "(DyPE); null: the whole scaling at every step",
               from_zero_to_one};
}
template <class S>
constexpr auto step_scale_field() {
  return Field{"step_scale", &S::step_scale, "λ", not_negative, "", "dype_scale"};
}
template <class S>
constexpr auto step_exponent_field() {
  return Field{"step_exponent", &S::step_exponent, "e", not_negative, "", "dype_exponent"};
}
}  // namespace detail

// Every axis as it was trained.
struct NoAxisScaling {
  static constexpr std::string_view name = "none", title = "no scaling of axes";
  static constexpr auto fields() { return std::tuple{}; }
  Expected<ScaledAxis> scaled(AxisBase base) const;
  bool operator==(const NoAxisScaling&) const = default;
};

// Position interpolation: f/s.
struct AxisLinear {
  std::vector<double> axis_factor = {};

  static constexpr std::string_view name = "linear", title = "position interpolation by axis";
  static constexpr auto fields() { return std::tuple{detail::axis_factor_field<AxisLinear>()}; }
  Expected<ScaledAxis> scaled(AxisBase base) const;
  bool operator==(const AxisLinear&) const = default;
};

// NTK-aware: the base times s^(D/(D−2)), to the power λ·t^e by step (Dy-NTK of DyPE, 2510.20766).
struct AxisNtk {
  std::vector<double> axis_factor = {};
  std::optional<double> timestep = {};
  double step_scale = 2, step_exponent = 2;

  static constexpr std::string_view name = "ntk", title = "NTK-aware scaling by axis";
  static constexpr auto fields() {
    return std::tuple{detail::axis_factor_field<AxisNtk>(), detail::timestep_field<AxisNtk>(),
                      detail::step_scale_field<AxisNtk>(), detail::step_exponent_field<AxisNtk>()};
  }
  Expected<ScaledAxis> scaled(const AxisBase& base) const;
  bool operator==(const AxisNtk&) const = default;
};

// DyPE's YaRN (2510.20766): pairs of less than a turn in L are interpolated, those around a turn
// have NTK's frequencies, those of 16 turns and more stay, with ramps from 0.75 to 1.25 turns and
// from 2 to 16, whose ends are taken to the power λ·t^e by step. cos and sin × 1 + 0.1·ln s/√s.
struct AxisYarn {
  std::vector<double> axis_factor = {}, axis_length = {};
  std::optional<double> timestep = {};
  double step_scale = 2, step_exponent = 2;
  std::vector<double> axis_magnitude = {};

  static constexpr std::string_view name = "yarn", title = "YaRN by axis";
  static constexpr auto fields() {
    return std::tuple{detail::axis_factor_field<AxisYarn>(),
                      detail::axis_length_field<AxisYarn>(),
                      detail::timestep_field<AxisYarn>(),
                      detail::step_scale_field<AxisYarn>(),
                      detail::step_exponent_field<AxisYarn>(),
                      Field{"axis_magnitude", &AxisYarn::axis_magnitude,
                            "on cos and sin of each axis, instead of 1 + 0.1·ln s/√s", positive}};
  }
  Expected<ScaledAxis> scaled(AxisBase base) const;
  bool operator==(const AxisYarn&) const = default;
};

// The same with two factors: an axis is interpolated by its own, and NTK's frequencies are those
// of the largest, so that shapes follow each side of the picture and details are alike on all.
// cos and sin × 1 + 0.1·ln s·min(1, t/start)^e of the largest s. ComfyUI-DyPE's vision_yarn.
struct VisionYarn {
  std::vector<double> axis_factor = {}, axis_length = {};
  double timestep = 1, step_scale = 2, step_exponent = 2;
  double start = 1;

  static constexpr std::string_view name = "vision_yarn", title = "vision YaRN by axis";
  static constexpr auto fields() {
    return std::tuple{detail::axis_factor_field<VisionYarn>(),
                      detail::axis_length_field<VisionYarn>(),
                      detail::timestep_field<VisionYarn>(),
                      detail::step_scale_field<VisionYarn>(),
                      detail::step_exponent_field<VisionYarn>(),
                      Field{"start", &VisionYarn::start, "t above which the magnitude is whole",
                            Range{.least = 0.001, .most = 1}, "", "dype_start_sigma"}};
  }
  Expected<ScaledAxis> scaled(AxisBase base) const;
  bool operator==(const VisionYarn&) const = default;
};

// RIFLEx (2502.15894): the pair of one axis by whose period a video would begin anew turns 0.9
// times in the wanted length, and the others stay.
struct Riflex {
  std::int64_t pair = 0, length = 0;
  std::int64_t axis = 0;

  static constexpr std::string_view name = "riflex", title = "RIFLEx";
  static constexpr auto fields() {
    return std::tuple{
        Field{"riflex_pair", &Riflex::pair,
              "k, counted from 1 (HunyuanVideo 4, Wan 6, CogVideoX 2)",
              Range{.least = 0, .most = 1 << 16}, "", "riflex_freq_index"},
        Field{"riflex_length", &Riflex::length,
              "positions of the axis that are wanted (latent frames)",
              Range{.least = 0, .most = 1e12}, "positions", "L_test"},
        Field{"riflex_axis", &Riflex::axis, "the axis; 0: time", Range{.least = 0, .most = 7}}};
  }
  Expected<ScaledAxis> scaled(AxisBase base) const;
  bool operator==(const Riflex&) const = default;
};

// The list of scalings by axis.
using AxisScaling = std::variant<NoAxisScaling, AxisLinear, AxisNtk, AxisYarn, VisionYarn, Riflex>;

}  // namespace posenc
