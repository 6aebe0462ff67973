#include "backends/distributed/sums.h"

#include <algorithm>
#include <utility>

namespace posenc::mpi {

TableSums::TableSums(const AttentionGradients& wanted, std::int64_t heads) : heads_(heads) {
  using Gradients = AttentionGradients;
  std::size_t size = 0;
  for (const auto& [member, rank_with_heads] : {std::pair{&Gradients::slopes, 1},
                                                {&Gradients::bias, 2},
                                                {&Gradients::relative_query, 3},
                                                {&Gradients::relative_key, 3},
                                                {&Gradients::relative_value, 3},
                                                {&Gradients::rotation_frequency, 3},
                                                {&Gradients::rotation_phase, 2},
                                                {&Gradients::mix_cosine, 3},
                                                {&Gradients::mix_sine, 3},
                                                {&Gradients::head_scale, 1},
                                                {&Gradients::head_bias, 1},
                                                {&Gradients::sink_logits, 1}}) {
    const Tensor& tensor = wanted.*member;
    if (!tensor || (member == &Gradients::sink_logits && tensor.rank != 1)) continue;
    parts_.push_back({member, rank_with_heads, tensor, size});
    size += static_cast<std::size_t>(tensor.size());
  }
  sum_.resize(size);
  part_.resize(size);
}

Tensor TableSums::view(const Part& part, std::vector<double>& numbers) const {
  Tensor dense = part.wanted;
  dense.data = numbers.data() + part.first;
  dense.dtype = DType::f64;
  std::int64_t step = 1;
  for (int axis = dense.rank - 1; axis >= 0; --axis) {
    dense.stride[static_cast<std::size_t>(axis)] = step;
    step *= dense.shape[static_cast<std::size_t>(axis)];
  }
  return dense;
}

AttentionGradients TableSums::of_heads(Heads heads, Heads key_heads) {
  AttentionGradients gradients;
  for (const Part& part : parts_) {
    Tensor dense = view(part, part_);
    using Gradients = AttentionGradients;
    const bool mixes = part.member == &Gradients::mix_cosine || part.member == &Gradients::mix_sine;
    const bool of_keys =
        mixes || (part.member == &Gradients::rotation_phase && dense.shape[0] != heads_);
    if (of_keys && dense.shape[0] > 1 && heads.count < heads_) {
      gradients.*part.member = some_heads(dense, key_heads, 0);
      continue;
    }
    const bool by_head = !mixes && dense.rank == part.rank_with_heads && dense.shape[0] == heads_;
    gradients.*part.member = by_head ? some_heads(dense, heads, 0) : dense;
  }
  return gradients;
}

void TableSums::add_part() {
  std::ranges::transform(sum_, part_, sum_.begin(), std::plus());
  std::ranges::fill(part_, 0);
}

double* TableSums::sinks() {
  const auto found = std::ranges::find(parts_, &AttentionGradients::sink_logits, &Part::member);
  return found == parts_.end() ? nullptr : part_.data() + found->first;
}

Expected<void> TableSums::sum_over(const Communicator& ranks) { return ranks.sum(sum_); }

void TableSums::write() const {
  for (const Part& part : parts_) {
    const Tensor to = part.wanted.with_rank(4);
    const double* number = sum_.data() + part.first;
    for (std::int64_t a = 0; a < to.shape[0]; ++a)
      for (std::int64_t b = 0; b < to.shape[1]; ++b)
        for (std::int64_t c = 0; c < to.shape[2]; ++c)
          for (std::int64_t d = 0; d < to.shape[3]; ++d) to.set(to.offset(a, b, c, d), *number++);
  }
}

}  // namespace posenc::mpi
