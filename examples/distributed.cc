// Attention over a text that no process holds whole: `mpirun -n 2 example_distributed` (posenc_mpi,
// docs/distributed.md). Each rank makes queries, keys and values of its own tokens, and a ring of
// ranks passes the keys. To see that nothing is lost, rank 0 computes the whole as well, which a
// real program would not.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "posenc/distributed.h"
#include "posenc/schemes.h"

using namespace posenc;

constexpr std::int64_t tokens = 1000, heads = 4, kv_heads = 2, head_dim = 32;

template <class T>
T must(Expected<T> result) {
  if (result) return T(*std::move(result));  // of Expected<void>, nothing
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// What a token says, whoever asks: numbers without a pattern, the same on every machine.
float number(std::int64_t token, std::int64_t channel, double seed) {
  return static_cast<float>(std::sin(seed * static_cast<double>((token + 1) * (channel + 7))));
}

struct Heads {
  std::vector<float> numbers;
  Tensor view;  // [1, heads, tokens, head_dim]

  Heads(std::int64_t count, const std::vector<std::int64_t>& of_tokens, double seed)
      : view(Tensor::dense(static_cast<float*>(nullptr),
                           {1, count, std::ssize(of_tokens), head_dim})) {
    for (std::int64_t head = 0; head < count; ++head)
      for (const std::int64_t token : of_tokens)
        for (std::int64_t c = 0; c < head_dim; ++c)
          numbers.push_back(number(token, head * head_dim + c, seed));
    view.data = numbers.data();
  }
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  // Who has which tokens: under a causal mask zigzag gives all the same to do.
  const Positions whole = Positions::range(0, tokens);
  const Layout layout = must(Layout::zigzag(tokens, ranks));
  auto text = must(DistributedText::make(MPI_COMM_WORLD, layout, whole));
  const std::vector<std::int64_t> mine = layout.tokens_of(rank);

  // The plan is compiled for the whole text's length; a rank's tokens stand where they stand in the
  // text.
  const Plan plan = must(compile(
      Rope{},
      {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .length = text.length()}));
  const Heads q(heads, mine, 0.1), k(kv_heads, mine, 0.2), v(kv_heads, mine, 0.3);
  const Heads out(heads, mine, 0);
  must(text.attend({.q = q.view, .k = k.view, .v = v.view}, plan, out.view));

  const Work& work = text.work();
  std::vector<std::int64_t> pairs = must(pairs_per_rank(layout, {}, whole));
  std::printf("rank %d of %d: %lld tokens from %lld on, %lld pairs, %lld bytes received\n", rank,
              ranks, static_cast<long long>(mine.size()),
              static_cast<long long>(text.positions().at(0)),
              static_cast<long long>(pairs[static_cast<std::size_t>(rank)]),
              static_cast<long long>(work.bytes_received));

  double off = 0;
  if (rank == 0) {
    std::vector<std::int64_t> all(tokens);
    for (std::int64_t t = 0; t < tokens; ++t) all[static_cast<std::size_t>(t)] = t;
    const Heads all_q(heads, all, 0.1), all_k(kv_heads, all, 0.2), all_v(kv_heads, all, 0.3);
    const Heads expected(heads, all, 0);
    must(
        attend({.q = all_q.view, .k = all_k.view, .v = all_v.view, .queries = whole, .keys = whole},
               plan, expected.view));
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::size_t t = 0; t < mine.size(); ++t)
        for (std::int64_t c = 0; c < head_dim; ++c)
          off = std::max(
              off, std::abs(out.view.get(out.view.offset(0, h, static_cast<std::int64_t>(t), c)) -
                            expected.view.get(expected.view.offset(0, h, mine[t], c))));
    std::printf("largest difference from the whole on one process: %.1e\n", off);
  }
  MPI_Finalize();
  return off < 1e-5 ? 0 : 1;
}
