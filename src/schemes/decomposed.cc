// Decomposed relative vectors (MViT v2, 2112.01526; ViTDet, 2203.16527; SAM), of H × W patches, Δ = query − key:
//   logit_ij = q_i·k_j/√d + q_i·R^h[Δy + H − 1] + q_i·R^w[Δx + W − 1]
// The two vectors meet the query as it came, not divided by √d. A plan's vectors by distance stand before the scale, hence one
// table of the rows √d (R^h + R^w), of all Δ.
//
// Pitfalls: SAM resamples tables of another size to 2·max(H, W) − 1 rows first (linear); give what it makes of them. MViT adds
// a third term for frames, and scales Δ where keys are pooled: not here.
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "src/schemes/grid.h"

namespace posenc {

Expected<Plan> Decomposed::compiled(const Geometry& geometry) const {
  constexpr std::string_view where = "decomposed";
  POSENC_CHECK(detail::usable_head_dim(where, geometry.head_dim));
  POSENC_TRY(grid, detail::grid_of(where, geometry));
  const std::int64_t dim = geometry.head_dim;
  POSENC_CHECK(detail::shaped("decomposed: row_vectors", row_vectors, {2 * grid.height - 1, dim}));
  POSENC_CHECK(
      detail::shaped("decomposed: column_vectors", column_vectors, {2 * grid.width - 1, dim}));
  const std::int64_t count = grid.differences();
  std::vector<std::int32_t> row(static_cast<std::size_t>(count));
  std::iota(row.begin(), row.end(), 0);
  Relative relative{.rows = {.first = -grid.last(), .row = std::move(row), .saturates = false},
                    .row_count = count};
  if (row_vectors && column_vectors) {
    POSENC_CHECK(detail::affordable(where, {"differences", count}, {"head_dim", dim}));
    const double root = std::sqrt(static_cast<double>(dim));
    std::vector<double> vectors;
    vectors.reserve(static_cast<std::size_t>(count * dim));
    for (std::int64_t r = 0; r < count; ++r) {
      const auto [dy, dx] = grid.apart(r - grid.last());
      for (std::int64_t c = 0; c < dim; ++c)
        vectors.push_back(
            root *
            (row_vectors.values.get(row_vectors.values.offset(dy + grid.height - 1, c)) +
             column_vectors.values.get(column_vectors.values.offset(dx + grid.width - 1, c))));
    }
    relative.key = Table::own(std::move(vectors), count, dim);
  }
  Plan plan;
  plan.relative = std::move(relative);
  return plan;
}

}  // namespace posenc
