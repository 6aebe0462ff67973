// The whole text of some heads, as a rank has it that computes these.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/distributed/heads.h"

namespace posenc::mpi {

class TextOfHeads {
 public:
  // `further` [batch, heads, own tokens, width] travel along.
  static Expected<TextOfHeads> make(Communicator& ranks, const Layout& layout,
                                    const Positions& whole, const AttentionInputs& in,
                                    const Tensor& token_table = {}, const Tensor& further = {});

  const AttentionInputs& inputs() const { return call_; }
  Tensor token_table() const { return token_table_; }
  Tensor further() const { return further_; }
  Heads heads() const { return shares_.query_heads(rank_); }
  Heads key_heads() const { return shares_.key_heads(rank_); }
  HeadShares& shares() { return shares_; }

 private:
  TextOfHeads(Communicator& ranks, const Layout& layout, const AttentionInputs& in)
      : shares_(ranks, layout, in.q.shape[1], in.k.shape[1]), rank_(ranks.rank()) {}

  HeadShares shares_;
  int rank_;
  std::vector<Owned> memory_;
  std::vector<std::uint8_t> keep_;
  std::vector<std::int32_t> blocks_;
  AttentionInputs call_;
  Tensor token_table_, further_;
};

}  // namespace posenc::mpi
