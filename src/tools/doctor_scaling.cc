// A scaling that somebody wrote on purpose: whether it is the published one, and whether any text
// needs it.
#include <string>
#include <vector>

#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/recipes.h"

namespace posenc::detail {

// A scaling that stands in the file acts on every text; within the trained length it only loses.
std::optional<Finding> scaling_unneeded(const Model& model, std::int64_t length) {
  for (const LayerGroup& group : model.groups) {
    const Rope* rope = rope_of(group);
    const Yarn* yarn = rope ? std::get_if<Yarn>(&rope->scaling) : nullptr;
    if (!yarn || is_tower(group.stack) || yarn->original_max_position_embeddings < 2) continue;
    const std::int64_t trained = yarn->original_max_position_embeddings;
    if (length == 0 || length > trained) continue;
    // Models that were trained on with it have no other rotation (DeepSeek, gpt-oss).
    if (!recipe_of(model)) continue;
    return Finding{.code = "scaling_unneeded",
                   .severity = Severity::warning,
                   .expected = "none",
                   .found = "yarn factor " + number_text(yarn->factor.value_or(1)),
                   .message = "YaRN of the file acts on every text, and " + grouped(length) +
                              " tokens are within the trained " + grouped(trained) +
                              ": short texts lose by it",
                   .cure = "drop rope_scaling where no text is longer than " + grouped(trained)};
  }
  return std::nullopt;
}

// A scaling that stands alone was written on purpose, and no cure undoes it.
void as_somebody_wrote(const Model& model, std::vector<Finding>& found) {
  const Recipe* recipe = recipe_of(model);
  for (Finding& one : found) {
    if (one.code != "rope_scaling") continue;
    const bool published = recipe && one.found.starts_with("yarn factor ") &&
                           one.found.ends_with(" " + std::to_string(recipe->trained));
    one.severity = published ? Severity::note : Severity::warning;
    one.message = "as it stands there: " + one.message;
    if (recipe)
      one.message += std::string(published ? "; it is what " : "; ") + std::string(recipe->source) +
                     " publish" +
                     (published ? ""
                                : " factor " + number_text(recipe->factor) + " of " +
                                      grouped(recipe->trained));
    one.cure = "short texts lose by it: where none is longer than the trained length, leave it out";
  }
}

}  // namespace posenc::detail
