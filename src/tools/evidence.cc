// What a person's things are: told by their content, whatever they are called.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include "posenc/doctor.h"
#include "src/core/contains_any.h"
#include "src/core/small_letters.h"
#include "src/core/trimmed.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/names.h"
#include "src/text/json.h"
#include "src/tools/client_settings.h"
#include "src/tools/command_line.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/log_lines.h"
#include "src/tools/ollama_show.h"
#include "src/tools/printed_settings.h"
#include "src/tools/programs.h"
#include "src/tools/roles.h"
#include "src/tools/serving_settings.h"
#include "src/tools/symptom.h"
#include "src/tools/training.h"

namespace posenc {
namespace {

using detail::grouped;
using detail::is_digit;
using detail::is_letter;

bool has_line_with(std::string_view text, std::string_view start) {
  return text.starts_with(start) || text.contains("\n" + std::string(start));
}

bool is_modelfile(std::string_view text) {
  return has_line_with(text, "FROM ") && !has_line_with(text, "RUN ") && !text.starts_with('{');
}

// Frequencies as something prints them: in brackets, under their name, or alone.
bool is_of_numbers(std::string_view text) {
  const auto numbers = read_printed_frequencies(text);
  if (!numbers) return false;
  const auto letters = std::ranges::count_if(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
  const bool named = text.contains("freq"), listed = text.contains('[') || text.contains("tensor(");
  // tensor(…, device='cuda:0', dtype=torch.float32), inv_freq = …
  return (named || listed || letters < 10) && letters < 80 + std::ssize(*numbers);
}

// "vllm==0.19.1", "transformers  5.3.0", "- `transformers` version: 4.57.1", "vLLM Version: 0.9",
// as pip and reports of environments have them: engines with their versions.
std::vector<std::string> versions_in(std::string_view text) {
  std::vector<std::string> found;
  // "transformers.__version__", and '5.14.2' a line or two below, as a notebook shows it.
  constexpr std::string_view asked = ".__version__";
  if (const std::size_t at = text.find(asked); at != text.npos) {
    const std::size_t first = text.find_last_of(" \n(\t", at) + 1;
    const std::string_view below = text.substr(at + asked.size(), 120);
    const std::size_t quote = below.find_first_of("'\"");
    if (quote != below.npos && quote + 1 < below.size() && is_digit(below[quote + 1])) {
      const std::string_view rest = below.substr(quote + 1);
      const std::string id = std::string(text.substr(first, at - first)) + "@" +
                             std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
      if (find_engine(id)) found.push_back(id);
    }
  }
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, std::min<std::size_t>(end, 1000)));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::ranges::transform(line, line.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '_' ? '-' : c;
    });
    std::erase(line, '`');
    const auto take = [&](std::string_view name, std::string_view rest) {
      if (rest.starts_with('v')) rest.remove_prefix(1);
      std::string_view version =
          rest.substr(0, std::min(rest.find_first_not_of("0123456789."), rest.size()));
      if (version.ends_with('.')) version.remove_suffix(1);  // 0.8.5.post1
      if (std::ranges::count(version, '.') == 3) version = version.substr(0, version.rfind('.'));
      if (name.empty() || !version.contains('.')) return;
      const std::string id = std::string(name) + "@" + std::string(version);
      const bool known = find_engine(id) || name == "unsloth";
      if (known && std::ranges::find(found, id) == found.end()) found.push_back(id);
    };
    // RUN pip install torch "transformers==5.14.1": pins stand anywhere in a line.
    for (std::size_t pin = line.find("=="); pin != line.npos; pin = line.find("==", pin + 2)) {
      const std::string_view before = std::string_view(line).substr(0, pin);
      std::string_view name = before.substr(before.find_last_of(" \t\"',(=") + 1);
      name = name.substr(0, name.find('['));  // without its extras: vllm[audio]==0.11.0
      take(name, std::string_view(line).substr(pin + 2));
    }
    std::string_view rest = line;
    rest.remove_prefix(std::min(rest.find_first_not_of(" -*|"), rest.size()));
    const std::string_view name = rest.substr(0, rest.find_first_of(" =:@|\t"));
    rest.remove_prefix(name.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" =:@|\t"), rest.size()));
    if (rest.starts_with("version")) {
      rest.remove_prefix(7);
      rest.remove_prefix(std::min(rest.find_first_not_of(" =:\t"), rest.size()));
    }
    take(name, rest);
  }
  return found;
}

// A configuration as a program printed it.
std::optional<Exhibit> printed_exhibit(const std::string& name, std::string_view text) {
  const auto printed = detail::printed_settings(text);
  if (!printed) return std::nullopt;
  auto model = read_model_bytes(std::as_bytes(std::span(*printed)), name);
  if (!model) return std::nullopt;
  // Nobody can write into what was printed.
  std::erase_if(model->warnings, [](const Warning& one) { return one.code == "type_from_class"; });
  std::string as = (model->family.empty() ? std::string("a model") : model->family) +
                   ", settings as a program printed them";
  if (model->context > 0) as += ", " + grouped(model->context) + " tokens";
  return Exhibit{name, ExhibitKind::model, std::move(as), *std::move(model), {}};
}

// A scaling alone, as a part of a config.json or as it was printed, in one line of a log.
std::optional<std::string> lone_scaling(std::string_view text) {
  constexpr std::size_t longest = 4096;
  const std::size_t brace = text.find('{'), end = text.rfind('}');
  const bool is_one =
      text.size() < longest && brace != text.npos && end != text.npos &&
      (text.contains("rope_type") || text.contains("\"type\"") || text.contains("'type'")) &&
      text.contains("factor") && !text.contains("hidden_size") && !text.contains(" --") &&
      text.find('{', brace + 1) == text.npos;
  if (!is_one) return std::nullopt;
  // What stands around it is its key, or the line that printed it.
  std::string_view before = text.substr(0, brace);
  const bool is_new = before.contains("rope_parameters");
  const auto words = std::ranges::count_if(before, [](char c) { return c == ' ' || c == '\n'; });
  constexpr std::ptrdiff_t most_words = 6;
  if (words > most_words || text.substr(end).size() > 8 || before.contains("rror") ||
      before.contains("nrecognized"))
    return {};
  std::string line = is_new ? "\"rope_parameters\": " : "\"rope_scaling\": ";
  for (const char c : text.substr(brace, end + 1 - brace)) line += c == '\n' ? ' ' : c;
  return line;
}

// The attention that Python code loads a model with, as an argument, a key of a dictionary or a
// variable has it; "": none.
std::string attention_of(std::string_view text) {
  constexpr std::string_view name = "attn_implementation", between = "\"' ]:=\t",
                             ends = "\"' ,)}\r\n";
  const std::size_t at = text.find(name);
  if (at == text.npos) return {};
  const std::string_view rest = text.substr(at + name.size(), 80);
  const std::size_t first = std::min(rest.find_first_not_of(between), rest.size());
  return std::string(rest.substr(first, rest.substr(first).find_first_of(ends)));
}

// A trainer's arguments as Python calls it, each on a line of its own; "": no such call.
std::string arguments_on_lines(std::string_view text) {
  std::size_t start = text.npos;
  for (const std::string_view call : {"GRPOConfig(", "SFTConfig(", "DPOConfig(", "RLOOConfig("})
    if (const std::size_t at = text.find(call); at != text.npos)
      start = std::min(start, at + call.size());
  // Of before TRL 0.13, or whose configuration is made elsewhere.
  constexpr std::string_view trainer = "SFTTrainer(";
  if (const std::size_t at = text.find(trainer); start == text.npos && at != text.npos)
    start = at + trainer.size();
  if (start == text.npos || text.contains("Traceback")) return {};
  std::string lines = "\n" + std::string(detail::called_in_python) + "\n";
  int depth = 0;
  for (const char c : text.substr(start)) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth < 0) break;
    lines += c == ',' && depth == 0 ? '\n' : c;
  }
  // How the model was loaded may stand elsewhere.
  std::string attention = attention_of(lines);
  if (attention.empty()) attention = attention_of(text);
  return attention.empty() ? lines : lines + "\nattn_implementation=" + attention;
}

bool is_of_a_model(std::string_view text) {
  for (const std::string_view key : {"hidden_size", "num_attention_heads", "model_type",
                                     "architectures", "_class_name", "n_head", "num_layers"})
    if (text.contains(key)) return true;
  return false;
}

// Settings of a trainer that stand in JSON, a line each as in YAML; "": no trainer's words there.
std::string trainers_json_on_lines(std::string_view text) {
  constexpr std::string_view words[] = {"per_device_train_batch_size",
                                        "num_train_epochs",
                                        "learning_rate",
                                        "cutoff_len",
                                        "sample_packing",
                                        "finetuning_type",
                                        "lora_rank",
                                        "micro_batch_size"};
  if (std::ranges::none_of(words, [&](std::string_view word) { return text.contains(word); }))
    return {};
  const auto json = detail::parse_json(text, "settings");
  const auto* object = json ? json->get<detail::Json::Object>() : nullptr;
  if (!object) return {};
  std::string lines;
  for (const detail::JsonMember& member : *object) {
    const auto* word = member.value.get<std::string>();
    if (word && word->contains('\n')) continue;
    if (word || member.value.get<bool>() || member.value.get<std::int64_t>() ||
        member.value.get<double>())
      lines += member.key + ": " + (word ? *word : member.value.text()) + "\n";
  }
  return lines;
}

std::optional<std::string> told_by_roles(std::string_view text) {
  const std::vector<detail::RoleTold> roles = detail::roles_in(text);
  if (roles.empty()) return std::nullopt;
  if (text.contains("\"tokenizer_class\""))
    return "a tokenizer's settings, which cut texts and promise nothing of the model: " +
           roles_text(roles);
  return std::string(detail::settings_by_name) + roles_text(roles);
}

// A line whose override is written over several lines is no YAML.
bool starts_an_engine(std::string_view text) {
  constexpr std::size_t words_before = 12;  // variables, a launcher, docker run and its image
  const auto words = detail::shell_words(text);
  const auto started = words ? detail::started_program(*words) : std::nullopt;
  return started && !started->program->engine.empty() && started->behind <= words_before;
}

// The engine, and the program that people know in its place.
std::string whose(const detail::CommandLine& line) {
  for (const auto& [program, title] :
       {std::pair("lms", "LM Studio"), {"koboldcpp", "koboldcpp"}, {"xinference", "Xinference"}})
    if (line.program == program) return std::string(title) + " (" + line.engine + ")";
  return line.engine;
}

// The end of an index such as [3], which numbers a prompt (In [3]:, Out[3]:, [3]:) or an element
// (layers[0]); `at` where none stands there.
std::size_t bracketed_index(std::string_view text, std::size_t at) {
  if (text[at] != '[') return at;
  const std::size_t end = text.find_first_not_of("0123456789", at + 1);
  if (end == text.npos || end == at + 1 || text[end] != ']') return at;
  const char before = at > 0 ? text[at - 1] : '\n';
  const bool element = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') ||
                       before == '_' || before == ')' || before == ']';
  const bool prompt = end + 1 < text.size() && text[end + 1] == ':';
  return element || prompt ? end + 1 : at;
}

// The end of a line that sets one number under another name than a frequency's, such as
// "attention_factor: 1.0"; `at` where a line begins otherwise.
std::size_t lone_setting(std::string_view text, std::size_t at) {
  if (at > 0 && text[at - 1] != '\n') return at;
  const std::size_t end = std::min(text.find('\n', at), text.size());
  const std::string_view line = text.substr(at, end - at);
  const std::size_t sign = line.find_first_of(":=");
  if (sign == line.npos) return at;
  const std::string_view name = detail::trimmed(line.substr(0, sign)),
                         value = detail::trimmed(line.substr(sign + 1));
  const auto is_of_name = [](char c) { return is_letter(c) || c == '_' || c == '.'; };
  const bool is_one = !name.empty() && !name.contains("freq") &&
                      std::ranges::all_of(name, is_of_name) && !value.empty() &&
                      value.find_first_not_of("0123456789.eE+-") == value.npos;
  return is_one ? end : at;
}

std::string first_line(std::string_view text) {
  return printable(text.substr(0, text.find('\n')), 60);
}

}  // namespace

Exhibit model_exhibit(std::string name, Model model) {
  const std::string family = model.family.empty() ? "a model" : model.family;
  const std::string format =
      model.files.empty() ? "bundled" : std::string(posenc::name(model.files.front().format));
  std::string as = family + ", " + format;
  if (model.context > 0) as += ", " + grouped(model.context) + " tokens";
  return {std::move(name), ExhibitKind::model, std::move(as), std::move(model), {}};
}

Exhibit unusable_exhibit(std::string name, const Error& error) {
  std::string why = error.rule + (error.got.empty() ? "" : ", got " + error.got) +
                    (error.cure.empty() ? "" : "; " + error.cure);
  // "model_type is missing"
  if (error.rule.starts_with("is ")) {
    const std::string_view where = error.where;
    why = std::string(where.substr(where.rfind(' ') + 1)) + " " + why;
  }
  return {std::move(name), ExhibitKind::unusable, std::move(why), std::nullopt, {}};
}

namespace {

// Whether a log's lines hold no message of a program. Two numbers are one only `by_numbers`: a
// person who writes two has not quoted a limit.
bool quotes_nothing(const detail::EngineLog& log, bool by_numbers) {
  return !log.remarks.empty() && std::ranges::all_of(log.remarks, [&](const Finding& one) {
    return one.code == "line_unknown" ||
           (!by_numbers && one.message.starts_with("the line holds "));
  });
}

// "Prompt length of 16601 is longer than …" is a message, whoever hands it on.
bool compares(std::string_view text) {
  return detail::contains_any(
      text, {"longer than ", "larger than ", "greater than ", "exceeds ", "too long"});
}

bool says_a_limit(std::string_view small) {
  return small.find_first_of("<>/=") != small.npos ||
         detail::contains_any(small, {"limit", "max", "only", "allow", "support", "context", "ctx",
                                      "window", "refuse", "truncat"});
}

Exhibit symptom_exhibit(std::string name, std::string text, const detail::Symptom& symptom) {
  return {name == "command" ? "words" : std::move(name), ExhibitKind::symptom,
          "what somebody saw: " + detail::symptom_text(symptom), std::nullopt, std::move(text)};
}

// What a person wrote; a message of a program among it makes it a log, which both are read of. A
// message may have several sentences, and numbers of two sentences are no text and its limit.
std::optional<Exhibit> words_exhibit(const std::string& name, const std::string& text) {
  for (const bool parted : {false, true}) {
    std::string lines = parted ? detail::sentences_on_lines(text) : text;
    const auto log = detail::read_log(lines);
    const bool quotes = log && log->known > 0 && !log->remarks.empty() &&
                        !quotes_nothing(*log, parted && compares(lines));
    if (quotes)
      return Exhibit{name == "command" ? "words" : name, ExhibitKind::log,
                     "what somebody wrote, with " + std::to_string(log->known) +
                         (log->known == 1 ? " line" : " lines") + " of a log",
                     std::nullopt, std::move(lines)};
  }
  if (const auto symptom = detail::symptom_of(text)) return symptom_exhibit(name, text, *symptom);
  return std::nullopt;
}

// The first line of a text that holds so, with those on which it goes on behind a backslash; "":
// none does.
template <class Holds>
std::string_view line_where(std::string_view text, const Holds& holds) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    while (end > at && end < text.size() && text[end - 1] == '\\')
      end = std::min(text.find('\n', end + 1), text.size());
    const std::string_view line = detail::trimmed(text.substr(at, end - at));
    at = end + 1;
    if (holds(line)) return line;
  }
  return {};
}

bool starts_with_flags(std::string_view line) {
  return !line.starts_with('#') && line.contains(" --") && starts_an_engine(line) &&
         detail::read_command_line(line);
}

bool starts_a_training(std::string_view line) { return detail::training_of_line(line).has_value(); }

// A text without a part of it.
std::string without(std::string_view text, std::string_view part) {
  const auto before = static_cast<std::size_t>(part.data() - text.data());
  return std::string(text.substr(0, before)) + "\n" +
         std::string(text.substr(before + part.size()));
}

// A config.json among sentences.
std::optional<Exhibit> model_in_words(const std::string& name, std::string_view text) {
  const std::size_t first = text.find('{'), last = text.rfind('}');
  if (first == text.npos || last == text.npos || last < first || !text.contains("\"model_type\""))
    return std::nullopt;
  const std::string_view json = text.substr(first, last - first + 1);
  auto model = read_model_bytes(std::as_bytes(std::span(json)), name);
  if (!model) return std::nullopt;
  Exhibit found = model_exhibit(name, *std::move(model));
  found.rest = without(text, json);
  return found;
}

// Python that does otherwise than the files it is given want; a traceback quotes code, too.
bool is_code_that_slips(std::string_view text) {
  return detail::contains_any(text, {"def ", "self.", "class "}) &&
         !detail::contains_any(text, {"Traceback", "Error: ", "File \"", "[rank"}) &&
         !compares(text) && detail::slip_in_code(text, nullptr);
}

}  // namespace

Exhibit text_exhibit(std::string name, std::string text) {
  const std::string_view trimmed =
      std::string_view(text).substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const auto as = [&](ExhibitKind kind, std::string line) {
    return Exhibit{std::move(name), kind, std::move(line), std::nullopt, std::move(text)};
  };
  if (trimmed.empty()) return as(ExhibitKind::unusable, "empty");
  const bool told = !is_modelfile(trimmed) && detail::is_of_a_person(trimmed);
  if (told) {
    if (auto model = model_in_words(name, trimmed)) return *std::move(model);
    if (const std::string_view line = line_where(trimmed, starts_with_flags); !line.empty()) {
      Exhibit command{name, ExhibitKind::command, "a command line in a text", std::nullopt,
                      std::string(line)};
      command.rest = without(trimmed, line);
      return command;
    }
    if (auto words = words_exhibit(name, text)) return *std::move(words);
  }
  if (is_code_that_slips(trimmed)) return as(ExhibitKind::unusable, "code");
  if (auto settings = detail::serving_settings(trimmed)) {
    text = std::move(settings->line);
    return as(ExhibitKind::command, "settings of " + std::string(settings->program));
  }
  if (auto asked = detail::modelfile_of_client(trimmed)) {
    text = *std::move(asked);
    return as(ExhibitKind::modelfile, "a client's settings, whose length Ollama gets as num_ctx");
  }
  if (auto show = detail::ollama_show(trimmed, name)) {
    Exhibit model = model_exhibit(std::move(name), std::move(show->model));
    model.as += ", as Ollama's /api/show has it";
    model.text = std::move(show->modelfile);
    return model;
  }
  std::optional<Error> no_model;
  if (trimmed.starts_with('{') || trimmed.starts_with("GGUF") ||
      trimmed.contains("\nrope_condense_ratio:")) {
    auto model = read_model_bytes(std::as_bytes(std::span(text)), name);
    if (model) return model_exhibit(std::move(name), *std::move(model));
    no_model = model.error();
  }
  // NeMo's settings of a training hold those of the model, or nothing of it.
  if (trimmed.contains("position_embedding_type:") && trimmed.contains("num_attention_heads:"))
    if (auto model = read_model_bytes(std::as_bytes(std::span(text)), name))
      return model_exhibit(std::move(name), *std::move(model));
  if (auto printed = printed_exhibit(name, trimmed)) return *std::move(printed);
  if (auto scaling = lone_scaling(trimmed)) {
    text = *std::move(scaling);
    return as(ExhibitKind::log, std::string(detail::scaling_alone) + ", of a config.json");
  }
  if (no_model) {  // what a server answered is JSON as well
    if (std::string lines = trainers_json_on_lines(trimmed); detail::is_training(lines)) {
      text = std::move(lines);
      return as(ExhibitKind::training, "the settings of a training, in JSON");
    }
    const auto answer = detail::read_log(text);
    if (!answer || answer->known == 0) {
      if (auto settings = is_of_a_model(trimmed) ? std::nullopt : told_by_roles(trimmed))
        return as(ExhibitKind::command, *std::move(settings));
      Exhibit not_read = unusable_exhibit(std::move(name), *no_model);
      // The size of a square table tells something all the same.
      // So does the name of an adapter's base.
      if (trimmed.contains("AuraFlowTransformer2DModel") ||
          trimmed.contains("base_model_name_or_path"))
        not_read.text = std::move(text);
      return not_read;
    }
  }
  const std::vector<std::string> versions = versions_in(trimmed);
  if (versions.empty() && is_of_numbers(trimmed))
    return as(ExhibitKind::inv_freq, "frequencies, as numbers");
  if (is_modelfile(trimmed)) return as(ExhibitKind::modelfile, "a Modelfile of Ollama");
  const auto log = detail::read_log(text);
  // Two numbers in a row of words are a text and its limit where one of them says so.
  // A setting that is said to be ignored is no limit.
  const std::string small = detail::small_letters(trimmed);
  const bool limits = !detail::contains_any(small, {" is ignored", " are ignored"}) &&
                      (compares(trimmed) || says_a_limit(small));
  const bool tells = log && log->known > 0 &&
                     (limits || quotes_nothing(*log, true) || !quotes_nothing(*log, false));
  // "OLLAMA_CONTEXT_LENGTH=65536 is set, but …" starts nothing, and no program printed it.
  const bool starts_nothing = tells && log->remarks.empty() && detail::narrates(trimmed) &&
                              detail::read_command_line(trimmed);
  if (!tells || starts_nothing || quotes_nothing(*log, limits))
    if (const auto symptom = detail::symptom_alone(trimmed); symptom && !told)
      return symptom_exhibit(std::move(name), std::move(text), *symptom);
  // Of a line that names no trainer the words alone tell, and a log may quote them.
  if (auto training = detail::training_of_line(trimmed);
      training && !(tells && training->trainer.empty())) {
    const std::string_view line =
        tells ? line_where(trimmed, starts_a_training) : std::string_view();
    std::string rest = line.empty() ? std::string() : without(trimmed, line);
    text = std::move(training->settings);
    Exhibit settings = as(ExhibitKind::training,
                          (training->serves ? "a command line" : "the settings of a training") +
                              (training->trainer.empty() ? "" : " of " + training->trainer));
    settings.rest = std::move(rest);
    return settings;
  }
  if (std::string call = arguments_on_lines(trimmed);
      detail::is_training(call) || call.contains("packing=True")) {
    text = std::move(call);
    return as(ExhibitKind::training, "the settings of a training, in Python");
  }
  if (detail::is_training(trimmed) && !starts_an_engine(trimmed))
    return as(ExhibitKind::training, "the settings of a training");
  const auto line = detail::read_command_line(trimmed);
  const bool refuses = tells && std::ranges::any_of(log->remarks, [](const Finding& one) {
                         return one.code == "flag_removed" || one.code == "flag_refused";
                       });
  std::ptrdiff_t ends = 0;  // of lines that do not go on
  for (std::size_t at = trimmed.find('\n'); at != trimmed.npos; at = trimmed.find('\n', at + 1))
    ends += at == 0 || trimmed[at - 1] != '\\';
  const bool short_text = ends < 3 || trimmed.starts_with("#!");
  const bool stamped = trimmed.starts_with("time=") || trimmed.contains(" level=");  // of a log
  const bool one_line = !trimmed.contains('\n') || trimmed.find('\n') + 1 == trimmed.size();
  // "mlx_lm.convert of MODEL: Error: …" starts nothing: the message is what it says.
  const bool message = tells && one_line && line && line->flags.empty() &&
                       !quotes_nothing(*log, limits) &&
                       detail::small_letters(trimmed).contains("error");
  if (line && !refuses && !message && (!tells || (short_text && !stamped)))
    return as(ExhibitKind::command, "a command line of " + whose(*line));
  // A program that nobody knows, whose settings say by their names what they are.
  const bool is_known = !line && line.error().rule.starts_with("posenc has no profile of ");
  const std::vector<detail::RoleTold> roles = detail::roles_in(trimmed);
  const bool rotates = std::ranges::any_of(
      roles, [](const detail::RoleTold& one) { return one.role != detail::Role::length; });
  const bool told_by_flags = one_line && trimmed.starts_with("python") && roles.size() > 1;
  if (!line && !is_known && rotates && (told_by_flags || (!tells && versions.empty())))
    return as(ExhibitKind::command, std::string(detail::settings_by_name) + roles_text(roles));
  if (const std::string_view started =
          tells && !stamped ? line_where(trimmed, starts_with_flags) : std::string_view();
      !started.empty()) {
    std::string rest = without(trimmed, started);
    if (const auto others = detail::read_log(rest); others && others->known > 0) {
      text = std::string(started);
      Exhibit command = as(ExhibitKind::command, "a command line beside a log");
      command.rest = std::move(rest);
      return command;
    }
  }
  if (tells)
    return as(ExhibitKind::log, "a log, " + std::to_string(log->known) +
                                    (log->known == 1 ? " line" : " lines") + " about position");
  if (!versions.empty()) {
    std::string all;
    for (const std::string& one : versions) all += (all.empty() ? "" : ", ") + one;
    text = all;
    return as(ExhibitKind::versions, all);
  }
  // A length alone that its engine is to serve.
  const bool scales = trimmed.contains("rope-scaling") || trimmed.contains("rope_scaling");
  for (const char* key : {"max_model_length", "max_model_len", "max-model-len", "max_seq_len"})
    for (const char* between : {"=", " ", ": "})
      if (const auto tokens = detail::number_after(trimmed, key + std::string(between));
          !line && !scales && tokens && *tokens >= 1 && *tokens < 0x1p40) {
        const auto named = detail::model_named_in(trimmed);
        text = "command: eval\nmax_model_len: " + std::to_string(std::llround(*tokens)) + "\n" +
               (named ? "model: " + named->as + "\n" : "");
        return as(ExhibitKind::training, "a line of a program that asks for " +
                                             grouped(std::llround(*tokens)) + " tokens");
      }
  if (!line && !is_known && !roles.empty())
    return as(ExhibitKind::command, std::string(detail::settings_by_name) + roles_text(roles));
  // A line with flags, however it is broken.
  if (!line && (trimmed.starts_with('-') || trimmed.contains(" --"))) {
    const Error& error = line.error();
    return as(ExhibitKind::unusable,
              error.rule + (error.got.empty() ? "" : ", got " + printable(error.got, 40)) +
                  (error.cure.empty() ? "" : "; " + error.cure));
  }
  if (!trimmed.contains('\n') && detail::is_sentence(trimmed))
    return as(ExhibitKind::unusable,
              "these words name nothing of position: what goes wrong, from how many tokens on, in "
              "which engine");
  return as(ExhibitKind::unusable,
            "no line says anything about position: give what the engine prints while it loads the "
            "model (\"" +
                first_line(trimmed) + "\" …)");
}

namespace {

struct PrintedNumber {
  std::size_t end;  // behind its digits
  std::optional<double> value;
  double resolution;  // half of its last digit
};

// The number whose first digit stands at `at`.
PrintedNumber printed_number(std::string_view text, std::size_t at) {
  std::size_t end = at;
  std::int64_t digits_behind = 0, exponent = 0;
  bool point = false;
  while (end < text.size() && (is_digit(text[end]) || (text[end] == '.' && !point))) {
    if (point) ++digits_behind;
    point = point || text[end] == '.';
    ++end;
  }
  if (end + 1 < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t of_power = end + 1;
    const bool negative = text[of_power] == '-';
    if (text[of_power] == '-' || text[of_power] == '+') ++of_power;
    const std::size_t first = of_power;
    while (of_power < text.size() && is_digit(text[of_power]) && of_power < first + 4)
      exponent = 10 * exponent + (text[of_power++] - '0');
    if (of_power > first) {
      if (negative) exponent = -exponent;
      end = of_power;
    }
  }
  const auto json = detail::parse_json(
      std::string(text.substr(at, end - at)) + (text[end - 1] == '.' ? "0" : ""), "number");
  const double* real = json ? json->get<double>() : nullptr;
  const std::int64_t* whole = json ? json->get<std::int64_t>() : nullptr;
  return {end,
          real    ? std::optional(*real)
          : whole ? std::optional(static_cast<double>(*whole))
                  : std::nullopt,
          0.5 * std::pow(10.0, static_cast<double>(exponent - digits_behind))};
}

// "1" among fractions is as exact as these: a program leaves out the digits that are 0.
void resolve_whole_numbers(const std::vector<double>& numbers, std::vector<double>& resolution) {
  constexpr double of_whole = 0.5;
  double finest = of_whole;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (resolution[i] < of_whole && numbers[i] > 0)
      finest = std::min(finest, resolution[i] / numbers[i]);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (resolution[i] == of_whole)
      resolution[i] = std::min(of_whole, 2 * finest * std::max(1.0, numbers[i]));
}

}  // namespace

Expected<std::vector<double>> read_printed_frequencies(std::string_view text,
                                                       std::vector<double>* resolution) {
  constexpr std::size_t most = 65536;
  std::vector<double> numbers;
  if (resolution) resolution->clear();
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '#' && (i == 0 || text[i - 1] == '\n')) {  // what somebody wrote above them
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (const std::size_t behind = std::max(bracketed_index(text, i), lone_setting(text, i));
        behind > i) {
      i = behind;
      continue;
    }
    const bool begins =
        is_digit(text[i]) &&
        (i == 0 || !(is_letter(text[i - 1]) || is_digit(text[i - 1]) || text[i - 1] == '_' ||
                     text[i - 1] == ':' || text[i - 1] == '.'));
    if (!begins) {
      ++i;
      continue;
    }
    const PrintedNumber number = printed_number(text, i);
    i = number.end;
    if (!number.value) continue;
    if (numbers.size() == most)
      return fail("inv_freq", "at most 65,536 numbers are read", "more", "give one layer's");
    numbers.push_back(*number.value);
    if (resolution) resolution->push_back(number.resolution);
  }
  if (resolution) resolve_whole_numbers(numbers, *resolution);
  const auto fractions = std::ranges::count_if(numbers, [](double x) { return x < 1; });
  // A buffer that was never filled holds one number throughout.
  constexpr std::size_t many = 8;
  const bool unfilled = numbers.size() >= many && text.contains("inv_freq") &&
                        std::ranges::count(numbers, numbers.front()) == std::ssize(numbers);
  if (numbers.size() < 4 || (2 * fractions < std::ssize(numbers) && !unfilled))
    return fail("inv_freq", "must be four frequencies or more, most of them below 1",
                std::to_string(numbers.size()) + " numbers",
                "print model.model.rotary_emb.inv_freq");
  return numbers;
}

}  // namespace posenc
