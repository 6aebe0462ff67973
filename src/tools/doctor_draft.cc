// A draft beside its target: it may rotate by a base of its own, and must reach as far.
#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/doctor_parts.h"

namespace posenc::detail {

// A draft rotates as it was trained, so a base of its own may be right; a table that ends early
// never is.
void as_of_a_draft(std::int64_t target, const Model& draft, std::vector<Finding>& found) {
  const std::int64_t own = std::max(draft.context, reach(draft));
  std::erase_if(found, [](const Finding& one) {
    return one.code == "context" || one.code == "layers" || one.code == "two_models";
  });
  for (Finding& one : found) {
    if (one.severity != Severity::error) continue;
    one.severity = Severity::warning;
    one.message = "of a draft, which may have been trained so: " + one.message;
  }
  if (own > 0 && own < target) found.insert(found.begin(), shorter_draft(target, own));
}

std::optional<Finding> scaling_draft_lacks(const Model& target, const Model& draft) {
  const Rope *of_target = rope_of_text(target), *of_draft = rope_of_text(draft);
  if (!of_target || !of_draft || of_target->rope_theta != of_draft->rope_theta ||
      draft.context < target.context || !std::holds_alternative<Unscaled>(of_draft->scaling) ||
      !std::holds_alternative<Llama3>(of_target->scaling))
    return std::nullopt;
  return Finding{.code = "draft_scaling",
                 .severity = Severity::warning,
                 .expected = scaling_text(of_target->scaling),
                 .found = "none",
                 .message =
                     "the draft has its target's base and length, and none of its scaling: "
                     "where it was trained beside the target, a converter lost it "
                     "(speculators#574), and its guesses are taken less often",
                 .cure =
                     "copy rope_scaling of the target into the draft's config.json, where it "
                     "was trained with it"};
}

Finding shorter_draft(std::int64_t target, std::int64_t draft) {
  return {.code = "draft_length",
          .position = draft,
          .expected = grouped(target),
          .found = grouped(draft),
          .message =
              "the draft is made for fewer tokens than its target runs: the target's positions run "
              "past what it knows, which ends in guesses that are refused, or, where a table of "
              "cos and sin ends there (vLLM before July 2026), in a failed assertion",
          .cure =
              "raise max_position_embeddings of the draft's config.json to what the target runs, "
              "which lengthens its table and leaves its weights alone (guesses beyond its training "
              "may be taken less often); or take a draft that is made for more, or run without one "
              "for longer texts"};
}

}  // namespace posenc::detail
