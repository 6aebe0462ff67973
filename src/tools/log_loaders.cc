#include "src/tools/log_loaders.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/core/trimmed.h"
#include "src/explain/text.h"
#include "src/model/names.h"

namespace posenc::detail {
namespace {

constexpr double most_tokens = 0x1p50;
constexpr std::string_view context_variable = "OLLAMA_CONTEXT_LENGTH";

std::string counted(double number) { return grouped(std::llround(std::min(number, most_tokens))); }
std::string in_digits(double number) {
  return std::to_string(std::llround(std::min(number, most_tokens)));
}

bool is_table_of_ps(std::string_view line) {
  return line.contains("PROCESSOR") && line.contains("CONTEXT");
}

// What older and newer versions of Ollama take where nobody asks for more.
bool is_ollamas_default(double tokens) { return tokens == 2048 || tokens == 4096; }

}  // namespace

double context_of_half(double limit) {
  constexpr double kept = 2, steps = 512;
  return limit > kept && std::fmod(limit - kept, steps) == 0 ? 2 * (limit - kept) : 0;
}

void LoaderLines::notice(std::string_view line) {
  is_ollama_ = is_ollama_ || in_small_letters(line).contains("ollama") ||
               line.contains("num_ctx") || is_table_of_ps(line);
}

Finding LoaderLines::in_its_words(Finding finding) const {
  if (!is_ollama_ || finding.code != "request_too_long") return finding;
  if (finding.message.starts_with("the text to embed")) return finding;
  finding.message = "a request was longer than the context that Ollama loaded the model with";
  finding.cure =
      "PARAMETER num_ctx LENGTH in the Modelfile, options.num_ctx of the request, or "
      "OLLAMA_CONTEXT_LENGTH of the server";
  return finding;
}

void LoaderLines::read(std::string_view line, std::int64_t number, EngineLog& log) {
  cut_prompt(line, number, log);
  of_ollama(line, number, log);
  of_lm_studio(line, number, log);
}

// A prompt that was cut, by the runner's own words or by the count in a response.
void LoaderLines::cut_prompt(std::string_view line, std::int64_t number, EngineLog& log) {
  if (const auto count =
          number_after(line, line.contains("prompt_eval_count\":") ? "prompt_eval_count\":"
                             : line.contains("prompt eval count:") ? "prompt eval count:"
                                                                   : "prompt_eval_count "))
    for (std::int64_t tokens = 2048; tokens <= (1 << 20); tokens *= 2)
      if (const auto context = static_cast<double>(tokens); *count == context / 2 + 2)
        log.remark(
            {.code = "prompt_truncated",
             .severity = Severity::warning,
             .found = counted(*count),
             .message = "just half of " + counted(context) +
                        " and two: Ollama cut the prompt to half of num_ctx",
             .cure = "options.num_ctx of the request, or PARAMETER num_ctx in the Modelfile"},
            number);
  if (!line.contains("truncating input prompt")) return;
  const auto limit = number_after(line, "limit=");
  if (!limit || *limit < 1) return;
  limit_ = *limit;
  prompt_ = number_after(line, "prompt=").value_or(0);
  const double half_of = context_of_half(limit_);
  log.say("n_ctx", in_digits(half_of > 0 ? half_of : limit_), number);
}

// The table of `ollama show`, whose context is a key of the GGUF.
void LoaderLines::of_ollama_show(std::string_view text, std::int64_t number, EngineLog& log) {
  if (!is_ollama_) return;
  constexpr std::string_view architecture = "architecture ", context = "context length";
  if (text.starts_with(architecture)) architecture_ = trimmed(text.substr(architecture.size()));
  if (!text.starts_with(context) || !number_after(text, context)) return;
  const std::string_view value = trimmed(text.substr(context.size()));
  if (is_architecture(architecture_))
    log.say_by_key(architecture_ + ".context_length", value, number);
  else
    log.say("context", value, number);
}

// What `ollama ps` prints, the runner's line and the server's variables.
void LoaderLines::of_ollama(std::string_view line, std::int64_t number, EngineLog& log) {
  of_ollama_show(trimmed(line), number, log);
  for (const char sign : {':', '='}) {
    const std::string name = std::string(context_variable) + sign;
    const auto wanted = number_after(line, name);
    if (!wanted || *wanted <= 0) continue;
    log.say("asked", line.substr(line.find(name) + name.size()), number);
    asked_by_server_ = asked_by_server_ || sign == ':';
  }
  // Its slots share the context.
  if (const auto all = number_after(line, "--ctx-size "); all && line.contains(" runner ")) {
    const double slots = number_after(line, "--parallel ").value_or(1);
    log.say("n_ctx", in_digits(std::min(*all, most_tokens) / std::max(slots, 1.0)), number);
  }
  // Of its two doors the one takes no options.
  if (line.contains("/v1/") && line.contains("num_ctx")) {
    auto wanted = number_after(line, "num_ctx\":");
    if (!wanted) wanted = number_after(line, "num_ctx=");
    log.remark({.code = "num_ctx_ignored",
                .severity = Severity::warning,
                .found = wanted ? counted(*wanted) : "",
                .message = "Ollama's door for OpenAI's clients (/v1) takes no num_ctx, and passes "
                           "it over: only /api/chat and /api/generate have options.num_ctx",
                .cure = "PARAMETER num_ctx in a Modelfile and ollama create, OLLAMA_CONTEXT_LENGTH "
                        "of the server, or /api/chat"},
               number);
  }
  if (const std::string_view text = trimmed(line); text.starts_with("num_ctx ")) {
    log.say("n_ctx", text.substr(8), number);
    shown_ = number_after(text, "num_ctx").value_or(0);
  }
  if (is_table_of_ps(line)) {
    column_of_context_ = line.find("CONTEXT");
    return;
  }
  if (column_of_context_ != 0 && line.size() > column_of_context_) {
    const std::string_view value = trimmed(line.substr(column_of_context_));
    const std::string_view word = value.substr(0, value.find(' '));
    if (const auto runs = number_after(word, "")) {
      log.say("n_ctx", word, number);
      runs_otherwise_ = shown_ > 0 && *runs > 0 && *runs != shown_;
      if (runs_otherwise_) log.remark(other_than_shown(*runs), number);
    }
  }
  column_of_context_ = 0;
}

// What `ollama show` has of the model's own num_ctx, and what `ollama ps` runs.
Finding LoaderLines::other_than_shown(double runs) const {
  constexpr double least_of_gpt_oss = 8192;
  const bool raised = runs == least_of_gpt_oss && shown_ < runs;
  return {.code = "num_ctx_ignored",
          .severity = Severity::warning,
          .expected = counted(shown_),
          .found = counted(runs),
          .message = raised ? "Ollama raises a num_ctx below 8,192 to that for gpt-oss; of other "
                              "models, num_ctx of the request stands above the model's own"
                            : "Ollama runs another context than the model's own num_ctx: that of "
                              "the request stands above it, or it was loaded before",
          .cure = raised ? "for gpt-oss there is no less: it costs memory, and positions are right"
                         : "options.num_ctx of the client, or ollama stop MODEL and load it anew"};
}

// "VLM prompt cache context target: configured=16,384 fitted=208,384"
void LoaderLines::of_lm_studio(std::string_view line, std::int64_t number, EngineLog& log) {
  const auto set = number_after(line, "configured="), fitted = number_after(line, "fitted=");
  if (!set || !fitted || *set < 1 || *fitted <= *set) return;
  std::erase_if(log.remarks, [](const Finding& one) { return one.code == "context_fitted"; });
  log.remark({.code = "context_fitted",
              .severity = Severity::warning,
              .expected = counted(*set),
              .found = counted(*fitted),
              .message = "LM Studio runs what it fits into memory, and not the Context Length that "
                         "was set: its engine for MLX does not keep the setting. It costs memory "
                         "and speed; positions are right",
              .cure = "take the model as a GGUF, whose engine keeps the setting, or update LM "
                      "Studio"},
             number);
}

void LoaderLines::judge(EngineLog& log) const {
  judge_prompt(log);
  judge_context(log);
}

// How many tokens num_ctx must have, or that half of it is kept.
void LoaderLines::judge_prompt(EngineLog& log) const {
  Finding* const cut = log.remark_of("prompt_truncated");
  if (limit_ == 0 || !cut || cut->severity != Severity::error) return;
  const double half_of = context_of_half(limit_);
  if (half_of > 0) {
    cut->message = "Ollama cut the beginning of the prompt off: " + counted(limit_) +
                   " is just half of num_ctx " + counted(half_of) +
                   " and two tokens, as the other half is kept for the answer";
    cut->cure = prompt_ > 0
                    ? "num_ctx of twice the prompt: options.num_ctx " + in_digits(2 * prompt_) +
                          " of the request, or OLLAMA_CONTEXT_LENGTH of the server"
                    : "num_ctx of twice the prompt";
    return;
  }
  if (prompt_ <= limit_) return;
  cut->cure = "options.num_ctx above " + in_digits(prompt_) +
              " in the request, PARAMETER num_ctx in the Modelfile, or OLLAMA_CONTEXT_LENGTH in "
              "the environment of the server";
  if (is_ollamas_default(limit_) && !asked_by_server_)
    cut->message +=
        ", which has Ollama's default unless the request, the Modelfile or the server's variable "
        "says more";
}

// Ollama loads a model for less than it has unless it is asked for more; the model's own num_ctx
// stands above the server's variable, which nobody else's shell sets.
void LoaderLines::judge_context(EngineLog& log) const {
  const LogSaid *all = log.find("context"), *loaded = log.find("n_ctx"),
                *wanted = log.find("asked");
  if (wanted && loaded && loaded->number > 0 && loaded->number < wanted->number) {
    const bool unheard = !asked_by_server_ && is_ollamas_default(loaded->number);
    std::string message =
        unheard ? "Ollama runs its default: the server itself has no OLLAMA_CONTEXT_LENGTH (it "
                  "reads it when it starts, of its service or container, and not of the shell of "
                  "a client; older versions not at all)"
                : "Ollama runs the model for fewer tokens than OLLAMA_CONTEXT_LENGTH says: num_ctx "
                  "of the request, or of the model (its Modelfile), stands above the variable";
    if (prompt_ > wanted->number)
      message += "; the prompt has " + counted(prompt_) + " tokens, more than that as well";
    log.remark(
        {.code = "context_defaulted",
         .severity = Severity::warning,
         .expected = counted(wanted->number),
         .found = counted(loaded->number),
         .message = std::move(message),
         .cure = unheard ? "set it where `ollama serve` starts (systemctl edit ollama, docker run "
                           "-e), start it anew, and look at ollama ps"
                         : "options.num_ctx of the request, /set parameter num_ctx, or a Modelfile "
                           "with PARAMETER num_ctx: ollama show MODEL --parameters prints the "
                           "model's own"},
        loaded->line);
    return;
  }
  // What was asked for was cut to the model's own length, which another line says.
  if (log.remark_of("context_capped")) return;
  if (is_ollama_ && !all && !wanted && limit_ == 0 && loaded &&
      is_ollamas_default(loaded->number)) {
    log.remark({.code = "context_defaulted",
                .severity = Severity::warning,
                .found = counted(loaded->number),
                .message = "the model runs with Ollama's default, whatever it was made for: "
                           "longer prompts lose their beginning, the instructions first, without "
                           "an error",
                .cure = "OLLAMA_CONTEXT_LENGTH in the environment of the server, PARAMETER num_ctx "
                        "in a Modelfile, or options.num_ctx of a request to /api/chat"},
               loaded->line);
    return;
  }
  if (!is_ollama_ || !all || !loaded || loaded->number >= all->number || loaded->number < 1) return;
  if (runs_otherwise_) return;  // which says it
  log.remark(
      {.code = "context_defaulted",
       .severity = Severity::warning,
       .expected = counted(all->number),
       .found = counted(loaded->number),
       .message = "Ollama loaded the model for fewer tokens than it is made for: longer prompts "
                  "are cut, by some versions to half of it, or refused",
       .cure = "PARAMETER num_ctx LENGTH in the Modelfile, options.num_ctx of the request, "
               "or OLLAMA_CONTEXT_LENGTH of the server"},
      loaded->line);
}

}  // namespace posenc::detail
