// What schemes of a picture's grid share: distances of grid_positions() to rows of a table.
#pragma once

#include "src/schemes/common.h"

namespace posenc::detail {

struct Grid {
  std::int64_t height = 0, width = 0;
  // The largest distance of two patches.
  std::int64_t last() const { return (height - 1) * (2 * width - 1) + width - 1; }
  std::int64_t differences() const { return (2 * height - 1) * (2 * width - 1); }
  // How many rows and columns a distance is, −last() to last().
  std::pair<std::int64_t, std::int64_t> apart(std::int64_t distance) const {
    const std::int64_t step = 2 * width - 1, from = distance + last();
    return {from / step - (height - 1), from % step - (width - 1)};
  }
};

// That of the geometry. Errors: not known, more rows than a table may have.
inline Expected<Grid> grid_of(std::string_view where, const Geometry& geometry) {
  const Grid grid{geometry.grid_height, geometry.grid_width};
  if (grid.height <= 0 || grid.width <= 0)
    return fail(where, "the grid's height and width must be known",
                std::to_string(grid.height) + " x " + std::to_string(grid.width),
                "set --grid HEIGHTxWIDTH: patches of the picture, or of a window of it");
  POSENC_CHECK(affordable(where, {"columns", grid.width}));  // 4 times it is a number then
  POSENC_CHECK(affordable(where, {"rows", grid.height}, {"columns", 4 * grid.width}));
  return grid;
}

// row(Δy, Δx) for every distance of two patches.
template <class Row>
std::vector<std::int32_t> rows_of(const Grid& grid, const Row& row) {
  std::vector<std::int32_t> rows;
  rows.reserve(static_cast<std::size_t>(2 * grid.last() + 1));
  for (std::int64_t distance = -grid.last(); distance <= grid.last(); ++distance) {
    const auto [rows_apart, columns_apart] = grid.apart(distance);
    rows.push_back(static_cast<std::int32_t>(row(rows_apart, columns_apart)));
  }
  return rows;
}

}  // namespace posenc::detail
