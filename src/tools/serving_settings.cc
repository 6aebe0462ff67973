#include "src/tools/serving_settings.h"

#include <algorithm>
#include <vector>

#include "src/text/json.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

// A number as the line has it; "" where there is none, or where it stands for none (0).
std::string number(const Json* json) {
  if (!json) return {};
  const double* real = json->get<double>();
  const std::int64_t* whole = json->get<std::int64_t>();
  if (!real && !whole) return {};
  return (real ? *real : static_cast<double>(*whole)) == 0 ? "" : json->text();
}

void flag(std::string& line, std::string_view name, const std::string& value) {
  if (!value.empty()) line += " " + std::string(name) + " " + value;
}

// Every {"key": …, "value": …} within: LM Studio keeps its settings so.
void fields_of(const Json& json, std::string& line) {
  if (const auto* list = json.get<Json::Array>()) {
    for (const Json& each : *list) fields_of(each, line);
    return;
  }
  const auto* object = json.get<Json::Object>();
  if (!object) return;
  const Json *key = json.find("key"), *value = json.find("value");
  const std::string* name = key ? key->get<std::string>() : nullptr;
  if (name && value) {
    const Json* inner = value->find("value");  // {"checked": true, "value": …}
    const std::string told = number(inner ? inner : value);
    if (*name == "llm.load.contextLength") flag(line, "--context-length", told);
    if (name->ends_with("ropeFrequencyBase")) flag(line, "--rope-freq-base", told);
    if (name->ends_with("ropeFrequencyScale")) flag(line, "--rope-freq-scale", told);
    return;
  }
  for (const JsonMember& member : *object) fields_of(member.value, line);
}

std::optional<ServingSettings> of_json(std::string_view text) {
  const auto json = parse_json(text, "settings");
  if (!json) return std::nullopt;
  if (const Json* tokens = json->find("contextsize")) {
    std::string line = "koboldcpp";
    flag(line, "--contextsize", number(tokens));
    if (const Json* pair = json->find("ropeconfig"))
      if (const auto* list = pair->get<Json::Array>(); list && list->size() == 2)
        if (const std::string scale = number(&(*list)[0]); !scale.empty()) {
          flag(line, "--ropeconfig", scale);
          if (const std::string base = number(&(*list)[1]); !base.empty()) line += " " + base;
        }
    return ServingSettings{"koboldcpp", line};
  }
  if (!text.contains("llm.load.")) return std::nullopt;
  std::string line = "lms load";
  fields_of(*json, line);
  return ServingSettings{"LM Studio", line};
}

// "Context Length 400000", "RoPE Frequency Scale: 0.65", in any order and among other words.
std::optional<ServingSettings> of_form(std::string_view text) {
  const std::string words = lower(text);
  const bool is_form = words.contains("rope frequency ") ||
                       (words.contains("lm studio") && words.contains("context length"));
  if (!is_form || std::ranges::count(words, '\n') > 40) return std::nullopt;
  const auto told = [&](std::string_view name) -> std::string {
    const std::size_t at = words.find(name);
    if (at == words.npos) return {};
    std::string_view rest = std::string_view(words).substr(at + name.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" :=\t"), rest.size()));
    std::string value;
    for (const char c : rest.substr(0, 24)) {
      if (c == ',') continue;  // 131,072
      if ((c < '0' || c > '9') && c != '.') break;
      value += c;
    }
    if (value.ends_with('.')) value.pop_back();
    return value;
  };
  std::string line = "lms load";
  flag(line, "--context-length", told("context length"));
  flag(line, "--rope-freq-base", told("rope frequency base"));
  flag(line, "--rope-freq-scale", told("rope frequency scale"));
  return line == "lms load" ? std::nullopt : std::optional(ServingSettings{"LM Studio", line});
}

// tabbyAPI's config.yml: keys within `model:`.
std::optional<ServingSettings> of_tabby(std::string_view text) {
  const bool is_tabby = text.contains("max_seq_len:") &&
                        (text.contains("rope_alpha:") || text.contains("rope_scale:") ||
                         text.contains("cache_mode:") || text.contains("cache_size:"));
  if (!is_tabby) return std::nullopt;
  std::string line = "tabbyapi";
  for (const auto& [key, name] :
       {std::pair("max_seq_len:", "--max-seq-len"), std::pair("cache_size:", "--cache-size"),
        std::pair("rope_scale:", "--rope-scale"), std::pair("rope_alpha:", "--rope-alpha")}) {
    for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
      const std::size_t start = text.rfind('\n', at) + 1;  // 0 where there is none
      if (text.substr(start, at - start).contains('#')) continue;
      if (const auto value = number_after(text.substr(at, 80), key); value && *value > 0) {
        std::string_view rest = text.substr(at + std::string_view(key).size(), 40);
        rest = rest.substr(rest.find_first_not_of(' '));
        flag(line, name, std::string(rest.substr(0, rest.find_first_not_of("0123456789."))));
      }
      break;
    }
  }
  return ServingSettings{"tabbyAPI", line};
}

}  // namespace

std::optional<ServingSettings> serving_settings(std::string_view text) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  if (text.size() > largest) return std::nullopt;
  if (text.starts_with('{')) return of_json(text);
  if (auto form = of_form(text)) return form;
  return of_tabby(text);
}

}  // namespace posenc::detail
