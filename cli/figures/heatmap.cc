// The table of an encoding, or the cosines and sines of its angles, positions × channels.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/kind.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_heatmap {

Drawing define(CLI::App& app) {
  struct Options {
    std::string positions = "0:100", of = "table";
    std::optional<Encoding> encoding;
  };
  auto options = std::make_shared<Options>();
  add_positions(app, options->positions, "Rows");
  CLI::Option* of = app.add_option("--of", options->of,
                                   "table: vectors that are added; cos, sin: of each pair's angle")
                        ->check(CLI::IsMember({"table", "cos", "sin"}))
                        ->default_str("table, or cos of what rotates");
  options->encoding.emplace(app, "plot heatmap", "sinusoidal",
                            Geometry{.width = 128, .head_dim = 128});
  return [options, of]() -> Expected<Figure> {
    POSENC_TRY(where, one_row(options->positions, "plot heatmap"));
    POSENC_TRY(plan, options->encoding->plan());
    if (of->count() == 0 && !plan.add && plan.rotate) options->of = "cos";

    Figure figure{.height = 330};
    Panel panel;
    Matrix matrix{.rows = where.size()};
    double most = 1;
    if (options->of == "table") {
      POSENC_TRY(table, vectors(plan, where, options->encoding->width(), "plot heatmap"));
      matrix.columns = options->encoding->width();
      matrix.values = std::move(table);
      if (!std::holds_alternative<Waves>(plan.add->kind)) {
        most = 0;
        for (const double value : matrix.values) most = std::max(most, std::abs(value));
        if (most == 0) most = 1;
      }
      panel.x = {.label = "channel", .column = "channel"};
      const std::string name = options->encoding->name();
      figure.title =
          options->encoding->of_model()
              ? fmt::format("Position vectors of {}, width {}", name, matrix.columns)
              : fmt::format("Each position's vector: {}, width {}", name, matrix.columns);
      figure.scale.label = "value";
      figure.scale.column = "value";
      figure.caption = std::holds_alternative<Waves>(plan.add->kind)
                           ? "Each row is the vector of a position. Every channel is a wave: "
                             "fast at the left, "
                             "and towards the right too slow to change within these positions."
                           : "Each row is the vector of a position, as the model holds it.";
    } else {
      if (!plan.rotate)
        return fail("plot heatmap", "this encoding rotates nothing", "--of " + options->of,
                    "drop --of");
      matrix.columns = plan.rotate->pairs();
      POSENC_CHECK(check_cells(matrix.rows, matrix.columns, "plot heatmap"));
      for (std::int64_t row = 0; row < matrix.rows; row++)
        for (std::int64_t pair = 0; pair < matrix.columns; pair++) {
          // Text has the same position on every axis.
          double angle = 0;
          for (std::int64_t axis = 0; axis < plan.rotate->frequencies.axes; axis++)
            angle += static_cast<double>(where.at(row)) * plan.rotate->at(0, axis, pair);
          matrix.values.push_back(options->of == "cos" ? std::cos(angle) : std::sin(angle));
        }
      panel.x = {.label = "pair of channels", .column = "pair"};
      figure.title =
          fmt::format("{} of the angles of {}, {} pairs", options->of == "cos" ? "Cosine" : "Sine",
                      options->encoding->name(), matrix.columns);
      figure.scale.label = options->of + "(position · frequency)";
      figure.scale.column = options->of;
      figure.caption = fmt::format(
          "The {} of the angle by which each pair of channels is turned at each position.",
          options->of == "cos" ? "cosine" : "sine");
    }
    panel.y = {.label = "position (tokens)", .column = "position_tokens", .down = true};
    if (!where.contiguous() && where.size() > 1) {
      // Rows are drawn one after another, whatever positions they stand for.
      panel.y = {.label = "row", .column = "row", .down = true};
      figure.caption += " The rows are those asked for, in that order.";
    } else {
      matrix.first_y = static_cast<double>(where.at(0));
    }
    figure.scale.least = -most;
    figure.scale.most = most;
    figure.scale.diverging = true;
    panel.matrix = std::move(matrix);
    figure.panels.push_back(std::move(panel));
    return figure;
  };
}

constexpr std::string_view examples[] = {
    "heatmap.png --scheme sinusoidal --width 128 --positions 0:100",
    "heatmap-rope.png --scheme rope --head_dim 128 --of cos --positions 0:100",
    "heatmap-long.png --scheme sinusoidal --width 512 --positions 0:20000",
};

}  // namespace of_heatmap

extern const Kind heatmap{
    "heatmap", "A table of position vectors, or the cosines of RoPE's angles, as colours",
    of_heatmap::define, of_heatmap::examples};

}  // namespace posenc::cli
