// KERPLE's parameters by the chain rule, with n = |i − j| and G_n the gradient by the bias at n:
//   log:    ∂p = −Σ G_n ln(1 + a·n)       ∂a = −Σ G_n p·n/(1 + a·n)
//   power:  ∂p = −Σ G_n a·n^p ln n        ∂a = −Σ G_n n^p
// At n = 0 the bias is 0 whatever they are. A parameter for all heads has the sum over them.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/schemes/common.h"

namespace posenc {

Expected<KerpleGradients> kerple_gradients(const Kerple& scheme, const Tensor& bias_gradient) {
  const std::size_t curves = std::max(scheme.p.size(), scheme.a.size());
  for (const auto* list : {&scheme.p, &scheme.a}) {
    if (list->size() == curves || list->size() == 1) continue;
    return fail("kerple_gradients", "p and a must have one entry each, or one for each head",
                std::to_string(scheme.p.size()) + " and " + std::to_string(scheme.a.size()),
                "pass the scheme that was compiled");
  }
  const auto rows = static_cast<std::int64_t>(curves);
  if (!bias_gradient || bias_gradient.rank > 2 || bias_gradient.with_rank(2).shape[0] != rows) {
    return fail("kerple_gradients",
                "the bias gradient must be [" + std::to_string(rows) + ", distances]",
                shape_text(bias_gradient), "pass the one by the compiled plan's bias table");
  }
  const Tensor gradient = bias_gradient.with_rank(2);
  KerpleGradients result{.p = std::vector<double>(scheme.p.size()),
                         .a = std::vector<double>(scheme.a.size())};
  for (std::size_t h = 0; h < curves; ++h) {
    const std::size_t p_at = scheme.p.size() == 1 ? 0 : h, a_at = scheme.a.size() == 1 ? 0 : h;
    const double p = scheme.p[p_at], a = scheme.a[a_at];
    for (std::int64_t n = 1; n < gradient.shape[1]; ++n) {
      const double g = gradient.get(gradient.offset(static_cast<std::int64_t>(h), n));
      const auto x = static_cast<double>(n);
      if (scheme.kernel == KerpleKernel::log) {
        result.p[p_at] -= g * std::log1p(a * x);
        result.a[a_at] -= g * p * x / (1 + a * x);
      } else {
        result.p[p_at] -= g * a * std::pow(x, p) * std::log(x);
        result.a[a_at] -= g * std::pow(x, p);
      }
    }
  }
  return result;
}

}  // namespace posenc
