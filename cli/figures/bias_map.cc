// What a scheme adds to the logits: a map of queries and keys for each head.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/layout.h"
#include "cli/figures/kind.h"
#include "cli/figures/random_numbers.h"
#include "posenc/apply.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_bias_map {

// "1/8" where it is that, as the paper writes slopes; else three digits.
std::string slope_text(double slope) {
  int exponent = 0;
  if (slope < 1 && slope > 1e-6 && std::frexp(slope, &exponent) == 0.5)
    return fmt::format("1/{}", 1L << (1 - exponent));
  return fmt::format("{:.3g}", slope);
}

// Where queries and keys of a map stand: all tokens beside all, patches of a grid, or one word in
// the middle of a page beside words that stand up to `length` from it each way.
struct Places {
  Positions queries, keys;
  std::int64_t side = 0, first = 0;  // of the map
  Axis x, y;
  bool page = false;
};

// `heads` maps of so many.
Expected<Places> places(const Plan& plan, const Geometry& of, std::int64_t length,
                        std::int64_t heads) {
  const auto* const table = std::get_if<BiasTable>(&*plan.bias);
  const std::int64_t axes = table != nullptr ? table->axes() : 1;
  if (axes > 1) {
    if (axes != 3)
      return fail("plot bias", "a page has the text's axis and two more", std::to_string(axes),
                  "say --axes 2");
    const std::int64_t side = 2 * length + 1;
    POSENC_CHECK(check_cells(heads * side, side, "plot bias"));
    std::vector<std::int64_t> ids(static_cast<std::size_t>(side * side), 0);
    for (std::int64_t cell = 0; cell < side * side; ++cell) ids.push_back(cell % side - length);
    for (std::int64_t cell = 0; cell < side * side; ++cell) ids.push_back(cell / side - length);
    POSENC_TRY(keys, Positions::signed_ids(ids, 3));
    return Places{.queries = Positions::range(0, 1),
                  .keys = keys,
                  .side = side,
                  .first = -length,
                  .x = {.label = "Δx of the key", .column = "key_x"},
                  .y = {.label = "Δy of the key", .column = "key_y", .down = true},
                  .page = true};
  }
  Positions all = Positions::range(0, length);
  if (of.grid_height > 0) {  // where a distance tells rows and columns
    POSENC_TRY(grid, grid_positions(of.grid_height, of.grid_width));
    all = grid.queries;
  }
  POSENC_CHECK(check_cells(heads * all.size(), all.size(), "plot bias"));
  const std::string_view unit = of.grid_height > 0 ? "patch" : "position";
  return Places{
      .queries = all,
      .keys = all,
      .side = all.size(),
      .x = {.label = fmt::format("key ({})", unit), .column = "key_position"},
      .y = {.label = fmt::format("query ({})", unit), .column = "query_position", .down = true}};
}

Drawing define(CLI::App& app) {
  struct Options {
    std::int64_t length = 64;
    std::string show;
    double floor = -10;
    bool random_learned = false;
    std::uint64_t seed = 1;
    std::optional<Encoding> encoding;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--length", options->length,
                 "Queries and keys; of a bias of several axes how far from the query keys stand")
      ->check(CLI::Range(2, 8192));
  app.add_option("--show", options->show, "Heads, a map each")->default_str("up to 8, evenly");
  app.add_option("--floor", options->floor,
                 "Smaller biases look like this one: at −10 a weight is 1/22,000 of what it was")
      ->check(CLI::Range(-1e9, -1e-9));
  app.add_flag("--random_learned", options->random_learned,
               "What is learned and not given is random");
  app.add_option("--seed", options->seed, "Of the random numbers");
  options->encoding.emplace(app, "plot bias", "alibi", Geometry{.heads = 8});
  return [options]() -> Expected<Figure> {
    POSENC_TRY(plan, options->encoding->plan(options->length));
    const std::int64_t heads = options->encoding->heads();
    if (!plan.bias)
      return fail("plot bias", "this encoding adds no bias to the logits",
                  options->encoding->name(), "posenc plot decay shows what rotations do");
    if (heads == 0)
      return fail("plot bias", "the number of heads must be known", "", "say --heads");
    if (options->random_learned)
      fill_learned(plan, options->seed, heads, options->encoding->head_dim());
    POSENC_CHECK(check_table(plan, "plot bias"));
    POSENC_TRY(at,
               places(plan, options->encoding->source().compiled_for(), options->length, heads));
    const std::int64_t side = at.side, cells = side * side;
    if (options->show.empty())
      for (std::int64_t i = 0, shown = std::min<std::int64_t>(heads, 8); i < shown; i++)
        options->show +=
            (i ? "," : "") + std::to_string(shown == 1 ? 0 : i * (heads - 1) / (shown - 1));
    POSENC_TRY(chosen, indices(options->show, "--show", heads));

    std::vector<double> values(static_cast<std::size_t>(heads * cells));
    const Tensor out = Tensor::dense(values.data(), {heads, at.queries.size(), at.keys.size()});
    POSENC_CHECK(bias(plan, at.queries, at.keys, out));
    const Slopes* slopes = std::get_if<Slopes>(&*plan.bias);
    const BiasTable* table = std::get_if<BiasTable>(&*plan.bias);
    const bool causal = slopes ? !slopes->bidirectional : !table->bidirectional;

    Figure figure = of_squares(chosen.size(), 100);
    figure.title =
        fmt::format("Added to the logits by {}, {} heads", options->encoding->name(), heads);
    figure.caption =
        causal
            ? "Each map is a head: white where nothing is added, darker the more a key's weight is "
              "cut; keys ahead of the query are masked, grey."
        : at.page
            ? "Each map is a head: what is added to the logit of a word in the middle with a word "
              "that stands elsewhere on the page, both at one place in the text."
            : "Each map is a head: what is added to the logit of each query and key.";
    if (options->random_learned) figure.caption += " What is learned is random here.";
    double least = 0, most = 0;
    for (const std::int64_t head : chosen) {
      Matrix matrix;
      matrix.rows = matrix.columns = side;
      matrix.first_x = matrix.first_y = static_cast<double>(at.first);
      for (std::int64_t q = 0; q < side; q++)
        for (std::int64_t k = 0; k < side; k++) {
          const double value = causal && k > q
                                   ? from_data
                                   : values[static_cast<std::size_t>(head * cells + q * side + k)];
          if (!std::isnan(value)) {
            least = std::min(least, value);
            most = std::max(most, value);
          }
          matrix.values.push_back(value);
        }
      Panel panel{.title = fmt::format("head {}", head)};
      if (slopes)
        panel.title += ": m = " + slope_text(slopes->slope[static_cast<std::size_t>(head)]);
      panel.x = at.x;
      panel.y = at.y;
      panel.matrix = std::move(matrix);
      figure.panels.push_back(std::move(panel));
    }
    const bool cut = least < options->floor;
    figure.scale = {
        .label = cut ? fmt::format("bias (logits), cut at {}", tick_text(options->floor))
                     : "bias (logits)",
        .column = "bias_logits",
        .least = cut ? options->floor : least,
        .most = most,
        .diverging = true};
    if (figure.scale.least == figure.scale.most) figure.scale.least = -1;
    return figure;
  };
}

constexpr std::string_view examples[] = {
    "bias.png --scheme alibi --heads 8 --length 256",
    "bias-kerple.png --scheme kerple --heads 4 --p 0.5,1,2,4 --a 1 --length 64",
    "bias-grid.png --scheme grid_bias --grid 4x4 --heads 4 --random_learned",
    "bias-page.png --scheme axis_buckets --heads 4 --head_dim 64 --random_learned --length 300",
    "bias-sandwich.png --scheme sandwich --heads 4 --dim 128 --length 128",
};

}  // namespace of_bias_map

extern const Kind bias_map{"bias", "What a scheme adds to the logits, a map for each head",
                           of_bias_map::define, of_bias_map::examples};

}  // namespace posenc::cli
