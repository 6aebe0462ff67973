// Vectors by rows and by columns (SAM, ViTDet, MViT). The mathematics is in
// src/schemes/decomposed.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct Decomposed {
  Table row_vectors = {}, column_vectors = {};  // [2H−1][head_dim] and [2W−1][head_dim], borrowed

  static constexpr std::string_view
      name = "decomposed",
      aliases = "sam vitdet mvit", title = "vectors by rows and by columns (SAM, ViTDet, MViT)",
      formula = "q_i·k_j/√d + q_i·R^h[Δy + H−1] + q_i·R^w[Δx + W−1], Δ = query − key",
      paper = "2112.01526";
  static constexpr auto fields() { return std::tuple{}; }
  static constexpr auto tables() {
    return std::tuple{
        TableField{"row_vectors", &Decomposed::row_vectors, "R^h: [2 · height − 1][head_dim]"},
        TableField{"column_vectors", &Decomposed::column_vectors,
                   "R^w: [2 · width − 1][head_dim]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs head_dim, the grid
  bool operator==(const Decomposed&) const = default;
};

}  // namespace posenc
