// The wavelength of every pair against the context, for a model or for several scalings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "cli/pages/terminal.h"
#include "posenc/explain.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_wavelengths {

struct Options {
  std::string model, stack;
  std::optional<std::int64_t> layer;
  std::int64_t at = 0, length = 4096, head_dim = 128;
  double factor = 8, rope_theta = 10000;
  std::vector<std::string> scalings = {"default",      "linear", "ntk",
                                       "ntk_by_parts", "yarn",   "llama3"};
};

Series line_of(std::string name, std::size_t colour) {
  Series out{.name = std::move(name), .colour = line_colour(colour)};
  return out;
}

void add_pair(Series& line, double pair, double frequency) {
  line.x.push_back(pair);
  // A pair that does not rotate has no wavelength: a gap.
  line.y.push_back(frequency == 0 ? from_data : 2 * std::numbers::pi / std::abs(frequency));
}

Figure frame() {
  Figure figure{.height = 300};
  Panel panel{.x = {.label = "pair of channels", .column = "pair"},
              .y = {.label = "wavelength (tokens for a full turn)",
                    .column = "wavelength_tokens",
                    .log = true}};
  figure.panels.push_back(std::move(panel));
  return figure;
}

// Two lengths that are one get one line.
void add_rule(Panel& panel, std::int64_t length, std::string_view what) {
  for (Rule& there : panel.rules)
    if (there.at == static_cast<double>(length)) {
      there.text += fmt::format(", {}", what);
      return;
    }
  panel.rules.push_back(
      {static_cast<double>(length), fmt::format("{} tokens: {}", grouped(length), what)});
}

// Groups of layers whose pairs rotate alike share a line.
struct Kin {
  const GroupExplanation* group;
  std::string label;
};
bool alike(const GroupExplanation& a, const GroupExplanation& b) {
  return std::equal(a.pairs.begin(), a.pairs.end(), b.pairs.begin(), b.pairs.end(),
                    [](const PairFact& x, const PairFact& y) {
                      return x.frequency == y.frequency && x.unscaled == y.unscaled;
                    });
}

// The stack that writes the text before the others, as far as they turn.
std::string first_stack(const Explanation& told) {
  for (const Stack stack :
       {Stack::text, Stack::decoder, Stack::encoder, Stack::vision, Stack::audio})
    for (const GroupExplanation& group : told.groups)
      if (!group.pairs.empty() && told.model.groups[group.group].stack == stack)
        return std::string(name(stack));
  return "";
}

Expected<Figure> of_model(const Options& options) {
  POSENC_TRY(model, named_model(options.model));
  const std::int64_t trained = model.trained_context, context = model.context;
  POSENC_TRY(told, explain(std::move(model), {.at = options.at, .layer = options.layer}));

  Figure figure = frame();
  Panel& panel = figure.panels.front();
  std::size_t colour = 0;
  const std::string stack = !options.stack.empty() ? options.stack : first_stack(told);
  std::vector<Kin> kin;
  for (const GroupExplanation& group : told.groups) {
    const LayerGroup& layers = told.model.groups[group.group];
    if (group.pairs.empty() || name(layers.stack) != stack) continue;
    const auto same = std::find_if(kin.begin(), kin.end(),
                                   [&](const Kin& other) { return alike(*other.group, group); });
    if (same == kin.end()) {
      kin.push_back({&group, layers.label});
    } else if (!layers.label.empty()) {
      same->label += (same->label.empty() ? "" : ", ") + layers.label;
    }
  }
  for (const auto& [group, label] : kin) {
    bool scaled = false;
    for (const PairFact& pair : group->pairs) scaled |= pair.frequency != pair.unscaled;
    const std::string of = label.empty() ? "" : fmt::format(" ({})", label);
    Series now = line_of((scaled ? "as the model turns" : "unscaled") + of, ++colour);
    Series before = line_of("before the scaling" + of, colour);
    before.dashed = true;
    before.width = 0.9;
    const PairFact* last = nullptr;
    for (const PairFact& pair : group->pairs) {
      const auto at = static_cast<double>(&pair - group->pairs.data());
      // Where the frequencies of another axis begin again, the line does.
      if (last && pair.axis != last->axis && pair.frequency > last->frequency)
        for (Series* line : {&now, &before}) add_pair(*line, at - 0.5, 0);
      last = &pair;
      add_pair(now, at, pair.frequency);
      add_pair(before, at, pair.unscaled);
    }
    panel.series.push_back(std::move(now));
    if (scaled) panel.series.push_back(std::move(before));
  }
  if (kin.empty())
    return fail("plot wavelengths", "nothing rotates there", options.model,
                "posenc explain " + options.model + " tells what it does");
  if (stack == name(Stack::vision)) {
    panel.y.label = "wavelength (patches for a full turn)";
    panel.y.column = "wavelength_patches";
    figure.title = "Wavelengths of " + told.model.name + "'s vision layers";
    figure.caption = "Patches for a full turn of each pair; each axis has pairs of its own.";
    return figure;
  }
  if (trained > 0) add_rule(panel, trained, "trained length");
  if (context > 0 && context != trained && options.at == 0) add_rule(panel, context, "context");
  if (options.at > 0) add_rule(panel, options.at, "asked length");
  figure.title = "Wavelengths of " + told.model.name;
  figure.caption =
      "Tokens for a full turn of each pair. Pairs above the line of the trained length never saw "
      "all of their circle in training; a scaling slows them so that the longer text stays inside "
      "what they saw.";
  return figure;
}

Expected<Figure> of_scalings(const Options& options) {
  Figure figure = frame();
  Panel& panel = figure.panels.front();
  const auto longer =
      static_cast<std::int64_t>(std::llround(options.factor * static_cast<double>(options.length)));
  std::size_t colour = 0;
  for (const std::string& name : options.scalings) {
    POSENC_TRY(scaling, make_scaling(name));
    for (const FieldInfo& field : info(scaling).fields) {
      std::optional<FieldValue> value;
      if (field.name == "factor") value = options.factor;
      if (field.name == "original_max_position_embeddings") value = options.length;
      if (field.name == "max_position_embeddings" && field.required) value = options.length;
      // Llama 3.1's own.
      if (field.name == "low_freq_factor") value = 1.0;
      if (field.name == "high_freq_factor") value = 4.0;
      if (!value && field.required)
        return fail("--scalings",
                    std::string(info(scaling).name) + " needs " + std::string(field.name), name,
                    "say --model with a model that has it");
      if (!value) continue;
      POSENC_CHECK(set_field(scaling, field.name, *value));
    }
    POSENC_TRY(scaled,
               rope_frequencies<double>(Rope{.rope_theta = options.rope_theta, .scaling = scaling},
                                        {.head_dim = options.head_dim, .length = longer}));
    const std::string_view title = info(scaling).title;
    Series line = line_of(std::string(title.substr(0, title.find_first_of(",("))), colour++);
    for (std::size_t pair = 0; pair < scaled.frequency.size(); pair++)
      add_pair(line, static_cast<double>(pair), scaled.frequency[pair]);
    panel.series.push_back(std::move(line));
  }
  // Where lines run together the first are seen beneath the last.
  for (std::size_t i = 0; i < panel.series.size(); i++)
    panel.series[i].width = 1.2 + 0.3 * static_cast<double>(panel.series.size() - 1 - i);
  add_rule(panel, options.length, "trained length");
  add_rule(panel, longer, "asked length");
  figure.title =
      fmt::format("Wavelengths under each scaling: base {}, {} channels, {:g} times longer",
                  base_text(options.rope_theta), options.head_dim, options.factor);
  figure.caption =
      "Tokens for a full turn of each pair. Interpolation slows all pairs alike; NTK-aware scaling "
      "bends the whole line; the others leave fast pairs alone and slow those that never turned "
      "fully in training.";
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::Option* model =
      app.add_option("--model", options->model,
                     "A config.json, its folder, or a bundled name (posenc models)")
          ->type_name("MODEL");
  app.add_option("--layer", options->layer, "Only the layers that are like this one")->needs(model);
  app.add_option("--stack", options->stack, "text, encoder, decoder, vision or audio")
      ->default_str("the first of these that turns")
      ->needs(model);
  app.add_option("--at", options->at, "Length asked of the model, tokens")
      ->transform(token_count())
      ->default_str("")
      ->needs(model);
  const auto without = [&](CLI::Option* option) {
    option->group("Without a model")->excludes(model);
  };
  without(app.add_option("--scalings", options->scalings, "Names (posenc schemes lists them)")
              ->delimiter(','));
  without(app.add_option("--factor", options->factor, "s: asked length over trained length")
              ->check(CLI::PositiveNumber));
  without(app.add_option("--original_max_position_embeddings,--trained", options->length,
                         "L: trained length, tokens")
              ->transform(token_count()));
  without(app.add_option("--rope_theta", options->rope_theta, "Base of the frequencies"));
  without(app.add_option("--head_dim", options->head_dim, "Channels of a head")
              ->transform(above_zero()));
  return [options] { return options->model.empty() ? of_scalings(*options) : of_model(*options); };
}

constexpr std::string_view examples[] = {
    "wavelengths.png --model llama-3.1-8b --at 131072",
    "wavelengths-scalings.png --factor 16 --trained 4096 --rope_theta 10000 --head_dim 128",
};

}  // namespace of_wavelengths

extern const Kind wavelengths{"wavelengths",
                              "Wavelengths of all pairs against the trained and the asked length",
                              of_wavelengths::define, of_wavelengths::examples};

}  // namespace posenc::cli
