// Gradients by what all tokens share, the plan's tables and sink logits by heads: sums over blocks
// of keys and over ranks, in double.
#pragma once

#include <vector>

#include "backends/distributed/communicator.h"
#include "backends/distributed/heads.h"
#include "posenc/gradients.h"

namespace posenc::mpi {

class TableSums {
 public:
  TableSums(const AttentionGradients& wanted, std::int64_t heads);
  TableSums(const TableSums&) = delete;
  TableSums& operator=(const TableSums&) = delete;

  // Where a call is to write its part, of all heads or of some; q, k and v absent.
  AttentionGradients part() { return of_heads({0, heads_}, {}); }
  AttentionGradients of_heads(Heads heads, Heads key_heads);
  void add_part();  // which then is zero again
  // Of the sink logits [heads], where these are wanted; else null.
  double* sinks();

  Expected<void> sum_over(const Communicator& ranks);
  void write() const;  // to what was wanted

 private:
  struct Part {
    Tensor AttentionGradients::* member;
    int rank_with_heads;  // axes where each head has its own, on axis 0
    Tensor wanted;
    std::size_t first;  // in the numbers
  };
  Tensor view(const Part& part, std::vector<double>& numbers) const;

  std::int64_t heads_;
  std::vector<Part> parts_;
  std::vector<double> sum_, part_;
};

}  // namespace posenc::mpi
