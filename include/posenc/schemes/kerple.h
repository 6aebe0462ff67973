// KERPLE: kernelised distances. The mathematics is in src/schemes/kerple.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

enum class KerpleKernel { log, power };

struct Kerple {
  KerpleKernel kernel = KerpleKernel::log;
  std::vector<double> p = {1}, a = {1};

  static constexpr std::string_view name = "kerple", aliases = "",
                                    title = "KERPLE: kernelised distances",
                                    formula = "log: −p·ln(1 + a·|i−j|);  power: −a·|i−j|^p",
                                    paper = "2205.09921";
  static constexpr auto fields() {
    return std::tuple{
        Field{"kernel", &Kerple::kernel, "log or power", any_number, "", "kind"},
        Field{"p", &Kerple::p, "one for each head, or one for all (power: at most 2)", positive},
        Field{"a", &Kerple::a, "one for each head, or one for all", positive}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, length
  bool operator==(const Kerple&) const = default;
};

// The gradients by KERPLE's parameters, [head] or one for all as the scheme has them, given the one
// by its bias table that attend_backward gives: [head or 1][distance], one row where both lists
// have one entry. Errors: another number of rows.
struct KerpleGradients {
  std::vector<double> p = {}, a = {};
};
Expected<KerpleGradients> kerple_gradients(const Kerple& scheme, const Tensor& bias_gradient);

}  // namespace posenc
