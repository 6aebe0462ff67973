// What families do to logits: a temperature by the query's position, and a softcap.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "cli/arguments/flags.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "posenc/plan.h"

namespace posenc::cli {
namespace of_logits {

struct Options {
  std::int64_t to = 1 << 20;
  std::vector<double> caps = {20, 30, 50};
};

struct Family {
  std::string_view name;
  Logits logits;
};

// As the families' files have them.
std::vector<Family> families() {
  constexpr double logn = 2048;  // seq_length of Qwen's first files
  return {
      {"Llama 4: steps of 8192, β = 0.1", {.beta = 0.1, .floor = 8192, .offset = 1}},
      {"Ministral 3: steps of 16384, β = 0.1", {.beta = 0.1, .floor = 16384}},
      {"Qwen's use_logn_attn: max(1, ln(p + 1)/ln 2048)",
       {.temperature = Temperature::log, .beta = 1 / std::log(logn), .floor = logn, .offset = 1}},
      {"Beam: (1 + (p + 1)/2048)^0.1",
       {.temperature = Temperature::power, .beta = 0.1, .floor = 2048, .offset = 1}}};
}

Panel temperatures(const Options& options) {
  Panel panel{.title = "a temperature multiplies the query",
              .x = {.label = "position of the query (tokens)",
                    .column = "position_tokens",
                    .least = 1,
                    .most = static_cast<double>(options.to),
                    .log = true},
              .y = {.label = "τ, the logits' factor", .column = "temperature"}};
  constexpr int steps_an_octave = 48;
  const double octaves = std::log2(static_cast<double>(options.to));
  std::size_t colour = 1;
  for (const Family& family : families()) {
    Series line{.name = std::string(family.name), .colour = line_colour(colour++)};
    for (int step = 0; step <= static_cast<int>(steps_an_octave * octaves); ++step) {
      const auto position =
          static_cast<std::int64_t>(std::exp2(static_cast<double>(step) / steps_an_octave));
      line.add(static_cast<double>(position), family.logits.query_scale(position));
    }
    panel.series.push_back(std::move(line));
  }
  return panel;
}

Panel softcaps(const Options& options) {
  constexpr int furthest = 120;
  Panel panel{.title = "a softcap bends them",
              .x = {.label = "logit z", .column = "logit"},
              .y = {.label = "c·tanh(z/c)", .column = "capped_logit"}};
  const auto add = [&](std::string name, std::size_t colour, const auto& of, bool dashed) {
    Series line{.name = std::move(name), .colour = line_colour(colour), .dashed = dashed};
    for (int z = -furthest; z <= furthest; ++z) {
      line.add(z, of(z));
    }
    panel.series.push_back(std::move(line));
  };
  std::size_t colour = 5;  // behind those of the temperatures: one legend names both
  for (const double cap : options.caps)
    add(
        fmt::format("c = {:g}", cap), colour++, [&](double z) { return cap * std::tanh(z / cap); },
        false);
  add("no cap", 0, [](double z) { return z; }, true);
  return panel;
}

Expected<Figure> draw(const Options& options) {
  Figure figure{
      .title = "What families do to logits before the softmax", .columns = 2, .height = 290};
  figure.caption =
      "A long text's softmax spreads over more keys: the temperature sharpens it again. It is 1, "
      "or "
      "nearly, on every short prompt. The cap (Gemma 2: 50) leaves small logits as they are and "
      "lets none pass it.";
  figure.panels.push_back(temperatures(options));
  figure.panels.push_back(softcaps(options));
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--to", options->to, "Last position")
      ->transform(position_count())
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 40));
  app.add_option("--softcaps", options->caps, "c of each curve")
      ->delimiter(',')
      ->check(CLI::Range(0.1, 1000.0));
  return [options] { return draw(*options); };
}

constexpr std::string_view examples[] = {
    "logits.png --to 1048576",
    "logits.svg --softcaps 30,50",
};

}  // namespace of_logits

extern const Kind logits{"logits", "Temperatures by position, and softcaps, of families' attention",
                         of_logits::define, of_logits::examples};

}  // namespace posenc::cli
