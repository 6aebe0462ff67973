// Apart from check.cc, so that the target of a file format links no model: a small binary is fuzzed
// several times as fast.
#include "fuzz/check.h"
#include "posenc/explain.h"
#include "src/text/json.h"

namespace posenc::fuzz {
namespace {

// Numbers of a plan that to_json would print.
std::size_t numbers_of(const Plan& plan) {
  std::size_t count = plan.rotate ? plan.rotate->frequency.size() : 0;
  const auto* table = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr;
  if (table && table->values.owned) count += table->values.owned->size();
  if (table) count += table->rows.row.size();
  if (plan.relative) count += plan.relative->rows.row.size();
  return count;
}

}  // namespace

void check_json(std::string_view text) {
  if (text.size() > detail::largest_json) return;
  const auto json = detail::parse_json(text, "to_json");
  must(json.has_value(), "to_json gives JSON", json ? "" : json.error().message());
}

void check_model(const Model& model) {
  check_text(model.family);
  check_text(model.dtype);
  for (const Warning& warning : model.warnings) check_text(warning.message);
  std::size_t numbers = 0;
  for (const LayerGroup& group : model.groups) {
    check_text(group.label);
    for (const Provenance& value : group.provenance) {
      check_text(value.value);
      check_text(value.detail);
    }
    const auto plan = compile(group);
    must(plan.has_value(), "a model that was read compiles", plan ? "" : plan.error().message());
    numbers += numbers_of(*plan);
  }
  constexpr std::size_t many = 20'000;  // beyond it an input takes too long to try many of them
  if (numbers > many) return;

  const auto explained = explain(model);
  must(explained.has_value(), "a model that was read explains",
       explained ? "" : explained.error().message());
  check_json(to_json(*explained));
  for (const std::int64_t length : {std::int64_t{1}, model.context, std::int64_t{1} << 20}) {
    if (const auto at = explain(model, Ask{.at = length, .layer = {}}); at) {
      for (const Warning& warning : at->warnings) check_text(warning.message);
    } else {
      check_error(at.error());
    }
  }
}

}  // namespace posenc::fuzz
