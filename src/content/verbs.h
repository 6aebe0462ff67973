// The verbs of content.h, for each of its schemes: content.cc calls them once it has checked what
// all schemes ask of their arguments. A scheme's own files define them.
#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/content.h"
#include "src/attention/arguments.h"

namespace posenc::detail {

// What a verb was called with.
struct ContentCall {
  std::string_view where;  // the verb's name, for errors
  const AttentionInputs& in;
  const Plan& plan;
  const AttendArguments& checked;  // the inputs, known to fit each other and the plan

  std::int64_t batch() const { return checked.q.shape[0]; }
  std::int64_t heads() const { return checked.q.shape[1]; }
  std::int64_t head_dim() const { return checked.q.shape[3]; }
  // Whether the mask keeps a key of a sequence, padding being what it hides.
  bool keeps(std::int64_t b, std::int64_t j) const {
    return in.mask.keep == nullptr || in.mask.keep[b * in.keys.size() + j] != 0;
  }
};

struct BackwardArguments {
  AttendArguments in;
  Tensor out_gradient;
  Tensor q, k, v;          // gradients, of four axes; absent where not wanted
  Tensor sink_logits;      // the same, as they were given
  std::int64_t parts = 0;  // of the queries of a key head, each with sums of its own for the keys

  // A number for each part, sequence and head: who adds to it is one thread.
  std::int64_t shares() const { return parts * in.q.shape[0] * in.q.shape[1]; }
};

// The arguments of all of them, checked. Errors: those of attend, a gradient of another shape.
Expected<BackwardArguments> backward_arguments(std::string_view where, const AttentionInputs& in,
                                               const Plan& plan, const Tensor& out_gradient,
                                               const ContentGradients& gradients);

struct BackwardCall : ContentCall {
  const BackwardArguments& backward;
  const ContentGradients& gradients;  // of what the scheme learns
};

Expected<void> attend_with(const Fire& fire, const ContentCall& call);
Expected<void> attend_with(const Cope& cope, const ContentCall& call);
Expected<void> attend_with(const Forgetting& forgetting, const ContentCall& call);
Expected<void> attend_with(const StickBreaking& stick, const ContentCall& call,
                           const Tensor& remainder);
Expected<void> attend_with(const Wall& wall, const ContentCall& call);
Expected<void> attend_with(const Path& path, const ContentCall& call);
Expected<void> attend_with(const GrapeAp& grape, const ContentCall& call);

// The same by rows; `weights`, where given, receives them.
Expected<void> reference_with(const Fire& fire, const ContentCall& call, const Tensor& weights);
Expected<void> reference_with(const Cope& cope, const ContentCall& call, const Tensor& weights);
Expected<void> reference_with(const Forgetting& forgetting, const ContentCall& call,
                              const Tensor& weights);
Expected<void> reference_with(const StickBreaking& stick, const ContentCall& call,
                              const Tensor& weights);
Expected<void> reference_with(const Wall& wall, const ContentCall& call, const Tensor& weights);
Expected<void> reference_with(const Path& path, const ContentCall& call, const Tensor& weights);
Expected<void> reference_with(const GrapeAp& grape, const ContentCall& call, const Tensor& weights);

Expected<void> backward_with(const Fire& fire, const BackwardCall& call);
Expected<void> backward_with(const Cope& cope, const BackwardCall& call);
Expected<void> backward_with(const Forgetting& forgetting, const BackwardCall& call);
Expected<void> backward_with(const StickBreaking& stick, const BackwardCall& call,
                             const Tensor& remainder_gradient);
Expected<void> backward_with(const Wall& wall, const BackwardCall& call);
Expected<void> backward_with(const Path& path, const BackwardCall& call);
Expected<void> backward_with(const GrapeAp& grape, const BackwardCall& call);

}  // namespace posenc::detail
