// Attention over gathered keys, and over blocks of keys that pass: outputs of blocks are merged by
// the logarithms of their sums, in float or double, and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/distributed/heads.h"
#include "backends/distributed/rounding.h"
#include "backends/distributed/text.h"
#include "src/core/try.h"

namespace posenc {

using mpi::Block;
using mpi::Bytes;
using mpi::copy_tokens;
using mpi::Owned;

namespace {

constexpr double none = -std::numeric_limits<double>::infinity();

template <class T>
void merge_rows(const Tensor& sum, std::vector<double>& log_sums, const Tensor& part,
                const std::vector<double>& log_parts) {
  const std::int64_t width = sum.shape[3];
  T* to = static_cast<T*>(sum.data);
  const T* from = static_cast<const T*>(part.data);
  for (std::size_t row = 0; row < log_sums.size(); ++row, to += width, from += width) {
    if (log_parts[row] == none) continue;
    const double most = std::max(log_sums[row], log_parts[row]);
    const double whole =
        most + std::log(std::exp(log_sums[row] - most) + std::exp(log_parts[row] - most));
    const T old = static_cast<T>(std::exp(log_sums[row] - whole)),
            added = static_cast<T>(std::exp(log_parts[row] - whole));
    for (std::int64_t c = 0; c < width; ++c) to[c] = old * to[c] + added * from[c];
    log_sums[row] = whole;
  }
}

// Fewer rows than this (queries · heads/kv_heads) are computed in another order: attention.h.
constexpr std::int64_t ordinary_rows = 12;

// How many queries keep the bits that they have among `of_whole`.
std::int64_t queries_for_bits(std::int64_t own, std::int64_t of_whole, std::int64_t group) {
  if (own == 0 || own * group >= ordinary_rows || of_whole * group < ordinary_rows) return own;
  return (ordinary_rows + group - 1) / group;
}

}  // namespace

Expected<void> DistributedText::State::ring(const AttentionInputs& in, const Plan& plan,
                                            const Tensor& out, const Tensor& log_sums) {
  const std::int64_t batch = out.shape[0], heads = out.shape[1], count = out.shape[2];
  const DType dtype = mpi::sum_dtype(in.q.dtype);
  const Owned sum(dtype, batch, heads, count, out.shape[3]),
      part(dtype, batch, heads, count, out.shape[3]);
  std::vector<double> log_sum(static_cast<std::size_t>(batch * heads * count)), log_part = log_sum;
  const auto visit = [&](int rank, const Block& block, Bytes*) -> Expected<void> {
    POSENC_TRY(keys, positions_of(rank));
    AttentionInputs call = against(in, block, keys);
    call.meanwhile = [this] { ranks.progress(); };
    call.options.allow_bfloat16_products = false;  // gradients, in float, meet these sums
    const bool first = rank == ranks.rank();
    if (!first) call.sink_logits = {};  // they count once
    if (count == 0) return {};
    POSENC_CHECK(
        posenc::attend(call, plan, (first ? sum : part).view(),
                       Tensor::dense((first ? log_sum : log_part).data(), {batch, heads, count})));
    if (first) return {};
    dtype == DType::f64 ? merge_rows<double>(sum.view(), log_sum, part.view(), log_part)
                        : merge_rows<float>(sum.view(), log_sum, part.view(), log_part);
    return {};
  };
  POSENC_CHECK(pass_blocks(in, {}, {.visit = visit}));
  mpi::round_into(sum.view(), out);
  if (log_sums && count > 0) {
    mpi::round_into(Tensor::dense(log_sum.data(), {batch, heads, count, 1}),
                    mpi::of_width_one(log_sums));
  }
  return {};
}

namespace {

// Inputs and outputs of a call whose last query comes again, as often as it takes. Of as many as
// came these are the caller's own.
class RepeatedQuery {
 public:
  RepeatedQuery(const AttentionInputs& in, std::int64_t queries)
      : rows_(static_cast<std::size_t>(queries)) {
    count_ = in.q.shape[2];
    for (std::int64_t t = 0; t < queries; ++t)
      rows_[static_cast<std::size_t>(t)] = std::min(t, count_ - 1);
  }

  Expected<AttentionInputs> inputs(const AttentionInputs& in) {
    if (none_comes_again()) return in;
    AttentionInputs call = in;
    call.q = repeated(in.q, q_);
    POSENC_TRY(queries, in.queries.select(rows_));
    call.queries = queries;
    if (in.sink_logits.rank == 3) {
      call.sink_logits = repeated(mpi::of_width_one(in.sink_logits), sinks_);
      call.sink_logits.rank = 3;
    }
    if (in.mask.query_blocks != nullptr) {
      for (std::int64_t b = 0; b < in.q.shape[0]; ++b)
        for (const std::int64_t row : rows_)
          blocks_.push_back(in.mask.query_blocks[b * count_ + row]);
      call.mask.query_blocks = blocks_.data();
    }
    return call;
  }
  // Room for what is to be written to `to`, and then taken from there.
  Tensor room(const Tensor& to, Owned& memory) const {
    if (none_comes_again() || !to) return to;
    memory = Owned(to.dtype, to.shape[0], to.shape[1], std::ssize(rows_), to.shape[3]);
    return memory.view();
  }
  void take(const Tensor& from, const Tensor& to) const {
    if (!none_comes_again() && to)
      copy_tokens(from, std::span(rows_).first(static_cast<std::size_t>(count_)), to, {});
  }

 private:
  bool none_comes_again() const { return std::ssize(rows_) == count_; }
  Tensor repeated(const Tensor& x, Owned& memory) const {
    memory = Owned(x.dtype, x.shape[0], x.shape[1], std::ssize(rows_), x.shape[3]);
    copy_tokens(x, rows_, memory.view(), {});
    return memory.view();
  }

  std::vector<std::int64_t> rows_;
  std::int64_t count_ = 0;
  Owned q_, sinks_;
  std::vector<std::int32_t> blocks_;
};

}  // namespace

Expected<void> DistributedText::State::gather(const AttentionInputs& in, const Plan& plan,
                                              const ContentScheme* content, const Tensor& out,
                                              const Tensor& log_sums) {
  POSENC_TRY(said, mpi::TokenTable::of(content));
  POSENC_TRY(all, gathered(in, said.values));
  ContentScheme scheme = content != nullptr ? *content : ContentScheme();
  if (said.values) {
    Tensor of_keys = all.said;
    of_keys.rank = 3;
    POSENC_CHECK(set_table(scheme, said.name, Table::borrow(of_keys)));
  }
  if (tokens() == 0) return {};
  const double start = MPI_Wtime();
  RepeatedQuery rows(in,
                     queries_for_bits(tokens(), layout.tokens(), in.q.shape[1] / in.k.shape[1]));
  POSENC_TRY(call, rows.inputs(against(in, all, whole)));
  Owned out_memory, sums_memory;
  const Tensor to = rows.room(out, out_memory);
  const Tensor wide_sums = log_sums ? mpi::of_width_one(log_sums) : log_sums;
  Tensor sums = rows.room(wide_sums, sums_memory);
  if (sums) sums.rank = 3;
  POSENC_CHECK(content != nullptr ? posenc::attend(call, scheme, plan, to)
                                  : posenc::attend(call, plan, to, sums));
  rows.take(to, out);
  rows.take(sums ? mpi::of_width_one(sums) : sums, wide_sums);
  work.computing += MPI_Wtime() - start;
  return {};
}

}  // namespace posenc
