// How well a ring of ranks scales: what its numbers of operations and bytes allow, and rows of
// `posenc bench ring` beside.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/figures/common.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/kind.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace of_ring {

struct Options {
  std::int64_t tokens = 32768, heads = 16, kv_heads = 4, head_dim = 128, ranks = 64;
  double speed = 1400, network = 10, delay = 20;  // GFLOP/s, Gb/s, µs
  std::string rows;
};

struct Row {
  double ranks = 0, efficiency = 0, hidden = 0;
  std::string layout, strategy;
  bool simulated = false;
};

Expected<std::vector<Row>> rows_of(const std::string& path) {
  constexpr std::size_t most = std::size_t{1} << 24;
  POSENC_TRY(text, named_text(path, most));
  const auto all = nlohmann::json::parse(text, nullptr, false);
  const auto damaged = [&] {
    return fail(path, "must be what posenc bench ring --json prints", "something else",
                "make it again (backends/distributed/simulated.sh)");
  };
  if (!all.is_array()) return damaged();
  std::vector<Row> rows;
  for (const auto& each : all) {
    const auto number = [&](const char* key) {
      return each.is_object() && each.contains(key) && each[key].is_number()
                 ? each[key].template get<double>()
                 : std::nan("");
    };
    const auto word = [&](const char* key) {
      return each.is_object() && each.contains(key) && each[key].is_string()
                 ? each[key].template get<std::string>()
                 : std::string();
    };
    const double ranks = number("ranks"), of_whole = number("of_whole");
    if (!(ranks >= 1 && of_whole > 0) || std::isnan(number("hidden"))) return damaged();
    rows.push_back({.ranks = ranks,
                    .efficiency = 1 / (ranks * of_whole),
                    .hidden = number("hidden"),
                    .layout = word("layout"),
                    .strategy = word("strategy"),
                    .simulated = each.contains("simulated") && each["simulated"] == true});
  }
  return rows;
}

// Of causal text in zigzag: each of `ranks` blocks of keys costs a rank the same, and each but its
// own arrives.
struct Cost {
  double block = 0, message = 0;  // seconds
};
Cost cost_of(const Options& options, double ranks) {
  const double own = static_cast<double>(options.tokens) / ranks,
               channels = static_cast<double>(options.head_dim);
  return {2 * static_cast<double>(options.heads) * channels * own * own / (options.speed * 1e9),
          options.delay * 1e-6 + 8 * static_cast<double>(options.kv_heads) * channels * own /
                                     (options.network * 1e9 / 8)};
}

Expected<Figure> draw(const Options& options) {
  Figure figure{.columns = 2, .height = 270};
  // Where a message takes as long as the block before it.
  const double knee = 4 * static_cast<double>(options.kv_heads) /
                      static_cast<double>(options.heads) * options.speed / (options.network / 8);
  figure.title = fmt::format("A ring over {} tokens, {:.4g} GFLOP/s a rank, {:.3g} Gb/s between",
                             grouped(options.tokens), options.speed, options.network);
  Panel efficiency, hidden;
  efficiency.title = "one process's time, of all ranks'";
  hidden.title = "messages' time that nobody awaits";
  efficiency.y = {.label = "efficiency", .column = "efficiency", .least = 0, .most = 1.05};
  hidden.y = {.label = "hidden", .column = "hidden", .least = 0, .most = 1.05};
  Series ring{.name = "ring, by its formula", .colour = line_colour(0)},
      gather{.name = "gather, by its formula", .colour = line_colour(1), .dashed = true},
      cover{.name = "ring, by its formula", .colour = line_colour(0)};
  std::vector<std::pair<double, std::string>> ticks;
  for (std::int64_t power = 1; power <= options.ranks; power *= 2)
    ticks.emplace_back(static_cast<double>(power), std::to_string(power));
  const auto most = static_cast<double>(options.ranks);
  for (int eighth = 0; std::exp2(eighth / 8.0) <= most * 1.0001; ++eighth) {
    const double ranks = std::exp2(eighth / 8.0);
    const Cost cost = cost_of(options, ranks);
    const double whole = ranks * cost.block, sent = (ranks - 1) * cost.message;
    ring.add(ranks, whole / (cost.block + (ranks - 1) * std::max(cost.block, cost.message)));
    gather.add(ranks, whole / (whole + sent));
    cover.add(ranks, std::min(1.0, cost.block / cost.message));
  }
  efficiency.series = {ring, gather};
  hidden.series = {cover};
  for (Panel* const panel : {&efficiency, &hidden}) {
    panel->x = {.label = "ranks",
                .column = "ranks",
                .least = 1,
                .most = most * 1.1,
                .log = true,
                .ticks = ticks};
    const double at = static_cast<double>(options.tokens) / knee;
    if (at > 1 && at < most)
      panel->rules.push_back({at, fmt::format("{:.0f} tokens a rank", knee), true});
  }
  bool simulated = false, measured = false;
  if (!options.rows.empty()) {
    POSENC_TRY(rows, rows_of(options.rows));
    std::size_t colour = 2;
    for (const auto& [layout, strategy] : {std::pair{"zigzag", "ring"},
                                           {"striped", "ring"},
                                           {"contiguous", "ring"},
                                           {"zigzag", "gather"},
                                           {"zigzag", "heads"}}) {
      Series points{.name = fmt::format("{}, {}", layout, strategy),
                    .colour = line_colour(colour++),
                    .mark = Mark::points};
      Series covered = points;
      for (const Row& row : rows) {
        if (row.layout != layout || row.strategy != strategy) continue;
        (row.simulated ? simulated : measured) = true;
        points.x.push_back(row.ranks), points.y.push_back(row.efficiency);
        covered.x.push_back(row.ranks), covered.y.push_back(row.hidden);
      }
      if (points.x.empty()) continue;
      if (points.name.ends_with("ring")) hidden.series.push_back(covered);
      efficiency.series.push_back(points);
    }
  }
  figure.caption = fmt::format(
      "Causal text, {} heads of {} ({} of keys), float32. Lines are what operations and bytes "
      "allow "
      "in zigzag; left of the rule a block takes longer than the message behind it.",
      options.heads, options.head_dim, options.kv_heads);
  // In the picture itself, since captions do not travel with it.
  if (simulated) figure.title += measured ? "; some points simulated" : "; points simulated";
  figure.panels = {std::move(efficiency), std::move(hidden)};
  return figure;
}

Drawing define(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--tokens", options->tokens, "Of the text")
      ->transform(token_count())
      ->type_name("TOKENS");
  app.add_option("--heads", options->heads, "Query heads")->check(CLI::Range(1, 4096));
  app.add_option("--kv_heads", options->kv_heads, "Heads of keys")->check(CLI::Range(1, 4096));
  app.add_option("--head_dim", options->head_dim, "Channels of a head")
      ->check(CLI::Range(1, 65536));
  app.add_option("--ranks", options->ranks, "The most of them")->check(CLI::Range(2, 4096));
  app.add_option("--speed", options->speed, "Of a rank, GFLOP/s")->check(CLI::PositiveNumber);
  app.add_option("--network", options->network, "Between ranks, Gb/s")->check(CLI::PositiveNumber);
  app.add_option("--delay", options->delay, "Of a message, µs")->check(CLI::NonNegativeNumber);
  app.add_option("--rows", options->rows, "What posenc bench ring --json has printed, as points")
      ->type_name("FILE");
  return [options] { return draw(*options); };
}

constexpr std::string_view examples[] = {
    "ring.png --tokens 32k --speed 1400 --network 10",
};

}  // namespace of_ring

extern const Kind ring{"ring", "How attention scales over ranks, and where messages no longer hide",
                       of_ring::define, of_ring::examples};

}  // namespace posenc::cli
