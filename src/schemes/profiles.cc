// Profiles: every token of a head says in u numbers how it looks by distance, and a table mixes
// them:
//   logit_ij += Σ_u r_iu·P_u[row(i−j)]  (of_keys: s_ju),  after the 1/√d, times the temperature of
//                                       the logits alone
// r = W_r x [batch][heads][tokens][u] comes with q and k: ProfileTensors of attention.h.
//
//   distances  P [u][extent] shared by the heads; keys ahead, and those extent or more behind, get
//              nothing (Inkling: u = 16, extent 1024, in layers with a window that)
//   buckets    T5's buckets (t5.cc), a row of u numbers for each head (WavLM, 2110.13900: u = 1,
//              320 buckets, 800; its number is a gate, a(b·c_h − 1) + 2, and its table T5's)
//   ramp       P = −(i − j), one number: ALiBi whose slope each token sets (GRAPE-A, 2512.07805)
//
// Pitfalls: Inkling divides q·k by d, not by √d (Logits::multiplier), and this by nothing. What a
// profile is made of (scales, clips, gates) is the model's, outside.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/schemes/common.h"

namespace posenc {
namespace {

// [u][extent] of all heads as [extent][u].
Table by_distance(const Table& table) { return table.viewed(table.values.swapped(0, 1)); }

// [bucket][heads · u] as [heads][bucket][u].
Table by_head(const Table& table, std::int64_t heads, std::int64_t profiles) {
  Tensor view = table.values;
  view.rank = 3;
  view.shape = {heads, table.values.shape[0], profiles};
  view.stride = {profiles * table.values.stride[1], table.values.stride[0], table.values.stride[1]};
  return table.viewed(view);
}

}  // namespace

Expected<Plan> Profiles::compiled(const Geometry& geometry) const {
  constexpr std::string_view where = "profiles";
  Relative relative{.uses_query = of_keys, .uses_key = !of_keys, .profiles = profiles};
  Table values;
  switch (curves) {
    case ProfileCurves::distances: {
      POSENC_CHECK(detail::shaped("profiles: table", table, {profiles, extent}));
      std::vector<std::int32_t> row = {no_row};
      for (std::int64_t n = 0; n < extent; ++n) row.push_back(static_cast<std::int32_t>(n));
      row.push_back(no_row);
      relative.rows = {.first = -1, .row = std::move(row), .saturates = true};
      relative.row_count = relative.max_distance = extent;
      if (table) values = by_distance(table);
      break;
    }
    case ProfileCurves::buckets: {
      POSENC_CHECK(detail::known(where, {{"heads", geometry.heads}}));
      const T5 buckets{
          .num_buckets = num_buckets, .max_distance = max_distance, .bidirectional = bidirectional};
      POSENC_TRY(bucketed, buckets.compiled(geometry));
      POSENC_CHECK(
          detail::shaped("profiles: table", table, {num_buckets, geometry.heads * profiles}));
      relative.rows = std::get<BiasTable>(*bucketed.bias).rows;
      relative.row_count = num_buckets;
      relative.max_distance = max_distance;
      if (table) values = by_head(table, geometry.heads, profiles);
      break;
    }
    case ProfileCurves::ramp: {
      POSENC_CHECK(detail::known(where, {{"length", geometry.length}}));
      if (profiles != 1)
        return fail(where, "a ramp has one profile", std::to_string(profiles), "set profiles to 1");
      const std::int64_t length = geometry.length;
      POSENC_CHECK(detail::affordable(where, {"length", length}, {"directions", 2}));
      std::vector<std::int32_t> row;
      std::vector<double> ramp;
      for (std::int64_t distance = 1 - length; distance < length; ++distance) {
        row.push_back(static_cast<std::int32_t>(distance + length - 1));
        ramp.push_back(-static_cast<double>(distance));
      }
      relative.row_count = std::ssize(row);
      relative.rows = {.first = 1 - length, .row = std::move(row), .saturates = false};
      values = Table::own(std::move(ramp), relative.row_count, 1);
      break;
    }
  }
  (of_keys ? relative.query : relative.key) = std::move(values);
  Plan plan;
  plan.relative = std::move(relative);
  return plan;
}

}  // namespace posenc
