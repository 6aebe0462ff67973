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
#include "src/tools/prose.h"
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

// A session of Python without what somebody typed.
std::string without_prompts(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool typed = line.starts_with(">>>") || line.starts_with("... ") ||
                       line.starts_with("In [") || line.starts_with('#');
    if (!typed) out.append(line).append("\n");
  }
  return out;
}

// Frequencies as something prints them: in brackets, under their name, or alone.
bool is_of_numbers(std::string_view text) {
  const auto numbers = read_printed_frequencies(text);
  if (!numbers) return false;
  const std::string answers = without_prompts(text);
  const auto letters = std::ranges::count_if(
      answers, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
  // Numbers under another name are of something else.
  const std::string heading = detail::small_letters(text.substr(0, text.find_first_of("[(")));
  if (!heading.contains("freq") &&
      detail::contains_any(heading, {"sigma", "prob", "slope", "alphas_cumprod", "learning rate",
                                     "eigen", "loss", "logit"}))
    return false;
  const bool named = text.contains("freq"), listed = text.contains('[') || text.contains("tensor(");
  const auto none =
      std::ranges::count_if(*numbers, [](double number) { return !std::isfinite(number); });
  const auto words = letters - 3 * none;  // nan, inf
  // tensor(…, device='cuda:0', dtype=torch.float32), inv_freq = …
  return (named || listed || words < 10) && words < 80 + std::ssize(*numbers);
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
      const std::string build =
          detail::prose::version_of_word(rest.substr(0, rest.find(' ')), false);
      if (build.starts_with('b')) version = build;
      const bool of_arrays = name == "mlx";  // beneath mlx-lm, with numbers of its own
      if (name.empty() || of_arrays || !(version.contains('.') || version.starts_with('b'))) return;
      const std::string id = std::string(name) + "@" + std::string(version);
      const bool known = find_engine(id) || name == "unsloth" || name == "mlx-vlm";
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
      if (rest.starts_with("is ")) rest.remove_prefix(3);  // "ollama version is 0.13.2"
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
  // "model_type is missing", "local_rope_theta must be …"
  if (error.rule.starts_with("is ") ||
      (error.rule.starts_with("must ") && error.where.contains(": "))) {
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
  return detail::contains_any(text, {"def ", "self.", "class ", "from_pretrained("}) &&
         !detail::contains_any(text, {"Traceback", "Error: ", "File \"", "[rank"}) &&
         !compares(text) && detail::slip_in_code(text, nullptr);
}

// What the lines of a text say, which several readings of it need.
struct Lines {
  std::vector<std::string> versions;
  std::optional<detail::EngineLog> log;
  bool tells = false;    // lines of a log are among them
  bool limits = false;   // two numbers in a row of words are a text and its limit
  bool stamped = false;  // as lines of a log are
  bool one = false;
  Expected<detail::CommandLine> command = fail("command", "is not read", "", "");
  bool program_known = false;  // whose line it is, though posenc has no profile of it
  std::vector<detail::RoleTold> roles;
};

Lines lines_of(std::string_view text) {
  Lines out;
  out.versions = versions_in(text);
  if (auto log = detail::read_log(text)) out.log = *std::move(log);
  // A setting that is said to be ignored is no limit.
  const std::string small = detail::small_letters(text);
  out.limits = !detail::contains_any(small, {" is ignored", " are ignored"}) &&
               (compares(text) || says_a_limit(small));
  out.tells = out.log && out.log->known > 0 &&
              (out.limits || quotes_nothing(*out.log, true) || !quotes_nothing(*out.log, false));
  out.stamped = text.starts_with("time=") || text.contains(" level=");
  out.one = !text.contains('\n') || text.find('\n') + 1 == text.size();
  out.command = detail::read_command_line(text);
  out.program_known =
      !out.command && out.command.error().rule.starts_with("posenc has no profile of ");
  out.roles = detail::roles_in(text);
  return out;
}

// "vllm 0.15.1: vllm serve …", "pip install vllm==0.15.1 && vllm serve …": the versions that stand
// in the same text as a line, as pip prints them.
std::string versions_beside(const Lines& lines, std::string_view text) {
  std::vector<std::string> all = lines.versions;
  const std::string small = detail::small_letters(text);
  for (const std::string& engine : detail::prose::read_versions(detail::prose::words_of(small)))
    if (std::ranges::find(all, engine) == all.end()) all.push_back(engine);
  std::string out;
  for (const std::string& one : all) {
    const std::size_t at = one.find('@');
    out += one.substr(0, at) + "==" + one.substr(at + 1) + "\n";
  }
  return out;
}

// A text on its way to be an exhibit.
struct Text {
  std::string name, whole;
  bool by_a_person = false;
  std::optional<Error> no_model = {};    // why what looks like a model's file is none
  std::optional<Lines> lines_read = {};  // by lines()

  // Without the blanks in front of it.
  std::string_view trimmed() const {
    const std::string_view all = whole;
    return all.substr(std::min(all.find_first_not_of(" \t\r\n"), all.size()));
  }
  // Read when first asked for: most readings need the text alone.
  const Lines& lines() {
    if (!lines_read) lines_read = lines_of(trimmed());
    return *lines_read;
  }
  // The exhibit that it is, whole or in another form of it. The text is spent.
  Exhibit as(ExhibitKind kind, std::string line) {
    return {std::move(name), kind, std::move(line), std::nullopt, std::move(whole)};
  }
  Exhibit as(ExhibitKind kind, std::string line, std::string form) {
    return {std::move(name), kind, std::move(line), std::nullopt, std::move(form)};
  }
};

// Each of these tells what the text is where it is that, and nothing else.
using Reading = std::optional<Exhibit>(Text&);

std::optional<Exhibit> of_no_letters(Text& text) {
  return text.trimmed().empty() ? std::optional(text.as(ExhibitKind::unusable, "empty"))
                                : std::nullopt;
}

std::optional<Exhibit> words_of_a_person(Text& text) {
  if (!text.by_a_person) return std::nullopt;
  if (auto model = model_in_words(text.name, text.trimmed())) return model;
  if (const std::string_view line = line_where(text.trimmed(), starts_with_flags); !line.empty()) {
    std::string rest = without(text.trimmed(), line);
    Exhibit command = text.as(ExhibitKind::command, "a command line in a text", std::string(line));
    command.rest = std::move(rest);
    return command;
  }
  return words_exhibit(text.name, text.whole);
}

std::optional<Exhibit> code_that_slips(Text& text) {
  if (!is_code_that_slips(text.trimmed())) return std::nullopt;
  return text.as(ExhibitKind::unusable, "code");
}

std::optional<Exhibit> settings_of_a_server(Text& text) {
  auto settings = detail::serving_settings(text.trimmed());
  if (!settings) return std::nullopt;
  return text.as(ExhibitKind::command, "settings of " + std::string(settings->program),
                 std::move(settings->line));
}

std::optional<Exhibit> settings_of_a_client(Text& text) {
  auto asked = detail::modelfile_of_client(text.trimmed());
  if (!asked) return std::nullopt;
  return text.as(ExhibitKind::modelfile, "a client's settings, whose length Ollama gets as num_ctx",
                 *std::move(asked));
}

std::optional<Exhibit> answer_of_ollama(Text& text) {
  auto show = detail::ollama_show(text.trimmed(), text.name);
  if (!show) return std::nullopt;
  Exhibit model = model_exhibit(std::move(text.name), std::move(show->model));
  model.as += ", as Ollama's /api/show has it";
  model.text = std::move(show->modelfile);
  return model;
}

// Behind the four letters stands a version, small whichever end comes first; "GGUF size: …" is text.
bool starts_as_gguf(std::string_view text) {
  constexpr std::size_t magic = 4, version = 8;
  return text.starts_with("GGUF") &&
         (text.size() < version || text.substr(magic, version - magic).contains('\0'));
}

std::optional<Exhibit> file_of_a_model(Text& text) {
  const bool looks_like_one = text.trimmed().starts_with('{') || starts_as_gguf(text.trimmed()) ||
                              text.trimmed().contains("\nrope_condense_ratio:");
  // NeMo's settings of a training hold those of the model, or nothing of it.
  const bool of_nemo = text.trimmed().contains("position_embedding_type:") &&
                       text.trimmed().contains("num_attention_heads:");
  if (!looks_like_one && !of_nemo) return std::nullopt;
  auto model = read_model_bytes(std::as_bytes(std::span(text.whole)), text.name);
  if (model) return model_exhibit(std::move(text.name), *std::move(model));
  if (looks_like_one) text.no_model = model.error();
  return std::nullopt;
}

std::optional<Exhibit> settings_as_printed(Text& text) {
  return printed_exhibit(text.name, text.trimmed());
}

std::optional<Exhibit> scaling_alone(Text& text) {
  auto scaling = lone_scaling(text.trimmed());
  if (!scaling) return std::nullopt;
  return text.as(ExhibitKind::log, std::string(detail::scaling_alone) + ", of a config.json",
                 *std::move(scaling));
}

// What a server answered, or a trainer's settings, is JSON as well.
std::optional<Exhibit> json_of_no_model(Text& text) {
  if (!text.no_model) return std::nullopt;
  if (std::string lines = trainers_json_on_lines(text.trimmed()); detail::is_training(lines))
    return text.as(ExhibitKind::training, "the settings of a training, in JSON", std::move(lines));
  if (text.lines().log && text.lines().log->known > 0) return std::nullopt;
  if (auto settings = is_of_a_model(text.trimmed()) ? std::nullopt : told_by_roles(text.trimmed()))
    return text.as(ExhibitKind::command, *std::move(settings));
  Exhibit not_read = unusable_exhibit(std::move(text.name), *text.no_model);
  // The size of a square table tells something all the same, and so does an adapter's base.
  if (detail::contains_any(text.trimmed(),
                           {"AuraFlowTransformer2DModel", "base_model_name_or_path"}))
    not_read.text = std::move(text.whole);
  return not_read;
}

std::optional<Exhibit> numbers_alone(Text& text) {
  if (!is_of_numbers(text.trimmed()) || !text.lines().versions.empty()) return std::nullopt;
  return text.as(ExhibitKind::inv_freq, "frequencies, as numbers");
}

std::optional<Exhibit> modelfile(Text& text) {
  if (!is_modelfile(text.trimmed())) return std::nullopt;
  return text.as(ExhibitKind::modelfile, "a Modelfile of Ollama");
}

std::optional<Exhibit> what_somebody_saw(Text& text) {
  const Lines& lines = text.lines();
  // "OLLAMA_CONTEXT_LENGTH=65536 is set, but …" starts nothing, and no program printed it.
  const bool starts_nothing = lines.tells && lines.log->remarks.empty() &&
                              detail::narrates(text.trimmed()) && lines.command;
  if (text.by_a_person ||
      (lines.tells && !starts_nothing && !quotes_nothing(*lines.log, lines.limits)))
    return std::nullopt;
  const auto symptom = detail::symptom_alone(text.trimmed());
  const bool tells_nothing = symptom && symptom->seen == detail::Seen::nothing;
  if (!symptom || (tells_nothing && lines.command && !detail::narrates(text.trimmed())))
    return std::nullopt;
  return symptom_exhibit(std::move(text.name), std::move(text.whole), *symptom);
}

std::optional<Exhibit> training_in_a_line(Text& text) {
  auto training = detail::training_of_line(text.trimmed());
  // Of a line that names no trainer the words alone tell, and a log may quote them.
  const bool tells = text.lines().tells;
  if (!training || (tells && training->trainer.empty())) return std::nullopt;
  const std::string_view line =
      tells ? line_where(text.trimmed(), starts_a_training) : std::string_view();
  std::string rest = line.empty() ? std::string() : without(text.trimmed(), line);
  Exhibit settings = text.as(ExhibitKind::training,
                             (training->serves ? "a command line" : "the settings of a training") +
                                 (training->trainer.empty() ? "" : " of " + training->trainer),
                             std::move(training->settings));
  settings.rest = std::move(rest);
  return settings;
}

std::optional<Exhibit> training_in_python(Text& text) {
  // A traceback below a call says more than the call.
  const Lines& lines = text.lines();
  if (lines.tells && !quotes_nothing(*lines.log, false)) return std::nullopt;
  std::string call = arguments_on_lines(text.trimmed());
  if (!detail::is_training(call) && !call.contains("packing=True")) return std::nullopt;
  return text.as(ExhibitKind::training, "the settings of a training, in Python", std::move(call));
}

std::optional<Exhibit> settings_of_a_training(Text& text) {
  if (!detail::is_training(text.trimmed()) || starts_an_engine(text.trimmed())) return std::nullopt;
  return text.as(ExhibitKind::training, "the settings of a training");
}

std::optional<Exhibit> command_line(Text& text) {
  const Lines& lines = text.lines();
  if (!lines.command) return std::nullopt;
  const bool refuses =
      lines.tells && (lines.log->remark_of("flag_removed") || lines.log->remark_of("flag_refused"));
  std::ptrdiff_t ends = 0;  // of lines that do not go on
  const std::string_view all = text.trimmed();
  for (std::size_t at = all.find('\n'); at != all.npos; at = all.find('\n', at + 1))
    ends += at == 0 || all[at - 1] != '\\';
  constexpr std::ptrdiff_t few = 3;
  const bool is_short = ends < few || all.starts_with("#!");
  // "mlx_lm.convert of MODEL: Error: …" starts nothing: the message is what it says.
  // "when vllm deploys MODEL, an error comes": a word of a sentence is no program.
  const bool among_words = !all.starts_with(lines.command->program.substr(0, 3)) &&
                           detail::is_sentence(all.substr(0, all.find('\n')));
  const bool message = lines.tells && (lines.one || among_words) && lines.command->flags.empty() &&
                       !quotes_nothing(*lines.log, lines.limits) &&
                       detail::small_letters(all).contains("error");
  if (refuses || message || (lines.tells && (!is_short || lines.stamped))) return std::nullopt;
  std::string as = "a command line of " + whose(*lines.command);
  // What somebody saw of it may stand below.
  if (const std::string_view line = line_where(all, starts_with_flags);
      !line.empty() && line.size() + 1 < all.size()) {
    std::string rest = without(all, line);
    const auto seen = detail::symptom_of(rest);
    if (seen && seen->seen != detail::Seen::nothing) {
      Exhibit command = text.as(ExhibitKind::command, std::move(as), std::string(line));
      command.rest = std::move(rest);
      return command;
    }
  }
  std::string versions = versions_beside(lines, all);
  Exhibit command = text.as(ExhibitKind::command, std::move(as));
  command.rest = std::move(versions);
  return command;
}

// A program that nobody knows, whose settings say by their names what they are.
std::optional<Exhibit> rotation_of_a_stranger(Text& text) {
  const Lines& lines = text.lines();
  if (lines.command || lines.program_known) return std::nullopt;
  const bool rotates = std::ranges::any_of(
      lines.roles, [](const detail::RoleTold& one) { return one.role != detail::Role::length; });
  const bool by_flags = lines.one && text.trimmed().starts_with("python") && lines.roles.size() > 1;
  if (!rotates || !(by_flags || (!lines.tells && lines.versions.empty()))) return std::nullopt;
  return text.as(ExhibitKind::command,
                 std::string(detail::settings_by_name) + roles_text(lines.roles));
}

std::optional<Exhibit> command_beside_a_log(Text& text) {
  if (!text.lines().tells || text.lines().stamped) return std::nullopt;
  const std::string_view started = line_where(text.trimmed(), starts_with_flags);
  if (started.empty()) return std::nullopt;
  std::string rest = without(text.trimmed(), started);
  const auto others = detail::read_log(rest);
  if (!others || others->known == 0) return std::nullopt;
  Exhibit command =
      text.as(ExhibitKind::command, "a command line beside a log", std::string(started));
  command.rest = std::move(rest);
  return command;
}

std::optional<Exhibit> log_of_an_engine(Text& text) {
  if (!text.lines().tells) return std::nullopt;
  const std::int64_t known = text.lines().log->known;
  return text.as(ExhibitKind::log, "a log, " + std::to_string(known) +
                                       (known == 1 ? " line" : " lines") + " about position");
}

// A sentence above a traceback or a report of the environment, and among them what tells its cause.
std::optional<Exhibit> cause_among_lines(Text& text) {
  constexpr std::size_t longest = 4000;
  const auto is_sentence = [](std::string_view line) { return detail::is_sentence(line); };
  const Lines& lines = text.lines();
  if ((lines.tells && !quotes_nothing(*lines.log, false)) || text.trimmed().size() > longest ||
      line_where(text.trimmed(), is_sentence).empty())
    return std::nullopt;
  const auto symptom = detail::symptom_of(text.trimmed());
  if (!symptom || !detail::names_a_cause(text.trimmed())) return std::nullopt;
  return symptom_exhibit(std::move(text.name), std::move(text.whole), *symptom);
}

std::optional<Exhibit> versions_alone(Text& text) {
  std::string all;
  for (const std::string& one : text.lines().versions) all += (all.empty() ? "" : ", ") + one;
  if (all.empty()) return std::nullopt;
  return text.as(ExhibitKind::versions, all, all);
}

// A length alone that its engine is to serve.
std::optional<Exhibit> length_alone(Text& text) {
  const std::string_view all = text.trimmed();
  if (text.lines().command || detail::contains_any(all, {"rope-scaling", "rope_scaling"}))
    return std::nullopt;
  constexpr double most = 0x1p40;
  for (const char* key : {"max_model_length", "max_model_len", "max-model-len", "max_seq_len"})
    for (const char* between : {"=", " ", ": "}) {
      const auto tokens = detail::number_after(all, key + std::string(between));
      if (!tokens || *tokens < 1 || *tokens >= most) continue;
      const auto named = detail::model_named_in(all);
      const std::int64_t asked = std::llround(*tokens);
      return text.as(ExhibitKind::training,
                     "a line of a program that asks for " + grouped(asked) + " tokens",
                     "command: eval\nmax_model_len: " + std::to_string(asked) + "\n" +
                         (named ? "model: " + named->as + "\n" : ""));
    }
  return std::nullopt;
}

std::optional<Exhibit> length_of_a_stranger(Text& text) {
  const Lines& lines = text.lines();
  if (lines.command || lines.program_known || lines.roles.empty()) return std::nullopt;
  return text.as(ExhibitKind::command,
                 std::string(detail::settings_by_name) + roles_text(lines.roles));
}

// A line with flags, however it is broken.
std::optional<Exhibit> broken_command(Text& text) {
  if (text.lines().command || !(text.trimmed().starts_with('-') || text.trimmed().contains(" --")))
    return std::nullopt;
  const Error& error = text.lines().command.error();
  return text.as(ExhibitKind::unusable,
                 error.rule + (error.got.empty() ? "" : ", got " + printable(error.got, 40)) +
                     (error.cure.empty() ? "" : "; " + error.cure));
}

std::optional<Exhibit> nothing_known(Text& text) {
  if (!text.trimmed().contains('\n') && detail::is_sentence(text.trimmed()))
    return text.as(ExhibitKind::unusable,
                   "these words name nothing of position: what goes wrong, from how many tokens "
                   "on, in which engine");
  return text.as(ExhibitKind::unusable,
                 "no line says anything about position: give what the engine prints while it loads "
                 "the model (\"" +
                     first_line(text.trimmed()) + "\" …)");
}

// In this order: a whole file before lines, what is certain before what is likely.
constexpr Reading* readings[] = {
    of_no_letters,          words_of_a_person, code_that_slips,        settings_of_a_server,
    settings_of_a_client,   answer_of_ollama,  file_of_a_model,        settings_as_printed,
    scaling_alone,          json_of_no_model,  numbers_alone,          modelfile,
    what_somebody_saw,      cause_among_lines, training_in_a_line,     training_in_python,
    settings_of_a_training, command_line,      rotation_of_a_stranger, command_beside_a_log,
    log_of_an_engine,       versions_alone,    length_alone,           length_of_a_stranger,
    broken_command,         nothing_known,
};

}  // namespace

Exhibit text_exhibit(std::string name, std::string text) {
  Text given{.name = std::move(name), .whole = std::move(text)};
  given.by_a_person = !is_modelfile(given.trimmed()) && detail::is_of_a_person(given.trimmed());
  for (Reading* reading : readings)
    if (auto found = reading(given)) return *std::move(found);
  std::unreachable();  // the last one always tells
}

}  // namespace posenc
