// A learned bias by rows and columns (Swin, 2103.14030; BEiT, 2106.08254; LeViT, 2104.01136), H × W
// patches, Δ = query − key:
//   logit_ij += b_h[(Δy + H − 1)(2W − 1) + Δx + W − 1]      [(2H − 1)(2W − 1)][heads], Swin's
//                                                           relative_position_index
//   absolute:   b_h[|Δy|·W + |Δx|]                          [H·W][heads]; LeViT: [heads][H·W]
// A class token has three rows behind: it as a query, it as a key, it with itself (BEiT).
//
// grid_positions() puts a patch at y(2W − 1) + x: the distance of two is Δy(2W − 1) + Δx, and no
// other pair of Δ has it, so that a table by distance says it all. A grid of another width than the
// positions' reads other rows, and nothing fails.
#include <string>
#include <utility>
#include <vector>

#include "src/schemes/grid.h"

namespace posenc {

Expected<Plan> GridBias::compiled(const Geometry& geometry) const {
  constexpr std::string_view where = "grid_bias";
  POSENC_CHECK(detail::known(where, {{"heads", geometry.heads}}));
  POSENC_TRY(grid, detail::grid_of(where, geometry));
  const std::int64_t patches = absolute ? grid.height * grid.width : grid.differences();
  const std::int64_t count = patches + (class_token ? 3 : 0);
  POSENC_CHECK(detail::shaped("grid_bias: table", table, {count, geometry.heads}));
  std::vector<std::int32_t> row = detail::rows_of(grid, [&](std::int64_t dy, std::int64_t dx) {
    return absolute ? std::abs(dy) * grid.width + std::abs(dx)
                    : (dy + grid.height - 1) * (2 * grid.width - 1) + dx + grid.width - 1;
  });
  if (class_token) {  // as grid_positions() has it
    const auto last = static_cast<std::size_t>(grid.last());
    const auto first_row = static_cast<std::int32_t>(patches);
    row.resize(row.size() + 2 * last + 1, first_row);
    row.resize(row.size() + 2 * last + 1, first_row + 1);
    row.push_back(first_row + 2);
  }
  BiasTable bias{.rows = {.first = -grid.last(), .row = std::move(row), .saturates = false},
                 .row_count = count,
                 .values = {},
                 .bidirectional = true};
  return detail::plan_of(std::move(bias), table);
}

}  // namespace posenc
