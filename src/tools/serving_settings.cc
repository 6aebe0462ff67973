#include "src/tools/serving_settings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/core/small_letters.h"
#include "src/core/trimmed.h"
#include "src/text/json.h"
#include "src/text/shell.h"
#include "src/tools/command_line.h"
#include "src/tools/container_settings.h"
#include "src/tools/log_lines.h"
#include "src/tools/yaml_settings.h"

namespace posenc::detail {
namespace {

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
  if (const Json* options = json->find("options"); options && options->find("num_ctx")) {
    const std::string tokens = number(options->find("num_ctx"));
    if (!tokens.empty())
      return ServingSettings{
          options->find("rope_frequency_base") || options->find("rope_frequency_scale")
              ? "a request to Ollama, which reads no rope_frequency_base or "
                "_scale: its runner takes the file's"
              : "a request to Ollama",
          "OLLAMA_CONTEXT_LENGTH=" + tokens + " ollama serve"};
  }
  if (!text.contains("llm.load.")) return std::nullopt;
  std::string line = "lms load";
  fields_of(*json, line);
  return ServingSettings{"LM Studio", line};
}

// "Context Length 400000", "RoPE Frequency Scale: 0.65", in any order and among other words.
std::optional<ServingSettings> of_form(std::string_view text) {
  const std::string words = small_letters(text);
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
  for (const std::string_view backend : {"exllamav2", "exllamav3"})
    if (text.contains("\n  backend: " + std::string(backend)))  // and no comment of the sample
      flag(line, "--backend", std::string(backend));
  // Weights of exl2 ran by exllamav2, which newer versions refuse.
  const std::size_t name = text.find("model_name:");
  const bool exl2 =
      name != text.npos && text.substr(name, text.find('\n', name) - name).contains("exl2");
  if (exl2 && !line.contains("--backend")) flag(line, "--backend", "exllamav2");
  return ServingSettings{"tabbyAPI", line};
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
  each_setting(
      text, ':', [&](const std::string&, const std::string& key, const std::string& value) {
        constexpr std::pair<std::string_view, std::string_view> names[] = {
            {"context_size", "--ctx-size"},           {"model", "--model"},
            {"rope_scaling", "--rope-scaling"},       {"rope_freq_base", "--rope-freq-base"},
            {"rope_freq_scale", "--rope-freq-scale"}, {"yarn_orig_ctx", "--yarn-orig-ctx"}};
        for (const auto& [theirs, ours] : names)
          if (key == theirs && !value.empty() && value != "0" && value != "0.0")
            flag(line, ours, value);
      });
  return ServingSettings{"LocalAI", line};
}

// A unit of systemd: what it starts, in the environment that it sets.
std::optional<ServingSettings> of_unit(std::string_view text) {
  // `systemctl edit` makes a file of variables alone.
  const bool of_ollama = text.contains("[Service]") && text.contains("Environment=\"OLLAMA_");
  if (!text.contains("ExecStart=") && !of_ollama) return std::nullopt;
  std::string variables, started;
  bool goes_on = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = without(text.substr(0, end), " \t\r");
    text.remove_prefix(std::min(end + 1, text.size()));
    constexpr std::string_view environment = "Environment=", start = "ExecStart=";
    if (line.starts_with(environment))
      variables += std::string(stripped(line.substr(environment.size()))) + " ";
    if (!goes_on && !line.starts_with(start)) continue;
    if (!goes_on) line.remove_prefix(start.size()), started.clear();
    goes_on = line.ends_with('\\');
    if (goes_on) line.remove_suffix(1);
    started += std::string(line) + " ";
  }
  if (started.empty() && of_ollama) started = "ollama serve";
  return started.empty()
             ? std::nullopt
             : std::optional(ServingSettings{"a service of systemd", variables + started});
}

// What stands further in below a key of YAML, moved to the left edge.
std::string block_below(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  const std::size_t line = at == text.npos ? at : text.find('\n', at);
  if (line == text.npos) return {};
  const std::size_t edge = at - (text.rfind('\n', at) + 1);
  std::string out;
  std::size_t inner = 0;
  for (std::string_view rest = text.substr(line + 1); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t indent = one.find_first_not_of(' ');
    if (indent == one.npos) continue;
    if (indent <= edge) break;
    if (inner == 0) inner = indent;
    out.append(one.substr(std::min(inner, indent))).append("\n");
  }
  return out;
}

// `vllm serve --config FILE`, and the values of vLLM's chart: flags as keys; Ray Serve LLM has them
// below engine_kwargs.
std::optional<ServingSettings> of_vllm(std::string_view text) {
  const bool is_chart = text.contains("vllmConfig:");
  const bool is_ray = text.contains("engine_kwargs:") &&
                      (text.contains("llm_configs") || text.contains("model_loading_config"));
  const bool is_file = (text.starts_with("model:") || text.contains("\nmodel:")) &&
                       (text.starts_with("max-model-len:") || text.contains("\nmax-model-len:"));
  if (!is_chart && !is_file && !is_ray) return std::nullopt;
  std::string line = "vllm serve M";
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"max-model-len", "--max-model-len"},
      {"max_model_len", "--max-model-len"},
      {"maxModelLen", "--max-model-len"},
      {"hf-overrides", "--hf-overrides"},
      {"hf_overrides", "--hf-overrides"},
      {"rope_scaling", "--rope-scaling"},
      {"rope_theta", "--rope-theta"},
      {"rope-scaling", "--rope-scaling"},
      {"speculative-config", "--speculative-config"}};
  const auto take = [&](std::string_view key, std::string_view value) {
    if (value.starts_with('"') && value.ends_with('"') && value.size() > 1)
      value = value.substr(1, value.size() - 2);  // JSON within quotes of YAML, too
    for (const auto& [theirs, ours] : names) {
      const bool is_path = theirs == "hf-overrides" && key.starts_with("hf-overrides.");
      if ((key != theirs && !is_path) || value.empty() || value == "{}") continue;
      const std::string flag_name = is_path ? "--" + std::string(key) : std::string(ours);
      flag(line, flag_name,
           value.find_first_of("{ '") == value.npos ? std::string(value) : shell_word(value));
    }
  };
  if (is_ray) {
    const std::string block = block_below(text, "engine_kwargs:");
    for (const auto& [key, value] : settings_of_yaml(block)) take(key, value);
    return ServingSettings{"Ray Serve LLM, whose engine is vLLM", std::move(line)};
  }
  if (is_chart)
    each_setting(text, ':',
                 [&](const std::string&, const std::string& key, const std::string& value) {
                   take(key, value);
                 });
  else
    for (const auto& [key, value] : settings_of_yaml(text)) take(key, value);
  return line == "vllm serve M" ? std::nullopt
                                : std::optional(ServingSettings{"vLLM", std::move(line)});
}

// ms-swift as a server, where it starts vLLM: the length that it hands on.
std::optional<ServingSettings> of_swift(std::string_view text) {
  const auto words = shell_words(text);
  if (!words || words->size() < 2 || words->front() != "swift" ||
      !((*words)[1] == "deploy" || (*words)[1] == "infer") || text.contains("--rope_scaling"))
    return std::nullopt;
  std::string line = "vllm serve M";
  bool by_vllm = false;
  for (std::size_t i = 2; i + 1 < words->size(); ++i) {
    by_vllm = by_vllm || ((*words)[i] == "--infer_backend" && (*words)[i + 1] == "vllm");
    if ((*words)[i] == "--vllm_max_model_len") flag(line, "--max-model-len", (*words)[i + 1]);
  }
  if (!by_vllm) return std::nullopt;
  return ServingSettings{"ms-swift, which starts vLLM", std::move(line)};
}

// RamaLama's ramalama.conf.
std::optional<ServingSettings> of_ramalama(std::string_view text) {
  if (!text.contains("[ramalama]")) return std::nullopt;
  std::string line = "ramalama serve";
  each_setting(text, '=',
               [&](const std::string& section, const std::string& key, const std::string& value) {
                 if (section == "ramalama" && key == "ctx_size" && value != "0")
                   flag(line, "--ctx-size", value);
               });
  return line == "ramalama serve" ? std::nullopt
                                  : std::optional(ServingSettings{"RamaLama", std::move(line)});
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
  // What stands behind -- or in runtime_flags is llama-server's, and counts last.
  constexpr std::string_view behind = " -- ", list = "runtime_flags:";
  if (const std::size_t at = text.find(behind); is_line && at != text.npos)
    line.append(" ").append(text.substr(at + behind.size()));
  if (std::size_t at = text.find(list); is_compose && at != text.npos)
    for (at = text.find('\n', at); at != text.npos; at = text.find('\n', at + 1)) {
      const std::string_view item = trimmed(text.substr(at, text.find('\n', at + 1) - at));
      if (!item.starts_with("- ")) break;
      line.append(" ").append(without(item.substr(2), "\"'"));
    }
  return ServingSettings{"Docker Model Runner", line};
}

// Arguments of a call of Python, as they stand there: {"max_model_len", "8192"}.
std::vector<std::pair<std::string, std::string>> arguments_of(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> all;
  std::string one;
  int depth = 0;
  char quote = 0;
  const auto take = [&] {
    const std::size_t equals = one.find('=');
    if (equals != one.npos && one.find_first_of("'\"{[(") > equals)
      all.emplace_back(without(std::string_view(one).substr(0, equals), " \t\r\n"),
                       without(std::string_view(one).substr(equals + 1), " \t\r\n"));
    one.clear();
  };
  for (std::size_t i = 0; i < text.size() && depth >= 0; ++i) {
    const char c = text[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '#') {  // a comment
      i = std::min(text.find('\n', i), text.size());
      continue;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      take();
      continue;
    }
    if (depth >= 0) one += c;
  }
  take();
  return all;
}

struct PythonArgument {
  std::string_view program, theirs, ours;
};
constexpr PythonArgument python_arguments[] = {
    {"vllm serve M", "max_model_len", "--max-model-len"},
    {"vllm serve M", "hf_overrides", "--hf-overrides"},
    {"vllm serve M", "rope_scaling", "--rope-scaling"},
    {"vllm serve M", "rope_theta", "--rope-theta"},
    {"vllm serve M", "speculative_config", "--speculative-config"},
    {"python -m sglang.launch_server", "context_length", "--context-length"},
    {"python -m sglang.launch_server", "json_model_override_args", "--json-model-override-args"},
    {"llama-cli", "n_ctx", "--ctx-size"},
    {"llama-cli", "max_total_tokens", "--ctx-size"},
    {"llama-cli", "rope_freq_base", "--rope-freq-base"},
    {"llama-cli", "rope_freq_scale", "--rope-freq-scale"},
    {"llama-cli", "yarn_orig_ctx", "--yarn-orig-ctx"},
};

struct PythonCall {
  std::string_view name, program, title;
};
constexpr PythonCall python_calls[] = {
    {"LLM(", "vllm serve M", "vLLM in Python"},
    {"EngineArgs(", "vllm serve M", "vLLM in Python"},
    {"sgl.Engine(", "python -m sglang.launch_server", "SGLang in Python"},
    {"Llama(", "llama-cli", "llama-cpp-python"},
    {"LlamaCpp(", "llama-cli", "llama-cpp-python"},
    {"LlamaCppModel(", "llama-cli", "llama-cpp-python"},
};

// llm = LLM(model="Q", max_model_len=131072), of programs that call an engine as a library.
std::optional<ServingSettings> of_python(std::string_view text) {
  constexpr std::size_t longest = std::size_t{1} << 16;
  if (text.size() > longest || text.contains("Traceback") || text.contains("Error") ||
      text.contains("tensorrt_llm") || text.contains("  File \""))
    return std::nullopt;
  for (const PythonCall& call : python_calls) {
    const std::size_t at = text.find(call.name);
    const auto is_of_name = [](char c) {
      return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    const bool is_async = call.name.starts_with("Engine") && text.contains("AsyncEngineArgs(");
    if (at == text.npos || (at > 0 && is_of_name(text[at - 1]) && !is_async)) continue;
    std::string line(call.program);
    for (const auto& [key, value] : arguments_of(text.substr(at + call.name.size()))) {
      const auto* const known =
          std::ranges::find_if(python_arguments, [&](const PythonArgument& one) {
            return one.program == call.program && one.theirs == key;
          });
      if (known == std::end(python_arguments) || value == "None") continue;
      if (const auto dict = json_of_repr(value)) {
        if (!dict->contains('\'')) line += " " + std::string(known->ours) + " '" + *dict + "'";
      } else if (value.find_first_not_of("0123456789._eE") == value.npos) {
        std::string digits = value;
        std::erase(digits, '_');
        line += " " + std::string(known->ours) + " " + digits;
      }
    }
    if (line != call.program) return ServingSettings{call.title, line};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ServingSettings> serving_settings(std::string_view text) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  if (text.size() > largest) return std::nullopt;
  if (text.starts_with('{')) return of_json(text);
  // A request to Ollama as curl sends it.
  if (text.starts_with("curl ") && (text.contains("/api/generate") || text.contains("/api/chat")))
    if (const std::size_t first = text.find('{'), last = text.rfind('}');
        first < last && last != text.npos)
      return of_json(text.substr(first, last + 1 - first));
  if (auto form = of_form(text)) return form;
  if (auto python = of_python(text)) return python;
  if (auto tabby = of_tabby(text)) return tabby;
  if (auto unit = of_unit(text)) return unit;
  if (auto ramalama = of_ramalama(text)) return ramalama;
  if (auto docker = of_docker_models(text)) return docker;
  if (auto line = line_of_containers(text)) return ServingSettings{"a container", *std::move(line)};
  if (auto vllm = of_vllm(text)) return vllm;
  if (auto swift = of_swift(text)) return swift;
  if (auto localai = of_localai(text)) return localai;
  return of_presets(text);
}

}  // namespace posenc::detail
