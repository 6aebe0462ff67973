// Attention with linear biases (ALiBi). The mathematics is in src/schemes/alibi.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

enum class SlopeRounding { exact, bfloat16 };

struct Alibi {
  double alibi_bias_max = 8;
  bool symmetric = false;
  SlopeRounding rounding = SlopeRounding::exact;
  bool before_scale = false;

  static constexpr std::string_view
      name = "alibi",
      aliases = "", title = "attention with linear biases (ALiBi)",
      formula =
          "−m_h·(i−j), m_h = 2^(−max·h/H), max 8 (alibi_bias_max); H not a power of two: every "
          "other slope of 2P follows",
      paper = "2108.12409";
  static constexpr auto fields() {
    return std::tuple{
        Field{"alibi_bias_max", &Alibi::alibi_bias_max, "the last slope is 2^−max", positive, "",
              "max_bias max_alibi_bias bias_max"},
        Field{"symmetric", &Alibi::symmetric, "−m·|i−j|, for encoders", any_number, "",
              "bidirectional"},
        Field{"rounding", &Alibi::rounding, "slopes rounded as Falcon keeps them"},
        Field{"before_scale", &Alibi::before_scale, "added before 1/√d instead of after (Falcon)"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads
  bool operator==(const Alibi&) const = default;
};

// ALiBi's slopes, [heads], positive. math: 2108.12409.
Expected<std::vector<double>> alibi_slopes(std::int64_t heads, double bias_max = 8,
                                           SlopeRounding rounding = SlopeRounding::exact);

}  // namespace posenc
