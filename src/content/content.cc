// The verbs of content.h: what each of its schemes would have to refuse, then the scheme's own
// loop.
#include "posenc/content.h"

#include <algorithm>
#include <string>

#include "src/attention/arguments.h"
#include "src/content/verbs.h"
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

Expected<void> check_learned(const ContentScheme& scheme, const ContentGradients& gradients) {
  const SchemeInfo& about = info(scheme);
  const auto learns = [&](const auto& parts, std::string_view name) {
    return std::ranges::any_of(
        parts, [&](const auto& part) { return part.name == name && part.holds.learned; });
  };
  for (const auto& [name, member] : gradients_of_parts) {
    if (!(gradients.*member) || learns(about.fields, name) || learns(about.tables, name)) continue;
    return fail("attend_backward",
                std::string(about.name) + " learns no " + std::string(name) + " to have a gradient",
                shape_text(gradients.*member), "leave that gradient absent");
  }
  return {};
}

// Those that know what they add before q·k go with the softmax of attend.
template <class S>
Expected<void> check_softmax(std::string_view where, const Tensor& sink_logits, const Plan& plan) {
  if (S::reads != Reads::keys) return {};
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
  constexpr std::string_view where = "attend";
  return std::visit(
      [&]<class S>(const S& s) -> Expected<void> {
        constexpr bool leaves_some =
            requires(const detail::ContentCall& call) { detail::attend_with(s, call, remainder); };
        POSENC_CHECK(check_softmax<S>(where, in.sink_logits, plan));
        if constexpr (!leaves_some) POSENC_CHECK(check_remainder<S>(where, remainder));
        POSENC_TRY(checked, detail::attend_arguments(rooms::attend_content, where, in, plan, out));
        const detail::ContentCall call{where, in, plan, checked};
        if constexpr (leaves_some) {
          return detail::attend_with(s, call, remainder);
        } else {
          return detail::attend_with(s, call);
        }
      },
      scheme);
}

Expected<void> attend_reference(const AttentionInputs& in, const ContentScheme& scheme,
                                const Plan& plan, const Tensor& out, const Tensor& logits,
                                const Tensor& weights) {
  constexpr std::string_view where = "attend";
  return std::visit(
      [&]<class S>(const S& s) -> Expected<void> {
        POSENC_CHECK(check_softmax<S>(where, in.sink_logits, plan));
        POSENC_TRY(checked,
                   detail::attend_arguments(rooms::attend_content, where, in, plan, out, logits));
        return detail::reference_with(s, {where, in, plan, checked}, weights);
      },
      scheme);
}

Expected<void> attend_backward(const AttentionInputs& in, const ContentScheme& scheme,
                               const Plan& plan, const Tensor& out_gradient,
                               const ContentGradients& gradients,
                               const Tensor& remainder_gradient) {
  constexpr std::string_view where = "attend_backward";
  return std::visit(
      [&]<class S>(const S& s) -> Expected<void> {
        constexpr bool leaves_some = requires(const detail::BackwardCall& call) {
          detail::backward_with(s, call, remainder_gradient);
        };
        POSENC_CHECK(check_softmax<S>(where, in.sink_logits, plan));
        POSENC_CHECK(check_learned(scheme, gradients));
        if constexpr (!leaves_some) POSENC_CHECK(check_remainder<S>(where, remainder_gradient));
        POSENC_TRY(checked, detail::backward_arguments(where, in, plan, out_gradient, gradients));
        const detail::BackwardCall call{{where, in, plan, checked.in}, checked, gradients};
        if constexpr (leaves_some) {
          return detail::backward_with(s, call, remainder_gradient);
        } else {
          return detail::backward_with(s, call);
        }
      },
      scheme);
}

Tensor ContentGradients::* gradient_named(std::string_view name) {
  const auto* const found = std::ranges::find(gradients_of_parts, name, &Gradient::name);
  return found != std::end(gradients_of_parts) ? found->member : nullptr;
}

std::vector<LearnedNumbers> learned(const ContentScheme& scheme) {
  std::vector<LearnedNumbers> all;
  const std::vector<FieldSetting> fields = settings(scheme);
  const SchemeInfo& about = info(scheme);
  // As long as the list that has no other axis.
  const auto extent = [&](Axis axis) {
    std::int64_t size = 0;
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (about.fields[i].holds.axes == Axes{axis})
        size = std::ssize(std::get<std::vector<double>>(fields[i].value));
    return size;
  };
  for (const FieldInfo& field : about.fields) {
    if (!field.holds.learned) continue;
    std::vector<std::int64_t> shape;
    for (const Axis axis : field.holds.axes) shape.push_back(extent(axis));
    all.push_back({field.name, shape.empty() ? std::vector<std::int64_t>{1} : shape});
  }
  for (const auto& [name, doc, holds] : about.tables) {
    const Tensor& given = table_of(scheme, name)->values;
    if (holds.learned && given)
      all.push_back({name, {given.shape.begin(), given.shape.begin() + given.rank}});
  }
  return all;
}

}  // namespace posenc
