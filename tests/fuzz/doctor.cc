// Whatever a person gives the doctor: told by its content, then judged alone and beside a model.
#include "posenc/doctor.h"

#include <string>
#include <vector>

#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const auto model = read_config(*bundled_config("qwen3-8b"), "config.json");
  fuzz::must(model.has_value(), "a bundled model is read");
  const Exhibit given = text_exhibit("given", std::string(fuzz::text_of({data, size})));
  fuzz::must(!given.as.empty(), "an exhibit says how it is taken");
  for (const bool beside : {false, true}) {
    std::vector<Exhibit> all;
    if (beside) all.push_back(model_exhibit("qwen3-8b", *model));
    all.push_back(given);
    const auto found = diagnose(std::move(all));
    if (!found) {
      fuzz::check_error(found.error());
      continue;
    }
    fuzz::must(!found->verdict.empty(), "a diagnosis has a verdict");
    fuzz::check_text(found->verdict);
    for (const Exhibit& one : found->evidence) fuzz::check_text(one.as);
    for (const Diagnosed& one : found->findings) {
      fuzz::check_text(one.finding.message);
      fuzz::check_text(one.finding.found);
    }
    fuzz::check_json(to_json(*found));
  }
  return 0;
}
