// T5's buckets on several axes (LayoutLM, UDOP). The mathematics is in src/schemes/axis_buckets.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct AxisBuckets {
  std::int64_t num_buckets = 32, max_distance = 128;
  std::int64_t axes = 2, axis_num_buckets = 64, axis_max_distance = 256, axis_unit = 1;
  bool divided = true;
  // [num_buckets][heads] and [axes][axis_num_buckets][heads]; borrowed until compiled
  Table table = {}, axis_tables = {};

  static constexpr std::string_view
      name = "axis_buckets",
      aliases = "layoutlmv3", title = "T5's buckets on several axes (LayoutLM, UDOP)",
      formula = "B⁰[bucket(text)] + Σ_a B^a[bucket(page axis a / unit)], LayoutLM v3: /√d",
      paper = "2204.08387";
  static constexpr auto fields() {
    return std::tuple{
        Field{"num_buckets", &AxisBuckets::num_buckets, "rows of the text's table",
              Range{.least = 4, .most = 65536}, "buckets", "rel_pos_bins"},
        Field{"max_distance", &AxisBuckets::max_distance, "T5's, of the text",
              Range{.least = 2, .most = 1 << 20}, "tokens", "max_rel_pos"},
        Field{"axes", &AxisBuckets::axes, "further axes of the positions, such as x and y",
              Range{.least = 0, .most = 8}},
        Field{"axis_num_buckets", &AxisBuckets::axis_num_buckets, "rows of each one's table",
              Range{.least = 4, .most = 65536}, "buckets", "rel_2d_pos_bins"},
        Field{"axis_max_distance", &AxisBuckets::axis_max_distance, "T5's, of each, in units",
              Range{.least = 2, .most = 1 << 20}, "", "max_rel_2d_pos"},
        Field{"axis_unit", &AxisBuckets::axis_unit,
              "positions that count as one step on these axes, cut towards zero",
              Range{.least = 1, .most = 1 << 20}},
        Field{"divided", &AxisBuckets::divided, "the sum is divided by √head_dim (LayoutLM v3)"}};
  }
  static constexpr auto tables() {
    return std::tuple{TableField{"table", &AxisBuckets::table, "B⁰: [num_buckets][heads]"},
                      TableField{"axis_tables", &AxisBuckets::axis_tables,
                                 "B^a: [axes][axis_num_buckets][heads]"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs heads, head_dim where divided
  bool operator==(const AxisBuckets&) const = default;
};

}  // namespace posenc
