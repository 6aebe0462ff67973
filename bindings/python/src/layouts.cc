// Layouts: which tokens each of several ranks holds.
#include "posenc/layout.h"

#include <cstdint>
#include <vector>

#include <nanobind/stl/pair.h>

#include "bindings.h"
#include "errors.h"

namespace posenc::python {
namespace {

Mask layout_mask(bool causal, std::int64_t window, std::int64_t chunk, std::int64_t prefix) {
  return {.causal = causal, .window = window, .chunk = chunk, .prefix = prefix};
}

nb::object array_of(const std::vector<std::int64_t>& numbers) {
  const nb::bytes bytes(reinterpret_cast<const char*>(numbers.data()),
                        numbers.size() * sizeof(std::int64_t));
  return nb::module_::import_("numpy").attr("frombuffer")(bytes, "int64").attr("copy")();
}

std::int64_t rank_of(const Layout& layout, std::int64_t rank) {
  if (0 <= rank && rank < layout.ranks()) return rank;
  refuse("layout", "the rank must be one of " + std::to_string(layout.ranks()),
         std::to_string(rank));
}

Layout layout_of(std::string_view name, const std::vector<std::int64_t>& cu_seqlens,
                 std::int64_t ranks, std::int64_t block, bool causal, std::int64_t window,
                 std::int64_t chunk, std::int64_t prefix) {
  return unwrap(
      Layout::named(name, cu_seqlens, ranks, layout_mask(causal, window, chunk, prefix), block));
}

Layout layout_of_ranges(
    const std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>& ranges) {
  std::vector<std::vector<Layout::Range>> of_ranks;
  for (const auto& each : ranges) {
    std::vector<Layout::Range>& own = of_ranks.emplace_back();
    for (const auto& [first, last] : each) own.push_back({first, last});
  }
  return unwrap(Layout::ranges(of_ranks));
}

}  // namespace

void bind_layouts(nb::module_& m) {
  using nb::literals::operator""_a;
  nb::class_<Layout>(m, "Layout", "Which tokens of a text each rank holds; see posenc.distributed.")
      .def_prop_ro("ranks", &Layout::ranks)
      .def_prop_ro("tokens", &Layout::tokens)
      .def(
          "size",
          [](const Layout& layout, std::int64_t rank) {
            return layout.size(rank_of(layout, rank));
          },
          "rank"_a, "How many tokens a rank holds.")
      .def(
          "indices",
          [](const Layout& layout, std::int64_t rank) {
            return array_of(layout.tokens_of(rank_of(layout, rank)));
          },
          "rank"_a, "The places in the text of a rank's tokens, int64.")
      .def(
          "positions",
          [](const Layout& layout, std::int64_t rank, const Positions& whole) {
            return unwrap(layout.positions(rank_of(layout, rank), whole));
          },
          "rank"_a, "whole"_a, "A rank's part of the positions of the whole text.")
      .def(
          "pairs",
          [](const Layout& layout, const Positions& whole, bool causal, std::int64_t window,
             std::int64_t chunk, std::int64_t prefix) {
            return unwrap(
                pairs_per_rank(layout, layout_mask(causal, window, chunk, prefix), whole));
          },
          "whole"_a, "causal"_a = true, "window"_a = 0, "chunk"_a = 0, "prefix"_a = 0,
          "How many pairs of a query and a key that it sees each rank computes, counted.")
      .def("__eq__", [](const Layout& a, const Layout& b) { return a == b; });
  m.def("layout", &layout_of, "name"_a, "cu_seqlens"_a, "ranks"_a, "block"_a, "causal"_a,
        "window"_a, "chunk"_a, "prefix"_a);
  m.def("layout_of_ranges", &layout_of_ranges, "ranges"_a);
  m.def(
      "balance", [](const std::vector<std::int64_t>& pairs) { return balance(pairs); }, "pairs"_a,
      "The mean of the pairs over their largest: 1 where all ranks have the same to do.");
}

}  // namespace posenc::python
