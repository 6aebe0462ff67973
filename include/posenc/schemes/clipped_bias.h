// A learned bias of the clipped distance. The mathematics is in src/schemes/clipped_bias.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct ClippedBias {
  std::int64_t left = 1000, right = 999;
  RowOrder row_order = RowOrder::key_minus_query;
  Table table = {};  // [left + 1 + right][heads], borrowed

  static constexpr std::string_view name = "clipped_bias", aliases = "clipped",
                                    title = "a learned bias of the clipped distance",
                                    formula = "b_h[clip(j−i, −left, right) + left]",
                                    paper = "2503.01743";
  static constexpr auto fields() {
    return std::tuple{
        Field{"left", &ClippedBias::left, "keys further behind share a row", not_negative,
              "tokens"},
        Field{"right", &ClippedBias::right, "keys further ahead share a row", not_negative,
              "tokens"},
        Field{"row_order", &ClippedBias::row_order, "which way the table's rows run"}};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"table", &ClippedBias::table, "b: [left + 1 + right][heads]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads
  bool operator==(const ClippedBias&) const = default;
};

}  // namespace posenc
