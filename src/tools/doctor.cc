// Exhibit becomes runs, and runs are compared with the first model; findings of all of them stand
// in one list, by their effect.
#include "posenc/doctor.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "posenc/explain.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/text/json.h"
#include "src/text/json_writer.h"
#include "src/tools/command_line.h"
#include "src/tools/log_lines.h"

namespace posenc {
namespace {

using detail::grouped;

class Doctor {
 public:
  Doctor(std::vector<Exhibit> evidence, const DoctorOptions& options) : options_(options) {
    out_.evidence = std::move(evidence);
    out_.length = options.length;
  }

  Expected<Diagnosis> run() && {
    for (Exhibit& one : out_.evidence)
      if (one.model && !intent_) intent_ = &one;
    for (const std::string& engine : options_.engines) POSENC_CHECK(find_engine(engine));
    if (intent_) of_files();
    for (const Exhibit& one : out_.evidence)
      if (&one != intent_) of_run(one);
    order();
    judge();
    return std::move(out_);
  }

 private:
  const Model& intent() const { return *intent_->model; }

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

  void cannot(const Exhibit& one, const Error& error) {
    for (Exhibit& each : out_.evidence)
      if (&each == &one) each.as += "; not used: " + error.message();
  }

  // The file against itself, and what the engines that were named make of it.
  void of_files() {
    const auto found = lint(intent(), {.length = options_.length, .engines = options_.engines});
    if (!found) {
      // A length that the file's own scaling cannot reach.
      const auto without = lint(intent(), {.engines = options_.engines});
      if (!without) return cannot(*intent_, without.error());
      add({.code = "out_of_reach", .position = reached(), .message = found.error().message()},
          intent_->name, "", "", "computed");
      keep(*without);
      return;
    }
    keep(*found);
  }

  void keep(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      const bool by_engine = finding.code.starts_with("engine_");
      if (by_engine && options_.engines.empty()) continue;
      std::string engine, version;
      if (!finding.engines.empty()) {
        engine = finding.engines.front();
        if (const auto profile = find_engine(engine)) version = profile->version;
        engine = engine.substr(0, engine.find('@'));
      }
      add(finding, intent_->name, by_engine ? engine : "", by_engine ? version : "",
          by_engine ? "by the engine's profile" : "computed");
    }
  }

  void of_run(const Exhibit& one) {
    switch (one.kind) {
      case ExhibitKind::model: return of_second(one);
      case ExhibitKind::command: return of_command(one);
      case ExhibitKind::log: return of_log(one);
      case ExhibitKind::modelfile: return of_modelfile(one);
      case ExhibitKind::training: return of_training(one);
      case ExhibitKind::inv_freq: return of_frequencies(one);
      case ExhibitKind::unusable: return;
    }
  }

  void of_second(const Exhibit& one) {
    auto found = differences(intent(), *one.model, options_.length);
    if (!found) return cannot(one, found.error());
    add_all(*std::move(found), one.name, {}, "computed");
  }

  void of_command(const Exhibit& one) {
    if (!intent_) return need_model(one);
    const auto read = read_command(intent(), one.text);
    auto found = command_differences(intent(), one.text, options_.length);
    if (!read || !found) return cannot(one, (read ? found.error() : read.error()));
    if (out_.length == 0) out_.length = read->length;
    add_all(*std::move(found), "command", read->reading.engine, "by the engine's profile");
  }

  void of_log(const Exhibit& one) {
    if (intent_) {
      auto found = log_differences(intent(), one.text, options_.length);
      if (!found) return cannot(one, found.error());
      return add_all(*std::move(found), one.name, {}, "told by the log");
    }
    auto log = detail::read_log(one.text);
    if (!log) return cannot(one, log.error());
    add_all(std::move(log->remarks), one.name, {}, "told by the log");
    if (log->known > 0) need_model(one);
  }

  void of_modelfile(const Exhibit& one) {
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
      add({.code = "beyond_context",
           .severity = Severity::warning,
           .position = reached(),
           .expected = grouped(reached()),
           .found = grouped(tokens),
           .message = "Ollama is asked for more tokens than the file is made for; it caps them at "
                      "the file's context, and has no parameter for a scaling",
           .cure = "posenc extend MODEL --to " + std::to_string(tokens) +
                   " plans a scaling, which the GGUF itself must have"},
          one.name, "ollama", "", "computed");
  }

  void of_training(const Exhibit& one) {
    if (!intent_) return need_model(one);
    auto found = adapter_differences(intent(), one.text);
    if (!found) return cannot(one, found.error());
    add_all(*std::move(found), one.name, {}, "computed");
  }

  void of_frequencies(const Exhibit& one);

  void need_model(const Exhibit& one) {
    for (Exhibit& each : out_.evidence)
      if (&each == &one && !each.as.contains("beside it"))
        each.as += "; with the model's config.json beside it more can be told";
  }

  // Errors first, then what shows soonest; what shows beyond the length asked for comes last.
  void order() {
    const auto late = [&](const Diagnosed& one) {
      return out_.length > 0 && one.finding.position && *one.finding.position >= out_.length;
    };
    std::ranges::stable_sort(out_.findings, {}, [&](const Diagnosed& one) {
      return std::tuple(one.finding.severity, late(one), one.finding.position.value_or(0));
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
    if (nothing) {
      out_.verdict = "Nothing of this can be used.";
    } else if (!intent_ && out_.findings.empty()) {
      out_.verdict = "Without a model's config.json nothing can be compared.";
    } else if (grave == out_.findings.end()) {
      out_.verdict =
          "Nothing wrong with position" + (length.empty() ? "." : " up to " + length + ".");
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
    if (intent_ && options_.engines.empty() &&
        std::ranges::none_of(out_.evidence, [](const Exhibit& one) {
          return one.kind == ExhibitKind::command || one.kind == ExhibitKind::log;
        }))
      out_.next =
          "posenc doctor " + intent_->name + " --engine vllm   # or the line that starts it";
    else if (intent_)
      out_.next =
          "posenc identify --how any   # what the engine really rotated by, from its tensors";
  }

  const DoctorOptions& options_;
  Exhibit* intent_ = nullptr;
  Diagnosis out_;
};

// Printed frequencies beside those of the model, as far as their digits go.
void Doctor::of_frequencies(const Exhibit& one) {
  std::vector<double> resolution;
  const auto printed = read_printed_frequencies(one.text, &resolution);
  if (!printed) return cannot(one, printed.error());
  std::vector<std::int64_t> faster;
  for (std::size_t r = 1; r < printed->size(); ++r)
    if ((*printed)[r] > (*printed)[r - 1] + resolution[r] + resolution[r - 1])
      faster.push_back(static_cast<std::int64_t>(r));
  if (10 * faster.size() >= printed->size()) {
    add({.code = "frequencies_unordered",
         .position = 1,
         .expected = "each pair slower than the one before",
         .found = "pairs " + detail::layer_list(faster) + " are faster",
         .message = "no base and no scaling makes these: memory that nobody filled",
         .cure = "compute inv_freq anew when the weights have been loaded"},
        one.name, "", "", "computed");
    return;
  }
  if (!intent_) return need_model(one);
  const Finding* nearest = nullptr;
  Finding off;
  for (const LayerGroup& group : intent().groups) {
    const auto plan = compile(group, options_.length);
    if (!plan || !plan->rotate || is_tower(group.stack)) continue;
    const Rotate& rotate = *plan->rotate;
    if (rotate.pairs() != std::ssize(*printed)) {
      off = {.code = "rotary_dim",
             .position = 1,
             .expected = std::to_string(rotate.pairs()) + " frequencies",
             .found = std::to_string(printed->size()),
             .message = "another part of a head rotates than the file says"};
      nearest = &off;
      continue;
    }
    std::vector<std::int64_t> pairs;
    double most = 0;
    for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
      double meant = 0;
      for (std::int64_t axis = 0; axis < rotate.frequencies.axes; ++axis)
        meant += rotate.at(0, axis, r);
      const auto i = static_cast<std::size_t>(r);
      const double by = std::abs((*printed)[i] - meant);
      if (by <= 2 * resolution[i] + 1e-6 * meant) continue;
      pairs.push_back(r);
      most = std::max(most, by);
    }
    if (pairs.empty()) {
      add({.code = "inv_freq_agrees",
           .severity = Severity::note,
           .layers = group.layers,
           .message = "the printed frequencies are those of the file, as far as their digits go"},
          one.name, "", "", "computed");
      return;
    }
    off = {
        .code = "inv_freq",
        .layers = group.layers,
        .position = static_cast<std::int64_t>(std::ceil(angle_that_shows / most)),
        .expected = "the file's",
        .found = "pairs " + detail::layer_list(pairs) + " of " + std::to_string(rotate.pairs()) +
                 " differ",
        .message = "the engine rotates by other frequencies than the file's base and scaling give",
        .cure = "posenc explain MODEL --pairs prints them; a scaling or a base was not read"};
    nearest = &off;
  }
  if (nearest) add(*nearest, one.name, "", "", "computed");
}

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
