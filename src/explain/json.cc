// The JSON of docs/json.md. Keys keep their order; numbers are the shortest that read back the
// same; what is not a finite number is null.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <nlohmann/json.hpp>

#include "posenc/explain.h"
#include "src/explain/pairs.h"

namespace posenc {
namespace {

using Out = nlohmann::ordered_json;

Out known(std::int64_t number) { return number > 0 ? Out(number) : Out(nullptr); }

template <class T>
Out maybe(const std::optional<T>& value) {
  return value ? Out(*value) : Out(nullptr);
}

Out json_of(const FieldValue& value) {
  return std::visit(
      [](const auto& x) -> Out {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::monostate>) {
          return nullptr;
        } else {
          return x;
        }
      },
      value);
}

// Numbers of FieldKind::integers come as doubles and are written as the integers they are.
Out json_of(const FieldSetting& setting, const SchemeInfo& of) {
  Out out = json_of(setting.value);
  if (!out.is_array()) return out;
  for (const FieldInfo& field : of.fields)
    if (field.name == setting.name && field.kind == FieldKind::integers)
      for (Out& number : out) number = number.get<std::int64_t>();
  return out;
}

Out json_of(const Scaling& scaling) {
  Out out{{"type", info(scaling).name}};
  for (const FieldSetting& setting : settings(scaling))
    out[std::string(setting.name)] = json_of(setting, info(scaling));
  return out;
}

Out json_of(const Scheme& scheme) {
  Out out{{"type", info(scheme).name}};
  for (const FieldSetting& setting : settings(scheme))
    out[std::string(setting.name)] = json_of(setting, info(scheme));
  if (const Rope* rope = std::get_if<Rope>(&scheme)) out["scaling"] = json_of(rope->scaling);
  return out;
}

// A computed table's numbers, [rows][columns]; null for a learned one.
Out json_of(const Table& table) {
  if (!table.owned || table.values.rank < 2) return nullptr;
  const std::vector<double>& numbers = *table.owned;
  const auto columns = static_cast<std::size_t>(table.values.shape[1]);
  Out out = Out::array();
  for (std::size_t at = 0; columns > 0 && at + columns <= numbers.size(); at += columns)
    out.push_back(std::vector<double>(numbers.begin() + static_cast<std::ptrdiff_t>(at),
                                      numbers.begin() + static_cast<std::ptrdiff_t>(at + columns)));
  return out;
}

Out json_of(const DistanceRows& rows) {
  return {{"first", rows.first}, {"row", rows.row}, {"saturates", rows.saturates}};
}

// --- the parts of a plan -------------------------------------------------------------------------

Out json_of(const Waves& waves) {
  return {{"kind", "waves"},
          {"width", waves.width},
          {"layout", name(waves.layout)},
          {"frequencies", waves.frequency},
          {"row_offset", waves.row_offset},
          {"zero_row", waves.zero_row < 0 ? Out(nullptr) : Out(waves.zero_row)}};
}
Out json_of(const Rows& rows) {
  return {{"kind", "table"},
          {"rows", rows.rows},
          {"width", rows.width},
          {"row_offset", rows.row_offset}};
}
Out json_of(const Ramp& ramp) {
  return {
      {"kind", "ramp"}, {"width", ramp.width}, {"channel", ramp.channel}, {"scale", ramp.scale}};
}

Out json_of(const Add& add) {
  Out out = std::visit([](const auto& kind) { return json_of(kind); }, add.kind);
  out["embedding_scale"] = add.embedding_scale;
  return out;
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

Out frequency_rows(const Rotate& rotate, const std::optional<std::vector<std::int64_t>>& axes) {
  Out rows = Out::array();
  if (axes) {
    std::vector<double> row;
    row.reserve(static_cast<std::size_t>(rotate.pairs()));
    for (std::int64_t r = 0; r < rotate.pairs(); r++)
      row.push_back(rotate.at(0, (*axes)[static_cast<std::size_t>(r)], r));
    rows.push_back(row);
    return rows;
  }
  for (std::int64_t head = 0; head < rotate.heads; head++)
    for (std::int64_t axis = 0; axis < rotate.axes; axis++) {
      std::vector<double> row;
      row.reserve(static_cast<std::size_t>(rotate.pairs()));
      for (std::int64_t r = 0; r < rotate.pairs(); r++) row.push_back(rotate.at(head, axis, r));
      rows.push_back(row);
    }
  return rows;
}

Out json_of(const GgmlRope& ggml) {
  return {{"theta_scale", ggml.theta_scale},   {"freq_scale", ggml.freq_scale},
          {"ext_factor", ggml.ext_factor},     {"ramp_low", ggml.ramp_low},
          {"ramp_high", ggml.ramp_high},       {"attn_factor", ggml.attn_factor},
          {"freq_factors", ggml.freq_factors}, {"restart", ggml.restart}};
}

Out json_of(const Rotate& rotate) {
  const auto axes = axis_of_pair(rotate);
  Out growth = nullptr;
  if (rotate.growth)
    growth = {{"factor", rotate.growth->factor},
              {"scale", rotate.growth->scale},
              {"centre", rotate.growth->centre}};
  return {{"pairing", name(rotate.pairing)},
          {"first_dim", rotate.first_dim},
          {"rotary_dim", rotate.rotary_dim},
          {"blocks", rotate.blocks},
          {"heads", rotate.heads},
          {"axes", rotate.axes},
          {"frequencies", frequency_rows(rotate, axes)},
          {"axis_of_pair", maybe(axes)},
          {"amplitude", rotate.amplitude},
          {"growth", growth},
          {"values", rotate.values},
          {"angles", name(rotate.angles)},
          {"ggml", rotate.ggml ? json_of(*rotate.ggml) : Out(nullptr)}};
}

Out json_of(const Slopes& slopes) {
  return {{"kind", "slope"},    {"slopes", slopes.slope},  {"bidirectional", slopes.bidirectional},
          {"buckets", nullptr}, {"max_distance", nullptr}, {"before_scale", slopes.before_scale}};
}
Out json_of(const BiasTable& table) {
  return {{"kind", "table"},
          {"slopes", nullptr},
          {"bidirectional", table.bidirectional},
          {"buckets", known(table.buckets)},
          {"max_distance", known(table.max_distance)},
          {"before_scale", false},
          {"row_count", table.row_count},
          {"rows", json_of(table.rows)},
          {"values", json_of(table.values)}};
}
Out json_of(const Bias& bias) {
  return std::visit([](const auto& kind) { return json_of(kind); }, bias);
}

Out json_of(const Relative& relative) {
  return {{"row_count", relative.row_count},   {"max_distance", known(relative.max_distance)},
          {"uses_query", relative.uses_query}, {"uses_key", relative.uses_key},
          {"uses_value", relative.uses_value}, {"rows", json_of(relative.rows)}};
}

template <class Part>
Out part(const std::optional<Part>& value) {
  return value ? json_of(*value) : Out(nullptr);
}

Out json_of(const Plan& plan) {
  return {{"add", part(plan.add)},
          {"rotate", part(plan.rotate)},
          {"bias", part(plan.bias)},
          {"relative", part(plan.relative)},
          {"logits",
           {{"multiplier", plan.logits.multiplier},
            {"beta", plan.logits.beta},
            {"floor", plan.logits.floor},
            {"offset", plan.logits.offset}}}};
}

Out valid_of(const Plan& plan) {
  if (!plan.valid) return nullptr;
  const bool unlimited = plan.valid->to == std::numeric_limits<std::int64_t>::max();
  return {{"from", plan.valid->from}, {"to", unlimited ? Out(nullptr) : Out(plan.valid->to)}};
}

// --- a model -------------------------------------------------------------------------------------

Out provenance_of(const LayerGroup& group) {
  Out out = Out::array();
  for (const Provenance& p : group.provenance)
    out.push_back(
        {{"field", p.field}, {"value", p.value}, {"origin", name(p.origin)}, {"detail", p.detail}});
  return out;
}

Out json_of(const LayerGroup& group, const GroupExplanation& facts) {
  Out also = Out::array();
  for (std::size_t i = 1; i < group.schemes.size(); i++) also.push_back(json_of(group.schemes[i]));
  Out bands = Out::array();
  for (const Band& band : facts.bands)
    bands.push_back({{"first", band.first}, {"last", band.last}, {"effect", band.effect}});
  const Scheme scheme = group.schemes.empty() ? Scheme(NoPe{}) : group.schemes.front();
  return {{"stack", name(group.stack)},
          {"label", group.label},
          {"layers", group.layers},
          {"heads", known(group.geometry.heads)},
          {"kv_heads", known(group.geometry.kv_heads)},
          {"head_dim", known(group.geometry.head_dim)},
          {"width", known(group.geometry.width)},
          {"window", maybe(group.window)},
          {"chunked", group.chunked},
          {"causal", group.causal},
          {"scheme", json_of(scheme)},
          {"also", also},
          {"plan", json_of(facts.plan)},
          {"valid", valid_of(facts.plan)},
          {"heading", facts.heading},
          {"words", facts.words},
          {"bands", bands},
          {"amplitude_note", facts.amplitude_note},
          {"logits_note", group.logits_note},
          {"cache_bytes_per_token", facts.cache_bytes_per_token},
          {"cache_note", group.cache_note},
          {"provenance", provenance_of(group)}};
}

// Text from a file may hold bytes that are not UTF-8; they are replaced.
std::string text_of(const Out& json, int indent) {
  return json.dump(indent, ' ', false, Out::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Explanation& explanation) {
  const Model& model = explanation.model;
  Out files = Out::array();
  for (const ModelFile& file : model.files)
    files.push_back(
        {{"path", file.path}, {"format", name(file.format)}, {"role", name(file.role)}});
  Out groups = Out::array();
  for (const GroupExplanation& facts : explanation.groups)
    groups.push_back(json_of(model.groups[facts.group], facts));
  Out warnings = Out::array();
  for (const Warning& warning : explanation.warnings)
    warnings.push_back({{"code", warning.code}, {"message", warning.message}});
  return text_of({{"model", model.name},
                  {"family", model.family},
                  {"known_family", model.known_family},
                  {"context", known(model.context)},
                  {"trained_context", known(model.trained_context)},
                  {"asked", known(explanation.asked)},
                  {"dtype", model.dtype.empty() ? Out(nullptr) : Out(model.dtype)},
                  {"words", explanation.words},
                  {"groups", groups},
                  {"cache_bytes_per_token", explanation.cache_bytes_per_token},
                  {"warnings", warnings},
                  {"files", files}},
                 -1);
}

std::string to_json(const Plan& plan) {
  Out out = json_of(plan);
  out["valid"] = valid_of(plan);
  return text_of(out, -1);
}

std::string to_json(const Scheme& scheme) { return text_of(json_of(scheme), -1); }

}  // namespace posenc
