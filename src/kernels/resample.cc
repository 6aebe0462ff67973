// Tables of a grid for a grid of another size: taps of each axis, made once, and sums of rows of
// the table over them.
#include "posenc/resample.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/saturating.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

struct Tap {
  std::int64_t index;
  double weight;
};
using Taps = std::vector<std::vector<Tap>>;  // of each new patch of an axis

// Keys' cubic kernel (doi.org/10.1109/TASSP.1981.1163711), |x| < 2.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
double linear(double x) { return std::max(0.0, 1 - std::abs(x)); }

// An axis that shrinks by `ratio`, its kernel stretched by as much, and cut and normalised at the
// edges.
std::vector<Tap> antialiased(std::int64_t i, std::int64_t size, double ratio, bool is_cubic) {
  const double stretch = std::max(1.0, ratio), centre = ratio * (static_cast<double>(i) + 0.5);
  const double support = (is_cubic ? 2 : 1) * stretch;
  const auto whole = [](double x) { return static_cast<std::int64_t>(x); };
  const std::int64_t first = std::max<std::int64_t>(whole(centre - support + 0.5), 0),
                     last = std::min(whole(centre + support + 0.5), size);
  std::vector<Tap> taps;
  double sum = 0;
  for (std::int64_t j = first; j < last; ++j) {
    const double x = (static_cast<double>(j) - centre + 0.5) / stretch;
    taps.push_back({j, is_cubic ? cubic(x, -0.5) : linear(x)});
    sum += taps.back().weight;
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

std::vector<Tap> taps_at(double place, std::int64_t size, bool is_cubic, bool zeros_outside) {
  const auto floor = static_cast<std::int64_t>(std::floor(place));
  std::vector<Tap> taps;
  for (std::int64_t j = floor - (is_cubic ? 1 : 0); j <= floor + (is_cubic ? 2 : 1); ++j) {
    if (zeros_outside && (j < 0 || j >= size)) continue;
    const double x = place - static_cast<double>(j);
    taps.push_back(
        {std::clamp<std::int64_t>(j, 0, size - 1), is_cubic ? cubic(x, -0.75) : linear(x)});
  }
  return taps;
}

Taps taps_of(std::int64_t from, std::int64_t to, const Resampling& how) {
  const bool is_cubic = how.interpolation == Interpolation::bicubic;
  const double ratio = static_cast<double>(from) / (static_cast<double>(to) + how.offset);
  Taps taps;
  taps.reserve(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) {
    if (how.interpolation == Interpolation::repeated) {
      taps.push_back({{i % from, 1}});
      continue;
    }
    const auto at = static_cast<double>(i);
    if (how.antialias) {
      taps.push_back(antialiased(i, from, ratio, is_cubic));
      continue;
    }
    const double place =
        how.align_corners ? at * static_cast<double>(from - 1) /
                                static_cast<double>(std::max<std::int64_t>(to - 1, 1))
        : how.offset == 0 ? (at + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5
                          : (at + 0.5) * ratio - 0.5;
    taps.push_back(taps_at(place, from, is_cubic, how.zeros_outside));
  }
  return taps;
}

struct Grids {
  Tensor from, to;  // [row][channel]
};

Expected<std::int64_t> rows_of(std::string_view where, GridSize size, const Resampling& how) {
  constexpr std::int64_t most = std::int64_t{1} << 28;
  const std::int64_t patches = detail::product(size.height, size.width);
  if (patches >= 1 && patches <= most && how.kept_rows >= 0 && how.kept_rows <= most)
    return how.kept_rows + patches;
  return fail(where, "a grid must have 1 to 2^28 patches, and kept rows must be 0 to 2^28",
              std::to_string(size.height) + " x " + std::to_string(size.width) + " and " +
                  std::to_string(how.kept_rows),
              "give the rows and columns of patches");
}

Expected<Grids> checked(std::string_view where, std::string_view from_name, const Tensor& from_view,
                        std::string_view to_name, const Tensor& to_view, GridSize from, GridSize to,
                        const Resampling& how) {
  POSENC_TRY(source, detail::viewed(where, from_name, from_view, 2));
  POSENC_TRY(out, detail::viewed(where, to_name, to_view, 2));
  POSENC_TRY(from_rows, rows_of(where, from, how));
  POSENC_TRY(to_rows, rows_of(where, to, how));
  const std::int64_t channels = source.shape[1];
  POSENC_CHECK(detail::check_shape(where, from_name, source,
                                   Tensor::dense(nullptr, source.dtype, {from_rows, channels})));
  POSENC_CHECK(detail::check_shape(where, to_name, out,
                                   Tensor::dense(nullptr, out.dtype, {to_rows, channels})));
  POSENC_CHECK(detail::check_distinct(where, out));
  const std::int64_t merge = how.spatial_merge_size;
  if (merge < 1)
    return fail(where, "spatial_merge_size must be at least 1", std::to_string(merge),
                "1 is row by row");
  return Grids{source, out};
}

Expected<void> check_how(std::string_view where, GridSize to, const Resampling& how) {
  const std::int64_t merge = how.spatial_merge_size;
  if (to.height % merge != 0 || to.width % merge != 0)
    return fail(where, "the new grid must be a whole number of blocks of " + std::to_string(merge),
                std::to_string(to.height) + " x " + std::to_string(to.width),
                "spatial_merge_size 1 is row by row");
  if (how.interpolation == Interpolation::repeated &&
      (how.align_corners || how.antialias || how.zeros_outside || how.offset != 0))
    return fail(where, "a grid that is repeated is not stretched",
                how.align_corners   ? "align_corners"
                : how.antialias     ? "antialias"
                : how.zeros_outside ? "zeros_outside"
                                    : "offset",
                "leave it out");
  if (how.antialias && (how.align_corners || how.zeros_outside))
    return fail(where, "antialias goes with neither align_corners nor zeros outside",
                how.align_corners ? "align_corners" : "zeros_outside", "leave one out");
  if (!(how.offset >= 0 && how.offset < 1))
    return fail(where, "offset must be 0 to below 1", number_text(how.offset),
                "DINOv2's is 0.1; 0 is PyTorch's with a size");
  if (how.offset > 0 && how.align_corners)
    return fail(where, "offset does not go with align_corners", number_text(how.offset),
                "leave one out");
  return {};
}

// Calls act(row of the new table, row of the old one, weight) for every tap.
template <class Act>
void each_tap(GridSize from, GridSize to, const Resampling& how, const Act& act) {
  const Taps rows = taps_of(from.height, to.height, how),
             columns = taps_of(from.width, to.width, how);
  const std::int64_t merge = how.spatial_merge_size, kept = how.kept_rows;
  for (std::int64_t k = 0; k < kept; ++k) act(k, k, 1.0);
  for (std::int64_t y = 0; y < to.height; ++y) {
    for (std::int64_t x = 0; x < to.width; ++x) {
      const std::int64_t block = (y / merge) * (to.width / merge) + x / merge;
      const std::int64_t row = kept + (block * merge + y % merge) * merge + x % merge;
      for (const Tap& down : rows[static_cast<std::size_t>(y)])
        for (const Tap& across : columns[static_cast<std::size_t>(x)])
          act(row, kept + down.index * from.width + across.index, down.weight * across.weight);
    }
  }
}

// All numbers, row by row: each is read many times.
std::vector<double> doubles(const Tensor& tensor) {
  const std::int64_t rows = tensor.shape[0], channels = tensor.shape[1];
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(rows * channels));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c) numbers.push_back(tensor.get(tensor.offset(r, c)));
  return numbers;
}

// to += weight · from
void add_row(double* to, const double* from, double weight, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) to[c] += weight * from[c];
}

}  // namespace

std::optional<Interpolation> find_interpolation(std::string_view name) {
  if (name == "bilinear") return Interpolation::bilinear;
  if (name == "bicubic") return Interpolation::bicubic;
  if (name == "repeated") return Interpolation::repeated;
  return std::nullopt;
}

Expected<void> resample_grid(const Tensor& table, GridSize from, GridSize to, const Resampling& how,
                             const Tensor& out) {
  constexpr std::string_view where = "resample_grid";
  POSENC_TRY(grids, checked(where, "table", table, "out", out, from, to, how));
  POSENC_CHECK(check_how(where, to, how));
  const std::int64_t channels = grids.from.shape[1];
  const std::vector<double> source = doubles(grids.from);
  std::vector<double> sum(static_cast<std::size_t>(channels));
  std::int64_t at = 0;
  const auto write = [&] {
    for (std::int64_t c = 0; c < channels; ++c)
      grids.to.set(grids.to.offset(at, c), sum[static_cast<std::size_t>(c)]);
    std::ranges::fill(sum, 0.0);
  };
  std::int64_t taken = 0;
  each_tap(from, to, how, [&](std::int64_t row, std::int64_t old, double weight) {
    if (row != at && taken > 0) write();
    at = row;
    ++taken;
    add_row(sum.data(), source.data() + old * channels, weight, channels);
  });
  write();
  return {};
}

Expected<void> resample_grid_gradient(const Tensor& out_gradient, GridSize from, GridSize to,
                                      const Resampling& how, const Tensor& table_gradient) {
  constexpr std::string_view where = "resample_grid_gradient";
  POSENC_TRY(grids, checked(where, "out_gradient", out_gradient, "table_gradient", table_gradient,
                            to, from, how));
  POSENC_CHECK(check_how(where, to, how));
  const std::int64_t channels = grids.from.shape[1], rows = grids.to.shape[0];
  const std::vector<double> gradient = doubles(grids.from);
  std::vector<double> sum(static_cast<std::size_t>(rows * channels));
  each_tap(from, to, how, [&](std::int64_t row, std::int64_t old, double weight) {
    add_row(sum.data() + old * channels, gradient.data() + row * channels, weight, channels);
  });
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < channels; ++c)
      grids.to.set(grids.to.offset(r, c), sum[static_cast<std::size_t>(r * channels + c)]);
  return {};
}

}  // namespace posenc
