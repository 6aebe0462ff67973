// The fused attention: positions, mask and plan become what tiles.h computes with.
#pragma once

#include <cstdint>
#include <optional>

#include "posenc/attention.h"
#include "src/attention/arguments.h"

namespace posenc::detail {

struct AttendJob {
  const AttendArguments* in = nullptr;
  const Plan* plan = nullptr;
  const Positions *queries = nullptr, *keys = nullptr;
  const Mask* mask = nullptr;
  std::int64_t part = 0;   // queries of a head in a part
  std::int64_t parts = 0;  // of a sequence

  std::int64_t size() const { return in->q.shape[0] * in->k.shape[1] * parts; }
};

// The job with its parts, each of which stands alone: the queries that share a key head, some at a
// time. nullopt where the kernel leaves it to the reference: doubles, and tables that do not reach
// every distance.
std::optional<AttendJob> attend_job(const AttendArguments& in, const Plan& plan,
                                    const Positions& queries, const Positions& keys,
                                    const Mask& mask);

void attend_parts(const AttendJob& job, std::int64_t first, std::int64_t last);

}  // namespace posenc::detail
