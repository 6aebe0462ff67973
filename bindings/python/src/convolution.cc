// Positions by convolution (convolution.h), and their gradients.
#include "posenc/convolution.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "arrays.h"
#include "attention_arguments.h"
#include "bindings.h"
#include "errors.h"

namespace posenc::python {
namespace {

using Grid = std::optional<std::pair<std::int64_t, std::int64_t>>;

AfterConvolution after_of(const char* where, std::string_view name) {
  const auto words = words_of(AfterConvolution{});
  for (std::size_t n = 0; n < words.size(); ++n)
    if (words[n] == name) return static_cast<AfterConvolution>(n);
  refuse(where, "after must be none, gelu or normalised_gelu", name);
}

// What both directions read; the arrays live as long as it does.
struct Given {
  Array x, weight, bias;
  std::vector<std::uint8_t> keep;
  PositionConvolution convolution;
  ConvolvedTokens tokens;

  Given(const char* where, nb::handle of_x, nb::handle of_weight, nb::handle of_bias,
        std::string_view after, bool adds, const Grid& grid, std::int64_t kept, nb::handle of_keep)
      : x(array_of(of_x, where, "x", Access::read)),
        weight(array_of(of_weight, where, "weight", Access::read)) {
    if (x.tensor.rank != 3)
      refuse(where, "x must be [batch, tokens, width]", std::to_string(x.tensor.rank) + " axes");
    convolution.weight = Table::borrow(weight.tensor);
    if (!of_bias.is_none()) {
      bias = array_of(of_bias, where, "bias", Access::read);
      convolution.bias = Table::borrow(bias.tensor);
    }
    convolution.after = after_of(where, after);
    convolution.adds = adds;
    tokens = {.x = x.tensor, .kept = kept};
    if (grid) tokens.grid = {grid->first, grid->second};
    if (of_keep.is_none()) return;
    keep = bytes_of(of_keep, where);
    if (std::ssize(keep) != x.tensor.shape[0] * x.tensor.shape[1])
      refuse(where, "keep must be [batch, tokens]", std::to_string(keep.size()) + " numbers");
    tokens.keep = keep.data();
  }
};

nb::object convolved(nb::handle x, nb::handle weight, nb::handle bias, std::string_view after,
                     bool adds, const Grid& grid, std::int64_t kept, nb::handle keep) {
  constexpr const char* where = "convolve_positions";
  const Given given(where, x, weight, bias, after, adds, grid, kept, keep);
  nb::object made = empty_like(x);
  const Array out = array_of(made, where, "out", Access::write);
  unlocked([&] { return convolve_positions(given.convolution, given.tokens, out.tensor); });
  return handed_back(std::move(made), x);
}

nb::dict gradients(nb::handle out_gradient, nb::handle x, nb::handle weight, nb::handle bias,
                   std::string_view after, bool adds, const Grid& grid, std::int64_t kept,
                   nb::handle keep) {
  constexpr const char* where = "convolve_positions_gradients";
  const Given given(where, x, weight, bias, after, adds, grid, kept, keep);
  const Array by = array_of(out_gradient, where, "out_gradient", Access::read);
  nb::dict all;
  all["x"] = empty_like(x);
  all["weight"] = empty_like(weight);
  if (!bias.is_none()) all["bias"] = empty_like(bias);
  const Array to_x = array_of(all["x"], where, "x", Access::write),
              to_weight = array_of(all["weight"], where, "weight", Access::write);
  Array to_bias;
  ConvolutionGradients to{.x = to_x.tensor, .weight = to_weight.tensor};
  if (!bias.is_none()) {
    to_bias = array_of(all["bias"], where, "bias", Access::write);
    to.bias = to_bias.tensor;
  }
  unlocked(
      [&] { return convolve_positions_backward(given.convolution, given.tokens, by.tensor, to); });
  return all;
}

}  // namespace

void bind_convolution(nb::module_& m) {
  m.def("convolve_positions", &convolved, nb::arg("x"), nb::arg("weight"),
        nb::arg("bias") = nb::none(), nb::kw_only(), nb::arg("after") = "none",
        nb::arg("adds") = true, nb::arg("grid") = nb::none(), nb::arg("kept") = 0,
        nb::arg("keep") = nb::none(),
        "Positions by convolution: x + f(bias + weight * x) of x [batch, tokens, width], over "
        "neighbours on a line (weight [width, width / groups, taps], wav2vec 2.0) or on a grid of "
        "patches (weight [width, width / groups, rows, columns], CPVT). keep [batch, tokens] is "
        "False for padding.");
  m.def("convolve_positions_gradients", &gradients, nb::arg("out_gradient"), nb::arg("x"),
        nb::arg("weight"), nb::arg("bias") = nb::none(), nb::kw_only(), nb::arg("after") = "none",
        nb::arg("adds") = true, nb::arg("grid") = nb::none(), nb::arg("kept") = 0,
        nb::arg("keep") = nb::none(),
        "The gradients by x, weight and bias of convolve_positions, from that by what it gave.");
}

}  // namespace posenc::python
