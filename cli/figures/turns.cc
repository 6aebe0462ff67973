// One two-dimensional vector turned to many positions, at several frequencies.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_turns {

Drawing define(CLI::App& app) {
  struct Options {
    std::string positions = "0:9", pairs = "0,4,8,16";
    std::optional<Encoding> encoding;
  };
  auto options = std::make_shared<Options>();
  add_positions(app, options->positions, "Positions of the vector, at most 64");
  app.add_option("--pairs", options->pairs, "Pairs of channels, a circle each");
  options->encoding.emplace(app, "plot turns", "rope", Geometry{.width = 64, .head_dim = 64});
  return [options]() -> Expected<Figure> {
    POSENC_TRY(where, one_row(options->positions, "plot turns"));
    if (where.size() > 64)
      return fail("--positions", "at most 64 vectors to a circle", std::to_string(where.size()));
    POSENC_TRY(plan, options->encoding->plan());
    if (!plan.rotate)
      return fail("plot turns", "this encoding rotates nothing", options->encoding->name(),
                  "take rope or a model that has it");
    POSENC_TRY(pairs, indices(options->pairs, "--pairs", plan.rotate->pairs()));

    Figure figure = of_squares(pairs.size(), 40);
    figure.title =
        fmt::format("One vector at positions {} to {}, rotated by {}", grouped(where.at(0)),
                    grouped(where.at(where.size() - 1)), options->encoding->name());
    figure.caption =
        "One pair of channels, (1, 0) before the rotation, at each position, whose number stands "
        "at "
        "its arrow. The length stays; only the angle grows, by the pair's frequency at each step, "
        "and "
        "more slowly with every pair.";
    for (const std::int64_t pair : pairs) {
      const double f = plan.rotate->at(0, 0, pair);
      Panel panel{.title = fmt::format("pair {}: {:.3g} rad/token", pair, f)};
      const double edge = 1.5;
      panel.x = {.label = "first channel",
                 .column = "first_channel",
                 .least = -edge,
                 .most = edge,
                 .ticks = {{-1, "−1"}, {0, "0"}, {1, "1"}}};
      panel.y = {.label = "second channel",
                 .column = "second_channel",
                 .least = -edge,
                 .most = edge,
                 .ticks = {{-1, "−1"}, {0, "0"}, {1, "1"}}};
      Series circle{.name = "circle", .in_legend = false, .colour = pale, .width = 0.6};
      for (int i = 0; i <= 180; i++) {
        circle.add(std::cos(i * std::numbers::pi / 90), std::sin(i * std::numbers::pi / 90));
      }
      panel.series.push_back(std::move(circle));
      std::int64_t group = 0;  // neighbours too close for a number each share one
      for (std::int64_t t = 0; t < where.size(); t++) {
        const double angle = static_cast<double>(where.at(t)) * f;
        Series arrow{.name = fmt::format("position {}", where.at(t)),
                     .in_legend = false,
                     .mark = Mark::arrows};
        const auto steps = static_cast<double>(std::max<std::int64_t>(1, where.size() - 1));
        arrow.colour = t == 0 ? ink : sequential(0.25 + 0.65 * static_cast<double>(t) / steps);
        arrow.x = {std::cos(angle)};
        arrow.y = {std::sin(angle)};
        panel.series.push_back(std::move(arrow));
        const auto angle_of = [&](std::int64_t i) { return static_cast<double>(where.at(i)) * f; };
        const bool ends =
            t + 1 == where.size() || std::abs(angle_of(t + 1) - angle_of(group)) > 0.22;
        if (where.size() <= 10 && ends) {
          const double middle = (angle_of(group) + angle) / 2;
          std::string text = std::to_string(where.at(group));
          if (t > group) text += "–" + std::to_string(where.at(t));
          const double out = t > group ? 1.28 : 1.16;
          panel.notes.push_back({out * std::cos(middle), out * std::sin(middle), text, ink, true});
        }
        if (ends) group = t + 1;
      }
      figure.panels.push_back(std::move(panel));
    }
    return figure;
  };
}

constexpr std::string_view examples[] = {
    "turns.png --scheme rope --head_dim 64 --pairs 0,4,8,16 --positions 0:7",
};

}  // namespace of_turns

extern const Kind turns{"turns",
                        "One vector of a pair at many positions: a circle for each frequency",
                        of_turns::define, of_turns::examples};

}  // namespace posenc::cli
