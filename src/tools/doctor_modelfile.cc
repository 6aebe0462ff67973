// What a Modelfile asks of Ollama: a context, and parameters that it no longer reads.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {

ModelfileSays read_modelfile(std::string_view text, const Model* model) {
  ModelfileSays out;
  const std::int64_t scaled = model ? std::max(model->context, reach(*model)) : 0;
  // What the file promises, whatever its scaling reaches.
  const std::int64_t reached = model && model->context > 0 ? model->context : scaled;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    constexpr std::string_view parameter = "PARAMETER num_ctx ";
    if (!line.starts_with(parameter)) {
      if (line.starts_with("PARAMETER rope_frequency"))
        out.findings.push_back(
            {.code = "flag_removed",
             .severity = Severity::warning,
             .found = printable(line, 60),
             .message = "Ollama no longer reads rope_frequency_base and rope_frequency_scale, "
                        "and newer versions end ollama create with 'unknown parameter'",
             .cure = "the GGUF itself must have them: posenc translate MODEL --to gguf"});
      continue;
    }
    const auto number = number_after(line, parameter);
    if (number && *number >= 1 && *number < 0x1p40) out.tokens = std::llround(*number);
  }
  if (out.tokens == 0)
    out.findings.push_back(
        {.code = "context_defaulted",
         .severity = Severity::warning,
         .message = "without num_ctx Ollama chooses the context by itself, 4,096 tokens on small "
                    "machines, and cuts longer prompts off at their beginning",
         .cure = "PARAMETER num_ctx " +
                 std::to_string(model ? std::max<std::int64_t>(reached, 4096) : 32768)});
  if (out.tokens > reached && reached > 0)
    out.findings.push_back(
        {.code = "context_capped",
         .severity = Severity::warning,
         .position = reached,
         .expected = grouped(reached),
         .found = grouped(out.tokens),
         .message = "Ollama caps num_ctx at the file's context, cuts longer prompts off at their "
                    "beginning, and has no parameter for a scaling",
         .cure = out.tokens <= scaled
                     ? "the file's scaling reaches " + grouped(scaled) +
                           ": a GGUF that is made with max_position_embeddings of that length has "
                           "it as its context; the runner of MLX weights reads no scaling, and "
                           "would go on unscaled"
                     : "posenc extend MODEL --to " + std::to_string(out.tokens) +
                           " plans a scaling, which the GGUF itself must have"});
  return out;
}

}  // namespace posenc::detail
