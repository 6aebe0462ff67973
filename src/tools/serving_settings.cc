#include "src/tools/serving_settings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/text/json.h"
#include "src/tools/container_settings.h"
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
  // genai_config.json of onnxruntime-genai, beside the model that it was made of.
  if (const Json *model = json->find("model"), *search = json->find("search"); model && search)
    if (model->find("context_length") && model->find("decoder")) {
      std::string line = "onnxruntime-genai";
      const std::string most = number(search->find("max_length"));
      flag(line, "--max-length", most.empty() ? number(model->find("context_length")) : most);
      return ServingSettings{"onnxruntime-genai", line};
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

std::string_view stripped(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\"'";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

// "key = value" or "key: value" of each line, with the section that it stands in.
template <class Take>
void each_setting(std::string_view text, char between, Take take) {
  std::string section;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = stripped(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[' && line.back() == ']') {
      section = line.substr(1, line.size() - 2);
      continue;
    }
    const std::size_t at = line.find(between);
    if (at == line.npos) continue;
    std::string_view value = line.substr(at + 1);
    value = stripped(value.substr(0, value.find(" #")));
    take(section, std::string(stripped(line.substr(0, at))), std::string(value));
  }
}

// llama-server's presets (--models-preset FILE): its flags as keys, for each model a section.
std::optional<ServingSettings> of_presets(std::string_view text) {
  if (!text.starts_with('[') && !text.contains("\n[")) return std::nullopt;
  std::string shared, own, model;
  each_setting(
      text, '=', [&](const std::string& section, const std::string& key, const std::string& value) {
        constexpr std::string_view of_position[] = {"c",
                                                    "ctx-size",
                                                    "np",
                                                    "parallel",
                                                    "rope-scaling",
                                                    "rope-scale",
                                                    "yarn-orig-ctx",
                                                    "rope-freq-base",
                                                    "rope-freq-scale",
                                                    "yarn-ext-factor",
                                                    "yarn-attn-factor",
                                                    "override-kv",
                                                    "kv-unified",
                                                    "md",
                                                    "model-draft",
                                                    "ctx-size-draft",
                                                    "cd"};
        if (std::ranges::find(of_position, key) == std::end(of_position) || section.empty()) return;
        if (value.empty() || value.contains(' ')) return;
        constexpr std::size_t longest_short_name = 3;
        const std::string name = (key.size() <= longest_short_name ? "-" : "--") + key;
        const bool on = value == "true" || value == "1" || value == "on";
        const std::string told =
            key == "kv-unified" ? (on ? " " + name : "") : " " + name + " " + value;
        if (section == "*" || section == "default") {
          shared += told;
          return;
        }
        if (model.empty()) model = section;
        if (section == model) own += told;
      });
  if (shared.empty() && own.empty()) return std::nullopt;
  return ServingSettings{"llama-server's presets", "llama-server" + shared + own};
}

// LocalAI's YAML of a model, which llama.cpp runs.
std::optional<ServingSettings> of_localai(std::string_view text) {
  const bool is_one =
      text.contains("context_size:") && (text.contains("parameters:") || text.contains("backend:"));
  if (!is_one) return std::nullopt;
  std::string line = "llama-server";
  each_setting(text, ':',
               [&](const std::string&, const std::string& key, const std::string& value) {
                 constexpr std::pair<std::string_view, std::string_view> names[] = {
                     {"context_size", "--ctx-size"},
                     {"rope_scaling", "--rope-scaling"},
                     {"rope_freq_base", "--rope-freq-base"},
                     {"rope_freq_scale", "--rope-freq-scale"},
                     {"yarn_orig_ctx", "--yarn-orig-ctx"}};
                 for (const auto& [theirs, ours] : names)
                   if (key == theirs && !value.empty() && value != "0" && value != "0.0")
                     flag(line, ours, value);
               });
  return ServingSettings{"LocalAI", line};
}

// Docker Model Runner, which runs llama.cpp: `docker model configure --context-size N MODEL`, or
// models with a context_size at the top of a compose.yml.
std::optional<ServingSettings> of_docker_models(std::string_view text) {
  const bool is_line = text.starts_with("docker model ");
  const bool is_compose = (text.starts_with("models:") || text.contains("\nmodels:")) &&
                          text.contains("context_size:") && !text.contains("parameters:");
  const std::string_view key = is_line ? "--context-size" : "context_size:";
  if (!is_line && !is_compose) return std::nullopt;
  const auto tokens = number_after(text, key);
  std::string line = "llama-server";
  constexpr double usual = 4096;
  const double served = tokens && *tokens > 0 && *tokens < 0x1p40 ? *tokens : usual;
  flag(line, "--ctx-size", std::to_string(static_cast<std::int64_t>(served)));
  return ServingSettings{"Docker Model Runner", line};
}

}  // namespace

std::optional<ServingSettings> serving_settings(std::string_view text) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  if (text.size() > largest) return std::nullopt;
  if (text.starts_with('{')) return of_json(text);
  if (auto form = of_form(text)) return form;
  if (auto tabby = of_tabby(text)) return tabby;
  if (auto docker = of_docker_models(text)) return docker;
  if (auto line = line_of_containers(text)) return ServingSettings{"a container", *std::move(line)};
  if (auto localai = of_localai(text)) return localai;
  return of_presets(text);
}

}  // namespace posenc::detail
