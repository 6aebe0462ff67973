// posenc bench ring: attention of the ranks beside that of one of them alone. Pairs and bytes are
// counted, seconds measured.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "cli/mpi/program/on_ranks.h"
#include "posenc/distributed.h"
#include "posenc/schemes.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct RingRow {
  int ranks = 1;
  std::string layout;
  Strategy strategy = Strategy::ring;
  double seconds = 0, of_whole = 0, hidden = 0;
  std::vector<std::int64_t> pairs, bytes;  // of each rank
};

int ranks_of_world() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}
int rank_in_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
double slowest(double own) {
  MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return own;
}

// q, k, v and out of some tokens. What the numbers are does not matter to time.
struct RingTensors {
  std::vector<float> q, k, v, out;
  AttentionInputs in;
  Tensor to;

  RingTensors(const RingWanted& wanted, std::int64_t tokens) {
    const auto room = [&](std::vector<float>& x, std::int64_t heads) {
      x.resize(static_cast<std::size_t>(heads * tokens * wanted.head_dim) + 1);
      for (std::size_t n = 0; n < x.size() && !wanted.simulated; ++n)
        x[n] = static_cast<float>(n % 97) / 97 - 0.5F;
      return Tensor::dense(x.data(), {1, heads, tokens, wanted.head_dim});
    };
    in = {.q = room(q, wanted.heads), .k = room(k, wanted.kv_heads), .v = room(v, wanted.kv_heads)};
    in.mask.window = wanted.window;
    in.threads.count = 1;
    to = room(out, wanted.heads);
  }
};

// The least of a few runs of all ranks at once, each as long as its slowest rank.
template <class Act>
Expected<double> least_seconds(const RingWanted& wanted, const Act& act) {
  double least = 0;
  const int runs = wanted.simulated ? 1 : wanted.quick ? 2 : 5;
  for (int run = 0; run < runs; ++run) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    POSENC_CHECK(act());
    const double seconds = slowest(MPI_Wtime() - start);
    least = run == 0 ? seconds : std::min(least, seconds);
  }
  return least;
}

// As many bytes to each other rank as attention sent in all, with nothing computed meanwhile.
Expected<double> seconds_of_messages(const RingWanted& wanted, std::int64_t bytes) {
  const int ranks = ranks_of_world(), me = rank_in_world();
  if (ranks == 1) return 0;
  const auto count = static_cast<int>(bytes / (ranks - 1));
  std::vector<char> sent(static_cast<std::size_t>(count)), received(sent.size());
  return least_seconds(wanted, [&]() -> Expected<void> {
    for (int step = 1; step < ranks; ++step)
      MPI_Sendrecv(sent.data(), count, MPI_BYTE, (me + step) % ranks, 0, received.data(), count,
                   MPI_BYTE, (me - step + ranks) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return {};
  });
}

Expected<RingRow> measured(const RingWanted& wanted, const Plan& plan, std::string_view layout_name,
                           Strategy strategy, double whole_seconds) {
  const int ranks = ranks_of_world(), me = rank_in_world();
  const Positions whole = Positions::range(0, wanted.length);
  RingTensors own(wanted, 0);
  const std::vector<std::int64_t> bounds = {0, wanted.length};
  POSENC_TRY(layout, Layout::named(layout_name, bounds, ranks, own.in.mask));
  own = RingTensors(wanted, layout.size(me));
  POSENC_TRY(text, DistributedText::make(MPI_COMM_WORLD, layout, whole, strategy));
  RingRow row{.ranks = ranks, .layout = std::string(layout_name), .strategy = strategy};
  double waiting = 0;
  POSENC_TRY(seconds, least_seconds(wanted, [&]() -> Expected<void> {
               POSENC_CHECK(text.attend(own.in, plan, own.to));
               waiting = text.work().waiting;
               return {};
             }));
  row.seconds = seconds;
  row.of_whole = seconds / whole_seconds;
  POSENC_TRY(pairs, pairs_per_rank(layout, own.in.mask, whole));
  row.pairs = pairs;
  if (strategy == Strategy::heads) {  // all pairs of some heads
    const std::int64_t all_pairs = std::accumulate(pairs.begin(), pairs.end(), std::int64_t{0});
    const auto first_head = [&](int rank) { return wanted.kv_heads * rank / ranks; };
    for (int rank = 0; rank < ranks; ++rank)
      row.pairs[static_cast<std::size_t>(rank)] =
          all_pairs * (first_head(rank + 1) - first_head(rank)) / wanted.kv_heads;
  }
  row.bytes.resize(static_cast<std::size_t>(ranks));
  const std::int64_t bytes = text.work().bytes_received;
  MPI_Allgather(&bytes, 1, MPI_INT64_T, row.bytes.data(), 1, MPI_INT64_T, MPI_COMM_WORLD);
  const std::int64_t all = std::accumulate(row.bytes.begin(), row.bytes.end(), std::int64_t{0});
  POSENC_TRY(messages, seconds_of_messages(wanted, all / ranks));
  waiting = slowest(waiting);
  row.hidden = messages == 0 ? 1 : std::clamp(1 - waiting / messages, 0.0, 1.0);
  return row;
}

std::string json_of(std::span<const RingRow> rows, bool simulated) {
  std::string text;
  for (const RingRow& row : rows)
    text += fmt::format(
        "{}{{\"ranks\":{},\"layout\":\"{}\",\"strategy\":\"{}\",\"seconds\":{:.6g},\"of_whole\":{:."
        "4g},"
        "\"pairs_per_rank\":[{}],\"bytes_per_rank\":[{}],\"hidden\":{:.3g},\"simulated\":{}}}",
        text.empty() ? "[" : ",\n ", row.ranks, row.layout, name(row.strategy), row.seconds,
        row.of_whole, fmt::join(row.pairs, ","), fmt::join(row.bytes, ","), row.hidden, simulated);
  return text + "]\n";
}

std::string page_of(std::span<const RingRow> rows, double whole_seconds) {
  std::string text = fmt::format(
      "one process: {:.3f} s\n\n{:<12} {:<8} {:>9} {:>9} {:>8} {:>15} {:>7}\n", whole_seconds,
      "layout", "strategy", "seconds", "of whole", "balance", "bytes of a rank", "hidden");
  for (const RingRow& row : rows)
    text += fmt::format("{:<12} {:<8} {:>9.3f} {:>9.2f} {:>8.3f} {:>15} {:>7.2f}\n", row.layout,
                        name(row.strategy), row.seconds, row.of_whole, balance(row.pairs),
                        std::ranges::max(row.bytes), row.hidden);
  return text;
}

}  // namespace

Expected<std::string> bench_on_ranks(const RingWanted& wanted) {
  POSENC_TRY(plan, compile(Rope{}, {.heads = wanted.heads,
                                    .kv_heads = wanted.kv_heads,
                                    .head_dim = wanted.head_dim,
                                    .length = wanted.length}));
  // One process alone, on one thread as each rank has; the others wait at a barrier.
  double whole_seconds = 0;
  {
    RingTensors all(wanted, rank_in_world() == 0 ? wanted.length : 0);
    all.in.queries = all.in.keys = Positions::range(0, wanted.length);
    POSENC_TRY(seconds, least_seconds(wanted, [&]() -> Expected<void> {
                 return agree_on_errors(MPI_COMM_WORLD, rank_in_world() == 0
                                                            ? attend(all.in, plan, all.to)
                                                            : Expected<void>());
               }));
    whole_seconds = seconds;
  }
  std::vector<RingRow> rows;
  for (const std::string& layout : wanted.layouts) {
    for (const Strategy strategy : {Strategy::ring, Strategy::gather, Strategy::heads}) {
      if (strategy == Strategy::heads && wanted.kv_heads < ranks_of_world()) continue;
      if (std::ranges::find(wanted.strategies, name(strategy)) == wanted.strategies.end()) continue;
      POSENC_TRY(row, measured(wanted, plan, layout, strategy, whole_seconds));
      rows.push_back(row);
    }
  }
  return wanted.json ? json_of(rows, wanted.simulated) : page_of(rows, whole_seconds);
}

}  // namespace posenc::cli
