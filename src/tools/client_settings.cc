#include "src/tools/client_settings.h"

#include <cmath>
#include <string>

#include "src/explain/text.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

struct Client {
  std::string_view title;
  std::string_view mark;    // stands in its settings
  std::string_view key;     // of the number
  std::string_view within;  // stands shortly before the key; "": anywhere
};
constexpr Client clients[] = {
    {"opencode", "\"output\"", "\"context\":", "\"limit\""},
    {"Codex", "model_context_window", "model_context_window =", ""},
    {"Codex", "model_context_window", "model_context_window=", ""},
    {"LiteLLM", "max_output_tokens", "\"max_input_tokens\":", ""},
    {"LiteLLM", "model_info", "max_input_tokens:", ""},
};

}  // namespace

std::optional<Finding> client_settings(std::string_view text) {
  constexpr std::size_t shortly = 80;
  for (const Client& one : clients) {
    if (!text.contains(one.mark)) continue;
    std::string_view rest = text;
    if (!one.within.empty()) {
      const std::size_t at = text.find(one.within);
      if (at == text.npos) continue;
      rest = text.substr(at, shortly + one.within.size());
    }
    const auto tokens = number_after(rest, one.key);
    if (!tokens || *tokens < 1 || *tokens > 0x1p40) continue;
    return Finding{
        .code = "client_context",
        .severity = Severity::warning,
        .found = grouped(std::llround(*tokens)),
        .message = std::string(one.title) +
                   " keeps books by this number (when to shorten a talk), and tells no server of "
                   "it: the server's own context counts",
        .cure =
            "start the server with as many: -c of llama-server, OLLAMA_CONTEXT_LENGTH or "
            "PARAMETER num_ctx of Ollama, --max-model-len of vLLM; and give posenc that line "
            "or its log"};
  }
  return std::nullopt;
}

}  // namespace posenc::detail
