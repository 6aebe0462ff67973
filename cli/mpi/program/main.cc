// The program posenc-mpi: posenc on the ranks that mpirun starts.
#include <mpi.h>

#include <cstdio>

#include "cli/mpi/program/on_ranks.h"
#include "cli/run.h"
#include "cli/system/system.h"
#include "posenc/distributed.h"

namespace posenc::cli {
namespace {

class MpiRanks : public Ranks {
 public:
  Expected<void> agree(const Expected<void>& own) override {
    return agree_on_errors(MPI_COMM_WORLD, own);
  }
  Expected<void> attend(const DistributedCall& call) override { return attend_on_ranks(call); }
  Expected<std::string> bench(const RingWanted& wanted) override { return bench_on_ranks(wanted); }
  lab::AttentionMaker lab_attention() override { return attention_of_ranks(); }
};

}  // namespace
}  // namespace posenc::cli

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  posenc::cli::MpiRanks ranks;
  posenc::cli::ranks_of_mpi = &ranks;
  // What all have to say, rank 0 says.
  if (rank != 0)
    for (std::FILE* const stream : {stdout, stderr}) (void)!std::freopen("/dev/null", "w", stream);
  const int code = posenc::cli::run_program(posenc::cli::arguments_of(argc, argv));
  MPI_Finalize();
  return code;
}
