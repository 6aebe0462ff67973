// What of a position stands in a model's residual stream: a linear probe.
#pragma once

#include <cstdint>
#include <span>

namespace posenc::lab {

// Ridge regression of `wanted` [rows] on `features` [rows][width] and a constant, fitted on the
// first half of the rows; the share of the variance that it explains of the second half, R². Below
// 0 where a constant would do better. Features are standardized over the first half, those that
// never change there left out, and the penalty is a thousandth of the rows.
double ridge_r2(std::span<const float> features, std::int64_t width,
                std::span<const double> wanted);

}  // namespace posenc::lab
