// T5's bucketed bias (1910.10683): logit_ij += B[bucket(j − i)][head], a learned
// [num_buckets][heads] table, one for the whole stack. n = i − j, N buckets, M = max_distance:
//   bidirectional:  N ← ⌊N/2⌋; keys in the future (n < 0) take the upper N rows; n ← |n|
//   causal:         n ← max(n, 0), so a key in the future has bucket 0
//   m = ⌊N/2⌋;  n < m: n itself;  otherwise min(m + ⌊ln(n/m)/ln(M/m)·(N−m)⌋, N−1)
// Causal 32/128: buckets 16 to 31 begin at 16 19 21 24 27 31 35 40 46 52 59 67 77 87 99 113.
//
// Pitfalls: T5 divides its logits by nothing (the model's reader sets that, not this plan). The row
// just above the half is never used (n = 0 is not in the future). llama.cpp writes 128 for M
// whatever the model says. At powers of two the logarithm is an integer and float rounding could go
// either way (t5x adds an epsilon); boundaries here are exact, and agree with the released float32
// code.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "src/schemes/common.h"
#include "src/schemes/log_buckets.h"

namespace posenc {
namespace {

// One direction: N buckets for distances n ≥ 0.
struct Side {
  std::int64_t buckets;
  detail::LogBuckets log;
};

Expected<Side> side(std::int64_t num_buckets, std::int64_t max_distance, bool bidirectional) {
  const std::int64_t least = bidirectional ? 4 : 2;
  if (num_buckets < least || num_buckets > 65536) {
    return fail("t5", "num_buckets must lie within " + std::to_string(least) + " and 65536",
                std::to_string(num_buckets),
                "each direction needs an exact and a logarithmic half");
  }
  const std::int64_t buckets = bidirectional ? num_buckets / 2 : num_buckets;
  const std::int64_t exact = buckets / 2;
  if (max_distance <= exact || max_distance > detail::most_distance) {
    return fail("t5",
                "max_distance must be above the exact buckets, " + std::to_string(exact) +
                    ", and at most 2^20",
                std::to_string(max_distance), "give fewer buckets or a longer distance");
  }
  return Side{buckets,
              {.first = exact,
               .last = max_distance,
               .steps = buckets - exact,
               .boundary = detail::Boundary::opens}};
}

}  // namespace

Expected<std::int64_t> t5_bucket(std::int64_t relative, std::int64_t num_buckets,
                                 std::int64_t max_distance, bool bidirectional) {
  const auto s = side(num_buckets, max_distance, bidirectional);
  if (!s) return std::unexpected(s.error());
  if (relative > 0 && !bidirectional) return 0;
  const std::int64_t distance = std::abs(std::clamp(relative, -max_distance, max_distance));
  return (relative > 0 ? s->buckets : 0) + s->log.of(distance, s->buckets - 1);
}

Expected<Plan> T5::compiled(const Geometry& geometry) const {
  if (auto ok = detail::known("t5", {{"heads", geometry.heads}}); !ok) {
    return std::unexpected(ok.error());
  }
  const auto s = side(num_buckets, max_distance, bidirectional);
  if (!s) return std::unexpected(s.error());
  if (auto ok = detail::shaped("t5: table", table, {num_buckets, geometry.heads}); !ok) {
    return std::unexpected(ok.error());
  }
  BiasTable bias{.rows = {.first = bidirectional ? -max_distance : 0, .row = {}, .saturates = true},
                 .row_count = num_buckets,
                 .values = {},
                 .bidirectional = bidirectional,
                 .buckets = num_buckets,
                 .max_distance = max_distance};
  const std::vector<std::int32_t> past = s->log.up_to(max_distance, s->buckets - 1);
  const auto half = static_cast<std::int32_t>(s->buckets);
  std::vector<std::int32_t> row;
  for (std::size_t n = bidirectional ? past.size() : 1; --n > 0;) row.push_back(past[n] + half);
  row.insert(row.end(), past.begin(), past.end());
  bias.rows.row = std::move(row);
  return detail::plan_of(std::move(bias), table);
}

}  // namespace posenc
