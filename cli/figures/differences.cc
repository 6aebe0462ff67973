// How far apart the vectors of two positions are: by position, or channel by channel.
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
namespace of_differences {

// Row p of each: the sinusoidal vector, and one vector of norm √width/√2 (the sinusoids' own) as
// RoPE turns it; channels interleaved in both.
struct Tables {
  std::vector<double> sinusoidal, rotated;
};

struct Options {
  std::string positions = "0:100", origins, by = "position";
  std::int64_t width = 128;
  double base = 10000;
  std::uint64_t seed = 42;
};

Expected<Tables> tables_of(const Options& options, const Positions& where) {
  POSENC_CHECK(check_cells(where.size(), options.width, "plot differences"));
  const auto compiled = [&](const Scheme& scheme) {
    return compile(scheme, {.width = options.width, .head_dim = options.width});
  };
  const Expected<Plan> waves = compiled(Sinusoidal{.base = options.base});
  const Expected<Plan> turns =
      compiled(Rope{.rope_theta = options.base, .pairing = Pairing::interleaved});
  if (!waves) return std::unexpected(waves.error());
  if (!turns) return std::unexpected(turns.error());
  Tables out;
  POSENC_TRY(rows, vectors(*waves, where, options.width, "plot differences"));
  out.sinusoidal = std::move(rows);

  const auto width = static_cast<std::size_t>(options.width);
  std::vector<double> x = normals(options.seed, width);
  double square = 0;
  for (const double value : x) square += value * value;
  for (double& value : x) value *= std::sqrt(static_cast<double>(options.width) / 2 / square);
  for (std::int64_t t = 0; t < where.size(); t++)
    out.rotated.insert(out.rotated.end(), x.begin(), x.end());
  const Tensor view = Tensor::dense(out.rotated.data(), {1, 1, where.size(), options.width});
  POSENC_CHECK(rotate(*turns, view, where, Side::query, view));
  return out;
}

Expected<Figure> by_position(const Options& options) {
  POSENC_TRY(where, one_row(options.positions, "plot differences"));
  POSENC_TRY(origins, indices(options.origins.empty() ? "0,50,99" : options.origins, "--origins",
                              1LL << 53));
  POSENC_TRY(tables, tables_of(options, where));
  POSENC_TRY(fixed, Positions::ids(origins));
  POSENC_TRY(from, tables_of(options, fixed));

  Figure figure{.columns = 2, .shared_axes = true, .height = 230};
  figure.title =
      fmt::format("Distance between the vectors of two positions, width {}", options.width);
  figure.caption =
      "Distance of every position's vector from that of position " + listed(origins) +
      ". It depends on the offset alone, rises at once and then hardly grows: far apart and "
      "farther apart look alike. For RoPE it is one random vector of the same length, rotated.";
  const auto width = static_cast<std::size_t>(options.width);
  const auto add = [&](const std::string& title, const std::vector<double>& rows,
                       const std::vector<double>& of) {
    Panel panel{.title = title,
                .x = {.label = "position (tokens)", .column = "position_tokens"},
                .y = {.label = "Euclidean distance", .column = "distance", .least = 0}};
    for (std::size_t o = 0; o < origins.size(); o++) {
      Series line{.name = fmt::format("from position {}", origins[o]),
                  .colour = line_colour(o + 1)};
      for (std::int64_t t = 0; t < where.size(); t++) {
        double square = 0;
        for (std::size_t d = 0; d < width; d++) {
          const double step = rows[static_cast<std::size_t>(t) * width + d] - of[o * width + d];
          square += step * step;
        }
        line.add(static_cast<double>(where.at(t)), std::sqrt(square));
      }
      panel.series.push_back(std::move(line));
    }
    figure.panels.push_back(std::move(panel));
  };
  add("sinusoidal vectors", tables.sinusoidal, from.sinusoidal);
  add("RoPE: a random vector, rotated", tables.rotated, from.rotated);
  return figure;
}

Expected<Figure> by_channel(const Options& options) {
  POSENC_TRY(chosen,
             indices(options.origins.empty() ? "50,99" : options.origins, "--origins", 1LL << 53));
  if (chosen.size() > 3)
    return fail("--origins", "at most 3 positions by channel", std::to_string(chosen.size()));
  std::vector<std::int64_t> with_zero = {0};
  with_zero.insert(with_zero.end(), chosen.begin(), chosen.end());
  POSENC_TRY(where, Positions::ids(with_zero));
  POSENC_TRY(tables, tables_of(options, where));

  Figure figure{
      .columns = 2, .shared_axes = true, .height = 130 + 120 * static_cast<double>(chosen.size())};
  figure.title =
      fmt::format("Difference from position 0, channel by channel, width {}", options.width);
  figure.caption =
      "What a position changes in each channel, against position 0. No wave is smaller than "
      "another: late pairs differ little only because they have not turned far yet. A "
      "sinusoidal pair moves by twice the sine of half its angle.";
  const auto width = static_cast<std::size_t>(options.width);
  for (std::size_t i = 0; i < chosen.size(); i++)
    for (const bool rotated : {false, true}) {
      const std::vector<double>& rows = rotated ? tables.rotated : tables.sinusoidal;
      Panel panel{
          .title = fmt::format("{}, position {}",
                               rotated ? "RoPE of a random vector" : "sinusoidal", chosen[i]),
          .x = {.label = "channel",
                .column = "channel",
                .least = 0,
                .most = static_cast<double>(width - 1)},
          .y = {.label = "difference", .column = "difference"}};
      Series line{.name = "difference of the channel", .colour = line_colour(1), .width = 0.9};
      Series above, below;
      above.name = "how far its pair moved";
      above.colour = below.colour = line_colour(2);
      above.mark = below.mark = Mark::steps;
      for (std::size_t d = 0; d < width; d++) {
        const std::size_t pair = d / 2 * 2;
        double square = 0;
        for (std::size_t k = pair; k < std::min(pair + 2, width); k++) {
          const double step = rows[(i + 1) * width + k] - rows[k];
          square += step * step;
        }
        const auto x = static_cast<double>(d);
        line.add(x, rows[(i + 1) * width + d] - rows[d]);
        above.add(x, std::sqrt(square));
      }
      panel.series = {std::move(line), std::move(above)};
      figure.panels.push_back(std::move(panel));
    }
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--by", options->by,
                 "position: distance over positions; channel: what changes in each channel")
      ->check(CLI::IsMember({"position", "channel", "dimension"}))
      ->type_name("position|channel");
  add_positions(app, options->positions, "By position: along the axis");
  app.add_option("--origins", options->origins,
                 "Positions compared with; by channel: compared with position 0")
      ->default_str("0,50,99, or 50,99 by channel");
  app.add_option("--width", options->width, "Channels")->check(CLI::Range(2, 65536));
  app.add_option("--base", options->base, "Base of the frequencies");
  app.add_option("--seed", options->seed, "Of the random vector that RoPE turns");
  return [options] {
    return options->by == "position" ? by_position(*options) : by_channel(*options);
  };
}

constexpr std::string_view examples[] = {
    "differences.png --origins 0,50,99 --positions 0:100",
    "differences-channel.png --by channel --origins 50,99",
    "differences-far.png --origins 0 --positions 0:30000 --width 512",
};

}  // namespace of_differences

extern const Kind differences{"differences", "How far apart the vectors of two positions are",
                              of_differences::define, of_differences::examples};

}  // namespace posenc::cli
