#include "cli/figures/draw/colours.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace posenc::cli {
namespace {

constexpr Colour rgb(unsigned hex) {
  return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>((hex >> 8) & 0xff),
          static_cast<std::uint8_t>(hex & 0xff)};
}

constexpr Colour okabe_ito[line_colours] = {rgb(0x000000), rgb(0x0072b2), rgb(0xd55e00),
                                            rgb(0x009e73), rgb(0xcc79a7), rgb(0x56b4e9),
                                            rgb(0xe69f00), rgb(0xb9a900)};
// OKLab (Ottosson 2020): equal steps look like equal steps.
Colour oklab(double lightness, double a, double b) {
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3),
               m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3),
               s = std::pow(lightness - 0.0894841775 * a - 1.291485548 * b, 3);
  const auto channel = [](double x) {
    x = std::clamp(x, 0.0, 1.0);
    const double shown = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
    return static_cast<std::uint8_t>(std::lround(255 * shown));
  };
  return {channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s)};
}

Colour of_hue(double lightness, double chroma, double degrees) {
  const double radians = degrees * std::numbers::pi / 180;
  return oklab(lightness, chroma * std::cos(radians), chroma * std::sin(radians));
}

}  // namespace

Colour line_colour(std::size_t index) { return okabe_ito[index % std::size(okabe_ito)]; }

// The maps are those of the playground on a light page (web/src/draw/colour.ts); a test of each
// holds the same colours.
Colour sequential(double at) {
  const double u = std::clamp(at, 0.0, 1.0);
  return of_hue(0.95 - 0.75 * u, 0.12 * std::sin(std::numbers::pi * u), 100 + 170 * u);
}
Colour diverging(double at) {
  const double a = std::min(std::abs(at), 1.0);
  return of_hue(0.97 - 0.5 * a, 0.16 * a, at < 0 ? 45 : 250);
}

Colour colour_of(const ColourScale& scale, double value) {
  if (std::isnan(value)) return nothing;
  if (scale.classes) return line_colour(1 + static_cast<std::size_t>(std::lround(value)));
  if (!scale.diverging) return sequential((value - scale.least) / (scale.most - scale.least));
  return diverging(value / std::max(std::abs(scale.least), std::abs(scale.most)));
}

}  // namespace posenc::cli
