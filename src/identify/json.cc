// What identify found, as JSON.
#include "posenc/identify.h"
#include "src/files/field_value.h"
#include "src/text/json_writer.h"

namespace posenc {
namespace {

void write(detail::JsonWriter& out, const FrequencyFit& fit) {
  if (fit.kept != DType::f64) out.member("frequencies_kept", name(fit.kept));
  out.member("base", fit.base).key("scaling").object().member("type", info(fit.scaling).name);
  for (const FieldSetting& setting : settings(fit.scaling)) {
    out.key(setting.name);
    detail::write(out, setting.value);
  }
  out.end();
}

void write_members(detail::JsonWriter& out, const Identified& identified) {
  const bool rotates = identified.verdict == Rotated::rotation;
  out.member("verdict", name(identified.verdict));
  if (rotates) {
    out.member("pairing", name(identified.pairing))
        .member("first_dim", identified.first_dim)
        .member("rotary_dim", identified.rotary_dim)
        .member("blocks", identified.blocks);
    if (identified.axis_layout != AxisLayout::one)
      out.member("axis_layout", name(identified.axis_layout))
          .member("axis_pairs", identified.axis_pairs)
          .member("axes_restart", identified.axes_restart);
    if (identified.frequencies) write(out, *identified.frequencies);
    out.member("amplitude", identified.amplitude)
        .member("offset", identified.offset)
        .member("sign", identified.sign)
        .member("angles", identified.angles);
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
        .member("axis", pair.axis)
        .end();
  out.end();
  out.key("findings").json(to_json(std::span(identified.findings)));
  out.member("cannot_tell", identified.cannot_tell);
}

}  // namespace

std::string to_json(const Identified& identified) {
  detail::JsonWriter out;
  write_members(out.object(), identified);
  out.end();
  return out.text;
}

std::string to_json(const IdentifiedTable& table) {
  detail::JsonWriter out;
  out.object()
      .member("columns", name(table.columns))
      .member("exchanged", table.exchanged)
      .member("kept", name(table.kept));
  write_members(out, table.rotation);
  out.end();
  return out.text;
}

std::string to_json(const IdentifiedVectors& vectors) {
  detail::JsonWriter out;
  out.object().member("sinusoidal", vectors.sinusoidal);
  if (vectors.sinusoidal)
    out.member("layout", name(vectors.layout))
        .member("cosine_first", vectors.cosine_first)
        .member("spacing", vectors.spacing == WaveSpacing::ends ? "ends" : "width")
        .member("base", vectors.base)
        .member("scale", vectors.scale)
        .member("offset", vectors.offset);
  out.member("zero_rows", vectors.zero_rows)
      .member("kept", name(vectors.kept))
      .member("residual", vectors.residual)
      .member("cannot_tell", vectors.cannot_tell)
      .end();
  return out.text;
}

std::string to_json(std::span<const IdentifiedLayer> layers) {
  detail::JsonWriter out;
  out.object().key("layers").array();
  for (const IdentifiedLayer& layer : layers) {
    write_members(out.object().member("name", layer.name), layer.found);
    out.end();
  }
  out.end().key("groups").array();
  for (const std::vector<std::size_t>& group : alike(layers)) {
    std::vector<std::string> names;
    names.reserve(group.size());
    for (const std::size_t i : group) names.push_back(layers[i].name);
    out.value(names);
  }
  out.end().end();
  return out.text;
}
}  // namespace posenc
