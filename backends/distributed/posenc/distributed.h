// Attention over a text that no machine holds whole: each rank of an MPI communicator has the
// tokens that a layout gives it (layout.h), and every rank calls the same functions. A rank's
// tokens stand at their positions in the whole text, so that rotations, biases by distance and
// masks are those of one machine. Library posenc_mpi, MPI 3.
//
//   auto text = DistributedText::make(MPI_COMM_WORLD, *Layout::zigzag(tokens, ranks),
//     Positions::range(0, tokens));
//   text->attend({.q = my_q, .k = my_k, .v = my_v}, *compile(scheme, {.length = tokens}), my_out);
//
// A bad argument on one rank is an error on all, with that rank's message; so is a difference
// between ranks in what must be alike. A rank that dies ends the others by MPI's own means.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "posenc/content.h"
#include "posenc/gradients.h"
#include "posenc/layout.h"

namespace [[gnu::visibility("default")]] posenc {

// How keys and queries of different ranks meet.
enum class Strategy {
  // every rank takes all keys and values that it sees; the same bits as one machine, memory
  // O(tokens)
  gather,
  // blocks of keys and values pass, two at a time in memory, while the rank computes: memory
  // O(tokens/ranks)
  ring,
  // each rank computes some of the key heads over the whole text (Ulysses, 2309.14509):
  // O(tokens/ranks)
  heads,
};
constexpr std::string_view name(Strategy strategy) {
  constexpr std::string_view names[] = {"gather", "ring", "heads"};
  return names[static_cast<std::size_t>(strategy)];
}

// What the last call cost this rank.
struct Work {
  std::int64_t bytes_sent = 0, bytes_received = 0;
  double computing = 0, waiting = 0;  // seconds; waiting is what computing did not hide
  std::int64_t blocks = 0;            // of keys that were visited, its own among them
};

// Collective: the first error that a rank has, as an error of all.
Expected<void> agree_on_errors(MPI_Comm communicator, const Expected<void>& own);

class DistributedText {
 public:
  // Collective, as all that follows. `whole`: the positions of all tokens; one axis or several,
  // packed or not. The communicator is duplicated. MPI_THREAD_FUNNELED is enough, from the thread
  // that called MPI_Init. Errors: a layout for another number of ranks or tokens; ranks that
  // differ.
  static Expected<DistributedText> make(MPI_Comm communicator, const Layout& layout,
                                        const Positions& whole, Strategy strategy = Strategy::ring);
  DistributedText(DistributedText&&) noexcept;
  DistributedText& operator=(DistributedText&&) noexcept;
  ~DistributedText();

  const Positions& positions()
      const;  // of this rank's tokens: what rotate() and a model's layers take
  // Largest position of all ranks + 1. Scalings that depend on the length are compiled for it.
  std::int64_t length() const;
  const Work& work() const;

  // Attention of this rank's queries over the keys of all. `in` as posenc::attend takes it, of this
  // rank's tokens: q, k, v, mask.keep and .blocks, sink logits; in.queries and in.keys are not
  // read. out and log_sums as there. Errors: those of posenc::attend; a plan that does not hold for
  // the whole length; ranks that differ in shapes but for tokens, dtype or mask; with
  // Strategy::heads fewer key heads than ranks.
  Expected<void> attend(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                        const Tensor& log_sums = {});

  // The same for schemes that read the content, whose table of tokens is that of this rank's. They
  // count or weigh keys in the order of the text, which a ring does not keep. Those of one machine
  // in every bit, but for sums of gates with gather, within rounding.
  // Errors besides: those of posenc::attend (content.h), Strategy::ring, tables of tokens other
  // than one [batch][heads][keys].
  Expected<void> attend(const AttentionInputs& in, const ContentScheme& scheme, const Plan& plan,
                        const Tensor& out);

  // Gradients: by q, k and v those of this rank's tokens, by the plan's tables and sink logits
  // [heads] the sums over all ranks, the same on each. `out` and `log_sums` are what attend gave.
  // With Strategy::gather and ::heads the gradient by q has the bits of one machine; those by k and
  // v are sums over ranks in a fixed order, in float or double. Errors: those of attend and of
  // posenc::attend_backward.
  Expected<void> attend_backward(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                                 const Tensor& log_sums, const Tensor& out_gradient,
                                 const AttentionGradients& gradients);

 private:
  struct State;
  explicit DistributedText(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace posenc
