// A figure as a picture's bytes, and as a table of its data.
#pragma once

#include <string>

#include "cli/figures/draw/figure.h"
#include "posenc/error.h"

namespace posenc::cli {

enum class Format { png, svg, pdf };

// Pixels of a PNG; in SVG and PDF 96 to the inch. All of the picture grows with the width.
struct Size {
  int width = 0, height = 0;  // 0: the figure's own shape, 7 inches wide, a PNG at 216 dpi
};

// The script that gnuplot draws the figure from; the picture goes to standard output.
std::string script(const Figure& figure, Format format, const Size& size);

// The same bytes for the same figure and size. Errors: what gnuplot says.
Expected<std::string> picture(const Figure& figure, Format format, const Size& size);

// All data at full resolution, a row for each point or cell: panel, series, x, y, value. Names are
// quoted where CSV needs it; numbers read back as they were; a gap is empty.
std::string csv(const Figure& figure);

}  // namespace posenc::cli
