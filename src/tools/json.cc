// What a tool found, as JSON.
#include "posenc/explain.h"
#include "posenc/tools.h"
#include "src/files/field_value.h"
#include "src/text/json_writer.h"

namespace posenc {
namespace {

void write(detail::JsonWriter& out, const FrequencyFit& fit) {
  out.member("base", fit.base).key("scaling").object().member("type", info(fit.scaling).name);
  for (const FieldSetting& setting : settings(fit.scaling)) {
    out.key(setting.name);
    detail::write(out, setting.value);
  }
  out.end();
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
      .end();
}

}  // namespace

std::string to_json(const Finding& finding) {
  detail::JsonWriter out;
  write(out, finding);
  return out.text;
}

std::string to_json(const EngineDifferences& differences) {
  const auto& [engine, model, refused, notes, rows] = differences.reading;
  detail::JsonWriter out;
  out.object()
      .member("engine", engine.name)
      .member("version", engine.version)
      .member("source", engine.source)
      .member("refused", refused.empty() ? std::nullopt : std::optional(refused))
      .member("table_rows", rows);
  out.key("notes").array();
  for (const EngineNote& note : notes)
    out.object().member("kind", name(note.kind)).member("what", note.what).end();
  out.end().key("findings").array();
  for (const Finding& finding : differences.findings) write(out, finding);
  out.end().end();
  return out.text;
}

std::string to_json(const Identified& identified) {
  const bool rotates = identified.verdict == Rotated::rotation;
  detail::JsonWriter out;
  out.object().member("verdict", name(identified.verdict));
  if (rotates) {
    out.member("pairing", name(identified.pairing))
        .member("first_dim", identified.first_dim)
        .member("rotary_dim", identified.rotary_dim);
    if (identified.frequencies) write(out, *identified.frequencies);
    out.member("amplitude", identified.amplitude)
        .member("offset", identified.offset)
        .member("sign", identified.sign);
  }
  out.member("residual", identified.residual);
  out.key("runner_up");
  if (identified.runner_up) {
    write(out.object(), *identified.runner_up);
    out.member("misfit", identified.runner_up->misfit).end();
  } else {
    out.null();
  }
  out.key("pairs").array();
  for (const IdentifiedPair& pair : identified.pairs)
    out.object()
        .member("a", pair.a)
        .member("b", pair.b)
        .member("frequency", pair.frequency)
        .member("resolution", pair.resolution)
        .end();
  out.end();
  out.member("cannot_tell", identified.cannot_tell).end();
  return out.text;
}

}  // namespace posenc
