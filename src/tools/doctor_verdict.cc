// The sentence above the findings, and what to type next.
#include <algorithm>
#include <string>
#include <string_view>

#include "src/core/contains_any.h"
#include "src/core/small_letters.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/model/names.h"
#include "src/tools/doctor_parts.h"

namespace posenc::detail {
namespace {

// Whether it reads text: an engine of texts serves no transformer of pictures.
bool has_text(const Model& model) {
  return std::ranges::any_of(model.groups,
                             [](const LayerGroup& group) { return group.stack == Stack::text; });
}

const Diagnosed* with(const Diagnosis& out, std::string_view code) {
  const auto at = std::ranges::find_if(
      out.findings, [&](const Diagnosed& one) { return one.finding.code == code; });
  return at == out.findings.end() ? nullptr : &*at;
}

const Finding* by_what_was_seen(const Diagnosis& out) {
  const auto at = std::ranges::find(out.findings, told_by_words, &Diagnosed::sure);
  return at == out.findings.end() ? nullptr : &at->finding;
}

std::string not_used(const Diagnosis& out) {
  std::string names;
  for (const Exhibit& one : out.evidence)
    if (!one.used) names += (names.empty() ? "" : ", ") + one.name;
  return names;
}

std::string first_used(const Diagnosis& out) {
  const auto at = std::ranges::find_if(
      out.evidence, [](const Exhibit& one) { return one.kind != ExhibitKind::unusable; });
  if (at == out.evidence.end()) return out.evidence.front().name;
  // What was quoted has no name that could be typed.
  if (at->name == "words") return "'the same words'";
  if (at->name == "command") return "'the same line'";
  return at->name;
}

// "rope_theta is 10000 where 1000000 is meant", of a finding that counts pairs; "": it does not, or
// its values are long.
std::string value_meant(const Finding& finding) {
  constexpr std::size_t longest = 60;
  const bool of_pairs =
      finding.message.starts_with("pairs ") || finding.message.starts_with("pair ");
  if (!of_pairs || finding.found.empty() || finding.expected.empty() ||
      finding.found.size() > longest || finding.expected.size() > longest)
    return "";
  constexpr std::string_view by_engine = "engine_";
  const std::string_view code = finding.code;
  return std::string(code.substr(code.starts_with(by_engine) ? by_engine.size() : 0)) + " is " +
         finding.found + " where " + finding.expected + " is meant" +
         (finding.position && *finding.position > 1
              ? ", and angles differ from position " + grouped(*finding.position) + " on"
              : "");
}

// Of a model that nobody here knows, and that some piece of evidence names.
std::string hub_name_among(const Diagnosis& out) {
  for (const Exhibit& one : out.evidence)
    if (std::string name = hub_name_in(one.text); !name.empty()) return name;
  return "";
}

// A configuration that is there, and of a family that is not covered.
const Exhibit* unread_config(const Diagnosis& out) {
  const auto at = std::ranges::find_if(out.evidence, [](const Exhibit& one) {
    return one.kind == ExhibitKind::unusable && one.as.contains("model_type is");
  });
  return at == out.evidence.end() ? nullptr : &*at;
}

// Of the gravest finding.
std::string sentence_of(const Finding& first) {
  const std::string message = first.message.substr(0, first.message.find(';')),
                    meant = value_meant(first);
  const bool breaks = first.severity == Severity::error;
  if (first.code == "draft_length" && !first.found.empty())
    return "The draft is of no use beyond " + first.found + " tokens" +
           (first.expected.empty() ? "" : ", and its target is started for " + first.expected) +
           ".";
  if (!meant.empty()) return std::string(breaks ? "Wrong" : "Look at this") + ": " + meant + ".";
  if (first.position && *first.position > 1)
    return std::string(breaks ? "Text breaks" : "Text may change") + " beyond " +
           grouped(*first.position) + ": " + message + ".";
  return std::string(breaks ? "Wrong" : "Look at this") + ": " + message + ".";
}

// The same, beside what else was given: another model, another file, words about something else.
std::string grave_sentence(const Diagnosis& out, const Diagnosed& grave) {
  const Finding& finding = grave.finding;
  std::string said = sentence_of(finding);
  const Diagnosed* const two = with(out, "two_models");
  if (two && two->where == grave.where && finding.severity == Severity::warning &&
      !finding.expected.empty() && !finding.found.empty())
    said = "These are two models, and each may be right: " + finding.code + " is " +
           finding.expected + " in the first, and " + finding.found + " in the second.";
  constexpr std::string_view wrong = "Wrong: ";
  const auto models =
      std::ranges::count_if(out.evidence, [](const Exhibit& one) { return one.model.has_value(); });
  if (models > 1 && grave.sure == "computed" && !grave.where.empty() && finding.engines.empty() &&
      said.starts_with(wrong))
    said = "Wrong in " + grave.where.substr(grave.where.rfind('/') + 1) + ": " +
           said.substr(wrong.size());
  const Diagnosed* const elsewhere = with(out, "seen_elsewhere");
  if (!elsewhere) return said;
  const std::string& seen = elsewhere->finding.message;
  const std::size_t colon = said.find(": ");
  return "By your words: " + seen.substr(0, seen.find(':')) +
         ". Apart from that: " + said.substr(colon == said.npos ? 0 : colon + 2);
}

bool speaks_of_limit(std::string_view text) {
  const std::string small = small_letters(text);
  return contains_any(small, {"limit", "max", "only", "cap"});
}

// Where no finding is grave. `length` is how far it reaches, "" where nobody says.
std::string nothing_wrong(const Diagnosis& out, const std::string& length, std::int64_t reached) {
  const std::string verdict =
      "Nothing wrong with position" + (length.empty() ? "" : " up to " + length);
  if (const Finding* seen = by_what_was_seen(out); seen && seen->code == "seen_cut")
    return "By your words: " + seen->message + ".";
  if (const Finding* seen = by_what_was_seen(out))
    return verdict + " in what was given. By your words: " + seen->message + ".";
  // Where a line starts it; what words name in passing is no program that runs.
  if (const Diagnosed* program = with(out, "program_unknown"); program && program->sure != "read")
    return verdict + " by the file itself. Of " + program->finding.found + ": " +
           program->finding.message + ".";
  // What shows the fault may be just what could not be read.
  if (const std::string unread = not_used(out); !unread.empty())
    return verdict + " in what could be read; not read: " + unread + ".";
  if (const Diagnosed* stretched = with(out, "stretched_by_engine"))
    return "Nothing wrong with position: " + stretched->finding.message + ".";
  if (const Diagnosed* unknown = with(out, "engine_not_known"))
    return verdict + " by posenc's own reading, and " + unknown->finding.message + ".";
  if (const Diagnosed* slots = with(out, "slots");
      slots && !slots->finding.cure.empty() && slots->finding.found == length)
    return verdict + ", which is each slot's share of the " + slots->finding.expected + ".";
  // Of a version that nobody tells.
  if (with(out, "context_refused"))
    return verdict + "; from 0.30 on vLLM starts only if max_position_embeddings is told too.";
  if (const Diagnosed* fewer = with(out, "context_shorter");
      fewer && fewer->finding.found.size() < 12 && !fewer->finding.found.empty() &&
      fewer->finding.expected.size() < 12 && !fewer->finding.expected.empty())
    return "Nothing wrong with position: it is started for " + fewer->finding.found +
           " tokens, and the model reaches " + fewer->finding.expected +
           "; what is longer is refused, cut, or loses its beginning.";
  if (with(out, "draft_unseen"))
    return verdict + " for the target: how far its draft reaches, the draft's own file says.";
  const auto words = std::ranges::find(out.evidence, ExhibitKind::symptom, &Exhibit::kind);
  // A limit that somebody asks about, and that the model does not have.
  constexpr std::string_view asks = "what somebody saw: a question";
  if (words != out.evidence.end() && words->as.starts_with(asks) && speaks_of_limit(words->text) &&
      out.length > 0 && out.length < reached)
    return "By its file the model is made for " + grouped(reached) + " tokens; a limit of " +
           length + " is one of the program that runs it.";
  // Somebody saw something all the same.
  if (words != out.evidence.end())
    return "What was given does not show why: nothing of it is wrong with position" +
           (length.empty() ? "" : " up to " + length) + ".";
  if (const Diagnosed* other = with(out, "version_unknown"))
    return verdict + " as far as " + other->engine + " " + other->version +
           " tells, whose profile stands for the version that runs.";
  return verdict + ".";
}

}  // namespace

bool with_unread_class(const Diagnosis& diagnosis) {
  return std::ranges::any_of(diagnosis.evidence, [](const Exhibit& one) {
    return one.kind == ExhibitKind::unusable && one.text.contains("\"_class_name\"");
  });
}

void give_verdict(Diagnosis& out, const Exhibit* intent, bool names_engine, bool explained) {
  const std::int64_t reached = intent ? std::max(intent->model->context, reach(*intent->model)) : 0;
  const std::string named = intent ? "" : hub_name_among(out);
  const std::string length = out.length > 0          ? grouped(out.length)
                             : intent && reached > 0 ? grouped(reached)
                                                     : "";
  const auto grave = std::ranges::find_if(
      out.findings, [](const Diagnosed& one) { return one.finding.severity != Severity::note; });
  const bool nothing = std::ranges::none_of(
      out.evidence, [](const Exhibit& one) { return one.kind != ExhibitKind::unusable; });
  if (const Diagnosed* ids = with(out, "positions_printed"); ids && grave == out.findings.end()) {
    out.verdict = "Compare these with the rule: " + ids->finding.message + ".";
  } else if (nothing && grave == out.findings.end()) {
    out.verdict = "Nothing of this can be used.";
  } else if (const Finding* seen = by_what_was_seen(out);
             !intent && seen && grave == out.findings.end()) {
    out.verdict = "By your words: " + seen->message + ".";
  } else if (const bool compared = std::ranges::any_of(
                 out.findings,
                 [](const Diagnosed& one) { return one.finding.code != "program_unknown"; });
             !intent && !compared) {
    const Exhibit* const unread = unread_config(out);
    out.verdict =
        unread ? "posenc does not read " + unread->name +
                     ", so that nothing can be compared, and what an engine makes of it "
                     "is not known."
               : "Without " +
                     (named.empty() ? "a model's config.json" : "the config.json of " + named) +
                     " nothing can be compared.";
  } else if (grave == out.findings.end()) {
    out.verdict = nothing_wrong(out, length, reached);
  } else {
    out.verdict = grave_sentence(out, *grave);
  }
  if (explained) out.verdict += " It begins where you saw it.";
  const bool runs = std::ranges::any_of(out.evidence, [](const Exhibit& one) {
    return one.kind == ExhibitKind::command || one.kind == ExhibitKind::log;
  });
  const bool found = grave != out.findings.end();
  if (intent && !names_engine && !runs && (!found || out.evidence.size() == 1))
    out.next =
        has_text(*intent->model)
            ? "posenc doctor " + intent->name + " --engine vllm   # or the line that starts it"
            : "posenc explain " + intent->name + "   # what rotates, and how far";
  else if (!intent && !nothing && !with_unread_class(out) && !unread_config(out))
    out.next = named.empty() ? "posenc doctor MODEL " + first_used(out) +
                                   "   # the model's config.json, GGUF or name beside it"
                             : line_that_fetches(named) + " " + first_used(out);
  else if (intent && !found)
    out.next = "posenc identify --how any   # what the engine really rotated by, from its tensors";
}

}  // namespace posenc::detail
