// What a tool found, as JSON.
#include <algorithm>

#include "posenc/explain.h"
#include "posenc/tools.h"
#include "src/text/json_writer.h"

namespace posenc {
namespace {

void write(detail::JsonWriter& out, const ContextOption& option) {
  out.object().member("name", option.name);
  if (!option.unavailable.empty()) {
    out.member("unavailable", option.unavailable).end();
    return;
  }
  out.member("unavailable", std::optional<std::string_view>())
      .member("needs_training", option.needs_training);
  out.key("scheme").json(to_json(Scheme(*option.rope)));
  out.member("frequencies", option.frequencies)
      .member("unseen", option.unseen)
      .member("unseen_from", option.unseen_from)
      .member("fastest_pair", option.fastest_pair)
      .member("middle_pair", option.middle_pair)
      .member("amplitude", option.amplitude)
      .member("logits", option.logits)
      .member("short_texts_from", option.short_texts_from)
      .member("rerotate", option.rerotate)
      .end();
}

void write(detail::JsonWriter& out, const Finding& finding) {
  out.object()
      .member("code", finding.code)
      .member("severity", name(finding.severity))
      .member("stack", finding.stack ? std::optional(name(*finding.stack)) : std::nullopt)
      .member("layer",
              finding.layers.empty() ? std::nullopt : std::optional(finding.layers.front()))
      .member("layers", finding.layers)
      .member("pair", finding.pair)
      .member("position", finding.position)
      .member("expected", finding.expected)
      .member("found", finding.found)
      .member("message", finding.message)
      .member("cure", finding.cure)
      .member("engines", finding.engines)
      .member("line", finding.line)
      .end();
}

// found: null where one model alone is looked at.
std::string differences(const Model& expected, const Model* found,
                        std::span<const Finding> findings) {
  detail::JsonWriter out;
  out.object().member("equal", only_notes(findings)).member("expected", expected.name);
  if (found != nullptr) out.member("found", found->name);
  out.key("findings").json(to_json(findings));
  out.end();
  return out.text;
}

}  // namespace

std::string to_json(const Finding& finding) {
  detail::JsonWriter out;
  write(out, finding);
  return out.text;
}

std::string to_json(std::span<const Finding> findings) {
  detail::JsonWriter out;
  out.array();
  for (const Finding& finding : findings) write(out, finding);
  out.end();
  return out.text;
}

bool only_notes(std::span<const Finding> findings) {
  return std::ranges::all_of(findings,
                             [](const Finding& one) { return one.severity == Severity::note; });
}

std::string differences_to_json(const Model& expected, std::span<const Finding> findings) {
  return differences(expected, nullptr, findings);
}

std::string differences_to_json(const Model& expected, const Model& found,
                                std::span<const Finding> findings) {
  return differences(expected, &found, findings);
}

std::string to_json(const EngineDifferences& differences) {
  const EngineReading& reading = differences.reading;
  detail::JsonWriter out;
  out.object()
      .member("engine", reading.engine.name)
      .member("version", reading.version())
      .member("source", reading.engine.source)
      .member("refused", reading.refused.empty() ? std::nullopt : std::optional(reading.refused))
      .member("table_rows", reading.table_rows);
  out.key("notes").array();
  for (const EngineNote& note : reading.notes)
    out.object().member("kind", name(note.kind)).member("what", note.what).end();
  out.end().key("findings").array();
  for (const Finding& finding : differences.findings) write(out, finding);
  out.end().end();
  return out.text;
}

std::string to_json(const ContextPlan& plan) {
  detail::JsonWriter out;
  out.object()
      .member("to", plan.to)
      .member("trained", plan.trained > 0 ? std::optional(plan.trained) : std::nullopt)
      .member("trained_by", plan.trained_by)
      .member("scheme", plan.scheme)
      .member("layers", plan.layers)
      .member("untouched", plan.untouched)
      .member("base", plan.base > 0 ? std::optional(plan.base) : std::nullopt)
      .member("least_base", plan.least_base)
      .member("turns", plan.turns)
      .member("recommended", plan.recommended)
      .member("rule", plan.rule)
      .member("reason", plan.reason)
      .member("source", plan.source.empty() ? std::nullopt : std::optional(plan.source));
  out.key("options").array();
  for (const ContextOption& option : plan.options) write(out, option);
  out.end().key("flags");
  if (!plan.said)
    out.null();
  else if (plan.said->is_json)
    out.json(plan.said->target);
  else
    out.value(plan.said->target);
  out.key("engine");
  if (plan.said)
    out.json(to_json(*plan.said));
  else
    out.null();
  out.member("remarks", plan.engine);
  out.key("cache").array();
  for (const CacheShare& share : plan.cache)
    out.object()
        .member("stack", name(share.stack))
        .member("layers", share.layers)
        .member("window", share.window)
        .member("bytes", share.bytes)
        .member("bytes_within_window", share.bytes_within_window)
        .end();
  out.end().member("unknown", plan.unknown).end();
  return out.text;
}

}  // namespace posenc
