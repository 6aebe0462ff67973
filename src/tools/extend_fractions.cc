// Pictures and videos whose positions are fractions of a fixed range (LTX-Video): how much of the
// range a size takes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "posenc/pictures.h"
#include "src/explain/text.h"

namespace posenc {
namespace {

using detail::shown;

// LTX-Video has no positions but coordinates: seconds and pixels over a range. Angles grow with how
// far a coordinate is from the middle of its range, to both sides, up to those of its ends.
constexpr double range_seconds = 20, range_pixels = 2048, frames_a_second = 25;
constexpr std::int64_t ltx_pixels = 32, ltx_frames = 8;

std::int64_t ltx_tokens(std::int64_t pixels) { return (pixels + ltx_pixels - 1) / ltx_pixels; }
std::int64_t ltx_times(std::int64_t frames) { return (frames - 1) / ltx_frames + 1; }

// Where the last token of an axis stands.
PictureAxis fraction_axis(std::string name, std::int64_t axis, std::int64_t trained,
                          std::int64_t wanted, double step, double range) {
  return {.name = std::move(name),
          .axis = axis,
          .trained = trained,
          .wanted = wanted,
          .factor = std::max(1.0, static_cast<double>(wanted) / static_cast<double>(trained)),
          .coordinate = static_cast<double>(wanted - 1) * step,
          .range = range};
}

std::string names_where(const PicturePlan& plan, auto&& holds) {
  std::string names;
  for (const PictureAxis& one : plan.axes)
    if (holds(one)) names += (names.empty() ? "" : ", ") + one.name;
  return names;
}

}  // namespace

std::optional<PicturePlan> extend_fractions(std::string_view type, const PictureOptions& options) {
  if (type != "LTXVideoTransformer3DModel") return std::nullopt;
  const bool said = options.trained.height > 0;
  PicturePlan out{.to = options.to,
                  .trained = said ? options.trained : PictureSize{497, 2048, 2048},
                  .trained_by = said ? "as --trained says"
                                     : "the range of its coordinates: 20 seconds of 25 frames, "
                                       "and 2,048 pixels"};
  constexpr std::int64_t usual_frames = 161;  // of its pipeline in diffusers
  if (out.to.frames == 1) out.to.frames = usual_frames;
  if (out.trained.frames == 1) out.trained.frames = usual_frames;
  out.axes = {fraction_axis("time", 0, ltx_times(out.trained.frames), ltx_times(out.to.frames),
                            ltx_frames / frames_a_second, range_seconds),
              fraction_axis("height", 1, ltx_tokens(out.trained.height), ltx_tokens(out.to.height),
                            ltx_pixels, range_pixels),
              fraction_axis("width", 2, ltx_tokens(out.trained.width), ltx_tokens(out.to.width),
                            ltx_pixels, range_pixels)};
  out.recommended = "as_is";
  const std::string beyond =
      names_where(out, [](const PictureAxis& one) { return one.coordinate > one.range; });
  const std::string longer =
      names_where(out, [](const PictureAxis& one) { return one.factor > 1; });
  if (!beyond.empty()) {
    out.rule = "beyond_range";
    out.reason = beyond +
                 ": the last coordinates lie beyond the range, where even the slowest pair meets "
                 "angles that no training shows; posenc knows no scaling for it";
    if (const PictureAxis& time = out.axes.front(); time.coordinate > time.range)
      out.said.push_back(
          {"diffusers", "frame_rate " +
                            shown(std::ceil(static_cast<double>(ltx_frames * (time.wanted - 1)) /
                                            range_seconds)) +
                            " keeps the frames within 20 seconds: they stand closer, and things "
                            "move less from one to the next"});
  } else if (!longer.empty()) {
    out.rule = "beyond_trained";
    out.reason = longer +
                 ": the coordinates lie within the range, and farther than those of the size that "
                 "--trained says";
  } else {
    out.rule = "within_range";
    out.reason =
        "coordinates are fractions of a fixed range, and none lies beyond it: a larger size "
        "or a longer video takes more of the range, and no pair rotates farther than at its ends";
  }
  if (!said)
    out.unknown.push_back(
        "how much of the range training filled: --trained takes a size that you know of");
  out.unknown.push_back(
      "the frames a second: 25 is the default of its pipeline (frame_rate); with fewer the same "
      "frames take more of the 20 seconds");
  return out;
}

}  // namespace posenc
