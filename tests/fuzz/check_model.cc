// Apart from check.cc, so that the target of a file format links no model: a small binary is fuzzed
// several times as fast.
#include <ctime>
#include <string>

#include "posenc/explain.h"
#include "src/text/json.h"
#include "tests/fuzz/check.h"

namespace posenc::fuzz {
namespace {

// What an explanation may take, whatever the file: an eighth of the memory budget as text, of which
// a page or a script has copies, and processor time, of which sanitizers take some five times as
// much.
constexpr std::size_t most_text = std::size_t{32} << 20;
constexpr double most_seconds = 10;

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
  const std::clock_t start = std::clock();
  for (const LayerGroup& group : model.groups) {
    check_text(group.label);
    for (const Provenance& value : group.provenance) {
      check_text(value.value);
      check_text(value.detail);
    }
    const auto plan = compile(group);
    must(plan.has_value(), "a model that was read compiles", plan ? "" : plan.error().message());
  }

  const auto explained = explain(model);
  must(explained.has_value(), "a model that was read explains",
       explained ? "" : explained.error().message());
  const std::string text = to_json(*explained);
  must(text.size() <= most_text, "an explanation is short", std::to_string(text.size()));
  check_json(text);
  for (const std::int64_t length : {std::int64_t{1}, model.context, std::int64_t{1} << 20}) {
    if (const auto at = explain(model, Ask{.at = length, .layer = {}}); at) {
      for (const Warning& warning : at->warnings) check_text(warning.message);
    } else {
      check_error(at.error());
    }
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  must(seconds <= most_seconds, "an explanation is soon made", std::to_string(seconds));
}

}  // namespace posenc::fuzz
