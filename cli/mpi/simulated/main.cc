// `posenc bench ring` on machines that SimGrid simulates: smpirun starts it as mpirun starts
// posenc-mpi, and its rows say "simulated". backends/distributed/simulated.sh gives it platforms.
#include <mpi.h>

#include <cstdio>
#include <CLI/CLI.hpp>

#include "cli/mpi/program/on_ranks.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  posenc::cli::RingWanted wanted{.simulated = true};
  CLI::App app;
  app.add_option("--heads", wanted.heads);
  app.add_option("--kv_heads", wanted.kv_heads);
  app.add_option("--head_dim", wanted.head_dim);
  app.add_option("--length", wanted.length);
  app.add_option("--layouts", wanted.layouts)->delimiter(',');
  app.add_option("--strategies", wanted.strategies)->delimiter(',');
  app.add_flag("--json", wanted.json);
  int code = 2;
  try {
    app.parse(argc, argv);
    const auto page = posenc::cli::bench_on_ranks(wanted);
    code = page ? 0 : 2;
    // All ranks write to one terminal.
    if (rank == 0 && page) std::fputs(page->c_str(), stdout);
    if (rank == 0 && !page) std::fprintf(stderr, "%s\n", page.error().message().c_str());
  } catch (const CLI::Error& error) {
    if (rank == 0) std::fprintf(stderr, "%s\n", error.what());
  }
  MPI_Finalize();
  return code;
}
