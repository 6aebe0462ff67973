// posenc lab collect and report: what runs of small models say together.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/draw/draw.h"
#include "cli/pages/terminal.h"
#include "lab/train/report.h"

namespace posenc::cli {
namespace {

namespace fs = std::filesystem;

// --- the page --------------------------------------------------------------------------------------

std::string interval_text(const lab::Interval& interval, int digits) {
  if (interval.n == 0) return "";
  if (interval.n == 1) return fmt::format("{:.{}f}", interval.mean, digits);
  return fmt::format("{:.{}f} ±{:.{}f}", interval.mean, digits, interval.half_width, digits);
}

std::string table_page(const lab::Results& table, const Terminal& term) {
  constexpr std::size_t first = 18, width = 15;
  const auto right = [&](const std::string& text) {
    return std::string(width - std::min(width, columns(text)), ' ') + text;
  };
  std::string out = "\n" + term.bold(table.title) + "\n\n" + padded(table.column, first);
  for (const std::int64_t column : table.columns) out += right(grouped(column));
  out += right("seeds") + "\n";
  for (const lab::Row& row : table.rows) {
    out += padded(row.arm, first);
    std::int64_t seeds = 0;
    for (const lab::Interval& cell : row.cells) {
      out += right(interval_text(cell, 3));
      seeds = std::max(seeds, cell.n);
    }
    out += right(std::to_string(seeds)) + "\n";
  }
  return out;
}

std::string judged_page(const lab::Judged& judged, const Terminal& term) {
  const lab::Hypothesis& said = *judged.hypothesis;
  const std::string verdict = padded(std::string(name(judged.judgement)), 15);
  std::string out = judged.judgement == lab::Judgement::contradicted ? term.yellow(verdict)
                    : judged.judgement == lab::Judgement::reproduced ? term.blue(verdict)
                                                                     : term.dim(verdict);
  out += wrapped(fmt::format("{}{}.", said.statement,
                             said.claim.empty() ? "" : fmt::format(" ({})", said.claim)),
                 15, 15) +
         "\n";
  return out + std::string(15, ' ') +
         term.dim(fmt::format("{} difference {:+.3f} ±{:.3f}, {} {:g}; n {}, p {:.2g}, Holm "
                              "{:.2g}, sign flips {:.2g}",
                              said.experiment, judged.difference.mean, judged.difference.half_width,
                              said.above ? "claimed above" : "claimed below", said.bound,
                              judged.difference.n, judged.p, judged.holm, judged.sign_flip)) +
         "\n";
}

std::string page(const std::vector<lab::Outcome>& outcomes, const Terminal& term) {
  const lab::Cell& cell = outcomes.front().cell;
  double seconds = 0;
  for (const lab::Outcome& outcome : outcomes) seconds += outcome.seconds;
  std::string out = wrapped(fmt::format("{} runs of decoders {} wide with {} layers, {} steps of "
                                        "{} × {} bytes, {} of one "
                                        "thread ({}). What so small models show need not hold of "
                                        "large ones: a verdict says what was "
                                        "measured here.",
                                        outcomes.size(), cell.shape.width, cell.shape.layers,
                                        cell.steps, cell.texts, cell.shape.trained_length,
                                        seconds < 100 ? fmt::format("{:.0f} seconds", seconds)
                                                      : fmt::format("{:.0f} minutes", seconds / 60),
                                        outcomes.front().machine),
                            0, 0) +
                    "\n";
  const std::vector<lab::Judged> judged = lab::judge(outcomes);
  if (!judged.empty()) out += "\n" + term.bold("Claimed beforehand") + "\n\n";
  for (const lab::Judged& each : judged) out += judged_page(each, term);
  if (!judged.empty())
    out += "\n" +
           wrapped(
               "Differences are of the same seed: its order of texts, its weights wherever models "
               "have them in "
               "common, the same bytes scored. ± is Student's 95 % interval over seeds. A verdict "
               "needs six seeds "
               "and, with Holm's correction for all that is claimed here, p below 0.05.",
               0, 0) +
           "\n";
  for (const lab::Results& table : lab::tables(outcomes)) out += table_page(table, term);
  return out;
}

// --- pictures --------------------------------------------------------------------------------------

Axis axis_of(const lab::Results& table) {
  const bool lengths = table.column == "length";
  Axis axis{.label = lengths ? "length (tokens)" : "steps of tuning",
            .column = lengths ? "length_tokens" : "steps",
            .least = static_cast<double>(table.columns.front()),
            .most = static_cast<double>(table.columns.back()),
            .log = lengths};
  for (const std::int64_t at : table.columns)
    axis.ticks.emplace_back(static_cast<double>(at), std::to_string(at));
  return axis;
}

// A panel for each arm: its seeds thin, its mean thick, the means of all others grey behind.
Figure lengths_figure(const std::vector<lab::Outcome>& outcomes, const lab::Results& table) {
  Figure figure{.title = table.title,
                .caption =
                    "The last half of a trained length of bytes, given as much text before them as "
                    "x says. Each "
                    "line a seed, the thick one their mean, grey the means of the others.",
                .columns = 4,
                .shared_axes = true};
  const auto curve = [&](const lab::Row& row) {
    std::vector<double> y;
    for (const lab::Interval& cell : row.cells) y.push_back(cell.n > 0 ? cell.mean : NAN);
    return y;
  };
  const std::vector<double> x(table.columns.begin(), table.columns.end());
  for (const lab::Row& row : table.rows) {
    Panel panel{.title = row.arm,
                .x = axis_of(table),
                .y = {.label = "nats a byte", .column = "nats_a_byte"}};
    for (const lab::Row& other : table.rows)
      if (other.arm != row.arm)
        panel.series.push_back(
            {.name = other.arm, .in_legend = false, .colour = nothing, .x = x, .y = curve(other)});
    for (const lab::Outcome& outcome : outcomes) {
      if (outcome.cell.arm != row.arm || !table.title.starts_with(outcome.cell.experiment))
        continue;
      Series seed{.name = fmt::format("seed {}", outcome.cell.seed),
                  .in_legend = false,
                  .colour = line_colour(1),
                  .width = 0.5};
      for (const lab::Measurement& m : outcome.measured)
        if (m.metric == "nats") {
          seed.x.push_back(static_cast<double>(m.length));
          seed.y.push_back(m.value);
        }
      panel.series.push_back(std::move(seed));
    }
    panel.series.push_back({.name = "mean",
                            .in_legend = false,
                            .colour = line_colour(1),
                            .width = 2,
                            .x = x,
                            .y = curve(row)});
    figure.panels.push_back(std::move(panel));
  }
  figure.height = 60 + 95 * std::ceil(static_cast<double>(figure.panels.size()) / 4);
  return figure;
}

Figure means_figure(const std::vector<const lab::Results*>& list) {
  Figure figure{
      .title = "E2: a trained RoPE stretched by 8",
      .caption =
          "Left: by length before any tuning. Right: at the greatest length after steps of tuning "
          "there. Means over seeds.",
      .columns = 2,
      .height = 260};
  for (const lab::Results* table : list) {
    const bool by_length = table->column == "length";
    Panel panel{.title = by_length ? "before tuning" : "tuned at the greatest length",
                .x = axis_of(*table),
                .y = {.label = "nats a byte", .column = "nats_a_byte"}};
    std::size_t colour = 0;
    for (const lab::Row& row : table->rows) {
      Series series{.name = row.arm, .in_legend = by_length, .colour = line_colour(colour++)};
      for (std::size_t i = 0; i < row.cells.size(); ++i) {
        series.x.push_back(static_cast<double>(table->columns[i]));
        series.y.push_back(row.cells[i].mean);
      }
      panel.series.push_back(std::move(series));
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

Expected<void> draw(const Figure& figure, const fs::path& path) {
  const Expected<std::string> bytes = picture(figure, Format::png, {});
  if (!bytes) return std::unexpected(bytes.error());
  if (Expected<void> written = write_whole(path.string(), {*bytes}); !written) return written;
  fmt::print("{}\n", path.string());
  return {};
}

Expected<void> draw_all(const std::vector<lab::Outcome>& outcomes, const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  std::vector<const lab::Results*> stretched;
  const std::vector<lab::Results> tables = lab::tables(outcomes);
  for (const lab::Results& table : tables) {
    const std::string experiment = table.title.substr(0, 2);
    if (experiment == "E2") stretched.push_back(&table);
    if (experiment == "E2" || experiment == "E3" || experiment == "E4") continue;
    if (Expected<void> done = draw(lengths_figure(outcomes, table),
                                   fs::path(folder) / ("lab-" + experiment + ".png"));
        !done)
      return done;
  }
  if (stretched.empty()) return {};
  return draw(means_figure(stretched), fs::path(folder) / "lab-E2.png");
}

// --- the commands ----------------------------------------------------------------------------------

struct ReportFlags {
  std::string results, pictures;
};

void add_results(CLI::App& app, ReportFlags& flags) {
  app.add_option("DIR", flags.results, "A folder of results, or a file of them, a line each")
      ->type_name("DIR")
      ->required();
}

Run define_collect(CLI::App& app) {
  auto flags = std::make_shared<ReportFlags>();
  add_results(app, *flags);
  app.footer("Example:\n  posenc lab collect out/lab > results.jsonl");
  return [flags]() -> Expected<int> {
    const Expected<std::vector<lab::Outcome>> outcomes = lab::read_outcomes(flags->results);
    if (!outcomes) return std::unexpected(outcomes.error());
    for (const lab::Outcome& outcome : *outcomes) fmt::print("{}\n", outcome.line);
    return 0;
  };
}

Run define_report(CLI::App& app) {
  auto flags = std::make_shared<ReportFlags>();
  add_results(app, *flags);
  app.add_option("--pictures", flags->pictures,
                 "Also draw pictures into this folder (needs gnuplot)")
      ->type_name("DIR");
  app.footer(
      "What was claimed before the runs comes first, the contradicted on top; then a table for "
      "each "
      "experiment.\n\n"
      "Example:\n  posenc lab report out/lab --pictures out/lab");
  return [flags, &app]() -> Expected<int> {
    const Expected<std::vector<lab::Outcome>> outcomes = lab::read_outcomes(flags->results);
    if (!outcomes) return std::unexpected(outcomes.error());
    fmt::print("{}", page(*outcomes, terminal(no_color(app))));
    if (!flags->pictures.empty())
      if (Expected<void> drawn = draw_all(*outcomes, flags->pictures); !drawn)
        return std::unexpected(drawn.error());
    return 0;
  };
}

}  // namespace

extern const Command lab_collect{"collect", "the results of a folder as JSON lines, in order",
                                 define_collect};
extern const Command lab_report{
    "report", "tables and verdicts of a folder of results, and pictures", define_report};

}  // namespace posenc::cli
