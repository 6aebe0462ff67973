// A file beside the published models that are built alike: a length that somebody raised by hand.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/doctor_parts.h"

namespace posenc::detail {
namespace {

const Rope* plain_rope(const Model& model) {
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
    if (rope && std::holds_alternative<Unscaled>(rope->scaling)) return rope;
    if (rope) return nullptr;
  }
  return nullptr;
}

// Of one family, with as many layers and heads, and turning by one base.
bool are_built_alike(const Model& a, const Model& b) {
  const Rope *rope = plain_rope(a), *other = plain_rope(b);
  return rope && other && a.family == b.family && could_be_one_model(a, b) &&
         rope->rope_theta == other->rope_theta;
}

}  // namespace

std::optional<Finding> raised_context(const Model& model) {
  if (model.context <= 0 || widest_window(model) > 0 || !plain_rope(model)) return std::nullopt;
  std::optional<Model> longest;
  std::vector<BundledModel> known = bundled_models();
  std::ranges::copy(published_models(), std::back_inserter(known));
  for (const BundledModel& one : known) {
    const Expected<Model> theirs = read_model(one.name);
    if (theirs && are_built_alike(model, *theirs) &&
        (!longest || theirs->context > longest->context))
      longest = *theirs;
  }
  if (!longest || longest->context <= 0 || model.context <= longest->context) return std::nullopt;
  return Finding{
      .code = "claimed_context",
      .severity = Severity::warning,
      .position = longest->context,
      .expected = grouped(longest->context),
      .found = grouped(model.context),
      .message = longest->name + " has these layers, heads and base, and is made for " +
                 grouped(longest->context) +
                 " tokens; beyond are angles that it was not trained on, unless this file's model "
                 "was trained further",
      .cure = "where the number was raised by hand: posenc extend " + longest->name + " --to " +
              std::to_string(model.context) + " plans a scaling"};
}

}  // namespace posenc::detail
