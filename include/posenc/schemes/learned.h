// Learned absolute vectors. The mathematics is in src/schemes/learned.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct Learned {
  std::int64_t rows = 0;
  std::int64_t row_offset = 0;
  bool scale_embedding = false;
  std::vector<std::int64_t> axis_rows = {};
  Table table = {};  // [rows][width], borrowed

  static constexpr std::string_view name = "learned", aliases = "absolute learned-absolute",
                                    title = "learned absolute vectors",
                                    formula =
                                        "x + E[p + offset], or the sum of a row of each axis; a "
                                        "position without a row is an error",
                                    paper = "1705.03122";
  static constexpr auto fields() {
    return std::tuple{
        Field{"rows", &Learned::rows, "rows of the table", at_least_one, "rows",
              "max_position_embeddings", true},
        Field{"row_offset", &Learned::row_offset,
              "position p reads row p + offset (OPT, RoBERTa: 2)", not_negative, "rows"},
        Field{"scale_embedding", &Learned::scale_embedding, "token embeddings × √d before the sum"},
        Field{"axis_rows", &Learned::axis_rows,
              "rows of each axis, one behind the other in the table; none: one axis", at_least_one,
              "rows"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs width
  bool operator==(const Learned&) const = default;
};

}  // namespace posenc
