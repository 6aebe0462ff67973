// The inside of DistributedText, for the files of the three strategies.
#pragma once

#include <functional>
#include <vector>

#include "backends/distributed/block.h"
#include "backends/distributed/communicator.h"
#include "backends/distributed/posenc/distributed.h"
#include "backends/distributed/visits.h"

namespace posenc {

struct DistributedText::State {
  mpi::Communicator ranks;
  Layout layout;
  Positions whole;
  Strategy strategy;
  Positions own = {};
  std::vector<mpi::Visits> of_ranks = {};  // which ranks' keys a rank has to visit
  std::int64_t length = 0;
  Work work = {};

  std::int64_t tokens() const { return layout.size(ranks.rank()); }
  std::int64_t tokens_of(int rank) const { return layout.size(rank); }

  // Arguments as posenc::attend would take them of this rank's tokens alone. The same error on all
  // ranks.
  Expected<AttentionInputs> checked(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                                    const ContentScheme* content = nullptr);
  // Whether all ranks have done a call. Its own error may be that of a distance that a table does
  // not reach.
  Expected<void> agreed(const Expected<void>& done);

  // Calls visit(rank, its keys, back) for this rank's own block and for those of all ranks that
  // have keys which its queries may see, while the next one arrives. Where `back` is not null, what
  // visit leaves there goes to that rank, and take(bytes) receives what other ranks have for this
  // one. All ranks send and receive whatever fails on one.
  struct Passing {
    std::function<Expected<void>(int rank, const mpi::Block& block, mpi::Bytes* back)> visit;
    std::function<std::int64_t(std::int64_t tokens)> back_bytes =
        {};  // of so many tokens; absent: none
    std::function<void(const mpi::Bytes& bytes)> take = {};
  };
  Expected<void> pass_blocks(const AttentionInputs& in, const Tensor& token_table,
                             const Passing& passing);

  // The same inputs with the keys of a block in place of this rank's.
  AttentionInputs against(const AttentionInputs& in, const mpi::Block& block,
                          const Positions& keys) const;
  Expected<Positions> positions_of(int rank) const { return layout.positions(rank, whole); }
  // All keys of the text, in its order; what this rank does not see stays zero.
  Expected<mpi::Block> gathered(const AttentionInputs& in, const Tensor& token_table);

  Expected<void> ring(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                      const Tensor& log_sums);
  Expected<void> gather(const AttentionInputs& in, const Plan& plan, const ContentScheme* content,
                        const Tensor& out, const Tensor& log_sums);
  Expected<void> by_heads(const AttentionInputs& in, const Plan& plan, const ContentScheme* content,
                          const Tensor& out, const Tensor& log_sums);

  struct Backward {
    const AttentionInputs& in;
    const Plan& plan;
    const Tensor &out, &log_sums, &out_gradient;
    const AttentionGradients& gradients;
  };
  Expected<void> ring_backward(const Backward& call);
  Expected<void> gather_backward(const Backward& call);
  Expected<void> heads_backward(const Backward& call);
};

namespace mpi {

// Of four axes; without tokens memory is not asked for.
Tensor four_axes(const Tensor& x);

}  // namespace mpi
}  // namespace posenc
