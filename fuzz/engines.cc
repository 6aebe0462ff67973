// A config.json from anywhere: every engine's profile reads it, its findings are text, and what is translated for an
// engine is compared with the model.
#include <string>

#include "fuzz/check.h"
#include "posenc/tools.h"

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
  const auto all = engines();
  const Engine& engine = all[size % all.size()];
  const auto translation = translate(*model, engine.name);
  if (!translation) {
    fuzz::check_error(translation.error());
    return 0;
  }
  fuzz::check_text(translation->target);
  fuzz::must(!translation->largest_angle_difference || *translation->largest_angle_difference >= 0,
             "an angle's difference is a size");
  return 0;
}
