// XPos: RoPE with a decay by distance. The mathematics is in src/schemes/xpos.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct XPos {
  double rope_theta = 10000;
  Pairing pairing = Pairing::interleaved;
  double scale_base = 512, gamma = 0.4;
  std::optional<double> centre = {};

  static constexpr std::string_view
      name = "xpos",
      aliases = "", title = "xPos: RoPE with a decay by distance",
      formula = "q·ζ_r^((p−c)/s), k·ζ_r^(−(p−c)/s), ζ_r = (2r/d + γ)/(1 + γ)", paper = "2212.10554";
  static constexpr auto fields() {
    return std::tuple{detail::theta_field<XPos>(), detail::pairing_field<XPos>(),
                      Field{"scale_base", &XPos::scale_base,
                            "s: distance over which a pair decays by ζ", positive, "tokens"},
                      Field{"gamma", &XPos::gamma, "how much the fastest pair keeps", positive},
                      Field{"centre", &XPos::centre,
                            "position with growth 1; null: the middle of the length compiled for",
                            any_number, "tokens"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim
  bool operator==(const XPos&) const = default;
};

}  // namespace posenc
