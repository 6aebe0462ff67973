// Counting in binary beside the waves: the analogy, and where it limps.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_binary {

Drawing define(CLI::App& app) {
  struct Options {
    std::int64_t bits = 4, width = 8, length = 32;
    double base = 10000;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--bits", options->bits, "Bits, and pairs beside them")->check(CLI::Range(1, 8));
  app.add_option("--width", options->width, "Channels of the sinusoidal vectors")
      ->check(CLI::Range(2, 65536));
  app.add_option("--base", options->base, "Base of the frequencies");
  app.add_option("--length", options->length, "Positions counted")->check(CLI::Range(2, 4096));
  return [options]() -> Expected<Figure> {
    POSENC_TRY(plan, compile(Sinusoidal{.base = options->base}, {.width = options->width}));
    const std::vector<double>& frequency = std::get<Waves>(plan.add->kind).frequency;
    if (static_cast<std::int64_t>(frequency.size()) < options->bits)
      return fail("--width", "must have a pair for each bit",
                  fmt::format("{} pairs", frequency.size()),
                  fmt::format("say --width {} or more", 2 * options->bits));
    const Positions where = Positions::range(0, options->length);
    POSENC_TRY(table, vectors(plan, where, options->width, "plot binary"));

    Figure figure{
        .columns = 2, .shared_axes = true, .height = 60 + 62 * static_cast<double>(options->bits)};
    figure.title =
        fmt::format("Counting in binary, and sinusoidal vectors of width {}", options->width);
    figure.caption = fmt::format(
        "Bit k changes every 2^k positions, and wave k is slower than the one before it: so far "
        "the analogy. But periods of bits double from 2, while those of the waves begin at 2π and "
        "grow {:.3g}-fold, the waves are never exactly at the same place again, and position 0 is "
        "(0, 1, 0, 1, …) and not all zero.",
        std::pow(options->base, 2.0 / static_cast<double>(options->width)));
    for (std::int64_t k = 0; k < options->bits; k++) {
      const auto pair = static_cast<std::size_t>(k);
      Panel bit, wave;
      bit.title = fmt::format("bit {}: period {}", k, 2LL << k);
      wave.title =
          fmt::format("channel {} (sin): period {}", 2 * k, wavelength_text(frequency[pair]));
      const double end = static_cast<double>(options->length) - 0.5;
      bit.x = {
          .label = "position (tokens)", .column = "position_tokens", .least = -0.5, .most = end};
      wave.x = bit.x;
      bit.y = {.label = "bit",
               .column = "bit",
               .least = -0.25,
               .most = 1.25,
               .ticks = {{0, "0"}, {1, "1"}}};
      wave.y = {.label = "value",
                .column = "value",
                .least = -1.4,
                .most = 1.4,
                .ticks = {{-1, "−1"}, {0, "0"}, {1, "1"}}};
      Series steps, dots, curve;
      steps.colour = line_colour(2);
      steps.mark = Mark::steps;
      dots.colour = curve.colour = line_colour(1);
      dots.mark = Mark::points;
      dots.name = "at the positions";
      curve.name = "the wave between them";
      steps.name = "bit of the position";
      curve.width = 0.7;
      for (std::int64_t p = 0; p < options->length; p++) {
        steps.add(static_cast<double>(p), static_cast<double>((p >> k) & 1));
        dots.add(static_cast<double>(p),
                 table[static_cast<std::size_t>(p * options->width + 2 * k)]);
      }
      const std::int64_t fine = 16 * (options->length - 1);
      for (std::int64_t i = 0; i <= fine; i++) {
        const double p = static_cast<double>(i) / 16;
        curve.add(p, std::sin(p * frequency[pair]));
      }
      bit.series = {std::move(steps)};
      wave.series = {std::move(curve), std::move(dots)};
      figure.panels.push_back(std::move(bit));
      figure.panels.push_back(std::move(wave));
    }
    return figure;
  };
}

constexpr std::string_view examples[] = {"binary.png --bits 4 --width 8 --length 32"};

}  // namespace of_binary

extern const Kind binary{"binary",
                         "Counting in binary beside the waves, and where the analogy limps",
                         of_binary::define, of_binary::examples};

}  // namespace posenc::cli
