// Log-spaced continuous bias (Swin v2). The mathematics is in src/schemes/log_cpb.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct LogCpb {
  std::int64_t pretrained_height = 0, pretrained_width = 0;
  // Borrowed: two layers, [hidden][2] of (y, x), [hidden] and [heads][hidden].
  Table hidden_weight = {}, hidden_bias = {}, output_weight = {};

  static constexpr std::string_view
      name = "log_cpb",
      aliases = "swin_v2 swinv2", title = "log-spaced continuous bias (Swin v2)",
      formula = "16·σ(W₂ relu(W₁ c + b)), c = sign(Δ)·log₂(1 + |8Δ/(n−1)|)/3 of rows and columns",
      paper = "2111.09883";
  static constexpr auto fields() {
    return std::tuple{
        Field{"pretrained_height", &LogCpb::pretrained_height,
              "n of rows, those of the window in training; 0: as many as here",
              Range{.least = 0, .most = 4096}, "patches"},
        Field{"pretrained_width", &LogCpb::pretrained_width, "n of columns; 0: as many as here",
              Range{.least = 0, .most = 4096}, "patches", "pretrained_window_size"}};
  }
  static constexpr auto tables() {
    return std::tuple{
        TableField{"hidden_weight", &LogCpb::hidden_weight, "W₁: [hidden][2], of rows and columns"},
        TableField{"hidden_bias", &LogCpb::hidden_bias, "b: [hidden]"},
        TableField{"output_weight", &LogCpb::output_weight, "W₂: [heads][hidden]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, the grid
  bool operator==(const LogCpb&) const = default;
};

}  // namespace posenc
