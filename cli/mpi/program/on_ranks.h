// What posenc-mpi computes on all ranks at once.
#pragma once

#include <string>

#include "cli/mpi/ranks.h"

namespace posenc::cli {

Expected<void> attend_on_ranks(const DistributedCall& call);
Expected<std::string> bench_on_ranks(const RingWanted& wanted);
lab::AttentionMaker attention_of_ranks();

}  // namespace posenc::cli
