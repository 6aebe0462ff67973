// The verbs of content.h: what each of its schemes would have to refuse, then the scheme's own loop.
#include "posenc/content.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "src/core/try.h"

namespace posenc {
namespace {

// What some scheme learns, by name.
struct Gradient {
  std::string_view name;
  Tensor ContentGradients::* member;
};
constexpr Gradient gradients_of_parts[] = {
    {"hidden_weight", &ContentGradients::hidden_weight},
    {"hidden_bias", &ContentGradients::hidden_bias},
    {"output_weight", &ContentGradients::output_weight},
    {"output_bias", &ContentGradients::output_bias},
    {"c", &ContentGradients::c},
    {"length_multiplier", &ContentGradients::length_multiplier},
    {"embeddings", &ContentGradients::embeddings},
    {"log_gates", &ContentGradients::log_gates},
    {"channel_gates", &ContentGradients::channel_gates},
    {"w", &ContentGradients::w},
    {"beta", &ContentGradients::beta},
    {"p_queries", &ContentGradients::p_queries},
    {"p_keys", &ContentGradients::p_keys}};

template <class S>
bool learns(Tensor ContentGradients::* part) {
  constexpr auto learned = S::learned();
  return std::ranges::find(learned, part) != learned.end();
}

template <class S>
Expected<void> check_learned(const ContentGradients& gradients) {
  for (const auto& [name, member] : gradients_of_parts) {
    if (!(gradients.*member) || learns<S>(member)) continue;
    return fail("attend_backward",
                std::string(S::name) + " learns no " + std::string(name) + " to have a gradient",
                shape_text(gradients.*member), "leave that gradient absent");
  }
  return {};
}

// Those whose softmax is the one of attend.
template <class S>
constexpr bool has_softmax = std::is_same_v<S, Fire> || std::is_same_v<S, Forgetting>;

template <class S>
Expected<void> check_softmax(std::string_view where, const Tensor& sink_logits, const Plan& plan) {
  if (has_softmax<S>) return {};
  if (plan.logits.softcap != 0)
    return fail(where, std::string(S::name) + " takes no softcap", number_text(plan.logits.softcap),
                "drop logits.softcap");
  if (!sink_logits) return {};
  return fail(where, std::string(S::name) + " takes no sink logits", shape_text(sink_logits),
              "drop them: fire and forgetting take some");
}

template <class S>
Expected<void> check_remainder(std::string_view where, const Tensor& remainder) {
  if (!remainder) return {};
  return fail(where, std::string(S::name) + " leaves no remainder", shape_text(remainder),
              "drop it: its weights sum to 1");
}

}  // namespace

Expected<void> attend(const AttentionInputs& in, const ContentScheme& scheme, const Plan& plan,
                      const Tensor& out, const Tensor& remainder) {
  return std::visit(
      [&]<class S>(const S& s) -> Expected<void> {
        POSENC_CHECK(check_softmax<S>("attend", in.sink_logits, plan));
        if constexpr (requires { s.attend(in, plan, out, remainder); }) {
          return s.attend(in, plan, out, remainder);
        } else {
          POSENC_CHECK(check_remainder<S>("attend", remainder));
          return s.attend(in, plan, out);
        }
      },
      scheme);
}

Expected<void> attend_reference(const AttentionInputs& in, const ContentScheme& scheme,
                                const Plan& plan, const Tensor& out, const Tensor& logits,
                                const Tensor& weights) {
  return std::visit(
      [&]<class S>(const S& s) -> Expected<void> {
        POSENC_CHECK(check_softmax<S>("attend", in.sink_logits, plan));
        return s.attend_reference(in, plan, out, logits, weights);
      },
      scheme);
}

Expected<void> attend_backward(const AttentionInputs& in, const ContentScheme& scheme,
                               const Plan& plan, const Tensor& out_gradient,
                               const ContentGradients& gradients,
                               const Tensor& remainder_gradient) {
  return std::visit(
      [&]<class S>(const S& s) -> Expected<void> {
        POSENC_CHECK(check_softmax<S>("attend_backward", in.sink_logits, plan));
        POSENC_CHECK(check_learned<S>(gradients));
        if constexpr (requires {
                        s.attend_backward(in, plan, out_gradient, gradients, remainder_gradient);
                      }) {
          return s.attend_backward(in, plan, out_gradient, gradients, remainder_gradient);
        } else {
          POSENC_CHECK(check_remainder<S>("attend_backward", remainder_gradient));
          return s.attend_backward(in, plan, out_gradient, gradients);
        }
      },
      scheme);
}

}  // namespace posenc
