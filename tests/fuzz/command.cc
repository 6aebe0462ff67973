// An engine's command line from anywhere beside a model: it is read or refused, what it makes of
// the model compiles, and its findings are text.
#include <string>

#include "posenc/tools.h"
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  static const std::string_view names[] = {"llama-3.1-8b", "qwen2.5-7b-yarn4", "gemma-3-4b",
                                           "deepseek-v3",  "gpt-oss-20b",      "phi-3.5-mini"};
  const auto model = read_config(*bundled_config(names[size % std::size(names)]), "config.json");
  fuzz::must(model.has_value(), "a bundled model is read");
  const std::string_view command = fuzz::text_of({data, size});
  const auto read = read_command(*model, command);
  if (!read) {
    fuzz::check_error(read.error());
    return 0;
  }
  fuzz::must(read->length >= 0, "a length is 0 or more");
  const auto findings = command_differences(*model, command);
  if (!findings) {
    fuzz::check_error(findings.error());
    return 0;
  }
  for (const Finding& finding : *findings) {
    fuzz::check_text(finding.message);
    fuzz::check_text(finding.found);
    fuzz::check_text(finding.cure);
  }
  return 0;
}
