// A learned bias by rows and columns (Swin). The mathematics is in src/schemes/grid_bias.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

// Biases of the patches of a picture or of a window of it, the geometry's grid, at grid_positions()
// (positions.h): a distance tells rows and columns. With a reach r the table is one of
// (2r − 1)² rows, and what is r or more rows or columns away must be hidden, as neighbourhood()
// hides it (NAT, 2204.07143).
struct GridBias {
  bool absolute = false;
  bool class_token = false;
  std::int64_t reach = 0;
  Table table = {};  // [row][heads], borrowed

  static constexpr std::string_view
      name = "grid_bias",
      aliases = "swin beit levit dinat", title = "a learned bias by rows and columns (Swin)",
      formula = "b_h[(Δy + H−1)(2W−1) + Δx + W−1], Δ = query − key; absolute: b_h[|Δy|·W + |Δx|]",
      paper = "2103.14030";
  static constexpr auto fields() {
    return std::tuple{
        Field{"absolute", &GridBias::absolute, "rows and columns without their signs (LeViT)"},
        Field{"class_token", &GridBias::class_token,
              "three rows more for a class token that stands first (BEiT)"},
        Field{"reach", &GridBias::reach,
              "side of a neighbourhood (DiNAT's kernel_size), of which the table has (2·reach − 1)² "
              "rows; 0: the table is of the whole grid"}};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"table", &GridBias::table, "b: [row][heads]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, the grid
  bool operator==(const GridBias&) const = default;
};

}  // namespace posenc
