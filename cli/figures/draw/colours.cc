#include "cli/figures/draw/colours.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace posenc::cli {
namespace {

constexpr Colour rgb(unsigned hex) {
  return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>((hex >> 8) & 0xff),
          static_cast<std::uint8_t>(hex & 0xff)};
}

constexpr Colour okabe_ito[line_colours] = {rgb(0x000000), rgb(0x0072b2), rgb(0xd55e00),
                                            rgb(0x009e73), rgb(0xcc79a7), rgb(0x56b4e9),
                                            rgb(0xe69f00), rgb(0xb9a900)};
constexpr Colour viridis[] = {rgb(0x440154), rgb(0x482878), rgb(0x3e4a89), rgb(0x31688e),
                              rgb(0x26828e), rgb(0x1f9e89), rgb(0x35b779), rgb(0x6dcd59),
                              rgb(0xb4de2c), rgb(0xfde725)};
constexpr Colour red_blue[] = {rgb(0x053061), rgb(0x2166ac), rgb(0x4393c3), rgb(0x92c5de),
                               rgb(0xd1e5f0), rgb(0xffffff), rgb(0xfddbc7), rgb(0xf4a582),
                               rgb(0xd6604d), rgb(0xb2182b), rgb(0x67001f)};

// Between equally spaced stops.
Colour between(std::span<const Colour> stops, double at) {
  const double place = std::clamp(at, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const std::size_t left = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  const double share = place - static_cast<double>(left);
  const auto mix = [share](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + share * (b - a)));
  };
  const Colour &a = stops[left], &b = stops[left + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

}  // namespace

Colour line_colour(std::size_t index) { return okabe_ito[index % std::size(okabe_ito)]; }
Colour sequential(double at) { return between(viridis, at); }
Colour diverging(double at) { return between(red_blue, 0.5 + 0.5 * at); }

Colour colour_of(const ColourScale& scale, double value) {
  if (std::isnan(value)) return nothing;
  if (!scale.diverging) return sequential((value - scale.least) / (scale.most - scale.least));
  return diverging(value / std::max(std::abs(scale.least), std::abs(scale.most)));
}

}  // namespace posenc::cli
