// A learned bias by rows and columns (Swin, 2103.14030; BEiT, 2106.08254; LeViT, 2104.01136), H × W
// patches, Δ = query − key:
//   logit_ij += b_h[(Δy + H − 1)(2W − 1) + Δx + W − 1]      [(2H − 1)(2W − 1)][heads], Swin's
//                                                           relative_position_index
//   reach r:    b_h[(Δy + r − 1)(2r − 1) + Δx + r − 1]      [(2r − 1)²][heads]; NAT's rpb counts
//                                                           key − query, so that it is this table
//                                                           from its last row to its first
//   absolute:   b_h[|Δy|·W + |Δx|]                          [H·W][heads]; LeViT: [heads][H·W]
// A class token has three rows behind: it as a query, it as a key, it with itself (BEiT).
//
// grid_positions() puts a patch at y(2W − 1) + x: the distance of two is Δy(2W − 1) + Δx, and no
// other pair of Δ has it, so that a table by distance says it all. A grid of another width than the
// positions' reads other rows, and nothing fails.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/schemes/grid.h"

namespace posenc {

Expected<Plan> GridBias::compiled(const Geometry& geometry) const {
  constexpr std::string_view where = "grid_bias";
  POSENC_CHECK(detail::known(where, {{"heads", geometry.heads}}));
  POSENC_TRY(grid, detail::grid_of(where, geometry));
  if (reach != 0 && (absolute || class_token))
    return fail("grid_bias: reach", "goes with neither absolute nor class_token",
                std::to_string(reach), "leave it out for a bias of the whole grid");
  if (reach < 0 || reach > std::min(grid.height, grid.width))
    return fail("grid_bias: reach", "must be 0 to the grid's rows and columns",
                std::to_string(reach), "pad the picture to a neighbourhood");
  // What the table's rows are of. What is further away is hidden, whichever row it reads.
  const detail::Grid known = reach > 0 ? detail::Grid{reach, reach} : grid;
  const std::int64_t patches = absolute ? grid.height * grid.width : known.differences();
  const std::int64_t count = patches + (class_token ? 3 : 0);
  POSENC_CHECK(detail::shaped("grid_bias: table", table, {count, geometry.heads}));
  std::vector<std::int32_t> row = detail::rows_of(grid, [&](std::int64_t dy, std::int64_t dx) {
    if (absolute) return std::abs(dy) * grid.width + std::abs(dx);
    const std::int64_t down = std::clamp(dy, 1 - known.height, known.height - 1),
                       right = std::clamp(dx, 1 - known.width, known.width - 1);
    return (down + known.height - 1) * (2 * known.width - 1) + right + known.width - 1;
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
