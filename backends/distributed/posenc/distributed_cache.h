// A KvCache whose tokens are shared out among the ranks of an MPI communicator, for decoding behind
// a text that fills the memory of several machines. New tokens and queries are the same on all
// ranks, as a decoder computes them there.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "posenc/cache.h"

namespace [[gnu::visibility("default")]] posenc {

class DistributedKvCache {
 public:
  using Sequence = KvCache::Sequence;

  // Collective, as all that follows, with the same arguments on all ranks. `options` are those of
  // each rank's own part. The token at position p is kept by rank ⌊p / block⌋ mod ranks, and stays
  // there whatever shift() makes of its position. Errors: those of KvCache::make, a block below 1.
  static Expected<DistributedKvCache> make(MPI_Comm communicator, const KvCacheOptions& options,
                                           std::int64_t block = 16);
  DistributedKvCache(DistributedKvCache&&) noexcept;
  DistributedKvCache& operator=(DistributedKvCache&&) noexcept;
  ~DistributedKvCache();

  Sequence add();
  Expected<void> remove(Sequence sequence);

  // As KvCache::append; positions of one axis. A rank without a page left is an error on all, and
  // no rank keeps the tokens.
  Expected<void> append(std::span<const Sequence> sequences, const Tensor& k, const Tensor& v,
                        const Plan& plan, const std::optional<Positions>& positions = {},
                        Threads threads = {});

  // As KvCache::attend, of the newest tokens over those of all ranks; the same `out` on each.
  Expected<void> attend(std::span<const Sequence> sequences, const Tensor& q, const Plan& plan,
                        const Mask& mask, const Tensor& out, Threads threads = {},
                        const Tensor& sink_logits = {});

  // As those of KvCache; tokens are counted over all ranks, in the order of append().
  Expected<void> shift(Sequence sequence, std::int64_t first, std::int64_t last,
                       std::int64_t offset);
  Expected<void> evict(Sequence sequence, std::int64_t first, std::int64_t last, KvCache::Gap gap);

  Expected<std::int64_t> tokens(Sequence sequence) const;  // of all ranks
  Expected<std::int64_t> length(Sequence sequence) const;  // largest position + 1
  const KvCache& own() const;                              // this rank's part

 private:
  struct State;
  explicit DistributedKvCache(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace posenc
