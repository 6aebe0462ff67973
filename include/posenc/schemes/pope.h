// Polar position embedding (PoPE). The mathematics is in src/schemes/pope.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct Pope {
  double rope_theta = 10000;
  std::optional<std::int64_t> rotary_dim = {};
  std::vector<double> phases = {};

  static constexpr std::string_view
      name = "pope",
      aliases = "polar", title = "polar position embedding (PoPE)",
      formula =
          "q·k = Σ_c sp(q_c)·sp(k_c)·cos((i−j)·f_c − δ_c), f_c = b^(−c/d), sp(x) = ln(1 + e^x)",
      paper = "2509.10534";
  static constexpr auto fields() {
    return std::tuple{
        detail::theta_field<Pope>(),
        Field{"rotary_dim", &Pope::rotary_dim,
              "d, channels that turn; the others are as they come; none: all", Range{.least = 1},
              "channels", "dim"},
        Field{"phases", &Pope::phases,
              "learned δ of the keys, [kv_head][channel] or [channel], clamped to [−2π, 0]",
              any_number, "rad", "bias learned_bias"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim
  bool operator==(const Pope&) const = default;
};

}  // namespace posenc
