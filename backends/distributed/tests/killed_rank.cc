// A program for a test: the last rank dies in the middle, and the others must end too.
#include <csignal>
#include <vector>

#include "posenc/distributed.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  constexpr std::int64_t tokens = 256;
  auto text =
      posenc::DistributedText::make(MPI_COMM_WORLD, *posenc::Layout::contiguous(tokens, ranks),
                                    posenc::Positions::range(0, tokens));
  std::vector<float> x(static_cast<std::size_t>(tokens / ranks * 64), 1), out = x;
  const auto view = [&](std::vector<float>& numbers) {
    return posenc::Tensor::dense(numbers.data(), {1, 1, tokens / ranks, 64});
  };
  bool whole = true;
  for (int call = 0; whole && call < 1000; ++call) {
    if (call == 3 && rank == ranks - 1) std::raise(SIGKILL);
    whole = text->attend({.q = view(x), .k = view(x), .v = view(x)}, {}, view(out)).has_value();
  }
  MPI_Finalize();
  return whole ? 0 : 1;
}
