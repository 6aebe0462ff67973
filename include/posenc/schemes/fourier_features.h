// Random Fourier features. The mathematics is in src/schemes/fourier_features.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct FourierFeatures {
  std::int64_t axes = 2;
  WaveLayout layout = WaveLayout::concatenated;
  bool cosine_first = false;
  double sigma = 1;
  Table frequencies = {};  // [axes][width/2], borrowed

  static constexpr std::string_view
      name = "fourier_features",
      aliases = "gaussian_fourier random_fourier", title = "random Fourier features",
      formula = "sin, cos of 2π·Σ_a p_a·B[a][r], p real, B drawn at random and kept",
      paper = "2006.10739";
  static constexpr auto fields() {
    return std::tuple{
        Field{"axes", &FourierFeatures::axes, "coordinates of a point",
              Range{.least = 1, .most = 8}},
        Field{"layout", &FourierFeatures::layout,
              "sin,cos,sin,cos... or all sines, then all cosines"},
        Field{"cosine_first", &FourierFeatures::cosine_first, "cosines before sines"},
        Field{"sigma", &FourierFeatures::sigma,
              "deviation of the B that is drawn where none is given", positive, "", "scale"}};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"frequencies", &FourierFeatures::frequencies,
                                 "B: [axes][width/2], turns for one unit of a coordinate"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs width
  bool operator==(const FourierFeatures&) const = default;
};

}  // namespace posenc
