// A learned bias of the clipped distance, without buckets (the encoder of sound of
// Phi-4-multimodal, 2503.01743):
//   logit_ij += b_h[c],  c = clip(j − i, −left, right) + left;  rows run the other way with
//                        query_minus_key
// A table [left + 1 + right][heads].
#include <string>
#include <utility>
#include <vector>

#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> ClippedBias::compiled(const Geometry& geometry) const {
  constexpr std::string_view where = "clipped_bias";
  POSENC_CHECK(detail::known(where, {{"heads", geometry.heads}}));
  POSENC_CHECK(detail::affordable(where, {"left", left}));
  POSENC_CHECK(detail::affordable(where, {"right", right}));
  const std::int64_t count = left + 1 + right;
  POSENC_CHECK(detail::shaped("clipped_bias: table", table, {count, geometry.heads}));
  std::vector<std::int32_t> row;
  row.reserve(static_cast<std::size_t>(count));
  for (std::int64_t r = 0; r < count; ++r)  // r = i − j + right
    row.push_back(
        static_cast<std::int32_t>(row_order == RowOrder::key_minus_query ? count - 1 - r : r));
  BiasTable bias{.rows = {.first = -right, .row = std::move(row), .saturates = true},
                 .row_count = count,
                 .values = {},
                 .bidirectional = true,
                 .max_distance = left};
  return detail::plan_of(std::move(bias), table);
}

}  // namespace posenc
