// The bare index: x[p, channel] += scale·p, the simplest encoding there is, kept to show what is
// wrong with it. The number grows without bound, so the channel drowns its neighbours (layer
// normalisation then shrinks them), and lengths not seen in training are values not seen in
// training.
#include <string>

#include "src/schemes/common.h"

namespace posenc {

Expected<Plan> Index::compiled(const Geometry& geometry) const {
  if (auto ok = detail::known("index", {{"width", geometry.width}}); !ok) {
    return std::unexpected(ok.error());
  }
  const std::int64_t at = channel < 0 ? geometry.width - 1 : channel;
  if (at >= geometry.width) {
    return fail("index", "channel must be below width " + std::to_string(geometry.width),
                std::to_string(channel), "take a channel of the embedding, or -1 for the last");
  }
  Plan plan;
  plan.add = Add{.kind = Ramp{.width = geometry.width, .channel = at, .scale = scale}};
  return plan;
}

}  // namespace posenc
