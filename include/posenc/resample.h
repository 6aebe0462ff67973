// A learned table of a picture's grid, made for a grid of another size: each new patch is a
// weighted sum of old ones, its taps. No formula fixes which, and each family of vision towers has
// its own (docs/learned.md). A table is resampled once for a size of picture; Learned (schemes.h)
// then reads its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "posenc/error.h"
#include "posenc/tensor.h"

namespace [[gnu::visibility("default")]] posenc {

enum class Interpolation : std::uint8_t {
  bilinear,  // 2 taps an axis, 1 − |distance|
  // 4 taps an axis, Keys' kernel with a = −0.75 (1981), with antialias −0.5, as PyTorch has it
  bicubic,
  // 1 tap: the old grid again and again, from its first row and column on. A window's table, which
  // SAM 2 adds to a stretched one; a smaller picture's, as SAM 3 has it.
  repeated,
};

// That of "bilinear", "bicubic" or "repeated"; std::nullopt of another word.
std::optional<Interpolation> find_interpolation(std::string_view name);

// How patches of the old grid make one of the new.
struct Resampling {
  Interpolation interpolation = Interpolation::bilinear;
  // New patch i of n stands in the old grid of m at i·(m − 1)/(n − 1), else at (i + ½)·m/n − ½;
  // where it is repeated, at i mod m, and only blocks and kept rows go with it, and nothing that
  // stretches.
  bool align_corners = false;
  // Where an axis shrinks, its taps are as many more, so that every old patch counts. Not with
  // align_corners.
  bool antialias = false;
  // Taps beyond the edge are zeros; else the edge's patch stands for them.
  bool zeros_outside = false;
  std::int64_t spatial_merge_size = 1;  // new patches in blocks, as patch_positions() has them
  std::int64_t kept_rows = 0;           // of class tokens, in front, copied as they are
  // Patches are m/(n + offset) apart in the old grid and not
  // m/n, as where PyTorch is given a scale_factor of (n + offset)/m: DINOv2's own code has 0.1
  // (2304.07193). 0 to below 1; not with align_corners.
  double offset = 0;
  bool operator==(const Resampling&) const = default;
};

// Patches of a picture, rows and columns.
struct GridSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const GridSize&) const = default;
};

// table [kept_rows + from.height · from.width][channels] -> out [kept_rows + to.height ·
// to.width][channels], of any dtypes and strides, memory of its own; patches row by row. Weights
// and sums are in double, rounded once. Errors: shapes, sizes below 1, more than 2^28 rows, a grid
// that is no whole number of blocks, antialias with align_corners or zeros, any of them where the
// grid is repeated.
Expected<void> resample_grid(const Tensor& table, GridSize from, GridSize to, const Resampling& how,
                             const Tensor& out);

// The transpose: the gradient by the table, of its shape, given that by what resample_grid gave.
// Errors: those of resample_grid.
Expected<void> resample_grid_gradient(const Tensor& out_gradient, GridSize from, GridSize to,
                                      const Resampling& how, const Tensor& table_gradient);

}  // namespace posenc
