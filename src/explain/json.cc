// The JSON of docs/json.md. Keys keep their order; numbers are the shortest that read back the
// same; what is not a finite number is null.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/explain.h"
#include "src/explain/plan_json.h"
#include "src/files/field_value.h"

namespace posenc {
namespace {

using Out = detail::JsonWriter;

// A size, or null where it is not known.
std::optional<std::int64_t> known(std::int64_t number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

// An end, or null where there is none.
std::optional<std::int64_t> ended(std::int64_t number) {
  return number != Lengths::no_end ? std::optional(number) : std::nullopt;
}

// Numbers of FieldKind::integers come as doubles and are written as the integers they are.
void write(Out& out, const FieldSetting& setting, const SchemeInfo& of) {
  out.key(setting.name);
  const auto* list = std::get_if<std::vector<double>>(&setting.value);
  const auto field = std::ranges::find(of.fields, setting.name, &FieldInfo::name);
  if (list && field->kind == FieldKind::integers)
    out.value(std::vector<std::int64_t>(list->begin(), list->end()));
  else
    detail::write(out, setting.value);
}

void write(Out& out, const Scaling& scaling) {
  out.object().member("type", info(scaling).name);
  for (const FieldSetting& setting : settings(scaling)) write(out, setting, info(scaling));
  out.end();
}

void write(Out& out, const ContentScheme& scheme) {
  out.object().member("type", info(scheme).name);
  for (const FieldSetting& setting : settings(scheme)) write(out, setting, info(scheme));
  out.end();
}

void write(Out& out, const Scheme& scheme) {
  out.object().member("type", info(scheme).name);
  for (const FieldSetting& setting : settings(scheme)) write(out, setting, info(scheme));
  if (const Rope* rope = std::get_if<Rope>(&scheme)) write(out.key("scaling"), rope->scaling);
  out.end();
}

// --- a model -------------------------------------------------------------------------------------

void write(Out& out, const Picked& picked) {
  out.object().member("count", picked.count).member("block", picked.block);
  out.member("local", picked.local).end();
}

// Lengths for which a plan holds.
void write(Out& out, const Lengths& valid) {
  out.object().member("from", valid.from).member("to", ended(valid.to)).end();
}

template <class Part>
void write(Out& out, const std::optional<Part>& part) {
  if (part)
    write(out, *part);
  else
    out.null();
}

void write(Out& out, const Provenance& p) {
  out.object().member("field", p.field).member("value", p.value);
  out.member("origin", name(p.origin)).member("detail", p.detail).end();
}

void write(Out& out, const Band& band) {
  out.object().member("first", band.first).member("last", band.last);
  out.member("effect", band.effect).end();
}

void write(Out& out, const FormulaLine& formula) {
  out.object().member("name", formula.name).member("formula", formula.text).end();
}

void write(Out& out, const CachePart& part) {
  out.object().member("elements", part.elements).member("every", part.every);
  out.member("note", part.note).end();
}

void write(Out& out, const Warning& warning) {
  out.object().member("code", warning.code).member("message", warning.message).end();
}

void write(Out& out, const ModelFile& file) {
  out.object().member("path", file.path).member("format", name(file.format));
  out.member("role", name(file.role)).end();
}

void write_indexer(Out& out, const Model& model, const LayerGroup& group,
                   const GroupExplanation& facts) {
  const std::optional<LayerGroup> own = indexer_group(group);
  if (!own || !facts.indexer) return out.null();
  const CachePart& keys = group.indexer->keys;
  const std::int64_t bytes = bytes_of_number(model) * std::ssize(group.layers) * keys.elements;
  out.object().member("heads", known(group.indexer->heads));
  out.member("head_dim", known(group.indexer->head_dim));
  write(out.key("picked"), group.picked);
  out.member("cache_bytes_per_token", bytes / keys.every);
  write(out.key("scheme"), own->schemes.front());
  detail::write_plan(out.key("plan"), *facts.indexer, false);
  write(out.key("valid"), facts.indexer->valid);
  out.end();
}

template <class T>
void write_list(Out& out, std::string_view key, std::span<const T> items) {
  out.key(key).array();
  for (const T& item : items) write(out, item);
  out.end();
}

void write(Out& out, const Model& model, const GroupExplanation& facts) {
  const LayerGroup& group = model.groups[facts.group];
  const Geometry& geometry = group.geometry;
  out.object().member("stack", name(group.stack)).member("label", group.label);
  out.member("mixer", name(group.mixer));
  out.member("layers", group.layers).member("heads", known(geometry.heads));
  out.member("kv_heads", known(geometry.kv_heads)).member("head_dim", known(geometry.head_dim));
  out.member("width", known(geometry.width)).member("window", group.window);
  out.member("behind", group.behind).member("chunked", group.chunked);
  out.member("causal", group.causal).member("compressed", known(group.compressed));
  write(out.key("picked"), group.picked);
  const std::span<const Scheme> schemes = group.schemes;
  write(out.key("scheme"), schemes.empty() ? Scheme(NoPe{}) : schemes.front());
  write_list(out, "also", schemes.subspan(schemes.empty() ? 0 : 1));
  detail::write_plan(out.key("plan"), facts.plan, false);
  write(out.key("valid"), facts.plan.valid);
  write_indexer(out.key("indexer"), model, group, facts);
  if (!group.carried.empty()) out.member("carried", group.carried);
  out.member("heading", facts.heading).member("words", facts.words);
  write_list(out, "formulas", std::span<const FormulaLine>(facts.formulas));
  write_list(out, "bands", std::span<const Band>(facts.bands));
  out.member("amplitude_note", facts.amplitude_note).member("logits_note", group.logits_note);
  out.member("sink_logits", group.sink_logits).member("added_each_layer", group.added_each_layer);
  out.member("cache_bytes_per_token", facts.cache_bytes_per_token);
  out.member("cache_bytes", facts.cache_bytes).member("cache_note", group.cache_note);
  write_list(out, "cache_beside", std::span<const CachePart>(group.cache_beside));
  write_list(out, "provenance", std::span<const Provenance>(group.provenance));
  out.end();
}

}  // namespace

std::string to_json(const Explanation& explanation) {
  const Model& model = explanation.model;
  Out out;
  out.object().member("model", model.name).member("family", model.family);
  out.member("known_family", model.known_family).member("context", known(model.context));
  out.member("trained_context", known(model.trained_context));
  out.member("asked", known(explanation.asked)).key("dtype");
  if (model.dtype.empty())
    out.null();
  else
    out.value(model.dtype);
  if (!model.origin.empty()) out.member("origin", model.origin);
  out.member("words", explanation.words).key("groups").array();
  for (const GroupExplanation& facts : explanation.groups) write(out, model, facts);
  out.end().member("cache_bytes_per_token", explanation.cache_bytes_per_token);
  out.member("cache_bytes", explanation.cache_bytes);
  write_list(out, "warnings", std::span<const Warning>(explanation.warnings));
  write_list(out, "files", std::span<const ModelFile>(model.files));
  out.end();
  return std::move(out.text);
}

std::string to_json(const Scheme& scheme) {
  Out out;
  write(out, scheme);
  return std::move(out.text);
}

std::string to_json(const ContentScheme& scheme) {
  Out out;
  write(out, scheme);
  return std::move(out.text);
}

}  // namespace posenc
