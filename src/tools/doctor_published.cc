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

// Whether all its text rotates, where it does, by frequencies of a base alone: a scaling or divisors
// of the file may be what its length was made by.
bool is_unscaled(const Model& model) {
  bool rotates = false;
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = is_tower(group.stack) ? nullptr : rope_of(group);
    if (!rope) continue;
    rotates = true;
    if (!std::holds_alternative<Unscaled>(rope->scaling) || !rope->frequency_factors.empty())
      return false;
  }
  return rotates;
}

// Whether `other` has layers that mix tokens as these do, rotate by their base, and slide a window
// where these do: a part of its own makes another model of the same size.
bool has_such_layers(const Model& other, const LayerGroup& group) {
  const Rope* rope = rope_of(group);
  return std::ranges::any_of(other.groups, [&](const LayerGroup& theirs) {
    const Rope* base = rope_of(theirs);
    return theirs.stack == group.stack && theirs.mixer == group.mixer &&
           (rope ? base && base->rope_theta == rope->rope_theta : base == nullptr) &&
           (!group.window || theirs.window);
  });
}

// Of one family, with as many layers and heads, and all parts of `a` in `b`.
bool are_built_alike(const Model& a, const Model& b) {
  return a.family == b.family && could_be_one_model(a, b) && is_unscaled(b) &&
         std::ranges::all_of(a.groups, [&](const LayerGroup& group) {
           return is_tower(group.stack) || has_such_layers(b, group);
         });
}

}  // namespace

std::optional<Finding> raised_context(const Model& model) {
  if (model.context <= 0 || widest_window(model) > 0 || !is_unscaled(model)) return std::nullopt;
  std::optional<Model> longest;
  std::vector<BundledModel> known = bundled_models();
  std::ranges::copy(published_models(), std::back_inserter(known));
  for (const BundledModel& one : known) {
    const Expected<Model> theirs = read_model(one.name);
    if (theirs && are_built_alike(model, *theirs) &&
        (!longest || theirs->context > longest->context))
      longest = *theirs;
  }
  // 131,072 and 128,000 are one length, as two people write it.
  constexpr double alike = 1.1;
  if (!longest || longest->context <= 0 ||
      static_cast<double>(model.context) <= alike * static_cast<double>(longest->context))
    return std::nullopt;
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
