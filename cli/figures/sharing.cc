// How far attention of a model scales over the ranks of a machine, under each way of sharing a text
// out: what `posenc lint --cp --machine` predicts, for many ranks and models at once.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "cli/pages/terminal.h"
#include "posenc/context_parallel.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_sharing {

struct Options {
  std::vector<std::string> models = {"llama-3.1-8b", "gemma-3-4b", "gpt-oss-20b", "llama-4-scout",
                                     "deepseek-v3"};
  std::string machine = "h100";
  std::int64_t length = 1048576, ranks = 4096;
};

struct Way {
  std::string_view name, words;  // with the ranks in place of {}
};
constexpr Way ways[] = {{"contiguous ring", "contiguous:{}:by=ring"},
                        {"zigzag ring", "zigzag:{}:by=ring"},
                        {"zigzag gather", "zigzag:{}:by=gather"},
                        {"heads", "ulysses:{}"},
                        {"ring + 8 by heads", "ring+heads:{}:heads=8"}};

// Of 8 ranks and more: a smaller number shares nothing out that is worth a picture.
constexpr std::int64_t fewest_ranks = 8;

Expected<Series> line_of(const Model& model, const Way& way, std::size_t colour,
                         const layout::Machine& machine, const Options& options) {
  Series line{.name = std::string(way.name), .colour = line_colour(colour)};
  for (std::int64_t ranks = fewest_ranks; ranks <= options.ranks; ranks *= 2) {
    const auto words = fmt::format(fmt::runtime(way.words), ranks);
    POSENC_TRY(sharding, layout::read_sharding(words));
    POSENC_TRY(judged,
               layout::judge(model, sharding, {.length = options.length, .machine = machine}));
    // A layout that breaks a layer, such as more ranks than heads, has no time.
    const bool runs = judged.verdict != layout::Verdict::breaks;
    line.add(static_cast<double>(ranks), runs ? judged.efficiency : std::nan(""));
  }
  return line;
}

Expected<Figure> draw(const Options& options) {
  POSENC_TRY(machine, layout::read_machine(options.machine));
  const std::size_t rows = (options.models.size() + 1) / 2;
  Figure figure{.columns = std::min<std::int64_t>(std::ssize(options.models), 2),
                .shared_axes = true,
                .height = 150.0 * static_cast<double>(rows) + 60};
  figure.title = fmt::format("A text of {} tokens over ranks of {}, predicted",
                             grouped(options.length), machine.name);
  figure.caption =
      "One rank's time for attention, of the time of all ranks: 1 is what no message and no idle "
      "rank takes. A line ends where a layout breaks the model, as more ranks than heads do.";
  std::vector<std::pair<double, std::string>> ticks;
  for (std::int64_t ranks = fewest_ranks; ranks <= options.ranks; ranks *= 8)
    ticks.emplace_back(static_cast<double>(ranks), std::to_string(ranks));
  for (const std::string& name : options.models) {
    POSENC_TRY(model, named_model(name));
    Panel panel;
    panel.title = name;
    panel.x = {.label = "ranks",
               .column = "ranks",
               .least = fewest_ranks,
               .most = static_cast<double>(options.ranks) * 1.05,
               .log = true,
               .ticks = ticks};
    panel.y = {.label = "efficiency", .column = "efficiency", .least = 0, .most = 1.05};
    std::size_t colour = 0;
    for (const Way& way : ways) {
      POSENC_TRY(line, line_of(model, way, colour++, machine, options));
      panel.series.push_back(std::move(line));
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--models", options->models, "A panel each: files or bundled names")
      ->delimiter(',')
      ->type_name("MODELS");
  app.add_option("--machine", options->machine,
                 "h100, a100 or core, with other numbers behind it (h100:far_bytes=2.5e10)")
      ->type_name("MACHINE");
  app.add_option("--at,--length", options->length, "Tokens of the text")
      ->transform(token_count())
      ->type_name("TOKENS");
  app.add_option("--ranks", options->ranks, "The most of them")->check(CLI::Range(8, 65536));
  return [options] { return draw(*options); };
}

constexpr std::string_view examples[] = {
    "sharing.svg --at 1M",
};

}  // namespace of_sharing

extern const Kind sharing{"sharing", "How far a model's attention scales over a machine's ranks",
                          of_sharing::define, of_sharing::examples};

}  // namespace posenc::cli
