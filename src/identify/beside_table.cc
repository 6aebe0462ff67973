// Tables of cosines and sines beside the model that they should be of: whichever layers rotate by
// them.
#include <optional>
#include <span>
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

// What the kinds of layers say of a table.
struct Beside {
  std::vector<std::int64_t> right = {};              // layers that rotate by it
  std::string says = {};                             // of the first kind of them, its file
  std::optional<std::vector<Finding>> nearest = {};  // of the kind that differs least
  bool fits = false;                                 // that kind has as many pairs as the table
  std::optional<Error> error = {};
};

void keep_nearest(std::vector<Finding> findings, Beside& out) {
  // Layers that have the table's base are nearer to it than those that have not.
  const bool nearer = out.fits && out.nearest->front().code == "rope_theta" &&
                      findings.front().code != "rope_theta";
  if (!std::exchange(out.fits, true) || nearer) out.nearest = std::move(findings);
}

// Whether layers that rotate by this plan rotate by the table.
bool rotates_by(const Identified& found, const Model& model, const LayerGroup& group,
                const Rotate& planned, Beside& out) {
  if (2 * planned.pairs() != found.dim) {
    if (!out.nearest)
      out.nearest = {{.code = "rotary_dim",
                      .layers = group.layers,
                      .expected = std::to_string(planned.pairs()) + " pairs",
                      .found = std::to_string(found.dim / 2) + " pairs",
                      .message = "the table is of other pairs than those that the model rotates",
                      .cure = "make it for the model's rotary_dim"}};
    return false;
  }
  // Which channels a table rotates it does not say.
  Rotate rotate = planned;
  rotate.slice.pairing = found.pairing;
  rotate.slice.first_dim = 0;
  rotate.slice.blocks = found.blocks;
  std::vector<Finding> findings = detail::beside_plan(found, model, group, rotate, false);
  if (findings.empty()) return true;
  keep_nearest(std::move(findings), out);
  return false;
}

void of_group(const Identified& found, const Model& model, const LayerGroup& group,
              std::int64_t length, Beside& out) {
  const std::int64_t lengths[] = {0, length};
  for (const std::int64_t compiled_for : std::span(lengths).first(length > 0 ? 2 : 1)) {
    const Expected<Plan> plan = compile(group, compiled_for);
    const Expected<void> takes =
        plan ? check_takes(rooms::identify, *plan) : std::unexpected(plan.error());
    if (!takes) {
      out.error = takes.error();
      continue;
    }
    if (!plan->rotate || !rotates_by(found, model, group, *plan->rotate, out)) continue;
    out.right.insert(out.right.end(), group.layers.begin(), group.layers.end());
    if (out.says.empty()) out.says = as_the_file_says(group);
    return;
  }
}

}  // namespace

Expected<std::vector<Finding>> beside_model(const IdentifiedTable& table, const Model& model,
                                            std::int64_t layer, std::int64_t length) {
  const Identified& found = table.rotation;
  if (found.verdict != Rotated::rotation) return std::vector<Finding>{};
  const LayerGroup* const one = detail::group_of(model, layer);
  if (layer >= 0 && !one)
    return fail("identify", "the model has a layer of that number", std::to_string(layer));
  Beside out;
  for (const LayerGroup& group : model.groups) {
    // Of a model of texts with pictures the text's layers.
    if (one && (layer >= 0 ? &group != one : group.stack != one->stack)) continue;
    of_group(found, model, group, length, out);
  }
  // A table whose angles were rounded is not all that the model asks for.
  const std::string what = only_notes(found.findings) ? "the table is" : "base and scaling are";
  if (!out.right.empty())
    return std::vector<Finding>{{.code = "table_agrees",
                                 .severity = Severity::note,
                                 .layers = std::move(out.right),
                                 .message = what + " what " + model.name + " asks for" +
                                            (out.says.empty() ? "" : ": " + out.says)}};
  if (out.nearest) return *std::move(out.nearest);
  if (out.error) return std::unexpected(*out.error);
  return std::vector<Finding>{{.code = "scheme",
                               .expected = "none",
                               .found = "a rotation",
                               .message = "the model does not rotate",
                               .cure = "which layers rotate the file tells: posenc explain"}};
}

}  // namespace posenc
