// Tables of cosines and sines beside the model that they should be of: whichever layers rotate by
// them.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/features.h"
#include "posenc/identify.h"
#include "src/identify/beside.h"

namespace posenc {
namespace {

// As the file says it: "rope_theta 20000, rope_type ntk, factor 8".
std::string as_the_file_says(const LayerGroup& group) {
  std::string text;
  for (const std::string_view field : {"rope_theta", "rope_type", "factor"})
    for (const Provenance& one : group.provenance)
      if (one.field == field)
        text += (text.empty() ? "" : ", ") + std::string(field) + " " + std::string(one.value);
  return text;
}

}  // namespace

Expected<std::vector<Finding>> beside_model(const IdentifiedTable& table, const Model& model,
                                            std::int64_t layer, std::int64_t length) {
  const Identified& found = table.rotation;
  if (found.verdict != Rotated::rotation) return std::vector<Finding>{};
  const LayerGroup* const one = detail::group_of(model, layer);
  if (layer >= 0 && !one)
    return fail("identify", "the model has a layer of that number", std::to_string(layer));
  std::vector<std::int64_t> right;
  std::string says;
  std::optional<std::vector<Finding>> nearest;
  std::optional<Error> error;
  bool fits = false;  // `nearest` is of as many pairs as the table
  for (const LayerGroup& group : model.groups) {
    // Of a model of texts with pictures the text's layers.
    if (one && (layer >= 0 ? &group != one : group.stack != one->stack)) continue;
    for (const std::int64_t compiled_for : {std::int64_t{0}, length}) {
      const Expected<Plan> plan = compile(group, compiled_for);
      if (!plan || !check_takes(rooms::identify, *plan)) {
        error = plan ? check_takes(rooms::identify, *plan).error() : plan.error();
        continue;
      }
      if (!plan->rotate) continue;
      if (2 * plan->rotate->pairs() != found.dim) {
        if (nearest) continue;
        nearest = {{.code = "rotary_dim",
                    .layers = group.layers,
                    .expected = std::to_string(plan->rotate->pairs()) + " pairs",
                    .found = std::to_string(found.dim / 2) + " pairs",
                    .message = "the table is of other pairs than those that the model rotates",
                    .cure = "make it for the model's rotary_dim"}};
        continue;
      }
      // Which channels a table rotates it does not say.
      Rotate rotate = *plan->rotate;
      rotate.slice.pairing = found.pairing;
      rotate.slice.first_dim = 0;
      rotate.slice.blocks = found.blocks;
      std::vector<Finding> findings = detail::beside_plan(found, model, group, rotate, false);
      if (findings.empty()) {
        right.insert(right.end(), group.layers.begin(), group.layers.end());
        if (says.empty()) says = as_the_file_says(group);
        break;
      }
      if (!std::exchange(fits, true)) nearest = std::move(findings);
    }
  }
  // A table whose angles were rounded is not all that the model asks for.
  const std::string what = only_notes(found.findings) ? "the table is" : "base and scaling are";
  if (!right.empty())
    return std::vector<Finding>{{.code = "table_agrees",
                                 .severity = Severity::note,
                                 .layers = std::move(right),
                                 .message = what + " what " + model.name + " asks for" +
                                            (says.empty() ? "" : ": " + says)}};
  if (nearest) return *std::move(nearest);
  if (error) return std::unexpected(*error);
  return std::vector<Finding>{{.code = "scheme",
                               .expected = "none",
                               .found = "a rotation",
                               .message = "the model does not rotate",
                               .cure = "which layers rotate the file tells: posenc explain"}};
}

}  // namespace posenc
