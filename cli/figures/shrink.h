// Data at the picture's resolution, by area and never by picking neighbours: what a picture cannot
// resolve becomes its mean (cells) or its extremes (lines), not another pattern.
#pragma once

#include <cstdint>

#include "cli/figures/figure.h"

namespace posenc::cli {

// Each new cell is the mean of the area it covers; NaN weighs nothing, all NaN gives NaN. More rows
// or columns than there are repeat the cells. first_x and first_y are left as they are.
Matrix resampled(const Matrix& matrix, std::int64_t rows, std::int64_t columns);

// A line with more points than the picture has columns between `least` and `most`: first, least,
// most and last point of each column, which covers the same pixels. x must ascend, else all is kept.
Series thinned(const Series& series, std::int64_t columns, double least, double most, bool log);

}  // namespace posenc::cli
