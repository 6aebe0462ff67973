// A vector before and after RoPE turns it, pair by pair.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "posenc/apply.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_rotation {

Drawing define(CLI::App& app) {
  struct Options {
    std::string positions = "0,50,99";
    std::uint64_t seed = 42;
    std::optional<Encoding> encoding;
  };
  auto options = std::make_shared<Options>();
  add_positions(app, options->positions, "A panel for each, at most 6");
  app.add_option("--seed", options->seed, "Of the random vector");
  options->encoding.emplace(app, "plot rotation", "rope", Geometry{.head_dim = 128});
  return [options]() -> Expected<Figure> {
    POSENC_TRY(where, one_row(options->positions, "plot rotation"));
    if (where.size() > 6)
      return fail("--positions", "at most 6 panels", std::to_string(where.size()),
                  "name some, like 0,50,99");
    POSENC_TRY(plan, options->encoding->plan());
    const std::int64_t head_dim = options->encoding->head_dim();
    if (!plan.rotate || head_dim == 0)
      return fail("plot rotation", "this encoding rotates nothing", options->encoding->name(),
                  "take rope or a model that has it");
    const std::int64_t heads = plan.rotate->frequencies.heads;
    const auto d = static_cast<std::size_t>(head_dim);
    const std::vector<double> before = normals(options->seed, d);
    const std::int64_t count = where.size();
    std::vector<double> after;
    for (std::int64_t i = 0; i < heads * count; i++)
      after.insert(after.end(), before.begin(), before.end());
    const Tensor view = Tensor::dense(after.data(), {1, heads, count, head_dim});
    POSENC_CHECK(rotate(plan, view, where, Side::query, view));

    // Pairs beside each other, whichever channels they are.
    const Rotate& turn = *plan.rotate;
    std::vector<std::size_t> channel;
    for (std::int64_t pair = 0; pair < turn.pairs(); pair++) {
      const std::int64_t block = turn.pairs() / turn.slice.blocks;
      const std::int64_t first = turn.slice.first_dim + pair / block * 2 * block;
      const std::int64_t r = pair % block;
      const bool halves = turn.slice.pairing == Pairing::halves;
      channel.push_back(static_cast<std::size_t>(first + (halves ? r : 2 * r)));
      channel.push_back(static_cast<std::size_t>(first + (halves ? r + block : 2 * r + 1)));
    }
    Figure figure{.title = fmt::format("A random vector before and after {}, {} pairs",
                                       options->encoding->name(), turn.pairs()),
                  .shared_axes = true,
                  .height = 75 + 105 * static_cast<double>(count)};
    figure.caption =
        "The numbers of one random vector, pairs beside each other. Early pairs are turned many "
        "times over and look scrambled, late ones have hardly moved, and no pair's length changes.";
    for (std::int64_t t = 0; t < count; t++) {
      Panel panel{.title = fmt::format("position {}", where.at(t)),
                  .x = {.label = "channel, pairs beside each other",
                        .column = "channel_in_pairs",
                        .least = 0,
                        .most = static_cast<double>(channel.size()) - 1},
                  .y = {.label = "value", .column = "value"}};
      Series old{.name = "before", .colour = pale, .mark = Mark::line, .width = 1.6};
      Series now{.name = "after", .colour = line_colour(2), .mark = Mark::line, .width = 0.9};
      for (std::size_t i = 0; i < channel.size(); i++) {
        const auto x = static_cast<double>(i);
        old.add(x, before[channel[i]]);
        now.add(x, after[static_cast<std::size_t>(t) * d + channel[i]]);
      }
      panel.series = {std::move(old), std::move(now)};
      figure.panels.push_back(std::move(panel));
    }
    return figure;
  };
}

constexpr std::string_view examples[] = {
    "rotation.png --scheme rope --head_dim 128 --positions 0,50,99",
};

}  // namespace of_rotation

extern const Kind rotation{"rotation",
                           "A random vector before and after its rotation, pair by pair",
                           of_rotation::define, of_rotation::examples};

}  // namespace posenc::cli
