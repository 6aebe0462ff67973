// A plan for a larger picture or a longer video as JSON.
#include <optional>
#include <string>
#include <utility>

#include "posenc/pictures.h"
#include "src/text/json_writer.h"

namespace posenc {
namespace {

void write(detail::JsonWriter& out, const PictureSize& size) {
  out.object().member("frames", size.frames).member("height", size.height);
  out.member("width", size.width).end();
}

}  // namespace

std::string to_json(const PicturePlan& plan) {
  detail::JsonWriter out;
  write(out.object().key("to"), plan.to);
  write(out.key("trained"), plan.trained);
  out.member("trained_by", plan.trained_by).key("axes").array();
  for (const PictureAxis& axis : plan.axes) {
    out.object()
        .member("name", axis.name)
        .member("axis", axis.axis)
        .member("trained", axis.trained)
        .member("wanted", axis.wanted)
        .member("factor", axis.factor)
        .member("pairs", axis.pairs)
        .member("turning", axis.turning)
        .member("repeats", axis.repeats);
    if (axis.range > 0) out.member("coordinate", axis.coordinate).member("range", axis.range);
    out.end();
  }
  out.end().key("options").array();
  for (const PictureOption& option : plan.options) {
    out.object().member("name", option.name).key("unseen").array();
    for (const auto& pairs : option.unseen) out.value(pairs);
    out.end().key("frequencies").array();
    for (const auto& radians : option.frequencies) out.value(radians);
    out.end()
        .member("fastest_pair", option.fastest_pair)
        .member("middle_pair", option.middle_pair)
        .member("magnitude", option.magnitude)
        .end();
  }
  out.end().member("recommended", plan.recommended).member("rule", plan.rule);
  out.member("reason", plan.reason);
  out.member("source", plan.source.empty() ? std::nullopt : std::optional(plan.source));
  out.key("said").array();
  for (const auto& [tool, words] : plan.said)
    out.object().member("tool", tool).member("words", words).end();
  out.end().member("unknown", plan.unknown).end();
  return std::move(out.text);
}

}  // namespace posenc
