// What float angles cost one model: the error of its angles by position, engine by engine.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "cli/pages/terminal.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_precision {

struct Options {
  std::string model = "llama-3.1-8b";
  std::int64_t at = 0, layer = 0;
};

Expected<Figure> draw(const Options& options) {
  if (options.at > float_positions)
    return fail("--at", "must be at most 2^24, where a float no longer holds positions",
                std::to_string(options.at), "see posenc precision");
  POSENC_TRY(model, named_model(options.model));
  const LayerGroup* group = nullptr;
  for (const Stack stack : {Stack::text, Stack::decoder, Stack::encoder})
    if (!group) group = find_group(model, options.layer, stack);
  if (!group)
    return fail("--layer", "the model has no such layer", std::to_string(options.layer),
                "posenc explain " + options.model + " lists its layers");
  POSENC_TRY(plan, compile(*group, options.at));
  const std::int64_t end = phase_end(plan, options.at);
  std::vector<std::int64_t> marks;
  // Two to an octave.
  const auto mark = [](int i) { return std::llround(16 * std::exp2(i / 2.0)); };
  for (int i = 0; mark(i) < end; ++i) marks.push_back(mark(i));
  marks.push_back(end);
  POSENC_TRY(errors, phase_errors(*group, options.at, std::move(marks)));

  Figure figure{.height = 300};
  const Rope& rope = std::get<Rope>(group->schemes.front());
  figure.title =
      fmt::format("Error of the angle, worst pair: {}, base {:g}", model.name, rope.rope_theta);
  figure.caption =
      "Largest error of an angle among the 1024 positions before each point, against "
      "long double.";
  Panel panel = angle_errors(16, end);
  panel.rules.push_back({angle_that_shows, "0.1 radian: it shows"});
  panel.rules.push_back({half_rounding, "float16 by up to 2⁻¹²"});
  if (model.context > 16 && model.context < end)
    panel.rules.push_back({static_cast<double>(model.context), "context", true});
  constexpr std::size_t colours[] = {3, 1, 2, 0, 4, 5};
  for (std::size_t e = 0; e < errors.engines.size(); e++) {
    const EngineError& engine = errors.engines[e];
    if (!engine.refused.empty()) continue;
    Series line{.name = std::string(engine.name),
                .colour = line_colour(colours[e % std::size(colours)])};
    for (std::size_t i = 0; i < engine.phase.size(); i++) {
      line.add(static_cast<double>(errors.marks[i]),
               engine.phase[i] > 0 ? engine.phase[i] : from_data);
    }
    panel.series.push_back(std::move(line));
    if (engine.beyond_bfloat16)
      figure.caption += fmt::format(" {}: beyond bfloat16's rounding from position {}.",
                                    engine.name, grouped(*engine.beyond_bfloat16));
  }
  figure.panels.push_back(std::move(panel));
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--model", options->model, "A config.json, its folder, or a bundled name")
      ->type_name("MODEL");
  app.add_option("--layer", options->layer, "Layer of the model");
  app.add_option("--at", options->at, "Compile for this length and measure up to it, at most 2^24")
      ->transform(token_count())
      ->default_str("1048576");
  return [options] { return draw(*options); };
}

constexpr std::string_view examples[] = {
    "precision.png --model llama-3.1-8b",
};

}  // namespace of_precision

extern const Kind precision{"precision", "What float angles cost a model, by position and engine",
                            of_precision::define, of_precision::examples};

}  // namespace posenc::cli
