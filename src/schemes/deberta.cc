// DeBERTa's disentangled attention (2006.03654; log buckets from DeBERTa-v2):
//   logit_ij = (q_i·k_j + q_i·K[row(i−j)] + k_j·Q[row(i−j)]) / √(d·(1 + c2p + p2c))
//   row(δ) = clamp(bucket(δ) + span, 0, 2·span − 1),  span = position_buckets, or
//                                                     max_relative_positions
// K and Q are [heads][2·span][head_dim]: the one relative embedding under each layer's projections.
//   bucket(δ), m = ⌊position_buckets/2⌋, M = max_relative_positions:
//   |δ| ≤ m: δ;  otherwise sign(δ)·(m + ⌈ln(|δ|/m)/ln((M−1)/m)·(m−1)⌉)
//
// Which way p2c looks: the paper prints Q_δ(j,i). The released code gathers k_j·Q at row
// clamp(−bucket(j−i) + span), and the bucket is odd, so that is row(i−j): the same row as c2p.
//
// Past M: Hugging Face lets buckets grow on and clamps the row; the first release clamps the
// distance to M−1 before the bucket, so keys M or more ahead have row 1 there and row 0 here. We
// follow the former. The released float32 logarithm and our exact boundaries agree (256 buckets,
// 512 positions).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "src/schemes/common.h"
#include "src/schemes/log_buckets.h"

namespace posenc {
namespace {

Expected<detail::LogBuckets> log_buckets(std::int64_t position_buckets, std::int64_t max_position) {
  if (position_buckets < 4 || position_buckets > 65536) {
    return fail("deberta", "position_buckets must lie within 4 and 65536",
                std::to_string(position_buckets), "or -1, where every distance has its own row");
  }
  const std::int64_t exact = position_buckets / 2;
  if (max_position - 1 <= exact || max_position > detail::most_distance) {
    return fail("deberta",
                "max_relative_positions must be above half of the buckets plus one, " +
                    std::to_string(exact + 1) + ", and at most 2^20",
                std::to_string(max_position), "give fewer buckets or a longer distance");
  }
  return detail::LogBuckets{.first = exact,
                            .last = max_position - 1,
                            .steps = exact - 1,
                            .boundary = detail::Boundary::closes};
}

// Rows up to the distance at which both ends are clamped.
Expected<DistanceRows> rows_of(const Deberta& scheme, std::int64_t span) {
  if (scheme.position_buckets <= 0) {
    if (auto ok =
            detail::affordable("deberta", {"max_relative_positions", span}, {"directions", 2});
        !ok) {
      return std::unexpected(ok.error());
    }
    std::vector<std::int32_t> row(static_cast<std::size_t>(2 * span));
    std::iota(row.begin(), row.end(), 0);
    return DistanceRows{.first = -span, .row = std::move(row), .saturates = true};
  }
  const auto log = log_buckets(span, scheme.max_relative_positions);
  if (!log) return std::unexpected(log.error());
  const std::int64_t reach = log->start(span);
  if (reach > 2 * detail::most_distance) {
    return fail("deberta", "the last bucket must begin below 2^21", std::to_string(reach),
                "give more or an even number of position_buckets");
  }
  const std::vector<std::int32_t> bucket = log->up_to(reach, span);
  const auto middle = static_cast<std::int32_t>(span);
  std::vector<std::int32_t> row;
  row.reserve(2 * bucket.size() - 1);
  for (std::size_t n = bucket.size(); --n > 0;) row.push_back(middle - bucket[n]);
  for (const std::int32_t b : bucket) row.push_back(std::min(middle + b, 2 * middle - 1));
  return DistanceRows{.first = -reach, .row = std::move(row), .saturates = true};
}

}  // namespace

Expected<std::int64_t> deberta_bucket(std::int64_t relative, std::int64_t position_buckets,
                                      std::int64_t max_position) {
  const auto log = log_buckets(position_buckets, max_position);
  if (!log) return std::unexpected(log.error());
  constexpr std::int64_t far = std::int64_t{1} << 62;     // further than any position
  constexpr std::int64_t no_end = std::int64_t{1} << 40;  // of buckets, though not of distances
  const std::int64_t bucket = log->of(std::abs(std::clamp(relative, -far, far)), no_end);
  return relative < 0 ? -bucket : bucket;
}

Expected<Plan> Deberta::compiled(const Geometry& geometry) const {
  const std::int64_t span = position_buckets > 0 ? position_buckets : max_relative_positions;
  if (auto ok = detail::known("deberta", {{"max_relative_positions", max_relative_positions}});
      !ok) {
    return std::unexpected(ok.error());
  }
  auto rows = rows_of(*this, span);
  if (!rows) return std::unexpected(rows.error());
  Relative relative{.rows = std::move(*rows),
                    .row_count = 2 * span,
                    .uses_query = p2c,
                    .uses_key = c2p,
                    .uses_value = false,
                    .query = p2c ? query : Table{},
                    .key = c2p ? key : Table{},
                    .value = {},
                    .max_distance = max_relative_positions};
  const auto checks = {std::pair{"deberta: key table", &relative.key},
                       std::pair{"deberta: query table", &relative.query}};
  for (const auto& [where, table] : checks) {
    if (auto ok = detail::shaped(where, *table, {geometry.heads, 2 * span, geometry.head_dim});
        !ok) {
      return std::unexpected(ok.error());
    }
  }
  Plan plan;
  if (c2p || p2c) plan.relative = std::move(relative);
  plan.logits.multiplier = 1 / std::sqrt(1.0 + (c2p ? 1 : 0) + (p2c ? 1 : 0));
  return plan;
}

}  // namespace posenc
