// Relative vectors (Shaw et al., 1803.02155; BERT's relative_key and relative_key_query):
//   logit_ij = q_i·(k_j + a^K_c)/√d  [+ k_j·a^Q_c/√d],   out_i = Σ_j α_ij (v_j + a^V_c)
//   c = clip(j − i, −k, ahead) + k
// Tables are [k + 1 + ahead][head_dim], shared by the heads. Everything stands before the 1/√d.
//
// Row order: Shaw and tensor2tensor count key − query (row 0: the key lies k or more in the past);
// BERT counts query − key, with k = max_position − 1, so that no distance is ever clipped. Reading
// one table in the other order mirrors it, and nothing fails loudly.
// With zero_beyond the vectors end at k and at ahead: keys farther off get none (VITS).
// BERT's relative_key_query has one table for both products: the key table serves for both.
#include <string>
#include <utility>
#include <vector>

#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> Shaw::compiled(const Geometry& geometry) const {
  constexpr std::int64_t most = detail::max_entries / 2 - 1;
  if (max_distance < 0 || max_distance > most) {
    return fail("shaw", "max_distance must lie within 0 and " + std::to_string(most),
                std::to_string(max_distance), "use the distance the table was made for");
  }
  const std::int64_t ahead = max_ahead.value_or(max_distance);
  if (ahead > most)
    return fail("shaw", "max_ahead must be at most " + std::to_string(most), std::to_string(ahead),
                "use the distance the table was made for");
  const std::int64_t rows = max_distance + 1 + ahead;
  Relative relative{.rows = {.first = -ahead, .row = {}, .saturates = true},
                    .row_count = rows,
                    .uses_query = use_keys,
                    .uses_key = true,
                    .uses_value = use_values,
                    .query = {},
                    .key = key,
                    .value = {},
                    .max_distance = max_distance};
  if (use_keys) relative.query = query ? query : key;
  if (use_values) relative.value = value;
  const auto checks = {std::pair{"shaw: key table", &relative.key},
                       std::pair{"shaw: query table", &relative.query},
                       std::pair{"shaw: value table", &relative.value}};
  for (const auto& [where, table] : checks) {
    if (auto ok = detail::shaped(where, *table, {rows, geometry.head_dim}); !ok) {
      return std::unexpected(ok.error());
    }
  }
  std::vector<std::int32_t> listed;
  for (std::int64_t r = 0; r < rows; ++r) {  // r = distance + ahead, distance = i − j
    const std::int64_t row = row_order == RowOrder::key_minus_query ? rows - 1 - r : r;
    listed.push_back(static_cast<std::int32_t>(row));
  }
  if (zero_beyond) {
    listed.insert(listed.begin(), no_row);
    listed.push_back(no_row);
    --relative.rows.first;
  }
  relative.rows.row = std::move(listed);
  Plan plan;
  plan.relative = std::move(relative);
  return plan;
}

}  // namespace posenc
