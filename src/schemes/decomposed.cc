// Decomposed relative vectors (MViT v2, 2112.01526; ViTDet, 2203.16527; SAM), of H × W patches, Δ =
// query − key:
//   logit_ij = q_i·k_j/√d + q_i·R^h[Δy + H − 1] + q_i·R^w[Δx + W − 1]
// A distance of grid_positions() names both rows, in a list each. The two vectors meet the query as
// it came, not divided by √d. A plan's vectors by distance stand before the scale, hence one table
// of the rows √d R^h, then √d R^w.
//
// Pitfalls: SAM resamples tables of another size to 2·max(H, W) − 1 rows first (linear); give what
// it makes of them. MViT adds a third term for frames, and scales Δ where keys are pooled: not
// here.
#include <cmath>
#include <utility>
#include <vector>

#include "src/schemes/grid.h"

namespace posenc {

Expected<Plan> Decomposed::compiled(const Geometry& geometry) const {
  constexpr std::string_view where = "decomposed";
  POSENC_CHECK(detail::usable_head_dim(where, geometry.head_dim));
  POSENC_TRY(grid, detail::grid_of(where, geometry));
  const std::int64_t dim = geometry.head_dim;
  const std::int64_t of_rows = 2 * grid.height - 1, of_columns = 2 * grid.width - 1;
  POSENC_CHECK(detail::shaped("decomposed: row_vectors", row_vectors, {of_rows, dim}));
  POSENC_CHECK(detail::shaped("decomposed: column_vectors", column_vectors, {of_columns, dim}));
  const auto list = [&grid](const auto& row) {
    return DistanceRows{
        .first = -grid.last(), .row = detail::rows_of(grid, row), .saturates = false};
  };
  Relative relative{
      .rows = list([&](std::int64_t dy, std::int64_t) { return dy + grid.height - 1; }),
      .further_rows = {list(
          [&](std::int64_t, std::int64_t dx) { return of_rows + dx + grid.width - 1; })},
      .row_count = of_rows + of_columns};
  if (row_vectors && column_vectors) {
    POSENC_CHECK(detail::affordable(where, {"vectors", relative.row_count}, {"head_dim", dim}));
    const double root = std::sqrt(static_cast<double>(dim));
    std::vector<double> vectors;
    vectors.reserve(static_cast<std::size_t>(relative.row_count * dim));
    for (const Table* table : {&row_vectors, &column_vectors})
      for (std::int64_t row = 0; row < table->values.shape[0]; ++row)
        for (std::int64_t c = 0; c < dim; ++c)
          vectors.push_back(root * table->values.get(table->values.offset(row, c)));
    relative.key = Table::own(std::move(vectors), relative.row_count, dim);
  }
  Plan plan;
  plan.relative = std::move(relative);
  return plan;
}

}  // namespace posenc
