// A learned table of a picture's grid for a grid of another size.
#include "posenc/resample.h"

#include <cstdint>
#include <string>
#include <utility>

#include <nanobind/stl/pair.h>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"

namespace posenc::python {
namespace {

using Size = std::pair<std::int64_t, std::int64_t>;
using GridVerb = Expected<void> (*)(const Tensor&, GridSize, GridSize, const Resampling&,
                                    const Tensor&);

// Rows are those of `to`, or of `from` where a gradient goes back.
template <GridVerb verb, bool backward>
nb::object resampled(nb::handle table, Size from, Size to, std::string_view interpolation,
                     bool align_corners, bool antialias, bool zeros_outside,
                     std::int64_t spatial_merge_size, std::int64_t kept_rows, double offset) {
  constexpr const char* where = backward ? "resample_grid_gradient" : "resample_grid";
  const auto kind = find_interpolation(interpolation);
  if (!kind) refuse(where, "interpolation must be bilinear, bicubic or repeated", interpolation);
  const Array given = array_of(table, where, backward ? "out_gradient" : "table", Access::read);
  const Size& made_for = backward ? from : to;
  constexpr std::int64_t most = std::int64_t{1} << 28;
  if (given.tensor.rank != 2 || made_for.first < 1 || made_for.second < 1 ||
      made_for.first > most / made_for.second || kept_rows < 0 || kept_rows > most)
    refuse(where, "a table is [rows, width], and a grid has 1 to 2^28 patches",
           std::to_string(given.tensor.rank) + " axes, " + std::to_string(made_for.first) + " x " +
               std::to_string(made_for.second));
  const Resampling how{.interpolation = *kind,
                       .align_corners = align_corners,
                       .antialias = antialias,
                       .zeros_outside = zeros_outside,
                       .spatial_merge_size = spatial_merge_size,
                       .kept_rows = kept_rows,
                       .offset = offset};
  nb::object made =
      new_array(table, {kept_rows + made_for.first * made_for.second, given.tensor.shape[1]},
                name(given.tensor.dtype));
  const Array out = array_of(made, where, "out", Access::write);
  unlocked([&] {
    return verb(given.tensor, {from.first, from.second}, {to.first, to.second}, how, out.tensor);
  });
  return handed_back(std::move(made), table);
}

template <GridVerb verb, bool backward>
void bind(nb::module_& m, const char* name, const char* first, const char* doc) {
  m.def(name, &resampled<verb, backward>, nb::arg(first), nb::arg("from_grid"), nb::arg("to_grid"),
        nb::kw_only(), nb::arg("interpolation") = "bilinear", nb::arg("align_corners") = false,
        nb::arg("antialias") = false, nb::arg("zeros_outside") = false,
        nb::arg("spatial_merge_size") = 1, nb::arg("kept_rows") = 0, nb::arg("offset") = 0.0, doc);
}

}  // namespace

void bind_resample(nb::module_& m) {
  bind<resample_grid, false>(
      m, "resample_grid", "table",
      "A learned table [kept_rows + height * width, width of the model] of the grid from_grid = "
      "(height, "
      "width), for a picture of to_grid: weighted sums of its rows, in double.");
  bind<resample_grid_gradient, true>(
      m, "resample_grid_gradient", "out_gradient",
      "The gradient by the table of resample_grid, from the gradient by what it gave.");
}

}  // namespace posenc::python
