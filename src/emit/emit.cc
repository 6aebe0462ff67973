// The verb of emit.h: which target, what it refuses, its text.
#include "posenc/emit.h"

#include <array>
#include <string>
#include <string_view>

#include "posenc/features.h"
#include "src/core/try.h"
#include "src/emit/computation.h"
#include "src/emit/printer.h"

namespace posenc {
namespace {

using emitting::Target;

// In the order of posenc emit --help.
constexpr std::array<const Target*, 7> every_target = {
    &emitting::triton_target,   &emitting::cuda_target,   &emitting::pallas_target,
    &emitting::wgsl_target,     &emitting::opencl_target, &emitting::c_target,
    &emitting::score_mod_target};

std::string words_of(FeatureSet has) {
  std::string words;
  for (const FeatureInfo& each : feature_list())
    if (has.has(each.feature)) words += (words.empty() ? "" : "; ") + std::string(each.words);
  return words.empty() ? "nothing" : words;
}

Expected<const Target*> target_named(std::string_view name) {
  std::string names;
  for (const Target* each : every_target) {
    if (each->about.name == name) return each;
    names += (names.empty() ? "" : ", ") + std::string(each->about.name);
  }
  return fail("emit", "a target must be one of " + names, name);
}

}  // namespace

std::span<const EmitTarget> emit_targets() {
  static const std::array<EmitTarget, every_target.size()> all = [] {
    std::array<EmitTarget, every_target.size()> made;
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = every_target[i]->about;
    return made;
  }();
  return all;
}

Expected<std::string> emit(const Plan& plan, std::string_view target, const EmitOptions& options) {
  POSENC_TRY(chosen, target_named(target));
  const bool scores = chosen == &emitting::score_mod_target;
  const Room& room = scores ? rooms::emit_score_mod : rooms::emit;
  POSENC_CHECK(check_takes(room, plan, "emit"));
  POSENC_TRY(checked_plan, checked(plan, options.head_dim));
  if (!plan.bias && (scores || !plan.rotate))
    return fail(
        "emit",
        scores ? "a plan must have a bias to be a score_mod"
               : "a plan must rotate or have a bias by distance",
        words_of(features(plan)),
        scores ? "take another target for its rotation" : "posenc explain says what it does");
  POSENC_TRY(what, emitting::computation_of(checked_plan, room, options));
  what.target = target;
  return chosen->text(what);
}

}  // namespace posenc
