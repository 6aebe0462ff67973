// The checks of the arguments that the gradients of all schemes of content.h have in common.
#include <tuple>

#include "src/content/verbs.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc::detail {

Expected<BackwardArguments> backward_arguments(std::string_view where, const AttentionInputs& in,
                                               const Plan& plan, const Tensor& out_gradient,
                                               const ContentGradients& gradients) {
  POSENC_TRY(g, viewed(where, "out_gradient", out_gradient, 4));
  POSENC_TRY(checked, attend_arguments(rooms::attend_content, where, in, plan, dense_like(g)));
  BackwardArguments all{.in = checked, .out_gradient = g, .parts = query_parts(checked)};
  for (const auto& [name, gradient, like, to] :
       {std::tuple{"the gradient of q", &gradients.q, &checked.q, &all.q},
        {"the gradient of k", &gradients.k, &checked.k, &all.k},
        {"the gradient of v", &gradients.v, &checked.v, &all.v}}) {
    POSENC_TRY(view, gradient_like(where, name, *gradient, *like));
    *to = view;
  }
  POSENC_TRY(sinks, sink_gradient(where, gradients.sink_logits, in.sink_logits));
  all.sink_logits = sinks;
  return all;
}

}  // namespace posenc::detail
