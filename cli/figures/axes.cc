// How far each pair of each axis turns in a picture or video that is larger than those of training,
// under each scaling: the figure of RIFLEx (2502.15894), for every axis.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <numbers>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "posenc/pictures.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_axes {

struct Options {
  std::string model, family = "FluxTransformer2DModel", to = "4096x4096", trained;
};

Expected<Model> asked(const Options& options) {
  if (!options.model.empty()) return named_model(options.model);
  if (std::ranges::any_of(options.family, [](unsigned char c) { return std::isalnum(c) == 0; }))
    return fail("--class", "must be the name of a class", options.family,
                "write it as _class_name has it: FluxTransformer2DModel");
  return read_config(fmt::format(R"({{"_class_name": "{}"}})", options.family), options.family);
}

std::vector<double> turns(const std::vector<double>& frequencies, std::int64_t positions) {
  std::vector<double> out;
  out.reserve(frequencies.size());
  for (const double radians : frequencies)
    out.push_back(radians * static_cast<double>(positions) / (2 * std::numbers::pi));
  return out;
}

bool larger(const PictureAxis& axis) { return axis.factor > 1; }

bool alike(const PicturePlan& plan, std::size_t a, std::size_t b) {
  if (plan.axes[a].trained != plan.axes[b].trained || plan.axes[a].wanted != plan.axes[b].wanted)
    return false;
  for (const PictureOption& option : plan.options)
    if (option.frequencies[a] != option.frequencies[b]) return false;
  return true;
}

Series line_of(std::string name, const std::vector<double>& turns, Colour colour, double width) {
  Series out{.name = std::move(name), .colour = colour, .width = width};
  for (std::size_t pair = 0; pair < turns.size(); pair++)
    out.add(static_cast<double>(pair), turns[pair]);
  return out;
}

Panel panel_of(const PicturePlan& plan, std::size_t axis, std::string name) {
  const PictureAxis& one = plan.axes[axis];
  const auto after = [&](const PictureOption& option) {
    return turns(option.frequencies[axis], one.wanted);
  };
  Panel panel{
      .title = fmt::format("{}: {} positions in training, now {}", name, one.trained, one.wanted),
      .x = {.label = "pair of the axis", .column = "pair"},
      .y = {.label = "turns at the far edge", .column = "turns", .log = true}};
  const PictureOption& plain = plan.options.front();
  Series shown =
      line_of("in training", turns(plain.frequencies[axis], one.trained), line_colour(0), 2);
  shown.dashed = true;
  panel.series.push_back(std::move(shown));
  std::size_t colour = 0;
  for (const PictureOption& option : plan.options) {
    ++colour;
    if (&option != &plain && option.frequencies[axis] == plain.frequencies[axis]) continue;
    panel.series.push_back(line_of(option.name, after(option), line_colour(colour),
                                   option.name == plan.recommended ? 2.4 : 1.2));
  }
  Series again{.name = "comes round, which it did not in training",
               .colour = line_colour(1),
               .mark = Mark::points};
  for (const std::int64_t pair : one.repeats)
    again.add(static_cast<double>(pair), after(plain)[static_cast<std::size_t>(pair)]);
  if (!one.repeats.empty()) panel.series.push_back(std::move(again));
  panel.rules.push_back({1, "a full turn: the place is met again"});
  return panel;
}

Expected<Figure> draw(const Options& options) {
  POSENC_TRY(model, asked(options));
  PictureOptions how;
  POSENC_TRY(to, picture_size(options.to));
  how.to = to;
  if (!options.trained.empty()) {
    POSENC_TRY(trained, picture_size(options.trained));
    how.trained = trained;
  }
  POSENC_TRY(plan, extend_picture(model, how));
  Figure figure{.title = fmt::format("{} at {}", model.name, options.to),
                .caption =
                    "Each axis has pairs of its own. A pair that comes round within the wanted "
                    "size, and did not in training, shows things twice; one that goes farther "
                    "than in training meets angles that nothing has shown."};
  // Axes that stay within training are left out beside one that does not.
  const bool grows = std::ranges::any_of(plan.axes, larger);
  for (std::size_t axis = 0; axis < plan.axes.size(); axis++) {
    if (grows && !larger(plan.axes[axis])) continue;
    std::string name = plan.axes[axis].name;
    if (axis + 1 < plan.axes.size() && alike(plan, axis, axis + 1))
      name += " and " + plan.axes[++axis].name;
    figure.panels.push_back(panel_of(plan, axis, std::move(name)));
  }
  figure.height = 300 * static_cast<double>(figure.panels.size());
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::Option* model = app.add_option("--model", options->model,
                                      "transformer/config.json of diffusers, or its .safetensors")
                           ->type_name("MODEL");
  app.add_option("--class", options->family,
                 "A class of diffusers with the sizes it has by default")
      ->type_name("CLASS")
      ->excludes(model)
      ->capture_default_str();
  app.add_option("--to", options->to, "Pixels that are wanted")
      ->type_name("[FRAMESx]HEIGHTxWIDTH")
      ->capture_default_str();
  app.add_option("--trained", options->trained, "Those that training has shown")
      ->type_name("[FRAMESx]HEIGHTxWIDTH")
      ->default_str("as the family is known to have them");
  return [options] { return draw(*options); };
}

constexpr std::string_view examples[] = {
    "axes.png --to 4096x4096",
    "axes-video.png --class HunyuanVideoTransformer3DModel --to 257x720x1280",
};

}  // namespace of_axes

extern const Kind axes{"axes",
                       "Larger pictures and longer videos: which pairs repeat or meet new angles",
                       of_axes::define, of_axes::examples};

}  // namespace posenc::cli
