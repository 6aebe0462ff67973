// Exhibit becomes runs, and runs are compared with the first model; findings of all of them stand
// in one list, by their effect.
#include "posenc/doctor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ranges>
#include <string>
#include <utility>

#include "posenc/explain.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/text/json.h"
#include "src/text/json_writer.h"
#include "src/tools/command_line.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/foreign_lines.h"
#include "src/tools/log_lines.h"
#include "src/tools/recipes.h"
#include "src/tools/training.h"

namespace posenc {
namespace {

using detail::grouped;

constexpr std::string_view scaling_alone = "a scaling alone";  // how evidence.cc calls it

// Whether it reads text: an engine of texts serves no transformer of pictures.
bool has_text(const Model& model) {
  return std::ranges::any_of(model.groups,
                             [](const LayerGroup& group) { return group.stack == Stack::text; });
}

class Doctor {
 public:
  Doctor(std::vector<Exhibit> evidence, const DoctorOptions& options) : options_(options) {
    out_.evidence = std::move(evidence);
    out_.length = options.length;
  }

  Expected<Diagnosis> run() && {
    for (Exhibit& one : out_.evidence) {
      if (one.model && !intent_) intent_ = &one;
      if (one.kind == ExhibitKind::unusable) one.used = false;
      if (one.kind == ExhibitKind::command) commands_.push_back(&one);
      runs_ |= one.kind == ExhibitKind::command || one.kind == ExhibitKind::training;
    }
    engines_ = options_.engines;
    for (const Exhibit& one : out_.evidence)
      if (one.kind == ExhibitKind::versions)
        for (const auto word : std::views::split(one.text, std::string_view(", ")))
          engines_.emplace_back(word.begin(), word.end());
    for (const std::string& engine : engines_) POSENC_CHECK(find_engine(engine));
    if (intent_) {
      prefer_the_whole();
      of_files();
    }
    for (Exhibit& one : out_.evidence)
      if (&one != intent_) of_run(one);
    order();
    judge();
    return std::move(out_);
  }

 private:
  const Model& intent() const { return *intent_->model; }

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

  std::int64_t reached() const { return std::max(intent().context, detail::reach(intent())); }

  void add(Finding finding, const std::string& where, std::string_view engine,
           std::string_view version, std::string sure) {
    // Said once, whatever evidence tells it.
    for (const Diagnosed& old : out_.findings)
      if (old.finding.code == finding.code && old.finding.expected == finding.expected &&
          old.finding.found == finding.found && old.engine == engine)
        return;
    Diagnosed one{.engine = std::string(engine),
                  .version = std::string(version),
                  .where = where + (finding.line ? ":" + std::to_string(*finding.line) : ""),
                  .effect = effect_of(finding),
                  .sure = std::move(sure)};
    one.finding = std::move(finding);
    out_.findings.push_back(std::move(one));
  }

  void add_all(std::vector<Finding> findings, const std::string& where, const Engine& engine,
               const std::string& sure) {
    for (Finding& finding : findings)
      add(std::move(finding), where, engine.name, engine.version, sure);
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
    versions_that_stand_in();
    faults_of_versions();
    scaling_unneeded();
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
      add({.code = "out_of_reach", .position = reached(), .message = found.error().message()},
          intent_->name, "", "", "computed");
      keep(*without);
      return;
    }
    keep(*found);
  }

  // Versions as somebody named them, as the tag of an image has them, or as a log begins.
  std::vector<std::string> versions() const {
    std::vector<std::string> all = engines_;
    for (const Exhibit& one : out_.evidence) {
      if (one.kind == ExhibitKind::command) {
        const auto line = detail::read_command_line(one.text);
        if (line && !line->version.empty()) all.push_back(line->engine + "@" + line->version);
      } else if (one.kind == ExhibitKind::log) {
        const auto log = detail::read_log(one.text);
        if (const auto* told = log ? log->find("vllm_version") : nullptr)
          all.push_back("vllm@" + told->text);
      }
    }
    return all;
  }

  void faults_of_versions() {
    for (const std::string& version : versions())
      for (const VersionFault& fault : version_faults(intent(), version))
        add({.code = "version_fault",
             .expected = std::string(fault.below) + " or later",
             .found = version.substr(version.find('@') + 1),
             .message = std::string(fault.what) + " (" + std::string(fault.report) + ")",
             .cure = std::string(fault.cure)},
            intent_->name, fault.engine, version.substr(version.find('@') + 1), "by a report");
  }

  // What an older version still has is no error of its line.
  void removed_later(std::vector<Finding>& found, std::string_view engine) const {
    for (const std::string& version : engines_) {
      if (engine != "vllm" || !version.starts_with("vllm@") ||
          !is_before(version.substr(version.find('@') + 1), "0.11.1"))
        continue;
      for (Finding& one : found) {
        if (one.code != "flag_removed") continue;
        one.severity = Severity::note;
        one.message = "this version has it, 0.11.1 and later no more";
      }
    }
  }

  // A version that nobody read is judged by another's profile, and it is said.
  void versions_that_stand_in() {
    for (const std::string& engine : engines_) {
      const auto reading = read_as(intent(), engine, options_.length);
      if (!reading) continue;
      for (const EngineNote& note : reading->notes) {
        if (!note.what.starts_with("no profile of ")) continue;
        transformers_beneath(engine);
        add({.code = "version_unknown",
             .severity = Severity::note,
             .expected = engine.substr(engine.find('@') + 1),
             .found = std::string(reading->engine.version),
             .message = note.what + ": the one that runs may read the file otherwise"},
            intent_->name, reading->engine.name, reading->engine.version, "by the version");
      }
    }
  }

  // vLLM and SGLang read configurations by the transformers that is installed: an older version may
  // stand on transformers 4, to which a file of transformers 5 is another model.
  void transformers_beneath(const std::string& engine) {
    constexpr std::string_view vllm = "vllm@0.";  // 0.24 and later refuse transformers 4
    const bool reads_by_it = engine.starts_with(vllm) ? std::atoi(engine.c_str() + vllm.size()) < 24
                                                      : engine.starts_with("sglang@");
    const bool told = std::ranges::any_of(
        engines_, [](const std::string& one) { return one.starts_with("transformers@"); });
    if (!reads_by_it || told) return;
    const auto before = engine_differences(intent(), "transformers@4", options_.length);
    if (!before) return;
    for (const Finding& finding : before->findings) {
      if (finding.severity != Severity::error) continue;
      Finding mine = finding;
      mine.code = "transformers_beneath";
      mine.severity = Severity::warning;
      mine.message = "with transformers 4 beneath " + engine + ": " + finding.message;
      mine.cure = "pip install -U transformers (5.0 or later), or write rope_theta at the top too";
      add(std::move(mine), intent_->name, engine.substr(0, engine.find('@')),
          engine.substr(engine.find('@') + 1), "by the version");
      return;
    }
  }

  bool is_asked(const Finding& finding) const {
    return std::ranges::any_of(finding.engines, [&](const std::string& engine) {
      return std::ranges::any_of(engines_, [&](const std::string& asked) {
        return asked.substr(0, asked.find('@')) == engine.substr(0, engine.find('@'));
      });
    });
  }

  // A scaling that stands in the file acts on every text; within the trained length it only loses.
  void scaling_unneeded() {
    for (const LayerGroup& group : intent().groups) {
      const Rope* rope = detail::rope_of(group);
      const Yarn* yarn = rope ? std::get_if<Yarn>(&rope->scaling) : nullptr;
      if (!yarn || is_tower(group.stack) || yarn->original_max_position_embeddings < 2) continue;
      const std::int64_t trained = yarn->original_max_position_embeddings;
      if (options_.length == 0 || options_.length > trained || runs_) continue;
      // Models that were trained on with it have no other rotation (DeepSeek, gpt-oss).
      if (!detail::recipe_of(intent())) continue;
      add({.code = "scaling_unneeded",
           .severity = Severity::warning,
           .expected = "none",
           .found = "yarn factor " + number_text(yarn->factor.value_or(1)),
           .message = "YaRN of the file acts on every text, and " + grouped(options_.length) +
                      " tokens are within the trained " + grouped(trained) +
                      ": short texts lose by it",
           .cure = "drop rope_scaling where no text is longer than " + grouped(trained)},
          intent_->name, "", "", "by the model's card");
      return;
    }
  }

  static bool is_vllm(const std::string& engine) { return engine.starts_with("vllm"); }

  void keep(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      const bool by_engine = finding.code.starts_with("engine_");
      // Of a line's engine the line itself is read.
      if (by_engine && (engines_.empty() || finding.engines.empty() || !is_asked(finding)))
        continue;
      std::string engine, version;
      if (!finding.engines.empty()) {
        engine = finding.engines.front();
        if (const auto profile = find_engine(engine)) version = profile->version;
        engine = engine.substr(0, engine.find('@'));
      }
      Finding mine = finding;
      if (const detail::Recipe* recipe = detail::recipe_of(intent());
          recipe && mine.code == "beyond_context")
        mine.cure = std::string(recipe->source) + " publish YaRN by " +
                    number_text(recipe->factor) + " of " + grouped(recipe->trained) +
                    ": posenc extend " + intent_->name + " --to " +
                    std::to_string(options_.length) + " writes it for an engine";
      // vLLM serves no more than it; elsewhere it is how such models are published.
      if (mine.code == "sentence_length" && std::ranges::any_of(engines_, is_vllm))
        mine.severity = Severity::warning;
      add(std::move(mine), intent_->name, by_engine ? engine : "", by_engine ? version : "",
          by_engine ? "by the engine's profile" : "computed");
    }
  }

  void of_run(Exhibit& one) {
    switch (one.kind) {
      case ExhibitKind::model: return of_second(one);
      case ExhibitKind::command: return of_command(one);
      case ExhibitKind::log: return of_log(one);
      case ExhibitKind::modelfile: return of_modelfile(one);
      case ExhibitKind::training: return of_training(one);
      case ExhibitKind::inv_freq: return of_frequencies(one);
      case ExhibitKind::versions:
        if (!intent_) need_model(one);
        return;
      case ExhibitKind::unusable: return of_unknown_program(one);
    }
  }

  // A program without a profile: what is known of it all the same.
  void of_unknown_program(const Exhibit& one) {
    detail::ForeignLine known = detail::foreign_line(one.text, intent_ ? &intent() : nullptr);
    const bool tells = known.judged || !known.findings.empty();
    for (Finding& finding : known.findings) add(std::move(finding), one.name, "", "", "by reports");
    constexpr std::string_view none = "posenc has no profile of ";
    const std::size_t end = one.as.find(", got "), advice = one.as.find("; ");
    if (!one.as.starts_with(none) || end == one.as.npos || advice == one.as.npos) return;
    add({.code = "program_unknown",
         .severity = tells ? Severity::note : Severity::warning,
         .found = one.as.substr(none.size(), end - none.size()),
         .message = one.as.substr(advice + 2),
         .cure = ""},
        one.name, "", "", "by its documentation");
  }

  // Another model is what became of the first, or the draft that a line names.
  void of_second(Exhibit& one) {
    for (const Exhibit* command : commands_)
      if (const auto line = detail::read_command_line(command->text);
          line && detail::names_a_draft(*line))
        return of_draft(one, *command, *line);
    auto found = differences(intent(), *one.model, options_.length);
    if (!found) return cannot(one, found.error());
    if (is_a_draft(*one.model)) as_of_a_draft(*one.model, *found);
    // The two have names here.
    constexpr std::string_view first = "the first model";
    for (Finding& finding : *found)
      if (const std::size_t at = finding.cure.find(first); at != finding.cure.npos)
        finding.cure.replace(at, first.size(), intent_->name);
    add_all(*std::move(found), one.name, {}, "computed");
  }

  // EAGLE's heads, MTP and DFlash have a few layers beside a whole model.
  bool is_a_draft(const Model& model) const {
    constexpr std::int64_t fewer = 4;
    const std::int64_t whole = detail::layers_of(intent(), Stack::text),
                       own = detail::layers_of(model, Stack::text);
    return own > 0 && fewer * own <= whole;
  }

  // A draft rotates as it was trained, so a base of its own may be right; a table that ends early
  // never is.
  void as_of_a_draft(const Model& draft, std::vector<Finding>& found) const {
    const std::int64_t target = options_.length > 0 ? options_.length : reached();
    const std::int64_t own = std::max(draft.context, detail::reach(draft));
    std::erase_if(found, [](const Finding& one) {
      return one.code == "context" || one.code == "layers" || one.code == "two_models";
    });
    for (Finding& one : found) {
      if (one.severity != Severity::error) continue;
      one.severity = Severity::warning;
      one.message = "of a draft, which may have been trained so: " + one.message;
    }
    if (own > 0 && own < target) found.insert(found.begin(), shorter_draft(target, own));
  }

  static Finding shorter_draft(std::int64_t target, std::int64_t draft) {
    return {
        .code = "draft_length",
        .position = draft,
        .expected = grouped(target),
        .found = grouped(draft),
        .message =
            "the draft is made for fewer tokens than its target runs: its table of cos "
            "and sin ends there, and the target's positions run past it, which ends in "
            "a failed assertion or in guesses that are refused",
        .cure = "start the target for at most " + std::to_string(draft) +
                " tokens, raise max_position_embeddings in the draft's config.json (its weights "
                "were not trained there), or take a draft that is made for more"};
  }

  void of_draft(Exhibit& one, const Exhibit& command, const detail::CommandLine& line) {
    of_draft_ = true;
    const auto read = read_command(intent(), command.text);
    const std::int64_t target = options_.length > 0        ? options_.length
                                : read && read->length > 0 ? read->length
                                                           : reached();
    const std::int64_t draft = std::max(one.model->context, detail::reach(*one.model));
    if (draft > 0 && draft < target)
      add(shorter_draft(target, draft), one.name, line.engine, "", "computed");
    else
      add({.code = "draft_agrees",
           .severity = Severity::note,
           .expected = grouped(target),
           .found = grouped(draft),
           .message = "the draft reaches as far as its target runs; a draft rotates as it was "
                      "trained, so that a base of its own is no fault"},
          one.name, line.engine, "", "computed");
  }

  void of_command(Exhibit& one) {
    if (!intent_) return need_model(one);
    const auto read = read_command(intent(), one.text);
    auto found = command_differences(intent(), one.text, options_.length);
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
    removed_later(*found, read->reading.engine.name);
    add_all(*std::move(found), "command", read->reading.engine, "by the engine's profile");
  }

  void of_log(Exhibit& one) {
    if (intent_) {
      auto found = log_differences(intent(), one.text, options_.length);
      if (!found) return cannot(one, found.error());
      if (one.as.starts_with(scaling_alone)) as_somebody_wrote(*found);
      return add_all(*std::move(found), one.name, {}, "told by the log");
    }
    auto log = detail::read_log(one.text);
    if (!log) return cannot(one, log.error());
    add_all(std::move(log->remarks), one.name, {}, "told by the log");
    if (log->known > 0) need_model(one);
  }

  // A scaling that stands alone was written on purpose, and no cure undoes it.
  void as_somebody_wrote(std::vector<Finding>& found) const {
    const detail::Recipe* recipe = detail::recipe_of(intent());
    for (Finding& one : found) {
      if (one.code != "rope_scaling") continue;
      const bool published = recipe && one.found.starts_with("yarn factor ") &&
                             one.found.ends_with(" " + std::to_string(recipe->trained));
      one.severity = published ? Severity::note : Severity::warning;
      one.message = "as it stands there: " + one.message;
      if (recipe)
        one.message += std::string(published ? "; it is what " : "; ") +
                       std::string(recipe->source) + " publish" +
                       (published ? ""
                                  : " factor " + number_text(recipe->factor) + " of " +
                                        grouped(recipe->trained));
      one.cure =
          "short texts lose by it: where none is longer than the trained length, leave it out";
    }
  }

  void of_modelfile(Exhibit& one) {
    std::int64_t tokens = 0;
    for (std::string_view rest = one.text; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      constexpr std::string_view parameter = "PARAMETER num_ctx ";
      if (!line.starts_with(parameter)) {
        if (line.starts_with("PARAMETER rope_frequency"))
          add({.code = "flag_removed",
               .severity = Severity::warning,
               .found = printable(line, 60),
               .message = "Ollama no longer reads rope_frequency_base and rope_frequency_scale",
               .cure = "the GGUF itself must have them: posenc translate MODEL --to gguf"},
              one.name, "ollama", "", "read");
        continue;
      }
      const auto number = detail::number_after(line, parameter);
      if (number && *number >= 1 && *number < 0x1p40) tokens = std::llround(*number);
    }
    if (tokens == 0)
      add({.code = "context_defaulted",
           .severity = Severity::warning,
           .message = "without num_ctx Ollama chooses the context by itself, 4,096 tokens on small "
                      "machines, and cuts longer prompts off at their beginning",
           .cure = "PARAMETER num_ctx " +
                   std::to_string(intent_ ? std::max<std::int64_t>(reached(), 4096) : 32768)},
          one.name, "ollama", "", "read");
    if (!intent_ || tokens == 0) return intent_ ? void() : need_model(one);
    if (out_.length == 0) out_.length = tokens;
    if (reached() > 0 && tokens > reached())
      add({.code = "context_capped",
           .severity = Severity::warning,
           .position = reached(),
           .expected = grouped(reached()),
           .found = grouped(tokens),
           .message = "Ollama caps num_ctx at the file's context, cuts longer prompts off at their "
                      "beginning, and has no parameter for a scaling",
           .cure = "posenc extend MODEL --to " + std::to_string(tokens) +
                   " plans a scaling, which the GGUF itself must have"},
          one.name, "ollama", "", "computed");
  }

  void of_training(Exhibit& one) {
    if (const auto told = detail::read_training(one.text))
      add_all(detail::contradictions(*told), one.name, {}, "computed");
    if (!intent_) return need_model(one);
    auto found = adapter_differences(intent(), one.text);
    if (!found) return cannot(one, found.error());
    add_all(*std::move(found), one.name, {}, "computed");
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

  static void need_model(Exhibit& one) {
    if (!one.as.contains("beside it"))
      one.as += "; with the model's config.json beside it more can be told";
  }

  const Diagnosed* with(std::string_view code) const {
    const auto at = std::ranges::find_if(
        out_.findings, [&](const Diagnosed& one) { return one.finding.code == code; });
    return at == out_.findings.end() ? nullptr : &*at;
  }

  // Errors first, then what shows soonest; what shows beyond the length asked for comes last.
  void order() {
    for (Finding& one : detail::join_evidence(out_))
      add(std::move(one), "", "ollama", "", "told by the log");
    if (of_draft_)
      std::erase_if(out_.findings,
                    [](const Diagnosed& one) { return one.finding.code == "draft_unseen"; });
    const auto late = [&](const Diagnosed& one) {
      return out_.length > 0 && one.finding.position && *one.finding.position >= out_.length;
    };
    std::ranges::stable_sort(out_.findings, {}, [&](const Diagnosed& one) {
      // What happened comes before what may happen.
      const bool happened = one.sure == "told by the log";
      return std::tuple(one.finding.severity, late(one), !happened,
                        one.finding.position.value_or(0));
    });
  }

  void judge() {
    const std::string length = out_.length > 0            ? grouped(out_.length)
                               : intent_ && reached() > 0 ? grouped(reached())
                                                          : "";
    const auto grave = std::ranges::find_if(
        out_.findings, [](const Diagnosed& one) { return one.finding.severity != Severity::note; });
    const bool nothing = std::ranges::none_of(
        out_.evidence, [](const Exhibit& one) { return one.kind != ExhibitKind::unusable; });
    if (nothing && grave == out_.findings.end()) {
      out_.verdict = "Nothing of this can be used.";
    } else if (!intent_ && out_.findings.empty()) {
      out_.verdict = "Without a model's config.json nothing can be compared.";
    } else if (grave == out_.findings.end()) {
      out_.verdict = "Nothing wrong with position" + (length.empty() ? "" : " up to " + length);
      // What shows the fault may be just what could not be read.
      if (const std::string unread = not_used(); !unread.empty())
        out_.verdict += " in what could be read, which is not all: " + unread + " could not";
      else if (const Diagnosed* other = with("version_unknown"))
        out_.verdict += " as far as " + other->engine + " " + other->version +
                        " tells, whose profile stands for the version that runs";
      out_.verdict += ".";
    } else {
      const Finding& first = grave->finding;
      const std::string message = first.message.substr(0, first.message.find(';'));
      const bool breaks = first.severity == Severity::error;
      if (first.position && *first.position > 1)
        out_.verdict = std::string(breaks ? "Text breaks" : "Text may change") + " beyond " +
                       grouped(*first.position) + ": " + message + ".";
      else
        out_.verdict = std::string(breaks ? "Wrong" : "Look at this") + ": " + message + ".";
    }
    const bool runs = std::ranges::any_of(out_.evidence, [](const Exhibit& one) {
      return one.kind == ExhibitKind::command || one.kind == ExhibitKind::log;
    });
    const bool found = grave != out_.findings.end();
    if (intent_ && engines_.empty() && !runs && (!found || out_.evidence.size() == 1))
      out_.next =
          has_text(*intent_->model)
              ? "posenc doctor " + intent_->name + " --engine vllm   # or the line that starts it"
              : "posenc explain " + intent_->name + "   # what rotates, and how far";
    else if (!intent_ && !nothing)
      out_.next = "posenc doctor MODEL " + out_.evidence.front().name +
                  "   # the model's config.json, GGUF or name beside it";
    else if (intent_ && !found)
      out_.next =
          "posenc identify --how any   # what the engine really rotated by, from its tensors";
  }

  std::string not_used() const {
    std::string names;
    for (const Exhibit& one : out_.evidence)
      if (!one.used) names += (names.empty() ? "" : ", ") + one.name;
    return names;
  }

  const DoctorOptions& options_;
  Exhibit* intent_ = nullptr;
  std::vector<const Exhibit*> commands_;
  std::vector<std::string> engines_;
  bool runs_ = false;      // a line or a training's settings say what runs
  bool of_draft_ = false;  // a draft that a line names is among the evidence
  Diagnosis out_;
};

}  // namespace

Expected<Diagnosis> diagnose(std::vector<Exhibit> evidence, const DoctorOptions& options) {
  if (evidence.empty())
    return fail("doctor", "needs evidence", "none",
                "give a config.json, a GGUF, a folder, a log, a command line in quotes");
  if (options.length < 0)
    return fail("doctor", "length must be 0 or more", std::to_string(options.length));
  return Doctor(std::move(evidence), options).run();
}

std::string to_json(const Diagnosis& diagnosis) {
  detail::JsonWriter out;
  out.object().key("evidence").array();
  for (const Exhibit& one : diagnosis.evidence)
    out.object().member("name", one.name).member("kind", name(one.kind)).member("as", one.as).end();
  out.end().member("verdict", diagnosis.verdict).key("findings").array();
  const auto or_null = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
  };
  for (const Diagnosed& one : diagnosis.findings) {
    const Finding& finding = one.finding;
    std::string values = finding.expected;
    if (!finding.found.empty()) values += (values.empty() ? "" : " → ") + finding.found;
    out.object()
        .member("code", finding.code)
        .member("severity", name(finding.severity))
        .member("engine", or_null(one.engine))
        .member("version", or_null(one.version))
        .member("where", one.where)
        .member("what", values.empty() ? finding.message : values + ": " + finding.message)
        .member("effect", one.effect)
        .member("cure", finding.cure)
        .member("sure", one.sure);
    out.key("finding").json(to_json(finding));
    out.end();
  }
  out.end().member("next", diagnosis.next).end();
  return out.text;
}

}  // namespace posenc
