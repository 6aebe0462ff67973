// Attention over the whole text of some heads: tokens become heads before it and tokens again
// behind it.
#include "backends/distributed/by_heads.h"

#include <algorithm>
#include <utility>

#include "backends/distributed/rounding.h"
#include "backends/distributed/sums.h"
#include "backends/distributed/text.h"
#include "src/core/try.h"

namespace posenc {

using mpi::Heads;
using mpi::Owned;
using mpi::TextOfHeads;

namespace {

// [batch][token] numbers as a tensor that has them for each key head, so that they come along with
// these.
template <class Number>
Owned numbers_by_head(const Number* numbers, const Tensor& k) {
  Owned all(DType::f64, k.shape[0], k.shape[1], k.shape[2], 1);
  double* to = static_cast<double*>(all.view().data);
  for (std::int64_t b = 0; b < k.shape[0]; ++b)
    for (std::int64_t h = 0; h < k.shape[1]; ++h)
      to = std::copy_n(numbers + b * k.shape[2], k.shape[2], to);
  return all;
}

// And back: those of the first head.
template <class Number>
std::vector<Number> numbers_of(const Tensor& by_head) {
  std::vector<Number> all;
  for (std::int64_t b = 0; b < by_head.shape[0]; ++b)
    for (std::int64_t t = 0; t < by_head.shape[2]; ++t)
      all.push_back(static_cast<Number>(by_head.get(by_head.offset(b, 0, t))));
  return all;
}

Tensor of_rank_three(Tensor x) {
  x.rank = 3;
  return x;
}

}  // namespace

Expected<TextOfHeads> TextOfHeads::make(Communicator& ranks, const Layout& layout,
                                        const Positions& positions, const AttentionInputs& in,
                                        const Tensor& token_table, const Tensor& further) {
  TextOfHeads whole(ranks, layout, in);
  std::vector<Tensor> parts = {in.q, in.k, in.v};
  const auto also = [&](const Tensor& x) {
    if (!x) return std::size_t{0};
    parts.push_back(x);
    return parts.size() - 1;
  };
  const auto of_queries = [](const Tensor& x) {
    return x.rank == 3 ? mpi::of_width_one(x) : Tensor();
  };
  Owned keep_numbers, block_numbers;
  if (in.mask.keep != nullptr) keep_numbers = numbers_by_head(in.mask.keep, in.k);
  if (in.mask.blocks != nullptr) block_numbers = numbers_by_head(in.mask.blocks, in.k);
  const std::size_t said = also(of_queries(token_table)), sinks = also(of_queries(in.sink_logits)),
                    keep = also(keep_numbers.view()), blocks = also(block_numbers.view()),
                    more = also(further);
  POSENC_TRY(memory, whole.shares_.by_heads(parts));
  whole.memory_ = std::move(memory);
  const auto view = [&](std::size_t n) { return whole.memory_[n].view(); };
  AttentionInputs& call = whole.call_ = in;
  call.q = view(0), call.k = view(1), call.v = view(2);
  call.queries = call.keys = positions;
  call.mask.keep = nullptr;
  call.mask.blocks = call.mask.query_blocks = nullptr;
  if (keep != 0) {
    whole.keep_ = numbers_of<std::uint8_t>(view(keep));
    call.mask.keep = whole.keep_.data();
  }
  if (blocks != 0) {
    whole.blocks_ = numbers_of<std::int32_t>(view(blocks));
    call.mask.blocks = whole.blocks_.data();
  }
  if (sinks != 0)
    call.sink_logits = of_rank_three(view(sinks));
  else if (in.sink_logits)
    call.sink_logits = mpi::some_heads(in.sink_logits, whole.heads(), 0);
  if (said != 0) whole.token_table_ = of_rank_three(view(said));
  if (more != 0) whole.further_ = view(more);
  return whole;
}

Expected<void> DistributedText::State::by_heads(const AttentionInputs& in, const Plan& plan,
                                                const ContentScheme* content, const Tensor& out,
                                                const Tensor& log_sums) {
  POSENC_TRY(said, mpi::TokenTable::of(content));
  POSENC_TRY(mine, TextOfHeads::make(ranks, layout, whole, in, said.values));
  const double start = MPI_Wtime();
  const AttentionInputs& call = mine.inputs();
  const Tensor& q = call.q;
  const Owned of_heads(out.dtype, q.shape[0], q.shape[1], q.shape[2], call.v.shape[3]);
  Owned sums;
  if (log_sums) sums = Owned(log_sums.dtype, q.shape[0], q.shape[1], q.shape[2], 1);
  const Plan own_plan = detail::some_heads(plan, mine.heads(), mine.key_heads());
  const auto attend_content = [&]() -> Expected<void> {
    POSENC_TRY(scheme, mpi::scheme_of(*content, in.q.shape[1], mine.heads()));
    if (said.values) POSENC_CHECK(set_table(scheme, said.name, Table::borrow(mine.token_table())));
    return posenc::attend(call, scheme, own_plan, of_heads.view());
  };
  const Expected<void> done = content != nullptr ? attend_content()
                                                 : posenc::attend(call, own_plan, of_heads.view(),
                                                                  of_rank_three(sums.view()));
  work.computing += MPI_Wtime() - start;
  std::vector<Tensor> from = {of_heads.view()}, to = {out};
  if (log_sums) from.push_back(sums.view()), to.push_back(mpi::of_width_one(log_sums));
  POSENC_CHECK(mine.shares().by_tokens(from, to));
  return done;
}

Expected<void> DistributedText::State::heads_backward(const Backward& c) {
  POSENC_TRY(mine,
             TextOfHeads::make(ranks, layout, whole, c.in, {}, mpi::four_axes(c.out_gradient)));
  const AttentionInputs& call = mine.inputs();
  const DType dtype = mpi::sum_dtype(call.q.dtype);
  const auto zeros = [&](const Tensor& like) {
    return Owned(dtype, like.shape[0], like.shape[1], like.shape[2], like.shape[3]);
  };
  const Owned by_q = zeros(call.q), by_k = zeros(call.k), by_v = zeros(call.v);
  Owned by_sink;
  mpi::TableSums tables(c.gradients, c.in.q.shape[1]);
  AttentionGradients to = tables.of_heads(mine.heads(), mine.key_heads());
  to.q = by_q.view(), to.k = by_k.view(), to.v = by_v.view();
  const bool sink_of_queries = c.gradients.sink_logits && c.in.sink_logits.rank == 3;
  if (sink_of_queries) {
    by_sink = Owned(dtype, call.q.shape[0], call.q.shape[1], call.q.shape[2], 1);
    to.sink_logits = of_rank_three(by_sink.view());
  }
  const Expected<void> done = posenc::attend_backward(
      call, detail::some_heads(c.plan, mine.heads(), mine.key_heads()), mine.further(), to);
  tables.add_part();

  // What comes back by tokens has the dtype of the sums.
  const Owned own_q = zeros(c.in.q), own_k = zeros(c.in.k), own_v = zeros(c.in.v);
  Owned own_sink;
  std::vector<Tensor> from = {by_q.view(), by_k.view(), by_v.view()},
                      into = {own_q.view(), own_k.view(), own_v.view()};
  if (sink_of_queries) {
    own_sink = Owned(dtype, c.in.q.shape[0], c.in.q.shape[1], c.in.q.shape[2], 1);
    from.push_back(by_sink.view()), into.push_back(own_sink.view());
  }
  POSENC_CHECK(mine.shares().by_tokens(from, into));
  POSENC_CHECK(tables.sum_over(ranks));
  POSENC_CHECK(ranks.agree(done));
  for (const auto& [sum, gradient] :
       {std::pair{&own_q, &c.gradients.q}, {&own_k, &c.gradients.k}, {&own_v, &c.gradients.v}})
    if (*gradient) mpi::round_into(sum->view(), mpi::four_axes(*gradient));
  if (sink_of_queries) mpi::round_into(own_sink.view(), mpi::of_width_one(c.gradients.sink_logits));
  tables.write();
  return {};
}

}  // namespace posenc
