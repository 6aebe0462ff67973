#include "src/tools/client_settings.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/explain/text.h"
#include "src/tools/log_lines.h"
#include "src/tools/roles.h"

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

// A client that nobody here knows: it names a server that it asks, and a length.
std::optional<Finding> any_client(std::string_view text) {
  constexpr std::size_t longest = std::size_t{1} << 16;
  constexpr std::string_view marks[] = {
      "baseUrl",  "base_url",  "baseURL",     "apiBase",  "apiKey", "api_key",
      "\"api\":", "provider:", "provider\":", "endpoint", "/v1\""};
  if (text.size() > longest || text.contains("Traceback") || text.contains("Error")) return {};
  if (std::ranges::none_of(marks, [&](std::string_view mark) { return text.contains(mark); }))
    return std::nullopt;
  const std::vector<RoleTold> roles = roles_in(text);
  const auto length = std::ranges::find(roles, Role::length, &RoleTold::role);
  // A flag is of what is started, and starts a server.
  if (length == roles.end() || length->key == "num_ctx" || text.contains("--" + length->key))
    return std::nullopt;
  return Finding{
      .code = "client_context",
      .severity = Severity::warning,
      .found = grouped(std::llround(length->number)),
      .message = length->key +
                 " is of a client, which keeps books by it (when to shorten a talk); few hand it "
                 "on to a server (Continue does to Ollama, as num_ctx): the server's own context "
                 "counts, and where it has slots each has a part of it",
      .cure =
          "the number that the server runs (/props of llama-server, ollama ps, /v1/models of "
          "vLLM), or start it with as many, for each slot: give posenc its line or its log"};
}

// The word behind the last `key` of a text: of "model: qwen3:8b" and of "\"model\": \"qwen3:8b\",".
std::string_view last_word_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.rfind(key); at != text.npos && at > 0; at = text.rfind(key, at - 1)) {
    if (!std::string_view(" \t\n\"'{,").contains(text[at - 1])) continue;
    std::string_view rest = text.substr(at + key.size());
    const std::size_t first = rest.find_first_not_of("\"': \t");
    if (first == 0 || first == rest.npos || !rest.substr(0, first).contains(':')) continue;
    rest = rest.substr(first);
    return rest.substr(0, std::min(rest.find_first_of("\"' \t\r\n,}#"), rest.size()));
  }
  return {};
}

}  // namespace

std::optional<std::string> modelfile_of_client(std::string_view text) {
  constexpr std::size_t longest = std::size_t{1} << 16;
  constexpr std::string_view key = "contextLength";
  const std::size_t at = text.find(key);
  if (at == text.npos || text.size() > longest) return std::nullopt;
  std::string_view number = text.substr(at + key.size());
  number.remove_prefix(std::min(number.find_first_not_of("\"': \t"), number.size()));
  const auto tokens = number_after(number, "");
  const std::string_view before = text.substr(0, at), model = last_word_of(before, "model");
  if (!tokens || *tokens < 1 || *tokens > 0x1p40 || model.empty() ||
      last_word_of(before, "provider") != "ollama")
    return std::nullopt;
  return "FROM " + std::string(model) + "\nPARAMETER num_ctx " +
         std::to_string(std::llround(*tokens)) + "\n";
}

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
  return any_client(text);
}

}  // namespace posenc::detail
