#include "cli/pages/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

#include "cli/pages/json_text.h"

namespace posenc::cli {
namespace {

std::string_view level(Severity severity) {
  return name(severity);
}  // SARIF has the same three words

// The line that a finding names, else that of the key that its message begins with
// ("rope_scaling.factor is …"), 1 where there is none. Code hosts show a finding beside it.
std::int64_t line_of(std::string_view text, const Finding& finding) {
  if (finding.line) return *finding.line;
  const std::string path = finding.message.substr(0, finding.message.find(' '));
  const std::string key = "\"" + path.substr(path.rfind('.') + 1) + "\"";
  const std::size_t at = text.find(key);
  if (at == text.npos) return 1;
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
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
          json_string(message), json_string(file.name), line_of(text, finding));
    }
  }
  std::string rules;
  for (const std::string& code : codes)
    rules += fmt::format("{}{{\"id\":{}}}", rules.empty() ? "" : ",", json_string(code));
  return fmt::format(
      "{{\"$schema\":\"https://json.schemastore.org/"
      "sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{{\"tool\":"
      "{{\"driver\":{{\"name\":\"posenc\",\"version\":\"{}\",\"rules\":[{}]}}}},\"results\":[{}]}}]"
      "}}",
      POSENC_VERSION, rules, results);
}

}  // namespace posenc::cli
