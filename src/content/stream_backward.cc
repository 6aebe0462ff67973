#include "src/content/stream_backward.h"

#include <string>

#include "src/kernels/check.h"

namespace posenc::detail {

Expected<BackwardArguments> backward_arguments(std::string_view where, const AttentionInputs& in,
                                               const Plan& plan, const Tensor& out_gradient,
                                               const ContentGradients& gradients) {
  const auto g = viewed(where, "out_gradient", out_gradient, 4);
  if (!g) return std::unexpected(g.error());
  auto checked = attend_arguments(where, in, plan, dense_like(*g));
  if (!checked) return std::unexpected(checked.error());
  if (auto ok = check_plain(where, plan); !ok) return std::unexpected(ok.error());
  BackwardArguments all{.in = *checked, .out_gradient = *g, .parts = query_parts(*checked)};
  for (const auto& [name, gradient, like, to] :
       {std::tuple{"the gradient of q", &gradients.q, &checked->q, &all.q},
        {"the gradient of k", &gradients.k, &checked->k, &all.k},
        {"the gradient of v", &gradients.v, &checked->v, &all.v}}) {
    const auto view = gradient_like(where, name, *gradient, *like);
    if (!view) return std::unexpected(view.error());
    *to = *view;
  }
  return all;
}

}  // namespace posenc::detail
