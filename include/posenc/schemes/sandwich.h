// Sandwich: the sinusoids' inner product as a bias. The mathematics is in src/schemes/sandwich.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct Sandwich {
  std::int64_t dim = 128;
  double base = 10000;

  static constexpr std::string_view name = "sandwich", aliases = "",
                                    title = "Sandwich: the sinusoids' inner product as a bias",
                                    formula = "(Σ_{r=1..d/2} cos((i−j)·base^(−2r/d)) − d/2)·H/(8h)",
                                    paper = "2212.10356";
  static constexpr auto fields() {
    return std::tuple{Field{"dim", &Sandwich::dim, "d: channels of the sinusoid",
                            Range{.least = 2, .most = 65536}, "channels", "d"},
                      Field{"base", &Sandwich::base, "base of the sinusoid", above_one}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, length
  bool operator==(const Sandwich&) const = default;
};

}  // namespace posenc
