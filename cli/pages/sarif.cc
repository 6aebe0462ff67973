#include "cli/pages/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ranges>
#include <set>
#include <string_view>

#include "cli/pages/code_pages.h"
#include "cli/pages/json_text.h"

namespace posenc::cli {
namespace {

std::string_view level(Severity severity) {
  return name(severity);
}  // SARIF has the same three words

// Which keys of a file a finding is about, where its message does not begin with one.
struct KeysOfCode {
  std::string_view code, keys;
};
constexpr KeysOfCode keys_of_codes[] = {
    {"rope_theta", "rope_theta rotary_emb_base rope_parameters"},
    {"rope_scaling", "rope_scaling rope_parameters"},
    {"rope_factors", "rope_scaling rope_parameters"},
    {"amplitude", "attention_factor attn_factor mscale rope_scaling rope_parameters"},
    {"rotary_dim", "partial_rotary_factor rotary_pct rotary_dim head_dim"},
    {"mrope", "mrope_section rope_scaling rope_parameters"},
    {"window", "sliding_window attention_chunk_size layer_types"},
    {"chunked", "attention_chunk_size layer_types"},
    {"scheme", "position_embedding_type no_rope_layers layer_types"},
    {"table_end", "max_position_embeddings"},
    {"refused", "rope_scaling rope_parameters model_type"},
    {"context", "max_position_embeddings"},
    {"layers", "num_hidden_layers"},
    {"unknown_family", "model_type"},
    {"family_remark", "model_type"},
};

// 0: no such key.
std::int64_t line_of_key(std::string_view text, std::string_view key) {
  const std::size_t at = text.find("\"" + std::string(key) + "\"");
  if (key.empty() || at == text.npos) return 0;
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

// The line that a finding names, else that of the key that its message begins with
// ("rope_scaling.factor is …"), or that its code is about; 1 where there is none. Code hosts show a
// finding beside it.
std::int64_t line_of(std::string_view text, const Finding& finding) {
  if (finding.line) return *finding.line;
  std::string_view path = std::string_view(finding.message).substr(0, finding.message.find(' '));
  if (path.ends_with(':')) path.remove_suffix(1);
  if (const auto line = line_of_key(text, path.substr(path.rfind('.') + 1)); line > 0) return line;
  std::string_view code = finding.code;
  if (code.starts_with("engine_")) code.remove_prefix(7);
  const auto* const keys = std::ranges::find(keys_of_codes, code, &KeysOfCode::code);
  if (keys == std::end(keys_of_codes)) return 1;
  for (const auto word : std::views::split(keys->keys, ' '))
    if (const auto line = line_of_key(text, std::string_view(word)); line > 0) return line;
  return 1;
}

// A relative reference, which a code host resolves against the repository: below the current folder
// where the file is, and with every byte escaped that a URI may not have.
std::string uri_of(const std::string& file) {
  std::error_code none;
  std::string path = file;
  const std::string here = std::filesystem::current_path(none).string() + "/";
  if (path.starts_with(here)) path.erase(0, here.size());
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").contains(c);
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

// {"id":…,"shortDescription":…,"help":…}: what the pages say of a code.
std::string rule_of(const std::string& code) {
  const CodeText said = text_of_code(code);
  const std::string what = said.what.empty() ? code : said.what;
  const std::string help = said.cure.empty() ? what : what + ". Cure: " + said.cure;
  return fmt::format(R"({{"id":{},"shortDescription":{{"text":{}}},"help":{{"text":{}}}}})",
                     json_string(code), json_string(what), json_string(help));
}

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  constexpr std::size_t most = 1 << 20;  // a configuration; of other files the first line is named
  std::string text(most, '\0');
  in.read(text.data(), most);
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

std::string json_of(std::span<const LintedFile> files) {
  std::string all;
  for (const LintedFile& file : files)
    for (const Finding& finding : file.findings)
      all += fmt::format("{}{{\"file\":{},{}", all.empty() ? "" : ",", json_string(file.name),
                         to_json(finding).substr(1));
  return "{\"findings\":[" + all + "]}";
}

std::string sarif(std::span<const LintedFile> files) {
  std::set<std::string> codes;
  std::string results;
  for (const LintedFile& file : files) {
    const std::string text = text_of(file.name);
    for (const Finding& finding : file.findings) {
      codes.insert(finding.code);
      const std::string message =
          finding.cure.empty() ? finding.message : finding.message + ". Cure: " + finding.cure;
      results += fmt::format(
          "{}{{\"ruleId\":{},\"level\":\"{}\",\"message\":{{\"text\":{}}},\"locations\":[{{"
          "\"physicalLocation\":"
          "{{\"artifactLocation\":{{\"uri\":{}}},\"region\":{{\"startLine\":{}}}}}}}]}}",
          results.empty() ? "" : ",", json_string(finding.code), level(finding.severity),
          json_string(message), json_string(uri_of(file.name)), line_of(text, finding));
    }
  }
  std::string rules;
  for (const std::string& code : codes) rules += (rules.empty() ? "" : ",") + rule_of(code);
  return fmt::format(
      "{{\"$schema\":\"https://json.schemastore.org/"
      "sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{{\"tool\":"
      "{{\"driver\":{{\"name\":\"posenc\",\"version\":\"{}\",\"rules\":[{}]}}}},\"results\":[{}]}}]"
      "}}",
      POSENC_VERSION, rules, results);
}

}  // namespace posenc::cli
