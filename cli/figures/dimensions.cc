// Chosen dimensions of a table, or pairs of a rotation, over positions.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/figures/colours.h"
#include "cli/figures/common.h"
#include "cli/figures/kind.h"

namespace posenc::cli {
namespace {

// What a dimension of waves is: "sin, wavelength 26.5".
std::string wave_of(const Waves& waves, std::int64_t dimension) {
  const auto pairs = static_cast<std::int64_t>(waves.frequency.size());
  const bool apart = waves.layout == WaveLayout::concatenated;
  const std::int64_t pair = apart ? dimension % pairs : dimension / 2;
  const bool sine = apart ? dimension < pairs : dimension % 2 == 0;
  if (pair >= pairs) return "";
  return fmt::format(", {}, wavelength {}", sine ? "sin" : "cos",
                     wavelength_text(waves.frequency[static_cast<std::size_t>(pair)]));
}

Drawing define(CLI::App& app) {
  struct Options {
    std::string positions = "0:100", dimensions = "0,21,64";
    std::optional<Encoding> encoding;
  };
  auto options = std::make_shared<Options>();
  add_positions(app, options->positions, "Positions along the axis");
  app.add_option("--dimensions", options->dimensions,
                 "Channels of the table; of a rotation, its pairs (drawn as cosines)");
  options->encoding.emplace(app, "plot dimensions", "sinusoidal",
                            Geometry{.width = 128, .head_dim = 128});
  return [options]() -> Expected<Figure> {
    const Expected<Positions> where = one_row(options->positions, "plot dimensions");
    if (!where) return std::unexpected(where.error());
    const Expected<Plan> plan = options->encoding->plan();
    if (!plan) return std::unexpected(plan.error());
    if (!plan->add && !plan->rotate)
      return fail("plot dimensions", "this encoding has no vectors and no rotation", "",
                  "posenc plot bias shows a bias");
    const std::int64_t width = plan->add ? options->encoding->width() : plan->rotate->pairs();
    const Expected<std::vector<std::int64_t>> chosen =
        indices(options->dimensions, "--dimensions", width);
    if (!chosen) return std::unexpected(chosen.error());
    std::vector<double> table;
    if (plan->add) {
      Expected<std::vector<double>> rows = vectors(*plan, *where, width, "plot dimensions");
      if (!rows) return std::unexpected(rows.error());
      table = std::move(*rows);
    }

    Figure figure;
    figure.height = 250;
    figure.title = plan->add
                       ? fmt::format("Dimensions of {}, width {}", options->encoding->name(), width)
                       : fmt::format("Cosines of the angles of {}", options->encoding->name());
    figure.caption =
        plan->add ? "Each line is one dimension of the vectors over the positions: early "
                    "dimensions wave fast, late ones hardly move."
                  : "Each line is the cosine of one pair's angle: early pairs turn fast, late "
                    "ones hardly at all.";
    Panel panel;
    panel.x = {.label = "position (tokens)", .column = "position_tokens"};
    panel.y = {.label = plan->add ? "value" : "cos(position · frequency)",
               .column = plan->add ? "value" : "cos"};
    for (std::size_t i = 0; i < chosen->size(); i++) {
      const std::int64_t d = (*chosen)[i];
      Series line;
      line.colour = line_colour(i + 1);
      const double f = plan->add ? 0 : plan->rotate->at(0, 0, d);
      const Waves* waves = plan->add ? std::get_if<Waves>(&plan->add->kind) : nullptr;
      line.name = plan->add ? fmt::format("dimension {}{}", d, waves ? wave_of(*waves, d) : "")
                            : fmt::format("pair {}, wavelength {}", d, wavelength_text(f));
      for (std::int64_t t = 0; t < where->size(); t++) {
        const auto p = static_cast<double>(where->at(t));
        line.x.push_back(p);
        line.y.push_back(plan->add ? table[static_cast<std::size_t>(t * width + d)]
                                   : std::cos(p * f));
      }
      panel.series.push_back(std::move(line));
    }
    figure.panels.push_back(std::move(panel));
    return figure;
  };
}

constexpr std::string_view examples[] = {
    "dimensions.png --scheme sinusoidal --width 128 --dimensions 0,21,64 --positions 0:100",
    "dimensions-rope.png --scheme rope --head_dim 128 --dimensions 0,8,24 --positions 0:200",
};

}  // namespace

const Kind dimensions{"dimensions", "Chosen dimensions as lines over the positions", define,
                      examples};

}  // namespace posenc::cli
