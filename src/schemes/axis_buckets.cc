// A learned bias of the text's order and one of each axis of a page, summed, all by T5's buckets:
// LayoutLM v2 and v3 (2012.14740, 2204.08387) and UDOP (2212.02623). With p⁰ the place in the text,
// p¹ and p² those on the page:
//   logit_ij += B⁰_h[bucket(p⁰_j − p⁰_i)] + Σ_a B^a_h[bucket((p^a_j − p^a_i)/unit)],  divided by
//                                                                                     √head_dim in
//                                                                                     LayoutLM v3
// Both ways, /unit towards zero. The plan's one table has the rows of B⁰, then those of each B^a.
//
// Pitfalls: LayoutLM reads a word's left and its lower edge (bbox[0] and bbox[3]) in thousandths,
// UDOP the middles of its box in hundredths, unit 20 of x₀ + x₁ in thousandths, where its float32
// may cut 0.29 · 100 to 28. v3 adds the biases before it divides by √head_dim, v2 after.
#include <cmath>
#include <utility>
#include <vector>

#include "src/schemes/common.h"

namespace posenc {
namespace {

constexpr std::string_view where = "axis_buckets";

// T5's rows of distances measured in units, from row `first_row` on.
Expected<DistanceRows> bucket_rows(std::int64_t buckets, std::int64_t max_distance,
                                   std::int64_t unit, std::int64_t first_row) {
  POSENC_CHECK(detail::affordable(where, {"max_distance", max_distance}, {"axis_unit", unit}));
  POSENC_TRY(plan, T5{.num_buckets = buckets, .max_distance = max_distance, .bidirectional = true}
                       .compiled({.heads = 1}));
  const DistanceRows& of_t5 = std::get<BiasTable>(*plan.bias).rows;
  const std::int64_t furthest = max_distance * unit;
  std::vector<std::int32_t> row;
  for (std::int64_t distance = -furthest; distance <= furthest; ++distance) {
    POSENC_TRY(bucket, of_t5.at(distance / unit));
    row.push_back(static_cast<std::int32_t>(first_row + bucket));
  }
  return DistanceRows{.first = -furthest, .row = std::move(row), .saturates = true};
}

}  // namespace

Expected<Plan> AxisBuckets::compiled(const Geometry& geometry) const {
  const std::int64_t heads = geometry.heads;
  POSENC_CHECK(detail::known(where, {{"heads", heads}}));
  if (divided) POSENC_CHECK(detail::usable_head_dim(where, geometry.head_dim));
  POSENC_CHECK(detail::shaped("axis_buckets: table", table, {num_buckets, heads}));
  POSENC_CHECK(
      detail::shaped("axis_buckets: axis_tables", axis_tables, {axes, axis_num_buckets, heads}));
  BiasTable bias{.row_count = num_buckets + axes * axis_num_buckets,
                 .bidirectional = true,
                 .buckets = num_buckets,
                 .max_distance = max_distance};
  POSENC_TRY(of_text, bucket_rows(num_buckets, max_distance, 1, 0));
  bias.rows = std::move(of_text);
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    POSENC_TRY(rows, bucket_rows(axis_num_buckets, axis_max_distance, axis_unit,
                                 num_buckets + axis * axis_num_buckets));
    bias.further_axes.push_back(std::move(rows));
  }
  if (table && (axis_tables || axes == 0)) {
    POSENC_CHECK(detail::affordable(where, {"buckets", bias.row_count}, {"heads", heads}));
    const double factor = divided ? 1 / std::sqrt(static_cast<double>(geometry.head_dim)) : 1;
    std::vector<double> numbers;
    numbers.reserve(static_cast<std::size_t>(heads * bias.row_count));
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t row = 0; row < num_buckets; ++row)
        numbers.push_back(factor * table.values.get(table.values.offset(row, head)));
      for (std::int64_t axis = 0; axis < axes; ++axis)
        for (std::int64_t row = 0; row < axis_num_buckets; ++row)
          numbers.push_back(factor *
                            axis_tables.values.get(axis_tables.values.offset(axis, row, head)));
    }
    bias.values = Table::own(std::move(numbers), heads, bias.row_count);
  }
  return detail::plan_of(std::move(bias));
}

}  // namespace posenc
