// Data at the picture's resolution, by area and never by picking neighbours: what a picture cannot
// resolve becomes its mean (cells) or its extremes (lines), not another pattern.
#pragma once

#include <cstdint>

#include "cli/figures/draw/figure.h"

namespace posenc::cli {

// Fewer rows or columns: each new cell is the mean around it, weighted by a tent that ends at its
// neighbours' centres (a plain mean of what it covers lets a fifth of too fine a pattern through).
// More: the mean of the area it covers, which repeats cells. The mean of all stays. NaN weighs
// nothing, all NaN gives NaN. first_x and first_y are left as they are.
Matrix resampled(const Matrix& matrix, std::int64_t rows, std::int64_t columns);

// A line with more points than the picture has columns between `least` and `most`: first, least,
// most and last point of each column, which covers the same pixels. x must ascend, else all is
// kept.
Series thinned(const Series& series, std::int64_t columns, double least, double most, bool log);

}  // namespace posenc::cli
