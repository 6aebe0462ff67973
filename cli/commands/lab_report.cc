// posenc lab collect and report: what runs of small models say together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/figures/draw/colours.h"
#include "cli/figures/draw/draw.h"
#include "cli/pages/terminal.h"
#include "evidence/lab/train/report.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

namespace fs = std::filesystem;

// --- the page ------------------------------------------------------------------------------------

std::string interval_text(const lab::Interval& interval, int digits) {
  if (interval.n == 0) return "";
  if (interval.n == 1) return fmt::format("{:.{}f}", interval.mean, digits);
  return fmt::format("{:.{}f} ±{:.{}f}", interval.mean, digits, interval.half_width, digits);
}

double median_of(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const std::size_t half = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

// "0.60 0.51–0.72": the median, and the extremes.
std::string range_text(const std::vector<double>& seeds) {
  if (seeds.empty()) return "";
  const auto [least, most] = std::ranges::minmax(seeds);
  return fmt::format("{:.2f} {:.2f}–{:.2f}", median_of(seeds), least, most);
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
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      out +=
          right(table.all_or_nothing ? range_text(row.seeds[i]) : interval_text(row.cells[i], 3));
      seeds = std::max(seeds, row.cells[i].n);
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

// --- pictures ------------------------------------------------------------------------------------

Axis axis_of(const lab::Results& table) {
  static const std::map<std::string_view, std::string_view> words = {
      {"length", "length (tokens)"},    {"step", "steps of tuning"},
      {"symbols", "symbols"},           {"layer", "behind layer"},
      {"eighth", "eighth of the text"}, {"rate", "learning rate (millionths)"}};
  const bool log = table.column == "length" || table.column == "rate";
  Axis axis{.label = std::string(words.at(table.column)),
            .column = table.column == "length" ? "length_tokens"
                      : table.column == "step" ? "steps"
                                               : table.column,
            .least = static_cast<double>(table.columns.front()),
            .most = static_cast<double>(table.columns.back()),
            .log = log};
  for (const std::int64_t at : table.columns)
    if (table.column != "symbols" || at % 2 == 0)
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
    y.reserve(row.cells.size());
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
      if (outcome.cell.experiment != table.experiment) continue;
      std::int64_t last = -1;
      for (const lab::Measurement& m : outcome.measured)
        if (m.arm == row.arm && m.metric == "nats") last = std::max(last, m.step);
      if (last < 0) continue;
      Series seed{.name = fmt::format("seed {}", outcome.cell.seed),
                  .in_legend = false,
                  .colour = line_colour(1),
                  .width = 0.5};
      for (const lab::Measurement& m : outcome.measured)
        if (m.arm == row.arm && m.metric == "nats" && m.step == last) {
          seed.add(static_cast<double>(m.length), m.value);
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

// Which of the panels a table is, and what it shows.
struct Titled {
  const lab::Results* table;
  std::string title;
};

// A panel for each table: a line for each arm, its mean over seeds.
Figure means_figure(const std::vector<Titled>& list, std::string title, std::string caption,
                    const std::string& y, const std::string& column) {
  Figure figure{
      .title = std::move(title),
      .caption = std::move(caption),
      .columns = std::ssize(list),
      .shared_axes = std::ranges::all_of(
          list,
          [&](const Titled& each) { return each.table->column == list.front().table->column; }),
      .height = 260};
  for (const auto& [table, name] : list) {
    Panel panel{.title = name, .x = axis_of(*table), .y = {.label = y, .column = column}};
    std::size_t line = 0;
    for (const lab::Row& row : table->rows) {
      Series series{.name = row.arm,
                    .in_legend = table == list.front().table,
                    .colour = line_colour(line),
                    .dashed = line >= line_colours};
      ++line;
      for (std::size_t i = 0; i < row.cells.size(); ++i) {
        series.add(static_cast<double>(table->columns[i]),
                   row.cells[i].n > 0 ? row.cells[i].mean : NAN);
      }
      if (std::ranges::count_if(series.y, [](double at) { return std::isfinite(at); }) > 1)
        panel.series.push_back(std::move(series));
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

// A panel for each task and scheme, a dot for each seed: what is learned whole or not at all has no
// mean.
Figure dots_figure(const std::vector<const lab::Results*>& tasks) {
  Figure figure{.title = "E4: more symbols than in training",
                .caption =
                    "The share of answers without a mistake; a dot for each seed, a line through "
                    "their medians. Training ends at the "
                    "upright line.",
                .columns = 4};
  for (const lab::Results* table : tasks)
    for (const lab::Row& row : table->rows) {
      Panel panel{.title = row.arm,
                  .x = axis_of(*table),
                  .y = {.label = "right", .column = "share_right", .least = -0.05, .most = 1.05}};
      panel.rules.push_back(
          {.at = static_cast<double>(table->trained), .text = {}, .vertical = true});
      Series dots{.name = "seeds",
                  .in_legend = false,
                  .colour = line_colour(1),
                  .mark = Mark::dots,
                  .width = 3};
      Series median{.name = "median", .in_legend = false, .colour = line_colour(1), .width = 0.7};
      for (std::size_t i = 0; i < row.seeds.size(); ++i) {
        const auto x = static_cast<double>(table->columns[i]);
        for (const double share : row.seeds[i]) {
          dots.add(x, share);
        }
        if (row.seeds[i].empty()) continue;
        median.add(x, median_of(row.seeds[i]));
      }
      panel.series.push_back(std::move(median));
      panel.series.push_back(std::move(dots));
      figure.panels.push_back(std::move(panel));
    }
  figure.height = 50 + 95 * std::ceil(static_cast<double>(figure.panels.size()) / 4);
  return figure;
}

// A panel for each arm: a row for each length, a column for each eighth of a text.
Figure recall_figure(const std::vector<const lab::Results*>& lengths, std::string title) {
  Figure figure{.title = std::move(title),
                .caption =
                    "Of eight facts, one in each eighth of a text, the share that is found when "
                    "its end asks for them. One in ten "
                    "is chance. Means over seeds.",
                .columns = 4,
                .shared_axes = true,
                .scale = {.label = "share found", .column = "share_found"}};
  for (const lab::Row& arm : lengths.front()->rows) {
    Panel panel{.title = arm.arm,
                .x = axis_of(*lengths.front()),
                .y = {.label = "length (tokens)", .column = "length"}};
    panel.x.least = 0.5;
    panel.x.most = static_cast<double>(arm.cells.size()) + 0.5;
    Matrix matrix{.rows = std::ssize(lengths), .columns = std::ssize(arm.cells), .first_x = 1};
    for (std::size_t row = 0; row < lengths.size(); ++row) {
      panel.y.ticks.emplace_back(static_cast<double>(row), std::to_string(lengths[row]->length));
      const auto same = std::ranges::find(lengths[row]->rows, arm.arm, &lab::Row::arm);
      for (std::size_t i = 0; i < arm.cells.size(); ++i)
        matrix.values.push_back(same != lengths[row]->rows.end() ? same->cells[i].mean : NAN);
    }
    panel.y.least = -0.5;
    panel.y.most = static_cast<double>(lengths.size()) - 0.5;
    panel.matrix = std::move(matrix);
    figure.panels.push_back(std::move(panel));
  }
  figure.height = 70 + 100 * std::ceil(static_cast<double>(figure.panels.size()) / 4);
  return figure;
}

Expected<void> draw(const Figure& figure, const fs::path& path) {
  POSENC_TRY(bytes, picture(figure, Format::png, {}));
  POSENC_CHECK(write_whole(path.string(), {bytes}));
  write_out("{}\n", path.string());
  return {};
}

Expected<void> draw_all(const std::vector<lab::Outcome>& outcomes, const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  const std::vector<lab::Results> tables = lab::tables(outcomes);
  for (const lab::Experiment& experiment : lab::experiments()) {
    // The experiment's tables by what their columns are.
    const auto those = [&](std::string_view column) {
      std::vector<const lab::Results*> list;
      for (const lab::Results& table : tables)
        if (table.experiment == experiment.name && table.column == column) list.push_back(&table);
      return list;
    };
    const std::string name(experiment.name), title = name + ": " + std::string(experiment.title);
    std::vector<std::pair<std::string, Figure>> figures;
    const auto lengths = those("length"), steps = those("step"), layers = those("layer"),
               eighths = those("eighth"), rates = those("rate"), symbols = those("symbols");
    if (name == "E2" && lengths.size() == 1 && steps.size() == 1)
      figures.emplace_back(name, means_figure({{lengths[0], "before tuning"},
                                               {steps[0], "tuned at the greatest length"}},
                                              title,
                                              "Left: by length before any tuning. Right: at the "
                                              "greatest length after steps of tuning there. Means "
                                              "over seeds.",
                                              "nats a byte", "nats_a_byte"));
    else if (name == "E2" && lengths.size() == 1)
      figures.emplace_back(name, means_figure({{lengths[0], "before tuning"}}, title,
                                              "By length before any tuning. Means over seeds.",
                                              "nats a byte", "nats_a_byte"));
    else if (!lengths.empty() && layers.empty())
      figures.emplace_back(name, lengths_figure(outcomes, *lengths[0]));
    if (!rates.empty())
      figures.emplace_back(name, means_figure({{rates[0], "one seed"}}, title,
                                              "The loss at the trained length by learning rate.",
                                              "nats a byte", "nats_a_byte"));
    if (!symbols.empty()) figures.emplace_back(name, dots_figure(symbols));
    if (layers.size() == 2)
      figures.emplace_back(
          name, means_figure({{layers[0], "before training"}, {layers[1], "after training"}},
                             "E5: where a position can be read",
                             "R² of a linear probe for the position in the residual stream, before "
                             "each layer and behind the last. causal_: models that read backwards "
                             "alone. Means over seeds.",
                             "R²", "r2"));
    if (!eighths.empty())
      figures.emplace_back(name + (lengths.empty() ? "" : "-recall"),
                           recall_figure(eighths, title));
    for (const auto& [file, figure] : figures)
      POSENC_CHECK(draw(figure, fs::path(folder) / ("lab-" + file + ".png")));
  }
  return {};
}

// --- the commands --------------------------------------------------------------------------------

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
    POSENC_TRY(outcomes, lab::read_outcomes(flags->results));
    for (const lab::Outcome& outcome : outcomes) write_out("{}\n", outcome.line);
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
    POSENC_TRY(outcomes, lab::read_outcomes(flags->results));
    write_out("{}", page(outcomes, terminal(no_color(app))));
    if (!flags->pictures.empty()) POSENC_CHECK(draw_all(outcomes, flags->pictures));
    return 0;
  };
}

}  // namespace

extern const Command lab_collect{"collect", "the results of a folder as JSON lines, in order",
                                 define_collect};
extern const Command lab_report{
    "report", "tables and verdicts of a folder of results, and pictures", define_report};

}  // namespace posenc::cli
