// Exhibit becomes runs, and runs are compared with the first model; findings of all of them stand
// in one list, by their effect.
#include "posenc/doctor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <ranges>
#include <string>
#include <utility>

#include "posenc/context_parallel.h"
#include "posenc/explain.h"
#include "src/core/contains_any.h"
#include "src/core/small_letters.h"
#include "src/core/trimmed.h"
#include "src/core/try.h"
#include "src/core/words.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/model/names.h"
#include "src/text/json.h"
#include "src/text/json_writer.h"
#include "src/text/number.h"
#include "src/tools/command_line.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/foreign_lines.h"
#include "src/tools/log_lines.h"
#include "src/tools/programs.h"
#include "src/tools/recipes.h"
#include "src/tools/roles.h"
#include "src/tools/training.h"

namespace posenc {
namespace {

using detail::grouped;
using detail::scaling_alone;

// Whether a piece of evidence is what somebody told, and no file that has sentences in it.
bool is_told(const Exhibit& one) {
  return one.kind == ExhibitKind::symptom ||
         (one.kind == ExhibitKind::log && detail::is_of_a_person(one.text));
}

class Doctor {
 public:
  Doctor(std::vector<Exhibit> evidence, const DoctorOptions& options) : options_(options) {
    out_.evidence = std::move(evidence);
    out_.length = options.length;
  }

  Expected<Diagnosis> run() && {
    std::string words;  // of all that somebody told
    for (Exhibit& one : out_.evidence) {
      if (one.model && !intent_) intent_ = &one;
      if (one.kind == ExhibitKind::unusable) one.used = false;
      if (one.kind == ExhibitKind::command) commands_.push_back(&one);
      runs_ |= one.kind == ExhibitKind::command || one.kind == ExhibitKind::training;
      const bool told = is_told(one);
      asks_ |= told;
      const std::string_view behind =
          one.kind == ExhibitKind::command ? detail::told_behind(one.text) : std::string_view();
      if (told || !behind.empty())
        words.append(words.empty() ? "" : "\n\n")
            .append(told ? std::string_view(one.text) : behind);
    }
    if (!words.empty()) symptom_ = detail::symptom_of(words);
    for (const Exhibit& one : out_.evidence)
      if (one.kind == ExhibitKind::log && !symptom_) symptom_ = detail::symptom_in_log(one.text);
    engines_ = options_.engines;
    if (symptom_) of_words();
    for (const Exhibit& one : out_.evidence)
      if (one.kind == ExhibitKind::versions)
        for (const auto word : std::views::split(one.text, std::string_view(", ")))
          engines_.emplace_back(word.begin(), word.end());
    for (const Exhibit* command : commands_)
      if (const auto line = detail::read_command_line(command->text);
          line && !line->version.empty() && !runs_by(line->engine))
        engines_.push_back(line->engine + "@" + line->version);
    POSENC_CHECK(engines_without_profile());
    if (intent_) {
      prefer_the_whole();
      prefer_the_extended();
      of_files();
    }
    for (Exhibit& one : out_.evidence)
      if (&one != intent_) of_run(one);
    order();
    detail::give_verdict(out_, intent_, !engines_.empty(), explained_);
    return std::move(out_);
  }

 private:
  const Model& intent() const { return *intent_->model; }

  // Engines that the words name, and the length that they are about, where nothing else says one.
  void of_words() {
    for (const std::string& one : symptom_->engines) {
      const auto same = std::ranges::find_if(engines_, [&](const std::string& other) {
        return other.substr(0, other.find('@')) == one.substr(0, one.find('@'));
      });
      if (same == engines_.end())
        engines_.push_back(one);
      else if (!same->contains('@'))
        *same = one;
    }
    const bool drafts = std::ranges::any_of(commands_, [](const Exhibit* one) {
      const auto line = detail::read_command_line(one->text);
      return line && detail::names_a_draft(*line);
    });
    if (drafts && !symptom_->is(detail::When::of_draft))
      symptom_->when.push_back(detail::When::of_draft);
    const bool few_bits = std::ranges::any_of(commands_, [](const Exhibit* one) {
      return detail::contains_any(one->text,
                                  {"kv-cache-dtype fp8", "kv_cache_dtype fp8", "kv-cache-dtype=fp8",
                                   "cache-type-k q", "-ctk q", "--quantkv", "KV_CACHE_TYPE=q"});
    });
    const bool later = symptom_->from > 0 || symptom_->is(detail::When::long_texts);
    if (few_bits && later && !symptom_->is(detail::When::cache_quantized))
      symptom_->when.push_back(detail::When::cache_quantized);
    const bool logged = std::ranges::any_of(
        out_.evidence, [](const Exhibit& one) { return one.kind == ExhibitKind::log; });
    if (options_.length > 0 || runs_ || logged || !intent_) return;
    // Of a context that was shifted or a batch the length is no matter.
    const bool by_length = !symptom_->is(detail::When::shifted) &&
                           !symptom_->is(detail::When::in_batch) &&
                           !symptom_->is(detail::When::of_answers);
    if (symptom_->length > 0 && by_length)
      options_.length = symptom_->length;
    else if (10 * symptom_->from > 9 * reached())
      options_.length = std::max(symptom_->from, reached()) + 1;
    out_.length = options_.length;
  }

  // What a line itself does to a text is what somebody saw of it.
  void raise_what_was_met() {
    for (Diagnosed& one : out_.findings)
      if (one.finding.code == "slots" || one.finding.code == "context_shift" ||
          one.finding.code == "prompt_limit")
        one.finding.severity = std::min(one.finding.severity, Severity::warning);
  }

  // The text that somebody speaks of, against what the line serves.
  void longer_than_served() {
    if (!intent_ || commands_.empty() || options_.length > 0) return;
    const Exhibit& line = *commands_.front();
    const auto read = read_command(intent(), line.text);
    const std::int64_t text = std::max(symptom_->length, symptom_->from);
    if (!read || read->length <= 0 || text <= read->length || text > reached()) return;
    Finding short_of = detail::served_shorter(intent(), line.text, read->length, text);
    short_of.message = "the line serves " + grouped(read->length) + " tokens, and the text has " +
                       grouped(text) + ": it is refused, or loses its beginning";
    add(std::move(short_of), line.name, read->reading.engine.name, "", "read");
  }

  // What the words say themselves, and the finding that begins where they do.
  void judge_words() {
    // Of texts in a batch it is no matter where long ones begin to differ.
    if (symptom_->is(detail::When::in_batch) && symptom_->from == 0 &&
        !symptom_->is(detail::When::long_texts))
      for (Diagnosed& one : out_.findings)
        if (one.finding.position && *one.finding.position > 1 &&
            one.finding.severity == Severity::warning)
          one.finding.severity = Severity::note;
    // Ids that begin anew are those of packed texts.
    if (symptom_->is(detail::When::packed))
      std::erase_if(out_.findings, [](const Diagnosed& one) {
        return one.finding.code == "positions_printed" && one.finding.message.ends_with("→ 0");
      });
    // Whoever wrote a scaling under a wrong name needs no other.
    const bool is_misspelt = std::ranges::any_of(
        out_.findings, [](const Diagnosed& one) { return one.finding.code == "misspelt_key"; });
    for (std::size_t n = 0; n < out_.findings.size(); ++n) {
      Finding& one = out_.findings[n].finding;
      if (is_misspelt && one.code == "beyond_context") {
        one.severity = Severity::note;
        continue;
      }
      // A server that answers, however badly, did not refuse the length: it is an older one.
      if (one.code == "context_refused" && symptom_->seen != detail::Seen::nothing) continue;
      if (!detail::begins_where_seen(one, *symptom_, options_.length)) continue;
      one.severity = std::min(one.severity, Severity::warning);
      std::rotate(out_.findings.begin(), out_.findings.begin() + static_cast<std::ptrdiff_t>(n),
                  out_.findings.begin() + static_cast<std::ptrdiff_t>(n) + 1);
      explained_ = true;
      return;
    }
    raise_what_was_met();
    longer_than_served();
    const bool told_a_length = std::ranges::any_of(out_.evidence, [](const Exhibit& one) {
      return !is_told(one) && one.text.contains("num_ctx");
    });
    const bool proven = std::ranges::any_of(out_.findings, [](const Diagnosed& one) {
      return one.finding.severity == Severity::error;
    });
    const auto models = std::ranges::count_if(
        out_.evidence, [](const Exhibit& one) { return one.model.has_value(); });
    // A guess, where evidence says what it is.
    const auto is_answered = [&](std::string_view code) {
      return (told_a_length && code == "context_defaulted") ||
             (proven && detail::contains_word("seen_at_once seen_at_edge seen_at_base", code)) ||
             (code == "two_models" && models > 1);
    };
    for (Finding& one : detail::judge_symptom(*symptom_, intent_ ? &intent() : nullptr, engines_))
      if (!is_answered(one.code))
        add(std::move(one), "", "", "", std::string(detail::told_by_words));
  }

  // Of a program that has no profile its log can be read all the same.
  Expected<void> engines_without_profile() {
    for (auto engine = engines_.begin(); engine != engines_.end();) {
      const auto known = find_engine(*engine);
      const std::string_view name =
          detail::program_without_profile(std::string_view(*engine).substr(0, engine->find('@')));
      if (known || name.empty()) {
        POSENC_CHECK(known);
        ++engine;
        continue;
      }
      if (intent_) {
        for (Diagnosed& fault : detail::faults_of(intent(), std::span(&*engine, 1)))
          out_.findings.push_back(std::move(fault));
        for (Finding& finding : detail::known_of_program(name, intent(), options_.length))
          add(std::move(finding), intent_->name, "", "", "by reports");
      }
      const bool is_told = std::ranges::any_of(
          out_.findings, [](const Diagnosed& one) { return one.finding.code == "version_fault"; });
      if (!is_told)
        add({.code = "program_unknown",
             .severity = Severity::note,
             .found = std::string(name),
             .message = "posenc has no profile of it: what is said here holds whatever the engine",
             .cure = "posenc diff FILE --engines all shows those that have one"},
            "", "", "", "read");
      engine = engines_.erase(engine);
    }
    return {};
  }

  // The first model says what is meant, unless its own file has lost what a later one of its family
  // has: then the order in which somebody named the two tells nothing.
  void prefer_the_whole() {
    const auto has_lost = [](const Model& model) {
      const auto found = lint(model, {.engines = {"transformers"}});
      return found && std::ranges::any_of(*found, [](const Finding& finding) {
               return finding.code == "llama3_scaling_missing" ||
                      finding.code == "gguf_missing_rope_freqs";
             });
    };
    if (!has_lost(intent())) return;
    for (Exhibit& one : out_.evidence)
      if (one.model && &one != intent_ && one.model->family == intent().family &&
          !has_lost(*one.model)) {
        intent_ = &one;
        return;
      }
  }

  // A file with the scaling that its authors publish runs, and the one without is what it was made
  // of.
  void prefer_the_extended() {
    for (Exhibit& one : out_.evidence) {
      const bool could_be = one.model && &one != intent_ && one.model->family == intent().family;
      const detail::Recipe* recipe =
          could_be ? detail::recipe_between(intent(), *one.model) : nullptr;
      if (recipe && detail::rope_of_text(*one.model)->rope_theta == recipe->base) {
        add({.code = "scaling_published",
             .severity = Severity::note,
             .found = one.name,
             .message = "it scales as " + std::string(recipe->source) +
                        " publish it for longer texts: it is judged, and not " + intent_->name},
            one.name, "", "", "by the model's card");
        plain_ = std::exchange(intent_, &one);
        return;
      }
      if (!could_be || !(detail::promises_what_it_stretches(intent(), *one.model) ||
                         (detail::stretches(intent(), *one.model) && is_started(one))))
        continue;
      add({.code = "scaling_published",
           .severity = Severity::note,
           .found = one.name,
           .message = "it scales " + intent_->name + " for longer texts (" +
                      detail::scaling_text(detail::rope_of_text(*one.model)->scaling) +
                      "): it is judged, and not " + intent_->name},
          one.name, "", "", "computed");
      plain_ = std::exchange(intent_, &one);
      return;
    }
  }

  // Whether a line names the folder or the file.
  bool is_started(const Exhibit& model) const {
    std::string_view name = model.name;
    if (name.ends_with("/config.json")) name.remove_suffix(std::string_view("/config.json").size());
    while (name.ends_with('/')) name.remove_suffix(1);
    name = name.substr(name.find_last_of('/') + 1);
    return name.size() > 3 && std::ranges::any_of(commands_, [&](const Exhibit* command) {
             const std::size_t at = command->text.find(name);
             const std::size_t end = at == command->text.npos ? at : at + name.size();
             return at != command->text.npos &&
                    (end == command->text.size() ||
                     std::string_view(" /'\"\n").contains(command->text[end]));
           });
  }

  std::int64_t reached() const { return std::max(intent().context, detail::reach(intent())); }

  void add(Finding finding, const std::string& where, std::string_view engine,
           std::string_view version, std::string sure) {
    // Said once, whatever evidence tells it; of several keys that nobody reads, each.
    const bool of_a_key = detail::contains_word("unread_key unknown_key", finding.code);
    for (const Diagnosed& old : out_.findings)
      if (old.finding.code == finding.code && old.finding.expected == finding.expected &&
          old.finding.found == finding.found && old.engine == engine &&
          (!of_a_key || old.finding.message == finding.message))
        return;
    in_their_words(finding);
    Diagnosed one{.engine = std::string(engine),
                  .version = std::string(version),
                  .where = where + (finding.line ? ":" + std::to_string(*finding.line) : ""),
                  .effect = effect_of(finding),
                  .sure = std::move(sure)};
    one.finding = std::move(finding);
    out_.findings.push_back(std::move(one));
  }

  // Whether layers of text have such a scheme.
  template <class Kind>
  bool has() const {
    return intent().context > 0 &&
           std::ranges::any_of(intent().groups, [](const LayerGroup& group) {
             return !is_tower(group.stack) &&
                    std::ranges::any_of(group.schemes, [](const Scheme& scheme) {
                      return std::holds_alternative<Kind>(scheme);
                    });
           });
  }

  // Whether the file promises as many tokens as were refused, by a key that the engine passes over.
  bool reads_less_of_the_file(const Finding& finding) const {
    const bool two_lengths = std::ranges::any_of(
        intent().warnings, [](const Warning& one) { return one.code == "lengths_differ"; });
    std::string asked = finding.expected.empty() ? finding.found : finding.expected;
    std::erase(asked, ',');
    return two_lengths && asked == std::to_string(intent().context);
  }

  // Where a program stands before the server, the length is set in its own settings.
  void in_words_of_frontend(Finding& finding) const {
    const auto names = [&](std::string_view word) {
      return std::ranges::any_of(out_.evidence, [&](const Exhibit& one) {
        return one.kind != ExhibitKind::log && detail::small_letters(one.text).contains(word);
      });
    };
    const bool of_grpo = finding.message.contains("vLLM was started for") &&
                         std::ranges::any_of(out_.evidence, [](const Exhibit& one) {
                           const std::string text = detail::small_letters(one.text);
                           return detail::contains_any(text, {"grpo", " trl"});  // and no ctrl
                         });
    if (of_grpo)
      finding.cure =
          "max_prompt_length and max_completion_length of GRPOConfig (TRL): vLLM is started for "
          "their sum, and prompts that are longer must be left out, or the first raised";
    else if (names("infer_backend: vllm"))
      finding.cure =
          "vllm_maxlen in the YAML of LLaMA-Factory, of prompt and answer together (4,096 where "
          "it is not there); cutoff_len is of the texts of a training alone";
    else if (names("infer_backend: sglang"))
      finding.cure = "sglang_maxlen in the YAML of LLaMA-Factory; cutoff_len is of trainings alone";
    else if (names("xinference"))
      finding.cure =
          "max_model_len where the model is launched (xinference launch … --max_model_len LENGTH, "
          "or among the additional parameters of its page); what a client sets (Max Tokens) is the "
          "length of an answer, and changes nothing there";
  }

  // What is typed for the scaling that the model's authors publish, where a cure sends to `posenc
  // extend` for an engine that takes flags; "": it does not, or the recipe reaches less far.
  std::string published_words(const detail::Recipe& recipe, std::string_view cure) const {
    const auto word_behind = [&](std::string_view flag) -> std::string_view {
      const std::size_t at = cure.find(flag);
      if (at == cure.npos) return "";
      const std::string_view rest = cure.substr(at + flag.size());
      return rest.substr(0, rest.find_first_of(" ,;"));
    };
    const std::string_view to = word_behind(" --to ");
    const std::int64_t tokens = detail::whole_number(to).value_or(0);
    std::string engine(word_behind(" --engine "));
    for (const std::string& one : engines_)
      if (engine.empty() || one.starts_with(engine + "@")) engine = one;
    const std::string_view name = std::string_view(engine).substr(0, engine.find('@'));
    if (!detail::contains_word("vllm sglang llama.cpp", name) || tokens == 0 ||
        recipe.factor * static_cast<double>(recipe.trained) < static_cast<double>(tokens))
      return "";
    // No larger than the length needs: the cards say so of typical texts.
    const double factor = std::min(recipe.factor, std::ceil(static_cast<double>(tokens) /
                                                            static_cast<double>(recipe.trained)));
    Model scaled = intent();
    for (LayerGroup& group : scaled.groups)
      for (Scheme& scheme : group.schemes)
        if (auto* rope = std::get_if<Rope>(&scheme); rope && !is_tower(group.stack))
          rope->scaling =
              Yarn{.factor = factor, .original_max_position_embeddings = recipe.trained};
    const auto said = translate(scaled, engine, tokens);
    if (!said) return "";
    const bool of_lm_studio = std::ranges::any_of(commands_, [](const Exhibit* one) {
      const auto line = detail::read_command_line(one->text);
      return line && line->program == "lms";
    });
    return (of_lm_studio ? "LM Studio has no field for YaRN: load a GGUF whose own keys say it "
                           "(publishers call it 128K), or run llama-server "
                         : "") +
           said->target + ": YaRN by " + number_text(factor) + " of " + grouped(recipe.trained) +
           (factor == recipe.factor
                ? ", as " + std::string(recipe.source) + " publish it"
                : ", which does for this length (" + std::string(recipe.source) +
                      " publish it by " + number_text(recipe.factor) + ")") +
           "; short texts are a little worse with it";
  }

  // The file has what transformers misses.
  void in_words_of_a_class(Finding& finding) const {
    const bool is_said = std::ranges::any_of(intent().groups, [](const LayerGroup& group) {
      return std::ranges::any_of(group.provenance, [](const Provenance& value) {
        return value.field == "rope_theta" && value.origin == Origin::file;
      });
    });
    const bool of_base = std::ranges::any_of(out_.evidence, [](const Exhibit& one) {
      return one.text.contains("Missing required keys in `rope_") &&
             one.text.contains("{'rope_theta'}");
    });
    if (!is_said || !of_base || !finding.message.starts_with("transformers stops")) return;
    finding.message =
        "the file has rope_theta, and the configuration class that runs hands it on after "
        "transformers 5 has looked: it was written for transformers 4";
    finding.cure =
        "update what brings the class (the engine, the model's own code), or pip install "
        "'transformers<5'; the file is right";
  }

  // Where nothing overrides the file, and the file has the sections.
  void in_words_of_its_level(Finding& finding) const {
    const bool is_within = std::ranges::any_of(intent().groups, [](const LayerGroup& group) {
      return std::ranges::any_of(group.provenance, [](const Provenance& value) {
        return value.field == "mrope_section" && value.origin == Origin::file &&
               value.detail.contains("text_config.rope_parameters");
      });
    });
    if (!is_within || !finding.message.contains("the class reads mrope_section")) return;
    finding.message =
        "the file has mrope_section, and what loads it looks at another level: at the top of the "
        "config.json, or in rope_scaling, where files for transformers 4 had it";
    finding.cure =
        "update what loads it; until then copy rope_parameters of text_config to the top level of "
        "the config.json as well (and, for older code, its contents to rope_scaling)";
  }

  // Cures name what is there to be named, and the recipe that the model's authors publish.
  void in_their_words(Finding& finding) const {
    if (std::ranges::any_of(commands_,
                            [](const Exhibit* one) { return one->text.contains("LLAMA_ARG_"); }))
      finding.cure = detail::in_variables_of_llama_cpp(std::move(finding.cure));
    if (finding.code == "request_too_long") in_words_of_frontend(finding);
    if (!intent_) return;
    if (finding.code == "mrope_section_missing" && commands_.empty())
      in_words_of_its_level(finding);
    if (finding.code == "key_missing") in_words_of_a_class(finding);
    for (const std::string_view verb : {"posenc extend ", "posenc explain ", "posenc lint "})
      for (const std::string_view blank : {"MODEL", "FILE"}) {
        const std::string words = std::string(verb) + std::string(blank);
        if (const std::size_t at = finding.cure.find(words); at != finding.cure.npos)
          finding.cure.replace(at + verb.size(), blank.size(), intent_->name);
      }
    if (has<Alibi>() && !has<Rope>() && finding.code == "beyond_context")
      finding.cure =
          "ALiBi has no scaling, and a raised max_seq_len only lifts the refusal: ask for "
          "up to " +
          std::to_string(intent().context) +
          ", or take a model that was trained, or trained further, on longer texts";
    if (has<Learned>() && finding.cure.contains("posenc extend")) {
      finding.cure = "ask for up to " + std::to_string(intent().context) +
                     ": its positions are rows of a learned table, which no scaling stretches; a "
                     "longer text wants another model, or rows that are trained anew";
      return;
    }
    if (finding.code == "context_refused" && reads_less_of_the_file(finding)) {
      finding.cure =
          "--hf-overrides '{\"max_position_embeddings\": " + std::to_string(intent().context) +
          "}', or a newer vLLM: the model is made for so many, as another key of the "
          "file says, and needs no scaling";
      return;
    }
    if (finding.code == "beyond_context" && runs_by("ollama"))
      finding.cure +=
          "; Ollama has no setting for a scaling: it reads what the GGUF says, so write "
          "rope_scaling into the config.json, convert it anew, and set num_ctx";
    const detail::Recipe* recipe = detail::recipe_of(intent());
    if (recipe && (finding.code == "context_refused" || finding.code == "beyond_context" ||
                   finding.code == "asks_longer"))
      if (std::string words = published_words(*recipe, finding.cure); !words.empty()) {
        finding.cure = std::move(words);
        return;
      }
    if (finding.code == "context_refused" && recipe && finding.cure.contains("posenc extend"))
      finding.cure += "; " + std::string(recipe->source) + " publish YaRN by " +
                      number_text(recipe->factor) + " of " + grouped(recipe->trained);
  }

  void add_all(std::vector<Finding> findings, const std::string& where,
               const EngineReading& reading, const std::string& sure) {
    const std::string version(reading.version());
    for (Finding& finding : findings)
      add(std::move(finding), where, reading.engine.name, version, sure);
  }

  static std::string effect_of(const Finding& finding) {
    if (finding.severity == Severity::note) return "";
    if (!finding.position) return "at any length";
    if (*finding.position <= 1) return "from the first tokens on";
    return "from position " + grouped(*finding.position) + " on";
  }

  void cannot(Exhibit& one, const Error& error) {
    one.as += "; not used: " + error.message();
    one.used = false;
  }

  // The file against itself, and what the engines that were named make of it. Where a line starts
  // it, what runs decides how far it reaches, and is judged there.
  void of_files() {
    const std::int64_t length = runs_ ? 0 : options_.length;
    for (Diagnosed& one :
         detail::told_by_versions(intent(), out_.evidence, engines_, options_.length))
      add(std::move(one.finding), intent_->name, one.engine, one.version, std::move(one.sure));
    if (auto unneeded = runs_ ? std::nullopt : detail::scaling_unneeded(intent(), options_.length))
      add(*std::move(unneeded), intent_->name, "", "", "by the model's card");
    if (auto frames = detail::frames_beyond(intent(), options_.length))
      add(*std::move(frames), intent_->name, "", "", "by the family's training");
    const bool judged = intent().origin.starts_with("published");
    if (auto raised = judged ? std::nullopt : detail::raised_context(intent()))
      add(*std::move(raised), intent_->name, "", "", "by published files");
    // What a line's own engine fixes is no matter of the file.
    std::vector<std::string> engines = engines_;
    for (const Exhibit* command : commands_)
      if (const auto line = detail::read_command_line(command->text))
        engines.push_back(line->engine);
    const auto found = lint(intent(), {.length = length, .engines = engines});
    if (!found) {
      // A length that the file's own scaling cannot reach.
      const auto without = lint(intent(), {.engines = engines});
      if (!without) return cannot(*intent_, without.error());
      // Somebody who wonders that a longer text is taken has seen no end of a table.
      const bool is_cut = symptom_ && symptom_->is(detail::When::of_silent_cut);
      if (!is_cut)
        add({.code = "out_of_reach", .position = reached(), .message = found.error().message()},
            intent_->name, "", "", "computed");
      keep(*without);
      return;
    }
    keep(*found);
    read_flat();
  }

  // transformers 5.0 to 5.7 reads what lint has of the newest otherwise.
  void read_flat() {
    constexpr std::string_view name = "transformers@";
    const bool flat = std::ranges::any_of(engines_, [&](const std::string& engine) {
      const std::string_view version = std::string_view(engine).substr(engine.find('@') + 1);
      return engine.starts_with(name) && is_before(version, "5.8") && !is_before(version, "5.0");
    });
    if (!flat || intent().family != "olmo3") return;
    for (Diagnosed& one : out_.findings) {
      if (one.finding.code != "flat_parameters") continue;
      one.finding.severity = Severity::warning;
      one.finding.message =
          "until 5.8 transformers reads one rotation for all layers of Olmo 3, so that those which "
          "slide are scaled as well; later ones want an entry for each kind of layer, and read "
          "nothing of this file's";
      one.finding.cure =
          "a newer transformers, and rope_parameters of full_attention (with the scaling) and "
          "sliding_attention (rope_type default)";
    }
  }

  bool is_asked(const Finding& finding) const {
    return std::ranges::any_of(finding.engines, [&](const std::string& engine) {
      return std::ranges::any_of(engines_, [&](const std::string& asked) {
        return asked.substr(0, asked.find('@')) == engine.substr(0, engine.find('@'));
      });
    });
  }

  static bool is_vllm(const std::string& engine) { return engine.starts_with("vllm"); }

  bool runs_by(std::string_view name) const {
    return std::ranges::any_of(engines_, [&](const std::string& engine) {
      return std::string_view(engine).substr(0, engine.find('@')) == name;
    });
  }

  // The flag that lifts the length, of the engine that runs it. Somebody who asks has met it.
  void by_whose_flag(Finding& finding) const {
    struct Flag {
      std::string_view engine, words;
    };
    constexpr Flag flags[] = {
        {"vllm",
         "vLLM: --max-model-len, from 0.30 on beside max_position_embeddings in --hf-overrides"},
        {"sglang", "SGLang: --context-length, with SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"},
        {"tgi", "TGI: --max-total-tokens and --max-input-tokens"},
        {"lmdeploy", "LMDeploy: --session-len"},
        {"llama.cpp", "llama.cpp: -c"}};
    const std::string_view usual = flags[0].words;
    const std::size_t at = finding.message.find(usual);
    const auto* const mine =
        std::ranges::find_if(flags, [&](const Flag& one) { return runs_by(one.engine); });
    if (at == finding.message.npos || mine == std::end(flags)) return;
    finding.message.replace(at, usual.size(), mine->words);
    if (symptom_) finding.severity = Severity::warning;
  }

  void keep(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      const bool by_engine = finding.code.starts_with("engine_");
      // Of a line's engine the line itself is read.
      if (by_engine && finding.code != "engine_not_known" &&
          (engines_.empty() || finding.engines.empty() || !is_asked(finding)))
        continue;
      std::string engine, version;
      if (!finding.engines.empty()) {
        engine = finding.engines.front();
        const std::size_t at = engine.find('@');
        if (const auto profile = find_engine(engine)) version = profile->version;
        if (at != engine.npos) version = engine.substr(at + 1);
        engine = engine.substr(0, at);
      }
      Finding mine = finding;
      if (const detail::Recipe* recipe = detail::recipe_of(intent());
          recipe && (mine.code == "beyond_context" ||
                     (mine.code == "engine_table_end" && options_.length > intent().context)))
        mine.cure = std::string(recipe->source) + " publish YaRN by " +
                    number_text(recipe->factor) + " of " + grouped(recipe->trained) +
                    ": posenc extend " + intent_->name + " --to " +
                    std::to_string(options_.length) + " writes it for an engine";
      if (by_engine && mine.cure.empty() && engine == "transformers" && version.starts_with("4."))
        mine.cure =
            "pip install -U transformers (5.0 or later), where what runs it allows that; or write "
            "rope_theta, and rope_scaling where there is one, at the top of the file too";
      if (mine.code == "trained_length_kept") by_whose_flag(mine);
      // vLLM serves no more than it; elsewhere it is how such models are published.
      if (mine.code == "sentence_length" && std::ranges::any_of(engines_, is_vllm))
        mine.severity = Severity::warning;
      add(std::move(mine), intent_->name, by_engine ? engine : "", by_engine ? version : "",
          by_engine ? "by the engine's profile" : "computed");
    }
  }

  // A job's words may share the text out among ranks.
  void of_sharding(Exhibit& one) {
    if (one.kind != ExhibitKind::command && one.kind != ExhibitKind::training &&
        one.kind != ExhibitKind::unusable)
      return;
    const auto all = layout::shardings_of(one.text);
    if (!all || all->empty()) return;
    if (one.kind == ExhibitKind::unusable) {
      one.as = "words of a job that shares a text out among ranks";
      one.kind = ExhibitKind::command;
      one.used = true;
    }
    if (!intent_) return need_model(one);
    for (const layout::Sharding& sharding : *all) {
      const auto judged =
          layout::judge(intent(), sharding, {.length = out_.length > 0 ? out_.length : reached()});
      if (!judged) continue;
      for (Finding& finding : layout_findings(*judged)) {
        const bool by_report = !finding.engines.empty();
        finding.engines.clear();
        add(std::move(finding), one.name, sharding.engine, "",
            by_report ? "by reports" : "computed");
      }
      if (judged->verdict == layout::Verdict::survives)
        add({.code = "cp_survives",
             .severity = Severity::note,
             .found = sharding.text(),
             .message = "every layer survives this layout; what the engine must keep stands in "
                        "posenc lint --cp",
             .cure = "posenc lint " + intent_->name + " --cp " + sharding.text()},
            one.name, sharding.engine, "", "computed");
    }
  }

  void of_run(Exhibit& one) {
    const bool tells = one.kind == ExhibitKind::unusable;
    of_sharding(one);
    if (tells && one.kind == ExhibitKind::command) return;
    switch (one.kind) {
      case ExhibitKind::model: return of_second(one);
      case ExhibitKind::command: return of_command(one);
      case ExhibitKind::log: return of_log(one);
      case ExhibitKind::modelfile: return of_modelfile(one);
      case ExhibitKind::training: return of_training(one);
      case ExhibitKind::inv_freq: return of_frequencies(one);
      case ExhibitKind::versions:
      case ExhibitKind::symptom:
        if (!intent_) need_model(one);
        return;
      case ExhibitKind::unusable: return of_unknown_program(one);
    }
  }

  // A program without a profile: what is known of it all the same.
  void of_unknown_program(Exhibit& one) {
    if (auto positions = detail::printed_positions(one.text)) {
      one.as = "position ids";
      one.kind = ExhibitKind::log;
      one.used = true;
      return add(*std::move(positions), one.name, "", "", "computed");
    }
    if (auto rounded = detail::slip_in_code(one.text, intent_ ? &intent() : nullptr)) {
      one.as = "code";
      one.kind = ExhibitKind::log;
      one.used = true;
      return add(*std::move(rounded), one.name, "", "", "by the code");
    }
    if (auto option = detail::unknown_option_of_ollama(one.text)) {
      one.as = "what a client asks Ollama for";
      one.kind = ExhibitKind::log;
      one.used = true;
      return add(*std::move(option), one.name, "ollama", "", "read");
    }
    detail::ForeignLine known = detail::foreign_line(one.text, intent_ ? &intent() : nullptr);
    for (Finding& finding : known.findings) add(std::move(finding), one.name, "", "", "by reports");
    constexpr std::string_view none = "posenc has no profile of ";
    const std::size_t end = one.as.find(", got "), advice = one.as.find("; ");
    if (!one.as.starts_with(none) || end == one.as.npos || advice == one.as.npos) {
      if (!known.judged) return;
      one.as = "what a video is asked for";
      one.kind = ExhibitKind::log;
      one.used = true;
      return;
    }
    add({.code = "program_unknown",
         .severity = Severity::note,
         .found = one.as.substr(none.size(), end - none.size()),
         .message = one.as.substr(advice + 2),
         .cure = ""},
        one.name, "", "", "by its documentation");
    if (known.findings.empty()) return;
    one.as = "a line of " + one.as.substr(none.size(), end - none.size()) + ", by its words alone";
    one.kind = ExhibitKind::log;
    one.used = true;
  }

  // Another model is what became of the first, or the draft that a line names.
  void of_second(Exhibit& one) {
    if (&one == plain_) return;
    if (symptom_ && symptom_->is(detail::When::of_merge)) return of_partner(one);
    for (const Exhibit* command : commands_)
      if (const auto line = detail::read_command_line(command->text);
          line && detail::names_a_draft(*line))
        return of_draft(one, *command, *line);
    auto found = differences(intent(), *one.model, options_.length);
    if (!found) return cannot(one, found.error());
    // Neither is what became of the other.
    if (std::ranges::find(*found, "two_models", &Finding::code) != found->end())
      for (Finding& finding : *found)
        if (finding.severity == Severity::error) finding.severity = Severity::warning;
    if (detail::is_draft_of(intent(), *one.model))
      detail::as_of_a_draft(options_.length > 0 ? options_.length : reached(), *one.model, *found);
    // The two have names here.
    constexpr std::string_view first = "the first model";
    for (Finding& finding : *found)
      if (const std::size_t at = finding.cure.find(first); at != finding.cure.npos)
        finding.cure.replace(at, first.size(), intent_->name);
    add_all(*std::move(found), one.name, {}, "computed");
  }

  // Somebody asks whether the weights of the two can be averaged. Of a name in a sentence one size
  // stands for all.
  void of_partner(const Exhibit& one) {
    const bool told = one.as.contains("words name it") || intent_->as.contains("words name it");
    Finding partner = detail::as_partners(intent(), *one.model, !told);
    const bool alike = partner.severity == Severity::note;
    add(std::move(partner), one.name, "", "",
        alike ? std::string(detail::told_by_words) : std::string("computed"));
  }

  void of_draft(Exhibit& one, const Exhibit& command, const detail::CommandLine& line) {
    of_draft_ = true;
    const auto read = read_command(intent(), command.text);
    const std::int64_t target = options_.length > 0        ? options_.length
                                : read && read->length > 0 ? read->length
                                                           : reached();
    // vLLM and SGLang make a table as long as the file says, whatever Llama 3's factor is.
    const bool by_file = one.model->context > 0 && line.engine != "llama.cpp" &&
                         std::ranges::any_of(one.model->groups, [](const LayerGroup& group) {
                           const Rope* rope = detail::rope_of(group);
                           return rope && std::holds_alternative<Llama3>(rope->scaling);
                         });
    std::int64_t draft =
        by_file ? one.model->context : std::max(one.model->context, detail::reach(*one.model));
    // These hand the line's scaling to the draft as well; vLLM does not.
    if (line.engine == "llama.cpp" || line.engine == "sglang")
      if (const auto told = read_command(*one.model, command.text))
        draft = std::max(draft, detail::reach(told->reading.model));
    if (draft > 0 && draft < target) {
      Finding shorter = detail::shorter_draft(target, draft);
      // eagle_worker_v2.py hands the target's length on, and model_config.py compares.
      if (line.engine == "sglang" && line.find("--allow-longer")) {
        shorter.message =
            "SGLang raises the draft's max_position_embeddings to the target's length by itself: "
            "it starts, and guesses beyond what the draft was trained for are taken less often";
        shorter.cure = "a draft that is made for more, or none for longer texts";
      } else if (line.engine == "sglang") {
        shorter.message =
            "SGLang builds the draft for the target's length, and ends at its start with "
            "ValueError where the draft's own file is made for less ('greater than the derived "
            "context_length')";
        shorter.cure =
            "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 before the line, or " + shorter.cure;
      }
      if (line.engine == "llama.cpp")
        shorter.cure = "-c " + std::to_string(draft) + ", or a draft that is made for more";
      add(std::move(shorter), one.name, line.engine, "", "computed");
    } else if (auto lost = detail::scaling_draft_lacks(intent(), *one.model)) {
      add(*std::move(lost), one.name, line.engine, "", "computed");
    } else {
      const bool has_positions = detail::rope_of_text(*one.model) != nullptr || draft > 0;
      add({.code = "draft_agrees",
           .severity = Severity::note,
           .expected = has_positions ? grouped(target) : "",
           .found = has_positions ? grouped(draft) : "",
           .message = has_positions
                          ? "the draft reaches as far as its target runs; a draft rotates as it "
                            "was trained, so that a base of its own is no fault"
                          : "the draft has no attention, and so no positions that could differ"},
          one.name, line.engine, "", "computed");
    }
  }

  // A line, and the error that it ended with below it.
  void of_errors_below(const Exhibit& one) {
    auto log = detail::read_log(one.text);
    if (!log) return;
    // "llama-cli -m FILE: key not found in model"
    const bool behind_colon = !detail::trimmed(one.text).contains('\n') && one.text.contains(": ");
    std::erase_if(log->remarks, [&](const Finding& finding) {
      return finding.severity != Severity::error || finding.code == "line_unknown" ||
             (finding.line.value_or(1) == 1 && !behind_colon);
    });
    add_all(std::move(log->remarks), one.name, {}, "told by the log");
  }

  // MTP's draft has a context of the whole -c, whatever the slots are.
  void of_mtp_draft(const Exhibit& one) {
    const auto line = detail::read_command_line(one.text);
    const std::size_t at = one.text.find("--spec-type");
    if (!line || line->engine != "llama.cpp" || at == one.text.npos) return;
    const std::string_view kinds =
        std::string_view(one.text).substr(at, one.text.find(" -", at + 1) - at);
    const detail::CommandFlag* all = line->find("--ctx-size");
    const double tokens = all ? detail::number_of_flag(*all).value_or(0) : 0;
    constexpr double of_most = 0x1p18;
    const double made_for =
        intent_ && intent().context > 0 ? static_cast<double>(intent().context) : of_most;
    if (!kinds.contains("mtp") || tokens <= made_for || tokens > 0x1p40) return;
    add({.code = "draft_context",
         .severity = Severity::warning,
         .expected = grouped(std::llround(made_for)),
         .found = grouped(std::llround(tokens)),
         .message = "MTP's draft has a context of the whole -c, and where that is more than the "
                    "model is made for, reports have every request end at its first token",
         .cure = "a -c of at most " + std::to_string(std::llround(made_for)) +
                 " for all slots together, -np 1, or no draft-mtp"},
        one.name, line->engine, "", "by reports");
  }

  // What a line says whatever the model is.
  void of_slots_alone(const Exhibit& one) {
    const auto line = detail::read_command_line(one.text);
    if (!line || line->engine != "llama.cpp" || line->find("--kv-unified")) return;
    const detail::CommandFlag *count = line->find("--parallel"), *all = line->find("--ctx-size");
    const double slots = count ? detail::number_of_flag(*count).value_or(1) : 1,
                 tokens = all ? detail::number_of_flag(*all).value_or(0) : 0;
    if (auto few = detail::few_tokens(*line, tokens / std::max(slots, 1.0)))
      add(*std::move(few), one.name, line->engine, "", "read");
    if (slots < 2 || slots > 1e6 || tokens > 0x1p40 || slots != std::floor(slots)) return;
    const std::string each = std::to_string(std::llround(slots));
    add({.code = "slots",
         .severity = Severity::note,
         .expected = tokens > 0 ? grouped(std::llround(tokens)) : "",
         .found = tokens > 0 ? grouped(std::llround(std::floor(tokens / slots))) : "",
         .message = "each of " + each + " slots has 1/" + each + " of " +
                    (tokens > 0 ? "-c" : "the file's context, as the line has no -c") +
                    ": a longer prompt is refused, or loses its beginning",
         .cure = "-c " + each +
                 " times what one text needs, -np 1, or --kv-unified, by which one slot may have "
                 "them all"},
        one.name, line->engine, "", "read");
  }

  // A scaling in the line that does not reach the length in the line.
  void scaling_too_short(const Exhibit& one, const CommandReading& read) {
    const std::int64_t reach = detail::reach(read.reading.model);
    if (reach == 0 || read.length <= reach) return;
    add({.code = "beyond_context",
         .severity = Severity::warning,
         .position = reach,
         .expected = grouped(reach),
         .found = grouped(read.length),
         .message = "the scaling of the line reaches no further, and the line asks for more tokens",
         .cure = "original_max_position_embeddings is the length that the model was trained for, "
                 "as its config.json has it before any scaling; factor that times which is what "
                 "is asked for"},
        one.name, read.reading.engine.name, "", "computed");
  }

  // Flags that no model makes right: read beside a model that has nothing of its own.
  void of_flags_alone(const Exhibit& one) {
    const auto line = detail::read_command_line(one.text);
    constexpr std::string_view engines[] = {"vllm", "sglang", "lmdeploy", "tgi", "ollama"};
    if (!line || std::ranges::find(engines, std::string_view(line->engine)) == std::end(engines))
      return;
    const auto plain = read_config(
        R"({"model_type":"llama","hidden_size":4096,"num_attention_heads":32,"rope_theta":10000.0,)"
        R"("num_hidden_layers":32,"max_position_embeddings":1048576})");
    if (!plain) return;
    const auto read = read_command(*plain, one.text);
    if (!read) {
      const Error& error = read.error();
      if (error.where == "command" && !error.rule.ends_with("are not read"))
        add({.code = "flag_refused", .found = error.got, .message = error.rule, .cure = error.cure},
            one.name, line->engine, "", "read");
      return;
    }
    scaling_too_short(one, *read);
    std::vector<Finding> found = read->findings;
    std::erase_if(found, [&](const Finding& finding) {
      return finding.code != "flag_unread" && finding.code != "flag_removed" &&
             finding.code != "flag_refused" &&
             !(finding.code == "slots" && line->engine == "ollama");
    });
    // Which version runs is not known: an older one still has the flag.
    for (Finding& finding : found)
      if (finding.code == "flag_removed" && finding.severity == Severity::error)
        finding.severity = Severity::warning;
    detail::removed_later(found, line->engine, engines_);
    add_all(std::move(found), one.name, {}, "read");
  }

  // A program that nobody knows, whose settings say by their names what they are.
  void of_roles(Exhibit& one) {
    const bool newest = std::ranges::any_of(
        engines_, [](const std::string& engine) { return engine.starts_with("transformers@5"); });
    for (const std::string_view key : {".rope_theta =", ".rope_theta=", ".rope_scaling ="})
      if (newest && one.text.contains(key))
        return add({.code = "seen_moved_keys",
                    .severity = Severity::warning,
                    .found = std::string(key.substr(1, key.find_first_of(" =") - 1)),
                    .message = "transformers 5 reads rope_parameters: what is assigned to "
                               "config.rope_theta or config.rope_scaling reaches nothing",
                    .cure = "config.rope_parameters['rope_theta'] = …, before the model is made"},
                   one.name, "transformers", "", "by its source");
    const std::vector<detail::RoleTold> roles = detail::roles_in(one.text);
    if (one.text.contains("do_lower_case"))
      for (const detail::RoleTold& told : roles)
        if (told.role == detail::Role::length) {
          one.as = "settings of Sentence Transformers";
          add({.code = "prompt_truncated",
               .severity = asks_ ? Severity::warning : Severity::note,
               .found = grouped(std::llround(told.number)),
               .message =
                   "Sentence Transformers cuts texts there without a word: what stands behind "
                   "changes no embedding",
               .cure =
                   "model.max_seq_length = LENGTH, up to what the model is made for (beyond what "
                   "it was trained on embeddings are worse), or texts in pieces"},
              one.name, "", "", "read");
        }
    for (Finding& finding : detail::judge_roles(intent_ ? &intent() : nullptr, roles))
      add(std::move(finding), one.name, "", "", "by the names of the settings");
    if (!intent_) return need_model(one);
    for (const detail::RoleTold& told : roles)
      if (told.role == detail::Role::length && out_.length == 0)
        out_.length = std::llround(told.number);
  }

  // LM Studio runs MLX weights by mlx-lm, which reads the config.json alone: flags and fields of
  // its form are those of llama.cpp.
  bool of_mlx_weights(Exhibit& one) {
    const auto line = detail::read_command_line(one.text);
    const bool named = std::ranges::any_of(
        engines_, [](const std::string& engine) { return engine.starts_with("mlx-lm"); });
    if (!intent_ || !line || line->program != "lms" || !(named || one.text.contains("mlx")))
      return false;
    one.as = "a command line of LM Studio (mlx-lm)";
    const detail::CommandFlag* flag = line->find("--ctx-size");
    const double asked = flag ? detail::number_of_flag(*flag).value_or(0) : 0;
    if (asked < 1 || asked > 0x1p40) return true;
    const std::int64_t tokens = std::llround(asked);
    if (out_.length == 0) out_.length = tokens;
    if (reached() == 0 || tokens <= reached()) return true;
    const detail::Recipe* recipe = detail::recipe_of(intent());
    add({.code = "beyond_context",
         .severity = Severity::warning,
         .position = reached(),
         .expected = grouped(reached()),
         .found = grouped(tokens),
         .message = "more tokens than the model is made for: LM Studio runs MLX weights by mlx-lm, "
                    "which reads a scaling in the model's config.json and has no flag or field for "
                    "one (those of its form are of GGUFs)",
         .cure = "posenc extend " + intent_->name + " --to " + std::to_string(tokens) +
                 " --engine mlx-lm writes rope_scaling for the config.json" +
                 (recipe ? "; " + std::string(recipe->source) + " publish YaRN by " +
                               number_text(recipe->factor) + " of " + grouped(recipe->trained)
                         : "")},
        one.name, "mlx-lm", "", "by the engine's profile");
    return true;
  }

  // Of the engine that a line starts, where other evidence tells it; "": none does.
  std::string version_told(const Exhibit& command) const {
    const auto line = detail::read_command_line(command.text);
    const auto at = std::ranges::find_if(engines_, [&](const std::string& engine) {
      return line && engine.starts_with(line->engine + "@");
    });
    return at == engines_.end() ? "" : at->substr(at->find('@') + 1);
  }

  void of_command(Exhibit& one) {
    if (one.as.starts_with(detail::settings_by_name)) return of_roles(one);
    of_errors_below(one);
    of_mtp_draft(one);
    if (of_mlx_weights(one)) return;
    if (!intent_) {
      of_slots_alone(one);
      of_flags_alone(one);
      return need_model(one);
    }
    const std::string version = version_told(one);
    const auto read = read_command(intent(), one.text, version);
    auto found = command_differences(intent(), one.text, options_.length, version);
    if (!read || !found) {
      const Error& error = read ? found.error() : read.error();
      // What posenc itself does not read says nothing of the line.
      if (error.rule.ends_with("are not read")) return cannot(one, error);
      // A flag about position that the engine does not take is what is wrong.
      add({.code = "flag_refused",
           .found = error.got,
           .message = error.where + ": " + error.rule,
           .cure = error.cure},
          one.name, "", "", "read");
      return cannot(one, error);
    }
    if (out_.length == 0) out_.length = read->length;
    if (read->length > 0 && read->length < options_.length) {
      std::erase_if(*found, [](const Finding& mine) { return mine.code == "slots"; });
      found->insert(found->begin(),
                    detail::served_shorter(intent(), one.text, read->length, options_.length));
    }
    detail::removed_later(*found, read->reading.engine.name, engines_);
    // Of what the line makes of the model.
    for (Diagnosed& fault : detail::faults_of(read->reading.model, engines_))
      if (fault.engine == read->reading.engine.name)
        add(std::move(fault.finding), "command", fault.engine, fault.version, fault.sure);
    add_all(*std::move(found), "command", read->reading, "by the engine's profile");
  }

  // llama.cpp prints what the GGUF says and what it runs: where no file is there, these are two.
  void of_dump_and_run(const detail::EngineLog& log, const std::string& name, bool of_ollama) {
    const detail::LogSaid *base = log.find("base"), *used = log.find("base_used"),
                          *trained = log.find("context"), *runs = log.find("n_ctx"),
                          *scale = log.find("scale_used");
    constexpr double largest = 0x1p50, apart = 0.01;
    const bool bases = base && used && base->number > 1 && used->number > 1 &&
                       std::max(base->number, used->number) < largest;
    const bool by_itself = log.remark_of("stretched_by_engine") != nullptr;
    const bool differ =
        bases && !by_itself && std::abs(base->number - used->number) > apart * base->number;
    if (differ)
      add({.code = "rope_theta",
           .severity = used->number < base->number ? Severity::error : Severity::warning,
           .expected = number_text(base->number),
           .found = number_text(used->number),
           .message = "the file's base is not what the engine ran (--rope-freq-base, "
                      "rope_freq_base, or a scaling that the engine chose)",
           .cure = "leave the base out, or 0, where nothing is to be stretched; a raised one wants "
                   "a model that was trained for it",
           .line = used->line},
          name, "", "", "told by the log");
    const bool scaled = differ || by_itself || (scale && scale->number < 1);
    if (!trained || !runs || scaled || trained->number < 1 || runs->number <= trained->number ||
        runs->number > largest)
      return;
    add({.code = "beyond_context",
         .severity = Severity::warning,
         .expected = grouped(std::llround(trained->number)),
         .found = grouped(std::llround(runs->number)),
         .message = "the engine runs more tokens than the file was trained for, and nothing "
                    "stretches them: texts beyond come out as nonsense",
         .cure = (of_ollama ? "PARAMETER num_ctx " : "-c ") + number_text(trained->number) +
                 ", or the scaling that the model's card publishes: posenc extend MODEL --to " +
                 number_text(runs->number),
         .line = runs->line},
        name, "", "", "told by the log");
  }

  void of_log(Exhibit& one) {
    if (intent_) {
      auto found = log_differences(intent(), one.text, options_.length);
      if (!found) return cannot(one, found.error());
      if (one.as.starts_with(scaling_alone)) detail::as_somebody_wrote(intent(), *found);
      return add_all(*std::move(found), one.name, {}, "told by the log");
    }
    auto log = detail::read_log(one.text);
    if (!log) return cannot(one, log.error());
    of_dump_and_run(*log, one.name, one.text.contains("num_ctx"));
    add_all(std::move(log->remarks), one.name, {}, "told by the log");
    if (log->known > 0) need_model(one);
  }

  void of_modelfile(Exhibit& one) {
    detail::ModelfileSays says = detail::read_modelfile(one.text, intent_ ? &intent() : nullptr);
    for (Finding& finding : says.findings) {
      const bool computed = finding.position.has_value();
      add(std::move(finding), one.name, "ollama", "", computed ? "computed" : "read");
    }
    if (!intent_) return need_model(one);
    if (out_.length == 0) out_.length = says.tokens;
  }

  void of_training(Exhibit& one) {
    const auto told = detail::read_training(one.text);
    // People paste settings and what came of them in one text.
    if (auto log = detail::read_log(one.text)) {
      std::erase_if(log->remarks, [](const Finding& remark) {
        return remark.severity == Severity::note || remark.code == "line_unknown";
      });
      add_all(std::move(log->remarks), one.name, {}, "told by the log");
    }
    if (told) add_all(detail::contradictions(*told), one.name, {}, "computed");
    if (!intent_) return need_model(one);
    if (told && told->packs_rows) of_rows_packed(one);
    if (told && told->packs && std::ranges::any_of(intent().groups, [](const LayerGroup& group) {
          return group.mixer == Mixer::recurrence;
        }))
      add({.code = "packing_ignored",
           .severity = Severity::warning,
           .message =
               "texts are packed in one row: the state of the layers that do not attend goes "
               "on from one text into the next unless the trainer tells their kernels where "
               "each begins (cu_seqlens); a loss of 0 or NaN is a sign",
           .cure = "sample_packing: false, or a trainer and kernels that say they pack for " +
                   intent().family},
          one.name, "", "", "likely");
    if (told && told->of_unsloth && told->length <= intent().context)
      for (Finding& finding : detail::known_of_program("unsloth", intent(), told->length))
        add(std::move(finding), one.name, "", "", "by reports");
    auto found = adapter_differences(intent(), one.text);
    if (!found) return cannot(one, found.error());
    add_all(*std::move(found), one.name, {}, "computed");
  }

  // Packed texts with pictures, to which a trainer gave positions of text.
  void of_rows_packed(const Exhibit& one) {
    const bool has_rows = std::ranges::any_of(intent().groups, [](const LayerGroup& group) {
      const Rope* rope = is_tower(group.stack) ? nullptr : detail::rope_of(group);
      return rope && !rope->mrope_section.empty();
    });
    if (!has_rows) return;
    add({.code = "packing_ignored",
         .severity = Severity::warning,
         .found = "one row",
         .message = "texts with pictures are packed, and this model's positions have three rows "
                    "(M-RoPE): NeMo Automodel before July 2026 counts each packed text 0, 1, 2, … "
                    "in one row, and pictures lose their rows and columns",
         .cure = "update it, packed_sequence.pack_size: 0, or a post_tokenize_hook_fn that makes "
                 "three rows; posenc check-positions looks at the ids that come out"},
        one.name, "", "", "by reports");
  }

  void of_frequencies(Exhibit& one) {
    auto read =
        detail::compare_frequencies(intent_ ? &intent() : nullptr, one.text, options_.length);
    if (!read) return cannot(one, read.error());
    if (*read)
      add(**std::move(read), one.name, "", "", "computed");
    else if (!intent_)
      need_model(one);
  }

  void need_model(Exhibit& one) const {
    if (!detail::with_unread_class(out_) && !one.as.contains("beside it"))
      one.as += "; with the model's config.json beside it more can be told";
  }

  // Errors first, then what shows soonest; what shows beyond the length asked for comes last.
  // A longer context is no cure where the model is made for less than the prompt has.
  void beyond_the_model() {
    if (!intent_ || reached() <= 0) return;
    for (Diagnosed& one : out_.findings) {
      std::string digits = one.finding.found;
      std::erase(digits, ',');
      const std::int64_t tokens = detail::whole_number(digits).value_or(0);
      if (one.finding.code != "context_fitted" || tokens <= reached()) continue;
      one.finding.cure = "a shorter prompt: the model is made for " + grouped(reached()) +
                         ", and a longer context alone breaks its text; posenc extend " +
                         intent_->name + " --to " + std::to_string(tokens) +
                         " says which scaling would do";
    }
  }

  // What an engine makes of the file is not what it runs where the line puts another in its place.
  void leave_out_overridden() {
    const std::vector<Diagnosed> all = out_.findings;
    const auto is_told_by_line = [&](const Diagnosed& one, std::string_view code,
                                     std::string_view start) {
      return std::ranges::any_of(all, [&](const Diagnosed& other) {
        return other.where == "command" && other.engine == one.engine &&
               other.finding.code == code && other.finding.message.starts_with(start);
      });
    };
    std::erase_if(out_.findings, [&](const Diagnosed& one) {
      constexpr std::string_view by_file = "engine_";
      const std::string_view code = one.finding.code;
      // What a version does to a dynamic scaling is not met where the line has another.
      if (code == "version_fault" && one.finding.message.starts_with("dynamic: "))
        return is_told_by_line(one, "rope_scaling", "as the line asks");
      return code.starts_with(by_file) && is_told_by_line(one, code.substr(by_file.size()), "");
    });
  }

  void order() {
    for (Finding& one : detail::join_evidence(out_)) {
      const std::string_view engine = one.code == "context_fitted"    ? "llama.cpp"
                                      : one.code == "flag_refused"    ? "mlx-lm"
                                      : one.code == "context_shifted" ? "mlx-lm"
                                      : one.code == "offset"          ? ""
                                      : one.code == "flag_unread"     ? ""
                                                                      : "ollama";
      add(std::move(one), "", engine, "", "told by the log");
    }
    const bool is_short = std::ranges::any_of(
        out_.findings, [](const Diagnosed& one) { return one.finding.code == "draft_length"; });
    if (is_short)
      std::erase_if(out_.findings,
                    [](const Diagnosed& one) { return one.finding.code == "draft_agrees"; });
    if (of_draft_)
      std::erase_if(out_.findings,
                    [](const Diagnosed& one) { return one.finding.code == "draft_unseen"; });
    const auto late = [&](const Diagnosed& one) {
      return out_.length > 0 && one.finding.position && *one.finding.position >= out_.length;
    };
    leave_out_overridden();
    beyond_the_model();
    if (symptom_)
      judge_words();
    else if (asks_)
      raise_what_was_met();
    // Beside what is proven a guess is a note.
    const auto is_error = [](const Diagnosed& one) {
      return one.finding.severity == Severity::error;
    };
    if (std::ranges::any_of(out_.findings, is_error))
      for (Diagnosed& one : out_.findings)
        if (one.finding.code == "claimed_context") one.finding.severity = Severity::note;
    // What a traceback shows outranks what the version is known for.
    const auto is_traced = [](const Diagnosed& one) {
      return one.sure == "told by the log" && one.finding.severity == Severity::error &&
             one.finding.code.starts_with("mrope_");
    };
    if (std::ranges::any_of(out_.findings, is_traced))
      for (Diagnosed& one : out_.findings)
        if (one.finding.code == "version_fault") one.finding.severity = Severity::note;
    // What begins where it was seen stays in front.
    const auto first = out_.findings.begin() + (explained_ ? 1 : 0);
    std::ranges::stable_sort(first, out_.findings.end(), {}, [&](const Diagnosed& one) {
      // What happened comes before what may happen.
      const bool happened = one.sure == "told by the log";
      return std::tuple(one.finding.severity, late(one), !happened,
                        one.finding.position.value_or(0));
    });
  }

  DoctorOptions options_;
  bool asks_ = false;  // somebody's words are among the evidence
  std::optional<detail::Symptom> symptom_;
  bool explained_ = false;  // the first finding begins where somebody saw it
  Exhibit* intent_ = nullptr;
  const Exhibit* plain_ = nullptr;  // what that was made of, without its published scaling
  std::vector<const Exhibit*> commands_;
  std::vector<std::string> engines_;
  bool runs_ = false;      // a line or a training's settings say what runs
  bool of_draft_ = false;  // a draft that a line names is among the evidence
  Diagnosis out_;
};

// Where no model is given, the one that another piece of evidence names stands before them.
void add_named_model(std::vector<Exhibit>& evidence) {
  for (const Exhibit& one : evidence)
    if (one.model) return;
  for (const Exhibit& one : evidence) {
    const bool words = is_told(one);
    std::vector<detail::Named> named;
    if (words) {
      const auto symptom = detail::symptom_of(one.text);
      named =
          detail::models_in_prose(one.text, symptom && symptom->is(detail::When::of_merge) ? 2 : 1);
    } else if (auto in_line = detail::model_named_in(one.text)) {
      named.push_back(*std::move(in_line));
    }
    std::vector<Exhibit> found;
    for (const detail::Named& name : named) {
      Expected<Model> model = read_model(name.is);
      if (!model) continue;
      found.push_back(model_exhibit(name.as, *std::move(model)));
      found.back().as +=
          one.name == "words" ? ", as the words name it" : ", as " + one.name + " names it";
    }
    if (found.empty()) continue;
    evidence.insert(evidence.begin(), std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
    return;
  }
}

}  // namespace

namespace {

// The flags of a line that starts llama-server with presets hold for each of them, before theirs.
void join_presets(std::vector<Exhibit>& evidence) {
  const auto preset = std::ranges::find_if(evidence, [](const Exhibit& one) {
    return one.kind == ExhibitKind::command && one.as.ends_with("presets");
  });
  const auto line = std::ranges::find_if(evidence, [](const Exhibit& one) {
    return one.kind == ExhibitKind::command && one.text.contains("--models-preset");
  });
  if (preset == evidence.end() || line == evidence.end()) return;
  const std::size_t flags = line->text.find(" -");
  preset->text += line->text.substr(std::min(flags, line->text.size()));
  preset->as += ", and the line that starts it";
  evidence.erase(line);
}

}  // namespace

Expected<Diagnosis> diagnose(std::vector<Exhibit> evidence, const DoctorOptions& options) {
  if (evidence.empty())
    return fail("doctor", "needs evidence", "none",
                "give a config.json, a GGUF, a folder, a log, a command line in quotes");
  if (options.length < 0)
    return fail("doctor", "length must be 0 or more", std::to_string(options.length));
  // What stands beside a piece in its text, and what an answer has beside its model.
  for (std::size_t n = 0; n < evidence.size(); ++n) {
    std::string rest = std::exchange(evidence[n].rest, {});
    if (evidence[n].model) rest += std::exchange(evidence[n].text, {});
    if (rest.find_first_not_of(" \t\r\n") != rest.npos) {
      Exhibit beside = text_exhibit(evidence[n].name, std::move(rest));
      if (beside.kind != ExhibitKind::unusable) evidence.push_back(std::move(beside));
    }
  }
  join_presets(evidence);
  add_named_model(evidence);
  return Doctor(std::move(evidence), options).run();
}

}  // namespace posenc
