// KERPLE: kernelised relative distances (2205.09921), added after the 1/√d, with n = |i − j|:
//   log:    −p·ln(1 + a·n)
//   power:  −a·n^p,  0 < p ≤ 2 (above 2 the kernel is no longer conditionally positive definite)
// p and a are learned for each head; the authors keep both at 0.01 or more. One p and one a serve
// all heads where the lists have one entry. The power kernel with p = 1 is ALiBi with slopes a.
//
// The bias never saturates, so its table covers the length compiled for and no more: asking beyond
// is an error, not the last value again.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> Kerple::compiled(const Geometry& geometry) const {
  const std::int64_t heads = geometry.heads, length = geometry.length;
  if (auto ok = detail::known("kerple", {{"heads", heads}, {"length", length}}); !ok) {
    return std::unexpected(ok.error());
  }
  for (const auto& [field, list] : {std::pair{"p", &p}, std::pair{"a", &a}}) {
    const auto count = static_cast<std::int64_t>(list->size());
    if (count != 1 && count != heads) {
      return fail("kerple",
                  std::string(field) + " must have 1 or " + std::to_string(heads) + " entries",
                  std::to_string(count), "give one for each head, or one for all");
    }
  }
  if (kernel == KerpleKernel::power) {
    const double most = *std::max_element(p.begin(), p.end());
    if (!(most <= 2)) {
      return fail("kerple", "p must be at most 2 in the power kernel", number_text(most),
                  "clamp p, or use the logarithmic kernel");
    }
  }
  const auto curves = static_cast<std::int64_t>(std::max(p.size(), a.size()));
  if (auto ok = detail::affordable("kerple", {"length", length}, {"heads", curves}); !ok) {
    return std::unexpected(ok.error());
  }
  auto rows = detail::every_distance("kerple", length);
  if (!rows) return std::unexpected(rows.error());

  std::vector<double> values(static_cast<std::size_t>(curves * length));
  for (std::int64_t h = 0; h < curves; ++h) {
    const double p_h = p[p.size() == 1 ? 0 : static_cast<std::size_t>(h)];
    const double a_h = a[a.size() == 1 ? 0 : static_cast<std::size_t>(h)];
    double* const value = values.data() + h * length;
    for (std::int64_t n = 1; n < length; ++n) {
      const auto x = static_cast<double>(n);
      value[n] = kernel == KerpleKernel::log ? -p_h * std::log1p(a_h * x) : -a_h * std::pow(x, p_h);
    }
    if (!std::isfinite(value[length - 1])) {
      return fail("kerple", "p and a must give finite biases",
                  "p = " + number_text(p_h) + ", a = " + number_text(a_h),
                  "the learned values are near 1");
    }
  }
  return detail::plan_of_curves(std::move(*rows), std::move(values), curves, length);
}

}  // namespace posenc
