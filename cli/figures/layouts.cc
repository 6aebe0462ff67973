// Who computes which pair of a query and a key where several ranks share out a text.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "posenc/layout.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_layouts {

struct Options {
  std::vector<std::string> names = {"contiguous", "zigzag", "striped", "by-document"};
  std::int64_t tokens = 48, ranks = 4, window = 0;
};

// Each query's row in the colour of its rank, where it sees keys.
Expected<Panel> panel(const Options& options, const std::string& name) {
  const Mask mask{.window = options.window};
  // By document there is something to see where there are two.
  const bool packed = name == "by-document";
  std::vector<std::int64_t> bounds = {0, options.tokens};
  if (packed) bounds.insert(bounds.begin() + 1, options.tokens / 3);
  POSENC_TRY(whole, Positions::packed(bounds));
  POSENC_TRY(shares, posenc::Layout::named(name, bounds, options.ranks, mask));
  POSENC_TRY(pairs, pairs_per_rank(shares, mask, whole));
  Matrix matrix{.rows = options.tokens, .columns = options.tokens};
  matrix.values.assign(static_cast<std::size_t>(options.tokens * options.tokens),
                       std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t rank = 0; rank < options.ranks; ++rank)
    for (const std::int64_t i : shares.tokens_of(rank))
      for (std::int64_t j = 0; j < options.tokens; ++j)
        if (whole.segment(i) == whole.segment(j) && mask.sees(whole.at(i), whole.at(j)))
          matrix.values[static_cast<std::size_t>(i * options.tokens + j)] =
              static_cast<double>(rank);
  Panel made;
  made.title =
      fmt::format("{}{}: balance {:.2f}", name, packed ? ", two texts" : "", balance(pairs));
  made.x = {.label = "key (token)", .column = "key_token"};
  made.y = {.label = "query (token)", .column = "query_token", .down = true};
  made.matrix = std::move(matrix);
  return made;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--layout", options->names,
                 "contiguous, zigzag, striped, by-document, balanced, auto")
      ->delimiter(',');
  app.add_option("--tokens", options->tokens, "Of the text")->check(CLI::Range(4, 512));
  app.add_option("--ranks", options->ranks, "That share it out")->check(CLI::Range(1, 64));
  app.add_option("--window", options->window, "0: none")->check(CLI::NonNegativeNumber);
  return [options]() -> Expected<Figure> {
    Figure figure{.title = fmt::format("Who computes which pair: {} tokens among {} ranks",
                                       options->tokens, options->ranks)};
    figure.caption =
        "A query's row has the colour of the rank that holds it. Balance is the mean over the "
        "largest "
        "number of pairs of a rank: the share of the time that all of them work.";
    for (const std::string& name : options->names) {
      POSENC_TRY(made, panel(*options, name));
      figure.panels.push_back(std::move(made));
    }
    figure.columns = std::min<std::int64_t>(std::ssize(figure.panels), 2);
    const std::int64_t lines = (std::ssize(figure.panels) + figure.columns - 1) / figure.columns;
    figure.height = 230.0 * static_cast<double>(lines);
    figure.shared_axes = true;
    figure.scale = {.label = "rank",
                    .column = "rank",
                    .least = -0.5,
                    .most = static_cast<double>(options->ranks) - 0.5,
                    .classes = options->ranks <= static_cast<std::int64_t>(line_colours)};
    return figure;
  };
}

constexpr std::string_view examples[] = {
    "layouts.png --ranks 4 --tokens 48",
};

}  // namespace of_layouts

extern const Kind layouts{"layouts", "Who computes which pair where several ranks share out a text",
                          of_layouts::define, of_layouts::examples};

}  // namespace posenc::cli
