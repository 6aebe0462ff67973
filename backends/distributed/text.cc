// Arguments checked on every rank and agreed on by all, and blocks of keys passed from rank to
// rank.
#include "backends/distributed/text.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "backends/distributed/heads.h"
#include "backends/distributed/plan_fingerprint.h"
#include "posenc/features.h"
#include "src/core/try.h"

namespace posenc {
namespace {

using mpi::Block;
using mpi::BlockShape;
using mpi::Bytes;
using mpi::Fingerprint;

void add_to(Fingerprint& print, const Mask& mask) {
  print.add(mask.causal, mask.window, mask.chunk, mask.prefix);
}

Tensor no_queries(Tensor x) {
  if (x) x.shape[2] = 0;
  return x;
}

Expected<void> check_tokens(std::string_view name, const Tensor& x, std::int64_t tokens, int rank) {
  if (x.shape[2] == tokens) return {};
  return fail("attend",
              std::string(name) + " must have the " + std::to_string(tokens) + " tokens of rank " +
                  std::to_string(rank),
              std::to_string(x.shape[2]), "Layout::tokens_of lists them");
}

// All that one rank can see: a call without queries checks the rest.
Expected<void> check_own(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                         const ContentScheme* content, std::int64_t length) {
  if (plan.valid && length > plan.valid->to)
    return fail("attend",
                "the plan must hold for the whole text's length " + std::to_string(length),
                "one for lengths up to " + std::to_string(plan.valid->to),
                "compile the scheme for DistributedText::length()");
  if (in.mask.keys != nullptr)
    return fail("attend", "the mask must show keys by position", "mask.keys",
                "each rank has some of the keys: lists of ids need the whole text on one");
  AttentionInputs without = in;
  without.q = no_queries(in.q);
  without.queries = in.queries.slice(0, 0, 0);
  if (in.sink_logits.rank == 3) without.sink_logits = no_queries(in.sink_logits);
  without.mask.blocks = nullptr;
  // Whether keys come in order, the whole text tells.
  if (content != nullptr) without.keys = Positions::range(0, in.keys.size());
  return content != nullptr ? attend(without, *content, plan, no_queries(out))
                            : attend(without, plan, no_queries(out));
}

}  // namespace

Tensor mpi::four_axes(const Tensor& x) {
  static double nothing[1];
  Tensor view = x;
  if (view.data == nullptr && view.rank > 0 && view.size() == 0) view.data = nothing;
  return view && view.rank <= Tensor::max_rank ? view.with_rank(Tensor::max_rank) : view;
}

Expected<void> agree_on_errors(MPI_Comm communicator, const Expected<void>& own) {
  POSENC_TRY(ranks, mpi::Communicator::duplicate(communicator));
  return ranks.agree(own);
}

DistributedText::DistributedText(std::unique_ptr<State> state) : state_(std::move(state)) {}
DistributedText::DistributedText(DistributedText&&) noexcept = default;
DistributedText& DistributedText::operator=(DistributedText&&) noexcept = default;
DistributedText::~DistributedText() = default;
const Positions& DistributedText::positions() const { return state_->own; }
std::int64_t DistributedText::length() const { return state_->length; }
const Work& DistributedText::work() const { return state_->work; }

Expected<DistributedText> DistributedText::make(MPI_Comm communicator, const Layout& layout,
                                                const Positions& whole, Strategy strategy) {
  POSENC_TRY(ranks, mpi::Communicator::duplicate(communicator));
  auto state = std::make_unique<State>(State{.ranks = std::move(ranks),
                                             .layout = layout,
                                             .whole = whole,
                                             .strategy = strategy,
                                             .length = whole.length()});
  const int size = state->ranks.size();
  const auto prepared = [&]() -> Expected<void> {
    if (layout.ranks() != size)
      return fail("DistributedText",
                  "the layout must be for the communicator's " + std::to_string(size) + " ranks",
                  std::to_string(layout.ranks()));
    for (int rank = 0; rank < size; ++rank) {
      POSENC_TRY(own, layout.positions(rank, whole));
      state->of_ranks.emplace_back(layout, rank, own);
      if (rank == state->ranks.rank()) state->own = own;
    }
    return {};
  };
  Fingerprint print;
  print.add(static_cast<int>(strategy), layout.tokens(), layout.ranks(), whole.length(),
            whole.axes(), whole.batch());
  for (std::int64_t rank = 0; rank < layout.ranks(); ++rank)
    print.add(layout.size(rank), layout.token(rank, 0), layout.token(rank, layout.size(rank) / 2));
  POSENC_CHECK(state->ranks.agree(prepared(), print));
  return DistributedText(std::move(state));
}

Expected<AttentionInputs> DistributedText::State::checked(const AttentionInputs& in,
                                                          const Plan& plan, const Tensor& out,
                                                          const ContentScheme* content) {
  work = {
      .bytes_sent = -ranks.sent(), .bytes_received = -ranks.received(), .waiting = -ranks.waited()};
  AttentionInputs own_inputs = in;
  own_inputs.q = mpi::four_axes(in.q);
  own_inputs.k = mpi::four_axes(in.k);
  own_inputs.v = mpi::four_axes(in.v);
  own_inputs.queries = own_inputs.keys = own;
  own_inputs.mask.query_blocks = in.mask.blocks;
  const auto check = [&]() -> Expected<void> {
    if (strategy == Strategy::ring && content != nullptr)
      return fail("attend",
                  "a scheme that reads the content must see keys in the order of the text",
                  info(*content).name, "use Strategy::gather or Strategy::heads");
    POSENC_CHECK(mpi::TokenTable::of(content));
    POSENC_CHECK(check_takes(rooms::ranks, plan, "attend"));
    POSENC_CHECK(check_own(own_inputs, plan, mpi::four_axes(out), content, length));
    for (const auto& [name, x] : {std::pair{"q", own_inputs.q}, {"k", own_inputs.k}})
      POSENC_CHECK(check_tokens(name, x, tokens(), ranks.rank()));
    const std::int64_t kv_heads = own_inputs.k.shape[1];
    if (strategy == Strategy::heads && kv_heads < ranks.size())
      return fail("attend",
                  "with Strategy::heads there must be a key head for each of " +
                      std::to_string(ranks.size()) + " ranks",
                  std::to_string(kv_heads), "use Strategy::ring");
    return check_tokens("out", mpi::four_axes(out), tokens(), ranks.rank());
  };
  const Expected<void> mine = check();
  Fingerprint print;
  if (mine) BlockShape::of(own_inputs).add_to(print);
  add_to(print, in.mask);
  mpi::PlanFingerprint(print).add(plan);
  print.add(in.sink_logits.rank, content != nullptr ? content->index() + 1 : 0);
  POSENC_CHECK(ranks.agree(mine, print));
  return own_inputs;
}

AttentionInputs DistributedText::State::against(const AttentionInputs& in, const Block& block,
                                                const Positions& keys) const {
  AttentionInputs other = in;
  other.k = block.k;
  other.v = block.v;
  other.keys = keys;
  other.mask.keep = block.keep;
  other.mask.blocks = block.blocks;
  return other;
}

Expected<void> DistributedText::State::pass_blocks(const AttentionInputs& in,
                                                   const Tensor& token_table,
                                                   const Passing& passing) {
  const BlockShape shape = BlockShape::of(in, token_table);
  const int size = ranks.size(), me = ranks.rank();
  const auto visits = [&](int of_queries, int of_keys) {
    return of_ranks[static_cast<std::size_t>(of_queries)].see(
        of_ranks[static_cast<std::size_t>(of_keys)], in.mask);
  };
  const auto before = [&](int step) { return (me - step + size) % size; };
  const auto behind = [&](int step) { return (me + step) % size; };
  const bool returns = static_cast<bool>(passing.take);
  Block mine(shape, tokens()), current, next;
  mine.take(in, token_table);
  Bytes back, sent_back, received_back;
  Expected<void> done = {};
  const auto wait = [&]() -> Expected<void> {
    POSENC_CHECK(ranks.wait());
    if (!received_back.empty()) passing.take(received_back);
    received_back.clear();
    return {};
  };
  for (int step = 0; step < size; ++step) {
    const int here = before(step);
    const bool visited = step == 0 || visits(me, here);
    if (step + 1 < size && visits(me, before(step + 1))) {
      next = Block(shape, tokens_of(before(step + 1)));
      POSENC_CHECK(ranks.receive(next.bytes, before(step + 1)));
    }
    if (step + 1 < size && visits(behind(step + 1), me)) {
      POSENC_CHECK(ranks.send(mine.bytes, behind(step + 1)));
    }
    if (visited) {
      if (returns) back = mpi::bytes_for(passing.back_bytes(tokens_of(here)));
      const double start = MPI_Wtime();
      if (done) done = passing.visit(here, step == 0 ? mine : current, returns ? &back : nullptr);
      work.computing += MPI_Wtime() - start;
      ++work.blocks;
    }
    POSENC_CHECK(wait());
    std::swap(current, next);
    if (!returns || step == 0) {
      if (returns) passing.take(back);
      continue;
    }
    if (visited) {
      std::swap(sent_back, back);
      POSENC_CHECK(ranks.send(sent_back, here, mpi::Communicator::Kind::gradient));
    }
    if (visits(behind(step), me)) {
      received_back = mpi::bytes_for(passing.back_bytes(tokens()));
      POSENC_CHECK(ranks.receive(received_back, behind(step), mpi::Communicator::Kind::gradient));
    }
  }
  POSENC_CHECK(wait());
  return done;
}

Expected<void> DistributedText::State::agreed(const Expected<void>& done) {
  work.bytes_sent += ranks.sent();
  work.bytes_received += ranks.received();
  work.waiting += ranks.waited();
  return ranks.agree(done);
}

Expected<Block> DistributedText::State::gathered(const AttentionInputs& in,
                                                 const Tensor& token_table) {
  Block all(BlockShape::of(in, token_table), layout.tokens());
  POSENC_CHECK(pass_blocks(in, token_table, {.visit = [&](int rank, const Block& block, Bytes*) {
                             all.take(block, layout.tokens_of(rank));
                             return Expected<void>();
                           }}));
  return all;
}

Expected<void> DistributedText::attend(const AttentionInputs& in, const Plan& plan,
                                       const Tensor& out, const Tensor& log_sums) {
  POSENC_TRY(own, state_->checked(in, plan, out));
  const Tensor to = mpi::four_axes(out);
  switch (state_->strategy) {
    case Strategy::gather: return state_->agreed(state_->gather(own, plan, nullptr, to, log_sums));
    case Strategy::heads: return state_->agreed(state_->by_heads(own, plan, nullptr, to, log_sums));
    case Strategy::ring: break;
  }
  return state_->agreed(state_->ring(own, plan, to, log_sums));
}

Expected<void> DistributedText::attend(const AttentionInputs& in, const ContentScheme& scheme,
                                       const Plan& plan, const Tensor& out) {
  POSENC_TRY(own, state_->checked(in, plan, out, &scheme));
  const Tensor to = mpi::four_axes(out);
  return state_->agreed(state_->strategy == Strategy::gather
                            ? state_->gather(own, plan, &scheme, to, {})
                            : state_->by_heads(own, plan, &scheme, to, {}));
}

Expected<void> DistributedText::attend_backward(const AttentionInputs& in, const Plan& plan,
                                                const Tensor& out, const Tensor& log_sums,
                                                const Tensor& out_gradient,
                                                const AttentionGradients& gradients) {
  POSENC_TRY(own, state_->checked(in, plan, out));
  const State::Backward call{own, plan, out, log_sums, out_gradient, gradients};
  switch (state_->strategy) {
    case Strategy::gather: return state_->agreed(state_->gather_backward(call));
    case Strategy::heads: return state_->agreed(state_->heads_backward(call));
    case Strategy::ring: break;
  }
  return state_->agreed(state_->ring_backward(call));
}

}  // namespace posenc
