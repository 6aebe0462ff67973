#include "cli/figures/draw/shrink.h"

#include <algorithm>
#include <cmath>

namespace posenc::cli {
namespace {

// The cells from `begin` on that a new cell covers, and how much of each.
struct Cover {
  std::int64_t begin = 0;
  std::vector<double> share = {};
};

// The part of a tent of width 2 and area 1 around 0 that lies left of `at`.
double tent_before(double at) {
  at = std::clamp(at, -1.0, 1.0);
  return at < 0 ? 0.5 * (1 + at) * (1 + at) : 1 - 0.5 * (1 - at) * (1 - at);
}

std::vector<Cover> covers(std::int64_t cells, std::int64_t wanted) {
  std::vector<Cover> out(static_cast<std::size_t>(wanted));
  const double step = static_cast<double>(cells) / static_cast<double>(wanted);
  if (cells > wanted) {
    for (std::int64_t i = 0; i < wanted; i++) {
      const double centre = step * (static_cast<double>(i) + 0.5);
      const auto from = static_cast<std::int64_t>(std::floor(centre - step));
      const auto to = static_cast<std::int64_t>(std::ceil(centre + step));
      Cover& cover = out[static_cast<std::size_t>(i)];
      cover.begin = std::max<std::int64_t>(0, from);
      cover.share.resize(static_cast<std::size_t>(std::min(to, cells) - cover.begin));
      for (std::int64_t at = from; at < to; at++) {
        const double left = (static_cast<double>(at) - centre) / step;
        const double share = tent_before(left + 1 / step) - tent_before(left);
        // Beyond the edge the cells are mirrored.
        const std::int64_t cell = at < 0 ? -1 - at : at >= cells ? 2 * cells - 1 - at : at;
        if (cell >= cover.begin && cell < std::min(to, cells))
          cover.share[static_cast<std::size_t>(cell - cover.begin)] += share;
      }
    }
    return out;
  }
  for (std::int64_t i = 0; i < wanted; i++) {
    const double from = step * static_cast<double>(i), to = step * static_cast<double>(i + 1);
    Cover& cover = out[static_cast<std::size_t>(i)];
    cover.begin = std::min(static_cast<std::int64_t>(from), cells - 1);
    for (std::int64_t cell = cover.begin; cell < cells && static_cast<double>(cell) < to; cell++)
      cover.share.push_back(std::min(to, static_cast<double>(cell + 1)) -
                            std::max(from, static_cast<double>(cell)));
  }
  return out;
}

}  // namespace

Matrix resampled(const Matrix& matrix, std::int64_t rows, std::int64_t columns) {
  Matrix out{rows, columns, {}, matrix.first_x, matrix.first_y};
  out.values.resize(static_cast<std::size_t>(rows * columns));
  const std::vector<Cover> down = covers(matrix.rows, rows);
  const std::vector<Cover> across = covers(matrix.columns, columns);
  const auto width = static_cast<std::size_t>(columns);
  // One row of sums at a time, so that every cell of the matrix is read in order.
  std::vector<double> sum(width), weight(width);
  for (std::size_t r = 0; r < down.size(); r++) {
    std::fill(sum.begin(), sum.end(), 0.0);
    std::fill(weight.begin(), weight.end(), 0.0);
    for (std::size_t i = 0; i < down[r].share.size(); i++) {
      const std::int64_t row = down[r].begin + static_cast<std::int64_t>(i);
      for (std::size_t c = 0; c < width; c++) {
        const double* cells = matrix.values.data() + row * matrix.columns + across[c].begin;
        for (std::size_t k = 0; k < across[c].share.size(); k++) {
          if (std::isnan(cells[k])) continue;
          const double share = down[r].share[i] * across[c].share[k];
          sum[c] += share * cells[k];
          weight[c] += share;
        }
      }
    }
    for (std::size_t c = 0; c < width; c++)
      out.values[r * width + c] = weight[c] > 0 ? sum[c] / weight[c] : from_data;
  }
  return out;
}

Series thinned(const Series& series, std::int64_t columns, double least, double most, bool log) {
  const std::size_t count = series.x.size();
  if (series.mark == Mark::arrows || series.mark == Mark::points ||
      count <= static_cast<std::size_t>(4 * columns) ||
      !std::is_sorted(series.x.begin(), series.x.end()))
    return series;
  const auto place = [log](double x) { return log ? std::log10(x) : x; };
  const double span = place(most) - place(least);
  const auto column = [&](std::size_t i) {
    return std::floor((place(series.x[i]) - place(least)) / span * static_cast<double>(columns));
  };
  Series out = series;
  out.x.clear();
  out.y.clear();
  for (std::size_t i = 0, end; i < count; i = end) {
    std::size_t low = i, high = i;
    for (end = i; end < count && column(end) == column(i); end++) {
      // A gap is no extreme, and compares false.
      if (series.y[end] < series.y[low] || std::isnan(series.y[low])) low = end;
      if (series.y[end] > series.y[high] || std::isnan(series.y[high])) high = end;
    }
    std::size_t kept[] = {i, low, high, end - 1};
    std::sort(std::begin(kept), std::end(kept));
    for (std::size_t k = 0; k < std::size(kept); k++) {
      if (k > 0 && kept[k] == kept[k - 1]) continue;
      out.add(series.x[kept[k]], series.y[kept[k]]);
    }
  }
  return out;
}

}  // namespace posenc::cli
