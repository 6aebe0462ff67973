// A config.json from anywhere: every engine's profile reads it, its findings are text, and what is
// translated for each engine is compared with the model.
#include <string>
#include <vector>

#include "posenc/tools.h"
#include "tests/fuzz/check.h"

namespace posenc {
namespace {

void check_translation(const Model& model, const std::string& target) {
  const auto translation = translate(model, target);
  if (!translation) {
    fuzz::check_error(translation.error());
    return;
  }
  fuzz::check_text(translation->target);
  fuzz::must(!translation->largest_angle_difference || *translation->largest_angle_difference >= 0,
             "an angle's difference is a size");
}

}  // namespace
}  // namespace posenc

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  const auto model = read_config(fuzz::text_of({data, size}), "config.json");
  if (!model) {
    fuzz::check_error(model.error());
    return 0;
  }
  const auto findings = lint(*model);
  if (!findings) {
    fuzz::check_error(findings.error());
  } else {
    for (const Finding& finding : *findings) {
      fuzz::check_text(finding.message);
      fuzz::check_text(finding.cure);
    }
  }
  const auto mended = mend(fuzz::text_of({data, size}));
  fuzz::must(mended.has_value() && read_config(mended->text, "config.json").has_value(),
             "what is mended is read again");
  fuzz::must(mended->mended.empty() == (mended->text == fuzz::text_of({data, size})),
             "what is mended is told");
  std::vector<std::string> targets{"gguf", "params.json"};
  for (const Engine& engine : engines())
    targets.push_back(std::string(engine.name) + "@" + std::string(engine.version));
  for (const std::string& target : targets) check_translation(*model, target);
  return 0;
}
