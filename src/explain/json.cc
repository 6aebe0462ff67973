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
#include "src/files/field_value.h"

namespace posenc {
namespace {

using Out = detail::JsonWriter;

// A size, or null where it is not known.
std::optional<std::int64_t> known(std::int64_t number) {
  return number > 0 ? std::optional(number) : std::nullopt;
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

// The numbers of one axis after another: [axis][…][columns].
void nested(Out& out, std::span<const double> numbers, std::span<const std::int64_t> shape) {
  if (shape.size() == 1) return out.value(numbers);
  const auto count = static_cast<std::size_t>(shape.front());
  const std::size_t size = count > 0 ? numbers.size() / count : 0;
  out.array();
  for (std::size_t i = 0; i < count; ++i)
    nested(out, numbers.subspan(i * size, size), shape.subspan(1));
  out.end();
}

// A computed table's numbers, [rows][columns] or [head][rows][columns]; null for a learned one.
void write(Out& out, const Table& table) {
  if (!table.owned || table.values.rank < 1) return out.null();
  nested(out, *table.owned,
         std::span(table.values.shape).first(static_cast<std::size_t>(table.values.rank)));
}

void write(Out& out, const DistanceRows& rows) {
  out.object().member("first", rows.first).member("row", rows.row);
  out.member("saturates", rows.saturates).end();
}

// --- the parts of a plan -------------------------------------------------------------------------

void write(Out& out, const Add& add) {
  out.object();
  if (const auto* waves = std::get_if<Waves>(&add.kind)) {
    out.member("kind", "waves").member("width", waves->width);
    out.member("layout", name(waves->layout));
    if (waves->axes == 1) {
      out.member("frequencies", waves->frequency);
    } else {
      out.key("frequencies").array();
      const auto pairs = static_cast<std::size_t>(waves->pairs());
      for (std::int64_t a = 0; a < waves->axes; a++)
        out.value(std::span(waves->frequency).subspan(static_cast<std::size_t>(a) * pairs, pairs));
      out.end();
    }
    out.member("row_offset", waves->row_offset).key("zero_row");
    if (waves->zero_row < 0)
      out.null();
    else
      out.value(waves->zero_row);
    out.member("axes", waves->axes).member("blocks", waves->blocks);
    out.member("cosine_first", waves->cosine_first).member("amplitude", waves->amplitude);
  } else if (const auto* rows = std::get_if<Rows>(&add.kind)) {
    out.member("kind", "table").member("rows", rows->rows).member("width", rows->width);
    out.member("row_offset", rows->row_offset).member("axis_rows", rows->axis_rows);
    write(out.key("values"), rows->table);
  } else if (const auto* ramp = std::get_if<Ramp>(&add.kind)) {
    out.member("kind", "ramp").member("width", ramp->width).member("channel", ramp->channel);
    out.member("scale", ramp->scale);
  }
  out.member("embedding_scale", add.embedding_scale).end();
}

// The one axis each pair takes; nothing if a pair takes several or heads differ.
std::optional<std::vector<std::int64_t>> axis_of_pair(const Rotate& rotate) {
  if (rotate.axes == 1 || rotate.heads != 1) return {};
  std::vector<std::int64_t> axes;
  for (std::int64_t r = 0; r < rotate.pairs(); r++) {
    std::int64_t axis = 0, taken = 0;
    for (std::int64_t a = 0; a < rotate.axes; a++) {
      if (rotate.at(0, a, r) == 0) continue;
      axis = a;
      taken++;
    }
    if (taken > 1) return {};
    axes.push_back(axis);
  }
  return axes;
}

void frequency_row(Out& out, const Rotate& rotate, std::int64_t head, auto axis_of) {
  out.array();
  for (std::int64_t r = 0; r < rotate.pairs(); r++) out.value(rotate.at(head, axis_of(r), r));
  out.end();
}

void frequency_rows(Out& out, const Rotate& rotate,
                    const std::optional<std::vector<std::int64_t>>& axes) {
  out.array();
  if (axes) {
    frequency_row(out, rotate, 0,
                  [&](std::int64_t r) { return (*axes)[static_cast<std::size_t>(r)]; });
  } else {
    for (std::int64_t head = 0; head < rotate.heads; head++)
      for (std::int64_t axis = 0; axis < rotate.axes; axis++)
        frequency_row(out, rotate, head, [&](std::int64_t) { return axis; });
  }
  out.end();
}

void write(Out& out, const GgmlRope& ggml) {
  const std::pair<std::string_view, float> numbers[] = {
      {"theta_scale", ggml.theta_scale}, {"freq_scale", ggml.freq_scale},
      {"ext_factor", ggml.ext_factor},   {"ramp_low", ggml.ramp_low},
      {"ramp_high", ggml.ramp_high},     {"attn_factor", ggml.attn_factor}};
  out.object();
  for (const auto& [name, number] : numbers) out.member(name, static_cast<double>(number));
  out.member("freq_factors", ggml.freq_factors).member("restart", ggml.restart).end();
}

void write(Out& out, const XposDecay& growth) {
  out.object().member("factor", growth.factor).member("scale", growth.scale);
  out.member("centre", growth.centre).end();
}

// Of the heads that have phases of their own a row each.
void write(Out& out, const Phase& phase) {
  const std::size_t pairs = phase.radians.size() / static_cast<std::size_t>(phase.heads);
  out.object().member("side", phase.of_keys ? "key" : "query").member("heads", phase.heads);
  out.key("radians").array();
  for (std::size_t first = 0; first < phase.radians.size(); first += pairs) {
    out.array();
    for (std::size_t r = 0; r < pairs; ++r) out.value(phase.radians[first + r]);
    out.end();
  }
  out.end().end();
}

// [head][input][output].
void write(Out& out, const Mix& mix) {
  out.object().member("heads", mix.heads).member("inputs", mix.inputs);
  out.member("outputs", mix.outputs);
  for (const auto& [key, numbers] : {std::pair{"cosine", &mix.cosine}, {"sine", &mix.sine}}) {
    out.key(key).array();
    auto next = std::span<const double>(*numbers);
    const auto size = static_cast<std::size_t>(mix.outputs);
    for (std::int64_t h = 0; h < mix.heads; ++h) {
      out.array();
      for (std::int64_t u = 0; u < mix.inputs; ++u, next = next.subspan(size))
        out.value(next.first(size));
      out.end();
    }
    out.end();
  }
  out.member("rest_sine", mix.rest_sine).end();
}

void write(Out& out, const Picked& picked) {
  out.object().member("count", picked.count).member("block", picked.block);
  out.member("local", picked.local).end();
}

void write(Out& out, const PositionMap& map) {
  out.object().member("modulus", map.modulus).member("divisor", map.divisor);
  out.member("offset", map.offset).key("most");
  if (map.most == std::numeric_limits<std::int64_t>::max())
    out.null();
  else
    out.value(map.most);
  out.end();
}

void write(Out& out, const Regions& regions) {
  out.object().member("window", regions.window).member("chunk", regions.chunk);
  out.key("region").array();
  for (const Regions::Region& each : regions.region) {
    write(out.object().key("query"), each.query);
    write(out.key("key"), each.key);
    out.member("frequency_scale", each.frequency_scale).end();
  }
  out.end().end();
}

void write(Out& out, const Rotate& rotate);
void write(Out& out, const Bias& bias);
void write(Out& out, const Relative& relative);

template <class Part>
void write(Out& out, const std::optional<Part>& part) {
  if (part)
    write(out, *part);
  else
    out.null();
}

void write(Out& out, const Rotate& rotate) {
  const auto axes = axis_of_pair(rotate);
  out.object().member("pairing", name(rotate.pairing)).member("first_dim", rotate.first_dim);
  out.member("rotary_dim", rotate.rotary_dim).member("blocks", rotate.blocks);
  out.member("heads", rotate.heads).member("axes", rotate.axes);
  frequency_rows(out.key("frequencies"), rotate, axes);
  out.member("axis_of_pair", axes).member("amplitude", rotate.amplitude);
  write(out.key("growth"), rotate.growth);
  write(out.key("phase"), rotate.phase);
  write(out.key("mix"), rotate.mix);
  write(out.key("regions"), rotate.regions);
  out.member("polar", rotate.polar);
  out.member("values", rotate.values).member("values_stay", rotate.values_stay);
  out.member("angles", name(rotate.angles));
  write(out.key("ggml"), rotate.ggml);
  out.end();
}

void write(Out& out, const Bias& bias) {
  out.object();
  if (const auto* slopes = std::get_if<Slopes>(&bias)) {
    out.member("kind", "slope").member("slopes", slopes->slope);
    out.member("bidirectional", slopes->bidirectional);
    out.key("buckets").null();
    out.key("max_distance").null();
    out.member("before_scale", slopes->before_scale);
  } else if (const auto* table = std::get_if<BiasTable>(&bias)) {
    out.member("kind", "table").key("slopes").null();
    out.member("bidirectional", table->bidirectional).member("buckets", known(table->buckets));
    out.member("max_distance", known(table->max_distance)).member("before_scale", false);
    out.member("row_count", table->row_count);
    write(out.key("rows"), table->rows);
    if (table->axes() > 1) {
      out.key("further_axes").array();
      for (const DistanceRows& rows : table->further_axes) write(out, rows);
      out.end();
    }
    write(out.key("values"), table->values);
  }
  out.end();
}

void write(Out& out, const Relative& relative) {
  out.object().member("row_count", relative.row_count);
  out.member("max_distance", known(relative.max_distance))
      .member("uses_query", relative.uses_query);
  out.member("uses_key", relative.uses_key).member("uses_value", relative.uses_value);
  out.member("profiles", relative.profiles);
  write(out.key("rows"), relative.rows);
  if (relative.lists() > 1) {
    out.key("further_rows").array();
    for (const DistanceRows& rows : relative.further_rows) write(out, rows);
    out.end();
  }
  write(out.key("query"), relative.query);
  write(out.key("key"), relative.key);
  write(out.key("value"), relative.value);
  out.end();
}

void write(Out& out, const Logits& logits) {
  const auto numbers = [&out](std::string_view name, const std::vector<double>& each) {
    if (each.empty())
      out.key(name).null();
    else
      out.member(name, each);
  };
  out.object().member("multiplier", logits.multiplier);
  out.member("temperature", logits.has_temperature() ? name(logits.temperature) : "none");
  out.member("beta", logits.beta).member("floor", logits.floor).member("offset", logits.offset);
  numbers("head_scale", logits.head_scale);
  numbers("head_bias", logits.head_bias);
  out.member("softcap", logits.softcap).end();
}

// The members of a plan; its object is left open.
void write_open(Out& out, const Plan& plan) {
  out.object();
  write(out.key("add"), plan.add);
  write(out.key("rotate"), plan.rotate);
  write(out.key("bias"), plan.bias);
  write(out.key("relative"), plan.relative);
  write(out.key("logits"), plan.logits);
}

void write_valid(Out& out, const Plan& plan) {
  out.key("valid");
  if (!plan.valid) return out.null();
  out.object().member("from", plan.valid->from).key("to");
  if (plan.valid->to == std::numeric_limits<std::int64_t>::max())
    out.null();
  else
    out.value(plan.valid->to);
  out.end();
}

// --- a model -------------------------------------------------------------------------------------

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

template <class T>
void write_list(Out& out, std::string_view key, std::span<const T> items) {
  out.key(key).array();
  for (const T& item : items) write(out, item);
  out.end();
}

void write(Out& out, const LayerGroup& group, const GroupExplanation& facts) {
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
  write_open(out.key("plan"), facts.plan);
  out.end();
  write_valid(out, facts.plan);
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
  for (const GroupExplanation& facts : explanation.groups)
    write(out, model.groups[facts.group], facts);
  out.end().member("cache_bytes_per_token", explanation.cache_bytes_per_token);
  out.member("cache_bytes", explanation.cache_bytes);
  write_list(out, "warnings", std::span<const Warning>(explanation.warnings));
  write_list(out, "files", std::span<const ModelFile>(model.files));
  out.end();
  return std::move(out.text);
}

std::string to_json(const Plan& plan) {
  Out out;
  write_open(out, plan);
  write_valid(out, plan);
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
