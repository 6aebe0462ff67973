// An adapter beside its base: which rotation it was trained with, as its trainer's settings tell,
// and what the base has.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "posenc/tools.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/text/json_writer.h"
#include "src/tools/command_line.h"
#include "src/tools/told_rope.h"

namespace posenc {
namespace {

using detail::grouped, detail::Json;

constexpr std::size_t longest_settings = std::size_t{1} << 20;

std::string_view without(std::string_view text, std::string_view characters) {
  const std::size_t first = text.find_first_not_of(characters);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(characters) + 1 - first);
}

// The value of a key that stands at the start of a line, as trainers write their YAML; nothing if
// there is none, or null.
std::optional<std::string_view> setting(std::string_view yaml, std::string_view key) {
  while (!yaml.empty()) {
    const std::size_t end = std::min(yaml.find('\n'), yaml.size());
    std::string_view line = yaml.substr(0, end);
    yaml.remove_prefix(std::min(end + 1, yaml.size()));
    if (!line.starts_with(key) || line.size() == key.size() || line[key.size()] != ':') continue;
    line = line.substr(key.size() + 1);
    line = without(line.substr(0, line.find(" #")), " \t\r\"'");
    if (line.empty() || line == "null" || line == "~") return std::nullopt;
    return line;
  }
  return std::nullopt;
}

// Tokens of the longest text that it was trained on; 0: nobody says.
Expected<std::int64_t> trained_length(std::string_view settings) {
  // LLaMA-Factory, axolotl, TRL before and since 0.20, Unsloth.
  for (const char* key :
       {"cutoff_len", "sequence_len", "max_seq_length", "max_length", "model_max_length"}) {
    const auto text = setting(settings, key);
    if (!text) continue;
    POSENC_TRY(tokens, detail::number_of_flag({key, std::string(*text)}));
    if (tokens < 1 || tokens > 0x1p40 || tokens != std::floor(tokens))
      return fail("adapter", std::string(key) + " must be a number of tokens", *text,
                  "write it as 32768");
    return static_cast<std::int64_t>(tokens);
  }
  return 0;
}

// LLaMA-Factory's model_utils/rope.py: the factor is the number of contexts that the length fills,
// rounded up.
Expected<Model> as_trained(const Model& base, std::string_view type, std::int64_t length,
                           std::vector<Finding>& findings) {
  const double factor = std::ceil(static_cast<double>(length) / static_cast<double>(base.context));
  detail::JsonWriter json;
  json.object().member("rope_type", type).member("factor", factor);
  if (type == "yarn" || type == "llama3")
    json.member("original_max_position_embeddings", base.context);
  if (type == "llama3") json.member("low_freq_factor", 1.0).member("high_freq_factor", 4.0);
  json.end();
  POSENC_TRY(dict, detail::parse_json(json.text, "rope_scaling"));
  Model trained = base;
  for (LayerGroup& group : trained.groups) {
    Rope* rope = detail::mutable_rope(group);
    if (!rope || is_tower(group.stack)) continue;
    if (auto told = detail::told_rope(*rope, dict, {.context = base.context}, findings))
      *rope = *std::move(told);
  }
  return trained;
}

Finding of_adapter(std::string code, Severity severity, std::string expected, std::string found,
                   std::string message, std::string cure) {
  return {.code = std::move(code),
          .severity = severity,
          .expected = std::move(expected),
          .found = std::move(found),
          .message = std::move(message),
          .cure = std::move(cure)};
}

}  // namespace

Expected<std::vector<Finding>> adapter_differences(const Model& base, std::string_view settings) {
  if (settings.size() > longest_settings)
    return fail("adapter", "a trainer's settings must be at most 1 MiB",
                std::to_string(settings.size()) + " bytes", "give the YAML file of the training");
  std::vector<Finding> findings;
  POSENC_TRY(length, trained_length(settings));
  const auto type = setting(settings, "rope_scaling");
  if (length == 0) {
    findings.push_back(of_adapter(
        "adapter_length", Severity::note, {}, {},
        "nothing tells how long the texts were that the adapter was trained on",
        "put the trainer's YAML (cutoff_len, sequence_len, max_length) beside the adapter"));
    return findings;
  }
  const std::string tokens = grouped(length);
  if (base.context == 0 || length <= base.context) {
    if (type)
      findings.push_back(of_adapter(
          "adapter_scaling_unused", Severity::note, {}, std::string(*type),
          "rope_scaling " + std::string(*type) + " was asked for " + tokens +
              " tokens, which the base has without: LLaMA-Factory then sets none in training",
          {}));
    return findings;
  }
  if (!type) {
    findings.push_back(of_adapter(
        "adapter_base_context", Severity::error, grouped(base.context), tokens,
        "the adapter was trained on texts longer than the base is made for, and no scaling is "
        "recorded: its weights have learned angles that the base's never saw, unscaled",
        "serve it without a scaling, at the length it was trained on; a scaling would give it "
        "other angles"));
    return findings;
  }
  POSENC_TRY(trained, as_trained(base, *type, length, findings));
  POSENC_TRY(differ, differences(trained, base, length));
  for (Finding& finding : differ) {
    if (finding.severity != Severity::error) continue;
    finding.cure =
        "serve base and adapter with the scaling of the training; LLaMA-Factory's own inference "
        "takes factor 2, whatever the training had";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace posenc
