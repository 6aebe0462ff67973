// posenc lab perplexity --mpi: the ranks read a passage together. Of each chunk a rank computes its
// tokens, and of all that has been read it keeps some of the keys.
#include <mpi.h>

#include <utility>
#include <vector>

#include "cli/mpi/program/on_ranks.h"
#include "posenc/distributed_cache.h"
#include "posenc/layout.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t block = 16;  // tokens beside each other that one rank keeps

class SharedOut : public lab::PassageAttention {
 public:
  static Expected<std::unique_ptr<lab::PassageAttention>> of(const lab::Llama& model) {
    auto made = std::make_unique<SharedOut>();
    MPI_Comm_rank(MPI_COMM_WORLD, &made->rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &made->ranks_);
    made->threads_ = model.threads();
    for (std::int64_t layer = 0; layer < std::ssize(model.layers()); ++layer) {
      POSENC_TRY(cache,
                 DistributedKvCache::make(MPI_COMM_WORLD, lab::cache_options(model, layer), block));
      made->sequences_.push_back(cache.add());
      made->caches_.push_back(std::move(cache));
    }
    return made;
  }

  Share share(std::int64_t tokens) const override { return share_of(tokens, rank_); }

  // All ranks have the queries, keys and values of the whole chunk, as DistributedKvCache asks;
  // each keeps its own keys.
  Expected<void> attend(std::int64_t layer, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Plan& plan, const Positions& positions, const Mask& mask,
                        const Tensor& out) override {
    const std::int64_t tokens = positions.size();
    const Tensor queries = joined(q, tokens, q_), keys = joined(k, tokens, k_),
                 values = joined(v, tokens, v_);
    attended_.resize(q_.size());
    DistributedKvCache& cache = caches_[static_cast<std::size_t>(layer)];
    const std::span<const KvCache::Sequence> sequence(&sequences_[static_cast<std::size_t>(layer)],
                                                      1);
    POSENC_CHECK(cache.append(sequence, keys, values, plan, positions, threads_));
    POSENC_CHECK(cache.attend(sequence, queries, plan, mask,
                              view_of(attended_, tokens, q.shape[1], q.shape[3]), threads_));
    const std::int64_t width = q.shape[1] * q.shape[3];
    std::copy_n(attended_.data() + share(tokens).first * width, q.shape[2] * width,
                static_cast<float*>(out.data));
    return {};
  }

  Expected<void> evict(std::int64_t first, std::int64_t last) override {
    for (std::size_t layer = 0; layer < caches_.size(); ++layer)
      POSENC_CHECK(caches_[layer].evict(sequences_[layer], first, last, KvCache::Gap::close));
    return {};
  }

  Expected<void> join(std::vector<float>& numbers, std::int64_t tokens) override {
    std::vector<float> all;
    join_rows(numbers.data(), tokens, 1, all);
    numbers = std::move(all);
    return {};
  }

 private:
  Share share_of(std::int64_t tokens, int rank) const {
    const Layout layout = *Layout::contiguous(tokens, ranks_);
    const std::int64_t first = layout.size(rank) == 0 ? 0 : layout.token(rank, 0);
    return {first, first + layout.size(rank)};
  }
  static Tensor view_of(std::vector<float>& rows, std::int64_t tokens, std::int64_t heads,
                        std::int64_t head_dim) {
    return Tensor::dense(rows.data(), {1, tokens, heads, head_dim}).swapped(1, 2);
  }
  Tensor joined(const Tensor& own, std::int64_t tokens, std::vector<float>& all) const {
    join_rows(static_cast<const float*>(own.data), tokens, own.shape[1] * own.shape[3], all);
    return view_of(all, tokens, own.shape[1], own.shape[3]);
  }
  // Rows of `width` numbers, those of rank 0 first. Chunks are small: counts stay far below 2^31.
  void join_rows(const float* own, std::int64_t tokens, std::int64_t width,
                 std::vector<float>& all) const {
    std::vector<int> counts, starts;
    for (int rank = 0; rank < ranks_; ++rank) {
      const Share part = share_of(tokens, rank);
      counts.push_back(static_cast<int>((part.last - part.first) * width));
      starts.push_back(static_cast<int>(part.first * width));
    }
    all.resize(static_cast<std::size_t>(tokens * width));
    MPI_Allgatherv(own, counts[static_cast<std::size_t>(rank_)], MPI_FLOAT, all.data(),
                   counts.data(), starts.data(), MPI_FLOAT, MPI_COMM_WORLD);
  }

  int rank_ = 0, ranks_ = 1;
  std::vector<DistributedKvCache> caches_;    // [layer]
  std::vector<KvCache::Sequence> sequences_;  // [layer]
  std::vector<float> q_, k_, v_, attended_;
  Threads threads_;
};

}  // namespace

lab::AttentionMaker attention_of_ranks() { return SharedOut::of; }

}  // namespace posenc::cli
