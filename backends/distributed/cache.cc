// A sharded cache: every rank knows of all tokens where they stand and who keeps them, and keeps
// its own. What the ranks attend to is merged by the logarithms of their sums, in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/distributed/block.h"
#include "backends/distributed/communicator.h"
#include "backends/distributed/posenc/distributed_cache.h"
#include "backends/distributed/rounding.h"
#include "src/core/try.h"

namespace posenc {
namespace {

using mpi::Owned;

// Tokens [first, first + count) of one sequence of [sequence, head, token, width].
Tensor some_tokens(Tensor x, std::int64_t sequence, std::int64_t first, std::int64_t count) {
  x.data = static_cast<std::byte*>(x.data) +
           x.offset(sequence, 0, first) * static_cast<std::int64_t>(size_of(x.dtype));
  x.shape[0] = 1;
  x.shape[2] = count;
  return x;
}

// A plan holds for a length of the tokens of all ranks: it is checked here, and not by the cache of
// one, which has fewer.
Expected<void> check_length(std::string_view where, const Plan& plan, std::int64_t length) {
  if (!plan.valid || plan.valid->contains(length)) return {};
  return fail(where, "the plan must hold for length " + std::to_string(length),
              "one for lengths up to " + std::to_string(plan.valid->to),
              "compile the scheme for this length");
}
Plan of_any_length(Plan plan) {
  plan.valid.reset();
  return plan;
}

}  // namespace

struct DistributedKvCache::State {
  struct KeptToken {
    std::int64_t position = 0;
    int rank = 0;
  };
  struct KeptTokens {
    std::vector<KeptToken> all = {};
    std::int64_t length = 0;  // largest position + 1

    void add(KeptToken token) {
      all.push_back(token);
      length = std::max(length, token.position + 1);
    }
    void measure() {
      length = 0;
      for (const KeptToken& token : all) length = std::max(length, token.position + 1);
    }
    std::int64_t size() const { return std::ssize(all); }
    KeptToken& operator[](std::int64_t t) { return all[static_cast<std::size_t>(t)]; }
    const KeptToken& operator[](std::int64_t t) const { return all[static_cast<std::size_t>(t)]; }
  };

  mpi::Communicator ranks;
  KvCache cache;
  std::int64_t block;
  std::map<Sequence, KeptTokens> sequences = {};

  Expected<KeptTokens*> find(std::string_view where, Sequence sequence) {
    const auto found = sequences.find(sequence);
    if (found != sequences.end()) return &found->second;
    return fail(where, "the sequence must be one that add() gave and remove() did not take",
                std::to_string(sequence), "add() one");
  }
  // How many of the first `count` tokens are this rank's.
  std::int64_t own_before(const KeptTokens& tokens, std::int64_t count) const {
    return std::count_if(tokens.all.begin(), tokens.all.begin() + count,
                         [this](const KeptToken& token) { return token.rank == ranks.rank(); });
  }
  // The sequence that has tokens `first` to `last`.
  Expected<KeptTokens*> find(std::string_view where, Sequence sequence, std::int64_t first,
                             std::int64_t last) {
    POSENC_TRY(tokens, find(where, sequence));
    if (0 <= first && first <= last && last <= tokens->size()) return tokens;
    return fail(where, "tokens must lie in [0, " + std::to_string(tokens->size()) + ")",
                std::to_string(first) + " to " + std::to_string(last));
  }

  Expected<void> append_own(Sequence sequence, const KeptTokens& added, const Tensor& k,
                            const Tensor& v, const Plan& plan, Threads threads) {
    const std::array<Sequence, 1> one = {sequence};
    for (std::int64_t first = 0, last = 0; first < added.size(); first = last) {
      std::vector<std::int64_t> ids;
      for (last = first; last < added.size() && added[last].rank == added[first].rank; ++last)
        ids.push_back(added[last].position);
      if (added[first].rank != ranks.rank()) continue;
      POSENC_TRY(positions, Positions::ids(ids));
      POSENC_CHECK(cache.append(one, some_tokens(k, 0, first, last - first),
                                some_tokens(v, 0, first, last - first), plan, positions, threads));
    }
    return {};
  }

  // What this rank's tokens make of the queries becomes what all make: in place, and log_sums too.
  Expected<void> merge(std::vector<double>& out, std::vector<double>& log_sums) const {
    std::vector<double> most = log_sums;
    POSENC_CHECK(ranks.largest(most));
    const std::size_t width = out.size() / log_sums.size();
    out.resize(out.size() + log_sums.size());
    for (std::size_t row = 0; row < log_sums.size(); ++row) {
      const bool nothing = most[row] == -std::numeric_limits<double>::infinity();
      const double share = nothing ? 0 : std::exp(log_sums[row] - most[row]);
      for (std::size_t c = 0; c < width; ++c) out[row * width + c] *= share;
      out[log_sums.size() * width + row] = share;
    }
    POSENC_CHECK(ranks.sum(out));
    for (std::size_t row = 0; row < log_sums.size(); ++row) {
      const double sum = out[log_sums.size() * width + row];
      for (std::size_t c = 0; c < width && sum != 0; ++c) out[row * width + c] /= sum;
    }
    out.resize(out.size() - log_sums.size());
    return {};
  }
};

DistributedKvCache::DistributedKvCache(std::unique_ptr<State> state) : state_(std::move(state)) {}
DistributedKvCache::DistributedKvCache(DistributedKvCache&&) noexcept = default;
DistributedKvCache& DistributedKvCache::operator=(DistributedKvCache&&) noexcept = default;
DistributedKvCache::~DistributedKvCache() = default;
const KvCache& DistributedKvCache::own() const { return state_->cache; }

Expected<DistributedKvCache> DistributedKvCache::make(MPI_Comm communicator,
                                                      const KvCacheOptions& options,
                                                      std::int64_t block) {
  POSENC_TRY(ranks, mpi::Communicator::duplicate(communicator));
  Expected<KvCache> cache = KvCache::make(options);
  Expected<void> done;
  if (!cache) done = std::unexpected(cache.error());
  if (block < 1)
    done = fail("DistributedKvCache", "a block must have 1 token or more", std::to_string(block));
  mpi::Fingerprint print;
  print.add(block, options.kv_heads, options.head_dim, options.value_dim,
            static_cast<int>(options.dtype), static_cast<int>(options.keys));
  POSENC_CHECK(ranks.agree(done, print));
  return DistributedKvCache(
      std::make_unique<State>(State{std::move(ranks), *std::move(cache), block}));
}

DistributedKvCache::Sequence DistributedKvCache::add() {
  const Sequence sequence = state_->cache.add();
  state_->sequences.emplace(sequence, State::KeptTokens());
  return sequence;
}

Expected<void> DistributedKvCache::remove(Sequence sequence) {
  POSENC_CHECK(state_->find("cache remove", sequence));
  state_->sequences.erase(sequence);
  return state_->cache.remove(sequence);
}

Expected<void> DistributedKvCache::append(std::span<const Sequence> sequences, const Tensor& k,
                                          const Tensor& v, const Plan& plan,
                                          const std::optional<Positions>& positions,
                                          Threads threads) {
  constexpr std::string_view where = "cache append";
  State& state = *state_;
  std::vector<std::int64_t> before;  // of this rank's tokens
  std::vector<State::KeptTokens> added;
  const Tensor keys = k.with_rank(4), values = v.with_rank(4);
  const auto add_all = [&]() -> Expected<void> {
    if (positions && positions->axes() != 1)
      return fail(where, "positions must have one axis", std::to_string(positions->axes()));
    for (std::size_t b = 0; b < sequences.size(); ++b) {
      POSENC_TRY(kept, state.find(where, sequences[b]));
      const std::int64_t start = kept->length, count = keys.shape[2];
      State::KeptTokens& own = added.emplace_back();
      for (std::int64_t t = 0; t < count; ++t) {
        const std::int64_t at =
            positions ? positions->at(t, static_cast<std::int64_t>(b)) : start + t;
        own.add({at, static_cast<int>(at / state.block % state.ranks.size())});
      }
      const std::int64_t length = std::max(start, own.length);
      POSENC_CHECK(check_length(where, plan, length));
      POSENC_TRY(tokens, state.cache.tokens(sequences[b]));
      before.push_back(tokens);
      const auto sequence = static_cast<std::int64_t>(b);
      POSENC_CHECK(state.append_own(sequences[b], own, some_tokens(keys, sequence, 0, count),
                                    some_tokens(values, sequence, 0, count), of_any_length(plan),
                                    threads));
    }
    return {};
  };
  const Expected<void> all = state.ranks.agree(add_all());
  for (std::size_t b = 0; b < before.size(); ++b) {
    if (all) {
      State::KeptTokens& kept = state.sequences[sequences[b]];
      for (const State::KeptToken& token : added[b].all) kept.add(token);
    } else {
      POSENC_TRY(tokens, state.cache.tokens(sequences[b]));
      POSENC_CHECK(state.cache.evict(sequences[b], before[b], tokens, KvCache::Gap::keep));
    }
  }
  return all;
}

Expected<void> DistributedKvCache::attend(std::span<const Sequence> sequences, const Tensor& q,
                                          const Plan& plan, const Mask& mask, const Tensor& out,
                                          Threads threads, const Tensor& sink_logits) {
  constexpr std::string_view where = "cache attend";
  State& state = *state_;
  const Tensor queries = q.with_rank(4), to = out.with_rank(4);
  const std::int64_t count = queries.shape[2];
  const DType dtype = mpi::sum_dtype(q.dtype);
  const Owned part(dtype, to.shape[0], to.shape[1], to.shape[2], to.shape[3]);
  std::vector<double> log_sums(static_cast<std::size_t>(to.shape[0] * to.shape[1] * to.shape[2]),
                               -std::numeric_limits<double>::infinity());
  const auto attend_own = [&]() -> Expected<void> {
    if (mask.keys != nullptr)
      return fail(where, "the mask must show keys by position", "mask.keys",
                  "each rank has some of the keys: lists of ids need them all on one");
    std::vector<std::int64_t> ids;
    for (const Sequence sequence : sequences) {
      POSENC_TRY(kept, state.find(where, sequence));
      if (kept->size() < count)
        return fail(where,
                    "sequence " + std::to_string(sequence) + " must hold the " +
                        std::to_string(count) + " tokens that ask",
                    std::to_string(kept->size()), "append their keys and values first");
      POSENC_CHECK(check_length(where, plan, kept->length));
      for (std::int64_t t = kept->size() - count; t < kept->size(); ++t)
        ids.push_back((*kept)[t].position);
    }
    POSENC_TRY(at, Positions::ids(ids, 1, std::ssize(sequences)));
    // A sink counts once.
    return state.cache.attend_part(
        sequences, queries, at, of_any_length(plan), mask, part.view(),
        Tensor::dense(log_sums.data(), {to.shape[0], to.shape[1], to.shape[2]}), threads,
        state.ranks.rank() == 0 ? sink_logits : Tensor());
  };
  POSENC_CHECK(state.ranks.agree(sequences.empty() ? Expected<void>() : attend_own()));
  if (to.size() == 0) return {};
  std::vector<double> whole(static_cast<std::size_t>(to.size()));
  const Tensor sums =
      Tensor::dense(whole.data(), {to.shape[0], to.shape[1], to.shape[2], to.shape[3]});
  mpi::round_into(part.view(), sums);
  POSENC_CHECK(state.merge(whole, log_sums));
  mpi::round_into(Tensor::dense(whole.data(), {to.shape[0], to.shape[1], to.shape[2], to.shape[3]}),
                  to);
  return {};
}

Expected<void> DistributedKvCache::shift(Sequence sequence, std::int64_t first, std::int64_t last,
                                         std::int64_t offset) {
  constexpr std::string_view where = "cache shift";
  POSENC_TRY(kept, state_->find(where, sequence, first, last));
  for (std::int64_t t = first; t < last; ++t) {
    const std::int64_t position = (*kept)[t].position;
    if (-position <= offset && offset <= furthest_position - position) continue;
    return fail(where, "every position must stay within 0 and 2^62",
                "an offset of " + std::to_string(offset), "shift by less");
  }
  const std::int64_t own_first = state_->own_before(*kept, first),
                     own_last = state_->own_before(*kept, last);
  POSENC_CHECK(state_->ranks.agree(
      own_first == own_last ? Expected<void>()
                            : state_->cache.shift(sequence, own_first, own_last, offset)));
  for (std::int64_t t = first; t < last; ++t) (*kept)[t].position += offset;
  kept->measure();
  return {};
}

Expected<void> DistributedKvCache::evict(Sequence sequence, std::int64_t first, std::int64_t last,
                                         KvCache::Gap gap) {
  POSENC_TRY(kept, state_->find("cache evict", sequence, first, last));
  const bool closes = gap == KvCache::Gap::close && first < last && last < kept->size();
  const std::int64_t offset = closes ? (*kept)[first].position - (*kept)[last].position : 0;
  POSENC_CHECK(state_->ranks.agree(state_->cache.evict(sequence, state_->own_before(*kept, first),
                                                       state_->own_before(*kept, last),
                                                       KvCache::Gap::keep)));
  kept->all.erase(kept->all.begin() + first, kept->all.begin() + last);
  kept->measure();
  return closes ? shift(sequence, first, kept->size(), offset) : Expected<void>();
}

Expected<std::int64_t> DistributedKvCache::tokens(Sequence sequence) const {
  POSENC_TRY(kept, state_->find("cache tokens", sequence));
  return kept->size();
}

Expected<std::int64_t> DistributedKvCache::length(Sequence sequence) const {
  POSENC_TRY(kept, state_->find("cache length", sequence));
  return kept->length;
}

}  // namespace posenc
