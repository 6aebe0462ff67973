// Fourier position embedding (FoPE). The mathematics is in src/schemes/fope.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct Fope {
  double rope_theta = 10000;
  std::int64_t max_position_embeddings = 4096;
  std::optional<std::int64_t> num_inv_freq = {};
  std::optional<std::int64_t> mixed_pairs = {};
  std::vector<double> cos_coef = {}, sin_coef = {};
  double rest_sine = 1;

  static constexpr std::string_view
      name = "fope",
      aliases = "fourier", title = "Fourier position embedding (FoPE)",
      formula = "pair r: cos = Σ_u cos(p f_u)·C[u][r], sin = Σ_u sin(p f_u)·S[u][r], f_u > 2π/L",
      paper = "2412.17739";
  static constexpr auto fields() {
    return std::tuple{
        detail::theta_field<Fope>(),
        Field{"max_position_embeddings", &Fope::max_position_embeddings,
              "L: frequencies that turn less than once within it are left out", Range{.least = 1},
              "tokens", "length L"},
        Field{"num_inv_freq", &Fope::num_inv_freq,
              "frequencies left in, the fastest; none: those above 2π/L", not_negative},
        Field{"mixed_pairs", &Fope::mixed_pairs,
              "pairs that have a mixture, the first; none: as many as frequencies", not_negative,
              "pairs"},
        Field{"cos_coef", &Fope::cos_coef,
              "C, [kv_head][frequency][pair] or [frequency][pair]; none: each pair its own"},
        Field{"sin_coef", &Fope::sin_coef, "S, the same"},
        Field{"rest_sine", &Fope::rest_sine,
              "sine of the other pairs, whose cosine is 1, at every position"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim
  bool operator==(const Fope&) const = default;
};

}  // namespace posenc
