// Reads web/link.json, whose text cmake/playground.cmake puts into the program.
#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/playground/link_fields.h"

namespace posenc::cli {

extern const char* const link_json;

namespace {

using nlohmann::ordered_json;

// As a link writes it.
std::string written(const ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_number()) return script_number(value.get<double>());
  if (value.is_string()) return value.get<std::string>();
  std::string out;
  for (const ordered_json& one : value) out += (out.empty() ? "" : ",") + written(one);
  return out;
}

LinkKind kind_of(const std::string& word) {
  constexpr std::string_view words[] = {"number", "text", "boolean", "choice", "numbers", "words"};
  const auto* const found = std::find(std::begin(words), std::end(words), word);
  return static_cast<LinkKind>(found - std::begin(words));
}

LinkRules read_rules() {
  const ordered_json json = ordered_json::parse(link_json);
  const ordered_json& limits = json["limits"];
  LinkRules rules{.version = json["version"].get<std::int64_t>(),
                  .most_entries = limits["entries"].get<std::size_t>(),
                  .most_characters = limits["characters"].get<std::size_t>(),
                  .panels = json["panels"].get<std::vector<std::string>>(),
                  .shared = json["shared"].get<std::vector<std::string>>(),
                  .fields = {},
                  .follows = {}};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [key, field] : json["fields"].items())
    rules.fields.push_back({.key = key,
                            .kind = kind_of(field["kind"].get<std::string>()),
                            .default_value = written(field["default"]),
                            .least = field.value("least", -infinity),
                            .most = field.value("most", infinity),
                            .step = field.value("step", 1.0),
                            .choices = written(field.value("choices", ordered_json::array())),
                            .unit = field.value("unit", ""),
                            .doc = field.value("doc", "")});
  for (const auto& [field, of] : json["follows"].items())
    for (const auto& [scaling, what] : of.items())
      rules.follows.push_back({field, scaling, what.is_null() ? "" : written(what)});
  return rules;
}

}  // namespace

const LinkRules& link_rules() {
  static const LinkRules rules = read_rules();
  return rules;
}

std::string_view what_follows(std::string_view scaling, std::string_view field) {
  std::string_view any;
  for (const LinkFollows& each : link_rules().follows) {
    if (each.field != field) continue;
    if (each.scaling == scaling) return each.what;
    if (each.scaling == "any") any = each.what;
  }
  return any;
}

std::int64_t link_version() { return link_rules().version; }

std::vector<std::string_view> link_panels() {
  return {link_rules().panels.begin(), link_rules().panels.end()};
}

std::span<const LinkField> link_fields() { return link_rules().fields; }

}  // namespace posenc::cli
