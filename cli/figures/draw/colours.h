// Colours that tell apart for every eye, on paper too.
#pragma once

#include <cstddef>

#include "cli/figures/draw/figure.h"

namespace posenc::cli {

// Okabe and Ito's eight, the dark ones first: 0 is black. From the ninth line on they come again:
// draw it dashed.
constexpr std::size_t line_colours = 8;
Colour line_colour(std::size_t index);

inline constexpr Colour ink{0x22, 0x22, 0x22}, pale{0x8a, 0x8a, 0x8a}, nothing{0xd4, 0xd4, 0xd4};

// 0 to 1, light to dark in even steps.
Colour sequential(double at);

// −1 (orange) over nearly white at 0 to 1 (blue).
Colour diverging(double at);

// The colour of a value; NaN is grey.
Colour colour_of(const ColourScale& scale, double value);

}  // namespace posenc::cli
