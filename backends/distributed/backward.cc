// Gradients: of gathered keys each rank sums over its queries and gives the owners theirs; in a
// ring the sums of a block go back to its owner while the next block is computed.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "backends/distributed/rounding.h"
#include "backends/distributed/sums.h"
#include "backends/distributed/text.h"
#include "src/core/try.h"

namespace posenc {

using mpi::Block;
using mpi::Bytes;
using mpi::copy_tokens;
using mpi::Owned;

namespace {

// Σ_c out_c · out_gradient_c of each query.
std::vector<double> dots_of(const Tensor& out, const Tensor& out_gradient) {
  std::vector<double> dots;
  for (std::int64_t b = 0; b < out.shape[0]; ++b)
    for (std::int64_t h = 0; h < out.shape[1]; ++h)
      for (std::int64_t t = 0; t < out.shape[2]; ++t) {
        double sum = 0;
        for (std::int64_t c = 0; c < out.shape[3]; ++c)
          sum +=
              out.get(out.offset(b, h, t, c)) * out_gradient.get(out_gradient.offset(b, h, t, c));
        dots.push_back(sum);
      }
  return dots;
}

// Gradients of the keys and values of some tokens, as a message.
struct KeyGradients {
  Tensor k, v;

  static std::int64_t bytes(const Tensor& k, const Tensor& v, std::int64_t tokens) {
    return k.shape[0] * k.shape[1] * tokens * (k.shape[3] + v.shape[3]) *
           static_cast<std::int64_t>(size_of(mpi::sum_dtype(k.dtype)));
  }
  KeyGradients(const Tensor& k_like, const Tensor& v_like, std::int64_t tokens, std::byte* memory) {
    const DType dtype = mpi::sum_dtype(k_like.dtype);
    k = Tensor::dense(memory, dtype, {k_like.shape[0], k_like.shape[1], tokens, k_like.shape[3]});
    v = Tensor::dense(memory + k.size() * static_cast<std::int64_t>(size_of(dtype)), dtype,
                      {v_like.shape[0], v_like.shape[1], tokens, v_like.shape[3]});
  }
};

// The gradient by the sinks' logits, −e^(sink − log_sum) · dot: [batch, heads, queries] of the
// rank's own, or its part of the sum of each head.
void differentiate_sinks(const AttentionInputs& in, const std::vector<double>& log_sums,
                         const std::vector<double>& dots, const Tensor& of_queries,
                         double* by_head) {
  const Tensor& sinks = in.sink_logits;
  std::size_t row = 0;
  for (std::int64_t b = 0; b < in.q.shape[0]; ++b)
    for (std::int64_t h = 0; h < in.q.shape[1]; ++h)
      for (std::int64_t t = 0; t < in.q.shape[2]; ++t, ++row) {
        const double sink = sinks.get(sinks.rank == 1 ? sinks.offset(h) : sinks.offset(b, h, t));
        // Without keys the sink is all there is, and the output zeros.
        const double by_sink = -std::exp(sink - log_sums[row]) * dots[row];
        if (by_head != nullptr)
          by_head[h] += by_sink;
        else if (of_queries)
          of_queries.set(of_queries.offset(b, h, t), by_sink);
      }
}

std::vector<double> numbers_of_rows(const Tensor& x) {
  std::vector<double> numbers;
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    for (std::int64_t h = 0; h < x.shape[1]; ++h)
      for (std::int64_t t = 0; t < x.shape[2]; ++t) numbers.push_back(x.get(x.offset(b, h, t)));
  return numbers;
}

void write_gradients(const KeyGradients& sum, const AttentionGradients& to) {
  if (to.k) mpi::round_into(sum.k, mpi::four_axes(to.k));
  if (to.v) mpi::round_into(sum.v, mpi::four_axes(to.v));
}

}  // namespace

Expected<void> DistributedText::State::ring_backward(const Backward& c) {
  const auto check = [&]() -> Expected<void> {
    if (c.log_sums && mpi::four_axes(c.out).shape == mpi::four_axes(c.out_gradient).shape)
      return {};
    return fail("attend_backward",
                "a ring needs the out and the log_sums that attend gave, and an "
                "out_gradient shaped like out",
                c.log_sums ? "another shape" : "no log_sums", "give attend log_sums to write");
  };
  POSENC_CHECK(ranks.agree(check()));
  const AttentionInputs& in = c.in;
  const Tensor out = mpi::four_axes(c.out), out_gradient = mpi::four_axes(c.out_gradient);
  std::vector<double> dots = dots_of(out, out_gradient), log_sums = numbers_of_rows(c.log_sums);
  const std::int64_t count = tokens();
  const auto of_rows = [&](std::vector<double>& numbers) {
    return Tensor::dense(numbers.data(), {out.shape[0], out.shape[1], count});
  };
  const DType dtype = mpi::sum_dtype(in.q.dtype);
  const Owned sum_q(dtype, in.q.shape[0], in.q.shape[1], count, in.q.shape[3]),
      part_q(dtype, in.q.shape[0], in.q.shape[1], count, in.q.shape[3]);
  Bytes memory = mpi::bytes_for(KeyGradients::bytes(in.k, in.v, count) + mpi::unit);
  const KeyGradients sum(in.k, in.v, count, memory.data());
  mpi::TableSums tables(c.gradients, in.q.shape[1]);
  const auto visit = [&](int rank, const Block& block, Bytes* back) -> Expected<void> {
    if (count == 0) return {};
    POSENC_TRY(keys, positions_of(rank));
    AttentionInputs call = against(in, block, keys);
    call.sink_logits = {};
    call.meanwhile = [this] { ranks.progress(); };
    const KeyGradients part(in.k, in.v, keys.size(), back->data());
    AttentionGradients to = tables.part();
    to.sink_logits = {};
    to.q = part_q.view(), to.k = part.k, to.v = part.v;
    POSENC_CHECK(posenc::attend_backward(call, c.plan, out_gradient, to,
                                         {.log_sums = of_rows(log_sums), .dots = of_rows(dots)}));
    mpi::add_to(part_q.view(), sum_q.view());
    tables.add_part();
    return {};
  };
  const Expected<void> done = pass_blocks(
      in, {},
      {.visit = visit,
       .back_bytes =
           [&](std::int64_t tokens) { return KeyGradients::bytes(in.k, in.v, tokens) + mpi::unit; },
       .take =
           [&](const Bytes& bytes) {
             const KeyGradients part(in.k, in.v, count, const_cast<std::byte*>(bytes.data()));
             mpi::add_to(part.k, sum.k);
             mpi::add_to(part.v, sum.v);
           }});
  POSENC_CHECK(ranks.agree(done));
  if (in.sink_logits && c.gradients.sink_logits && count > 0) {
    differentiate_sinks(in, log_sums, dots, c.gradients.sink_logits, tables.sinks());
    tables.add_part();
  }
  POSENC_CHECK(tables.sum_over(ranks));
  if (c.gradients.q) mpi::round_into(sum_q.view(), mpi::four_axes(c.gradients.q));
  write_gradients(sum, c.gradients);
  tables.write();
  return {};
}

Expected<void> DistributedText::State::gather_backward(const Backward& c) {
  const AttentionInputs& in = c.in;
  POSENC_TRY(all, gathered(in, {}));
  const std::int64_t whole_size = layout.tokens();
  Bytes memory = mpi::bytes_for(KeyGradients::bytes(in.k, in.v, whole_size) + mpi::unit);
  const KeyGradients of_all(in.k, in.v, whole_size, memory.data());
  mpi::TableSums tables(c.gradients, in.q.shape[1]);
  AttentionGradients to = tables.part();
  to.q = c.gradients.q, to.k = of_all.k, to.v = of_all.v;
  if (c.gradients.sink_logits && !to.sink_logits) to.sink_logits = c.gradients.sink_logits;
  Expected<void> done;
  if (tokens() > 0)
    done = posenc::attend_backward(against(in, all, whole), c.plan, c.out_gradient, to);
  POSENC_CHECK(ranks.agree(done));
  tables.add_part();

  std::vector<Bytes> out, arriving;
  const auto room = [&](std::int64_t tokens) {
    return mpi::bytes_for(KeyGradients::bytes(in.k, in.v, tokens) + mpi::unit);
  };
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<std::int64_t> theirs = layout.tokens_of(rank);
    out.push_back(room(std::ssize(theirs)));
    arriving.push_back(room(tokens()));
    if (theirs.empty()) continue;
    const KeyGradients part(in.k, in.v, std::ssize(theirs), out.back().data());
    copy_tokens(of_all.k, theirs, part.k, {});
    copy_tokens(of_all.v, theirs, part.v, {});
  }
  POSENC_CHECK(ranks.exchange(out, arriving));
  Bytes own_memory = room(tokens());
  const KeyGradients sum(in.k, in.v, tokens(), own_memory.data());
  for (Bytes& each : arriving) {
    const KeyGradients part(in.k, in.v, tokens(), each.data());
    mpi::add_to(part.k, sum.k);
    mpi::add_to(part.v, sum.v);
  }
  POSENC_CHECK(tables.sum_over(ranks));
  write_gradients(sum, c.gradients);
  tables.write();
  return {};
}

}  // namespace posenc
