// How long a layer's attention takes on a machine, by what its ranks compute and send.
#pragma once

#include <cstdint>

#include "posenc/context_parallel.h"

namespace posenc::layout::detail {

// Of one layer, of the busiest rank.
struct Load {
  double flops = 0;
  double block_bytes = 0;   // keys and values of a rank of the ring
  std::int64_t rounds = 0;  // blocks of others that a rank needs
  double merged_bytes = 0;  // of one round's output, added to the sum so far
  double head_bytes = 0;    // tokens that become heads and back
  std::int64_t ranks = 1, head_ranks = 1;
  bool hides = false;  // a block's message travels while the block before it is computed
};

// Errors: a number that is not above 0.
Expected<void> check(const Machine& machine);
double seconds_of(const Load& load, const Machine& machine);

}  // namespace posenc::layout::detail
