// An engine's log from anywhere beside a model: it is read or refused, and its findings are text
// with lines of the log.
#include <algorithm>
#include <string>

#include "posenc/tools.h"
#include "tests/fuzz/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace posenc;
  static const std::string_view names[] = {"llama-3.1-8b", "qwen2.5-7b-yarn4", "gemma-3-4b",
                                           "deepseek-v3",  "bloom-176b",       "internlm2.5-7b"};
  const auto model = read_config(*bundled_config(names[size % std::size(names)]), "config.json");
  fuzz::must(model.has_value(), "a bundled model is read");
  const std::string_view log = fuzz::text_of({data, size});
  const auto findings = log_differences(*model, log);
  if (!findings) {
    fuzz::check_error(findings.error());
    return 0;
  }
  const std::int64_t lines = std::ranges::count(log, '\n') + 1;
  for (const Finding& finding : *findings) {
    fuzz::check_text(finding.message);
    fuzz::check_text(finding.found);
    fuzz::check_text(finding.cure);
    fuzz::must(!finding.line || (*finding.line >= 0 && *finding.line <= lines),
               "a finding's line is one of the log");
  }
  return 0;
}
