// No positional encoding. The mathematics is in src/schemes/nope.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct NoPe {
  static constexpr std::string_view name = "nope", aliases = "none",
                                    title = "no positional encoding",
                                    formula = "nothing: only the causal mask tells order",
                                    paper = "2305.19466";
  static constexpr auto fields() { return std::tuple{}; }
  Expected<Plan> compiled(const Geometry& geometry) const;
  bool operator==(const NoPe&) const = default;
};

}  // namespace posenc
