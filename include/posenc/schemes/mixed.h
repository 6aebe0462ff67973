// 2-D mixed RoPE, learned per head. The mathematics is in src/schemes/mixed.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct Mixed {
  double rope_theta = 10;
  Pairing pairing = Pairing::interleaved;
  std::vector<double> angles = {};
  std::vector<double> frequencies = {};

  static constexpr std::string_view
      name = "mixed",
      aliases = "rope-mixed", title = "2-D mixed RoPE, learned per head",
      formula = "angle = f^x_r·x + f^y_r·y; starts at b^(−4r/d)·(cos φ_h, sin φ_h)",
      paper = "2403.13298";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rope_theta", &Mixed::rope_theta, "base of the starting frequencies", above_one, "",
              "theta base"},
        detail::pairing_field<Mixed>(),
        Field{"angles", &Mixed::angles, "starting direction φ of each head; none: spread evenly",
              any_number, "rad"},
        Field{"frequencies", &Mixed::frequencies, "learned: [head][x, y][pair]", any_number,
              "rad/patch"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim, heads
  bool operator==(const Mixed&) const = default;
};

}  // namespace posenc
