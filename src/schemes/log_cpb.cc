// The log-spaced continuous position bias of Swin v2 (2111.09883), for windows of H × W patches, Δ
// = query − key:
//   c_y = sign(Δy)·log₂(1 + |8 Δy/(n_y − 1)|)/log₂ 8, c_x alike; n the window in training
//     (pretrained_window_size)
//   logit_ij += 16 σ(Σ_k W₂[h][k] · max(0, W₁[k]·(c_y, c_x) + b[k]))
// Two layers are evaluated once for each Δ, when the plan is compiled, so that attention reads a
// table as it does Swin's.
//
// Pitfalls: Swin v2's logits are cosines times a learned scale of each head, clamped: normalise q
// and k outside, multiply q by scale·√d, and this bias stands beside. Of a window of one row or
// column Hugging Face divides by n − 1 as the paper has it only where n > 1; there 0/0 does not
// arise, since Δ is 0.
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "src/schemes/grid.h"

namespace posenc {
namespace {

double spaced(std::int64_t difference, std::int64_t window) {
  if (difference == 0) return 0;
  const double share = 8 * static_cast<double>(difference) / static_cast<double>(window - 1);
  return std::copysign(std::log2(1 + std::abs(share)) / 3, share);
}

}  // namespace

Expected<Plan> LogCpb::compiled(const Geometry& geometry) const {
  constexpr std::string_view where = "log_cpb";
  POSENC_CHECK(detail::known(where, {{"heads", geometry.heads}}));
  POSENC_TRY(grid, detail::grid_of(where, geometry));
  const std::int64_t n_y = pretrained_height > 0 ? pretrained_height : grid.height;
  const std::int64_t n_x = pretrained_width > 0 ? pretrained_width : grid.width;
  if ((n_y == 1 && grid.height > 1) || (n_x == 1 && grid.width > 1))
    return fail(where, "a window in training must be larger than 1 where this one is", "1",
                "check pretrained_height and pretrained_width");
  const std::int64_t hidden = hidden_weight ? hidden_weight.values.shape[0] : 0;
  POSENC_CHECK(detail::shaped("log_cpb: hidden_weight", hidden_weight, {0, 2}));
  POSENC_CHECK(detail::shaped("log_cpb: hidden_bias", hidden_bias, {hidden}));
  POSENC_CHECK(detail::shaped("log_cpb: output_weight", output_weight, {geometry.heads, hidden}));
  const std::int64_t count = grid.differences();
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  BiasTable bias{.rows = {.first = -grid.last(), .row = std::move(rows), .saturates = false},
                 .row_count = count,
                 .values = {},
                 .bidirectional = true};
  Plan plan;
  if (hidden_weight && hidden_bias && output_weight) {
    POSENC_CHECK(detail::affordable(where, {"rows", count}, {"heads", geometry.heads}));
    const Tensor &w1 = hidden_weight.values, &b = hidden_bias.values, &w2 = output_weight.values;
    std::vector<double> values(static_cast<std::size_t>(geometry.heads * count));
    std::vector<double> unit(static_cast<std::size_t>(hidden));
    for (std::int64_t row = 0; row < count; ++row) {
      const auto [dy, dx] = grid.apart(row - grid.last());
      const double c_y = spaced(dy, n_y), c_x = spaced(dx, n_x);
      for (std::int64_t k = 0; k < hidden; ++k)
        unit[static_cast<std::size_t>(k)] =
            std::max(0.0, w1.get(w1.offset(k, 0)) * c_y + w1.get(w1.offset(k, 1)) * c_x +
                              b.get(b.offset(k)));
      for (std::int64_t h = 0; h < geometry.heads; ++h) {
        double sum = 0;
        for (std::int64_t k = 0; k < hidden; ++k)
          sum += w2.get(w2.offset(h, k)) * unit[static_cast<std::size_t>(k)];
        values[static_cast<std::size_t>(h * count + row)] = 16 / (1 + std::exp(-sum));
      }
    }
    bias.values = Table::own(std::move(values), geometry.heads, count);
  }
  plan.bias = std::move(bias);
  return plan;
}

}  // namespace posenc
