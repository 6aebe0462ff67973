// posenc lab picture: what posenc lab perplexity or posenc lab reuse has measured, drawn.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/commands/lab.h"
#include "cli/commands/plot.h"
#include "cli/figures/draw/colours.h"
#include "cli/pages/terminal.h"
#include "evidence/lab/model/perplexity.h"
#include "evidence/lab/model/reuse.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// Above, the losses; below, what each scaling changes, since losses of other text differ by more
// than scalings do.
Expected<Figure> perplexity_figure(const lab::Perplexity& found) {
  Figure figure{.title = fmt::format("Loss by position: {}, trained to {} tokens", found.model,
                                     grouped(found.trained))};
  figure.caption =
      fmt::format("Zero-shot, {} of {} tokens, each block given all before it.",
                  found.windows == 1 ? "one context" : fmt::format("{} contexts", found.windows),
                  grouped(found.length));
  figure.height = 420;
  const lab::LossCurve& reference = found.curves.front();
  Panel losses, differences;
  losses.title = "nats a token";
  differences.title =
      fmt::format("minus {} within the trained length, minus {} beyond it",
                  lab::title(reference.stretch), lab::title(found.curves[1].stretch));
  for (Panel* panel : {&losses, &differences}) {
    panel->x = {.label = "position (tokens)",
                .column = "position_tokens",
                .least = 0,
                .most = static_cast<double>(found.length)};
    if (found.trained > 0 && found.trained < found.length)
      panel->rules.push_back({static_cast<double>(found.trained), "trained", true});
  }
  losses.y = {.label = "loss (nats)", .column = "loss_nats"};
  differences.y = {
      .label = "difference (nats)", .column = "difference_nats", .least = -0.3, .most = 1.2};
  for (std::size_t c = 0; c < found.curves.size(); ++c) {
    const lab::LossCurve& curve = found.curves[c];
    Series loss{.name = lab::title(curve.stretch), .colour = line_colour(c)};
    Series difference = loss;
    for (std::size_t i = 0; i < curve.blocks.size(); ++i) {
      const lab::LossBlock& block = curve.blocks[i];
      const double at = static_cast<double>(block.from + block.to) / 2;
      const bool beyond = found.trained > 0 && block.from >= found.trained;
      loss.add(at, block.nats);
      difference.add(at, block.nats - found.curves[beyond ? 1 : 0].blocks[i].nats);
    }
    losses.series.push_back(std::move(loss));
    differences.series.push_back(std::move(difference));
  }
  figure.panels = {std::move(losses), std::move(differences)};
  return figure;
}

// Above, by distance behind the chunk; below, by layer. Both in logarithms: a fresh prefill is at 0,
// which none of them reaches.
Figure reuse_figure(const lab::Reuse& found) {
  Figure figure{
      .title = fmt::format("Keys used again behind another prefix: {}", found.model),
      .caption = fmt::format("A chunk of {} tokens, read alone, behind a prefix of {}; {}.",
                             grouped(found.options.chunk), grouped(found.options.prefix),
                             found.options.places == 1
                                 ? "one place of a text"
                                 : fmt::format("{} places of a text", found.options.places)),
      .height = 420};
  Panel distances, layers;
  distances.title = "KL of the next token's prediction from a fresh prefill's";
  distances.x = {
      .label = "distance behind the chunk (tokens)", .column = "distance_tokens", .log = true};
  distances.y = {.label = "KL (nats)", .column = "divergence_nats", .log = true};
  const auto add = [&](const std::string& name, const lab::Lost& lost, bool dashed) {
    Series series{.name = name, .colour = line_colour(distances.series.size()), .dashed = dashed};
    std::int64_t from = 1;
    for (std::size_t band = 0; band < found.bands.size(); ++band) {
      const auto middle =
          std::sqrt(static_cast<double>(from) * static_cast<double>(found.bands[band]));
      if (lost.by_distance[band] > 0) series.add(middle, lost.by_distance[band]);
      from = found.bands[band] + 1;
    }
    distances.series.push_back(std::move(series));
  };
  add("left out", found.left_out, true);
  for (const lab::ReusedChunk& chunk : found.chunks)
    if (chunk.read == lab::ChunkRead::alone)
      add(!chunk.moved      ? "not moved"
          : chunk.anew == 0 ? "moved"
                            : fmt::format("moved, {} anew", chunk.anew),
          chunk.lost, !chunk.moved);
  layers.title = "one layer that re-uses, all others fresh";
  layers.x = {.label = "layer",
              .column = "layer",
              .least = 0,
              .most = static_cast<double>(found.layers.size() - 1)};
  layers.y = {.label = "off by, and KL (nats)", .column = "value", .log = true};
  Series keys{.name = "keys, of themselves", .colour = line_colour(7)},
      values{.name = "values, of themselves", .colour = line_colour(7), .dashed = true},
      divergence{.name = "KL", .colour = line_colour(0)};
  for (std::size_t i = 0; i < found.layers.size(); ++i) {
    const lab::ReusedLayer& layer = found.layers[i];
    for (const auto& [series, value] : {std::pair{&keys, layer.keys},
                                        {&values, layer.values},
                                        {&divergence, layer.lost.divergence}})
      if (value > 1e-5) series->add(static_cast<double>(i), value);
  }
  layers.series = {std::move(keys), std::move(values), std::move(divergence)};
  figure.panels = {std::move(distances), std::move(layers)};
  return figure;
}

Expected<Figure> figure_of(const std::string& text, const std::string& where) {
  if (const Expected<lab::Reuse> found = lab::reuse_of_json(text, where))
    return reuse_figure(*found);
  POSENC_TRY(found, lab::perplexity_of_json(text, where));
  if (found.curves.size() < 2)
    return fail(where, "must have two scalings at the least, to be compared",
                std::to_string(found.curves.size()), "run it with --scalings none,yarn");
  return perplexity_figure(found);
}

Run define_picture(CLI::App& app) {
  struct PictureFlags {
    std::string results, out;
  };
  auto flags = std::make_shared<PictureFlags>();
  app.add_option("RESULTS", flags->results,
                 "What posenc lab perplexity --json or posenc lab reuse --json has printed")
      ->required();
  app.add_option("OUT", flags->out, "The picture: .png, .svg or .pdf")->required();
  app.footer(
      "Losses by position, and below them what each scaling changes: within the trained length "
      "against the first\n"
      "scaling, beyond it against the second. Of posenc lab reuse, what is lost by distance and by "
      "layer. gnuplot draws (Debian: gnuplot-nox).\n\n"
      "Examples:\n"
      "  posenc lab perplexity m.gguf book.txt --scalings none,dynamic:1,yarn --length 16k --block "
      "256 --json > r.json\n"
      "  posenc lab picture r.json loss.svg");
  return [flags]() -> Expected<int> {
    POSENC_TRY(text, named_text(flags->results, std::size_t{64} << 20));
    POSENC_TRY(format, format_of(flags->out, "lab picture"));
    POSENC_TRY(figure, figure_of(text, flags->results));
    POSENC_TRY(bytes, picture(figure, format, {}));
    POSENC_CHECK(write_whole(flags->out, {bytes}));
    return 0;
  };
}

}  // namespace

extern const Command lab_picture{"picture", "what perplexity or reuse printed, drawn",
                                 define_picture};

}  // namespace posenc::cli
