// Chosen channels of a table, or pairs of a rotation, over positions.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_channels {

// What a channel of waves is; nothing of waves that are not sines and cosines of one position, in
// this order.
struct Wave {
  double frequency = 0;
  bool sine = true;

  double at(double position) const {
    return sine ? std::sin(position * frequency) : std::cos(position * frequency);
  }
};
std::optional<Wave> wave_of(const Waves& waves, std::int64_t channel) {
  if (waves.axes != 1 || !waves.blocks.empty() || waves.cosine_first || waves.amplitude != 1)
    return {};
  const std::int64_t pairs = waves.pairs();
  const bool apart = waves.layout == WaveLayout::concatenated;
  const std::int64_t pair = apart ? channel % pairs : channel / 2;
  const bool sine = apart ? channel < pairs : channel % 2 == 0;
  if (pair >= pairs || channel >= 2 * pairs) return {};
  return Wave{waves.frequency[static_cast<std::size_t>(pair)], sine};
}

// The wave between the positions too: straight lines from one to the next would look as if fast
// waves did not reach 1. Nothing where there are too many positions to see it, or other than waves.
Series between(const Series& points, const Wave& wave, std::int64_t offset) {
  Series out;
  const std::size_t count = points.x.size();
  if (count < 2 || count > 512) return out;
  for (std::size_t i = 0; i < count; i++) {
    if (std::abs(wave.at(points.x[i] + static_cast<double>(offset)) - points.y[i]) > 1e-6)
      return {};
    for (int part = 0; part < 16 && i + 1 < count; part++)
      out.x.push_back(points.x[i] + part * (points.x[i + 1] - points.x[i]) / 16);
  }
  out.x.push_back(points.x.back());
  for (const double x : out.x) out.y.push_back(wave.at(x + static_cast<double>(offset)));
  return out;
}

Drawing define(CLI::App& app) {
  struct Options {
    std::string positions = "0:100", channels = "0,21,64";
    std::optional<Encoding> encoding;
  };
  auto options = std::make_shared<Options>();
  add_positions(app, options->positions, "Positions along the axis");
  app.add_option("--channels,--dimensions", options->channels,
                 "Channels of the table; of a rotation, its pairs (drawn as cosines)");
  options->encoding.emplace(app, "plot channels", "sinusoidal",
                            Geometry{.width = 128, .head_dim = 128});
  return [options]() -> Expected<Figure> {
    POSENC_TRY(where, one_row(options->positions, "plot channels"));
    POSENC_TRY(plan, options->encoding->plan());
    if (!plan.add && !plan.rotate)
      return fail("plot channels", "this encoding has no vectors and no rotation", "",
                  "posenc plot bias shows a bias");
    const std::int64_t width = plan.add ? options->encoding->width() : plan.rotate->pairs();
    POSENC_TRY(chosen, indices(options->channels, "--channels", width));
    std::vector<double> table;
    if (plan.add) {
      POSENC_TRY(rows, vectors(plan, where, width, "plot channels"));
      table = std::move(rows);
    }

    Figure figure{
        .title = plan.add
                     ? fmt::format("Dimensions of {}, width {}", options->encoding->name(), width)
                     : fmt::format("Cosines of the angles of {}", options->encoding->name()),
        .height = 250};
    figure.caption =
        plan.add ? "Each line is one channel of the vectors over the positions: early "
                   "channels wave fast, late ones hardly move."
                 : "Each line is the cosine of one pair's angle: early pairs rotate fast, late "
                   "ones hardly at all.";
    Panel panel{.x = {.label = "position (tokens)", .column = "position_tokens"},
                .y = {.label = plan.add ? "value" : "cos(position · frequency)",
                      .column = plan.add ? "value" : "cos"}};
    bool with_dots = false;
    for (std::size_t i = 0; i < chosen.size(); i++) {
      const std::int64_t d = chosen[i];
      Series line{.colour = line_colour(i + 1)};
      const double f = plan.add ? 0 : plan.rotate->at(0, 0, d);
      const Waves* waves = plan.add ? std::get_if<Waves>(&plan.add->kind) : nullptr;
      const std::optional<Wave> wave = waves      ? wave_of(*waves, d)
                                       : plan.add ? std::nullopt
                                                  : std::optional(Wave{f, false});
      line.name = fmt::format("{} {}", plan.add ? "channel" : "pair", d);
      if (wave && plan.add) line.name += wave->sine ? ", sin" : ", cos";
      if (wave) line.name += ", wavelength " + wavelength_text(wave->frequency);
      for (std::int64_t t = 0; t < where.size(); t++) {
        const auto p = static_cast<double>(where.at(t));
        line.add(p, plan.add ? table[static_cast<std::size_t>(t * width + d)] : std::cos(p * f));
      }
      if (!wave) {
        panel.series.push_back(std::move(line));
        continue;
      }
      Series curve = between(line, *wave, waves ? waves->row_offset : 0);
      if (!curve.x.empty()) {
        curve.name = line.name;
        curve.colour = line.colour;
        curve.width = 0.9;
        line.name += ", at the positions";
        line.in_legend = false;
        line.mark = Mark::dots;
        with_dots = true;
        panel.series.push_back(std::move(curve));
      }
      panel.series.push_back(std::move(line));
    }
    if (with_dots) figure.caption += " The dots are the positions themselves.";
    figure.panels.push_back(std::move(panel));
    return figure;
  };
}

constexpr std::string_view examples[] = {
    "channels.png --scheme sinusoidal --width 128 --channels 0,21,64 --positions 0:100",
    "channels-rope.png --scheme rope --head_dim 128 --channels 0,8,24 --positions 0:200",
};

}  // namespace of_channels

extern const Kind channels{"channels", "Chosen channels as lines over the positions",
                           of_channels::define, of_channels::examples, "dimensions"};

}  // namespace posenc::cli
