#include "evidence/lab/train/report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>

#include "src/core/try.h"

namespace posenc::lab {
namespace {

namespace fs = std::filesystem;

// Seeds that a verdict needs: fewer are shown and decide nothing.
constexpr std::int64_t enough_seeds = 6;

Expected<void> read_lines(const fs::path& path, std::vector<Outcome>& into) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    POSENC_TRY(outcome, read_outcome(line, path.string()));
    into.push_back(std::move(outcome));
  }
  return {};
}

// Steps of an arm's measurements: {first, last}.
std::pair<std::int64_t, std::int64_t> steps_of(const Outcome& outcome, std::string_view arm) {
  std::int64_t first = -1, last = -1;
  for (const Measurement& m : outcome.measured) {
    if (m.arm != arm || m.metric == "training") continue;
    first = first < 0 ? m.step : std::min(first, m.step);
    last = std::max(last, m.step);
  }
  return {first, last};
}

std::optional<double> value_of(const Outcome& outcome, std::string_view arm,
                               std::string_view metric, std::int64_t step, std::int64_t length) {
  for (const Measurement& m : outcome.measured)
    if (m.arm == arm && m.metric == metric && m.step == step && m.length == length) return m.value;
  return {};
}

std::optional<double> value_of(const Outcome& outcome, const Reading& reading) {
  const std::int64_t trained = outcome.cell.shape.trained_length;
  if (reading.metric == "training")
    return value_of(outcome, reading.arm, "training",
                    std::llround(reading.at * static_cast<double>(outcome.cell.steps)), trained);
  const auto [first, last] = steps_of(outcome, reading.arm);
  if (reading.metric == "position_r2_last")
    return value_of(outcome, reading.arm,
                    "position_r2_" + std::to_string(outcome.cell.shape.layers),
                    reading.at == 0 ? first : last, trained);
  const bool untuned = reading.arm != outcome.cell.arm && first == last;
  if (reading.metric == "nats" && untuned) return {};
  if (reading.metric == "tuned")
    return value_of(outcome, reading.arm, "nats",
                    std::llround(reading.at * static_cast<double>(last)), reading.times * trained);
  if (reading.metric == "exact")
    return value_of(outcome, reading.arm, "exact", last, reading.times);
  if (reading.metric != "nats" && reading.metric != "zero-shot")
    return value_of(outcome, reading.arm, reading.metric, reading.at == 0 ? first : last,
                    reading.times * trained);
  return value_of(outcome, reading.arm, "nats", reading.metric == "zero-shot" ? first : last,
                  reading.times * trained);
}

std::map<std::uint64_t, double> by_seed(std::span<const Outcome> outcomes,
                                        std::string_view experiment, const Reading& reading) {
  std::map<std::uint64_t, double> made;
  for (const Outcome& outcome : outcomes)
    if (outcome.cell.experiment == experiment)
      if (const std::optional<double> value = value_of(outcome, reading))
        made[outcome.cell.seed] = *value;
  return made;
}

Judged judged(std::span<const Outcome> outcomes, const Hypothesis& hypothesis) {
  const auto left = by_seed(outcomes, hypothesis.experiment, hypothesis.left),
             right = by_seed(outcomes, hypothesis.experiment, hypothesis.right);
  std::vector<double> differences, beyond;
  for (const auto& [seed, value] : left)
    if (const auto other = right.find(seed); other != right.end()) {
      differences.push_back(value - other->second);
      beyond.push_back(differences.back() - hypothesis.bound);
    }
  return {.hypothesis = &hypothesis,
          .difference = interval_of(differences),
          .p = t_test_p(beyond),
          .sign_flip = sign_flip_p(beyond)};
}

std::vector<std::string> arms_of(std::span<const Outcome> outcomes, std::string_view experiment) {
  std::vector<std::string> arms;
  for (const Outcome& outcome : outcomes)
    for (const Measurement& m : outcome.measured)
      if (outcome.cell.experiment == experiment && std::ranges::find(arms, m.arm) == arms.end())
        arms.push_back(m.arm);
  return arms;
}

// What an experiment has of another one: the same runs under another name.
std::vector<Outcome> with_shared(std::span<const Outcome> outcomes) {
  std::vector<Outcome> all(outcomes.begin(), outcomes.end());
  for (const SharedArm& shared : shared_arms())
    for (const Outcome& outcome : outcomes) {
      if (outcome.cell.experiment != shared.of_experiment || outcome.cell.arm != shared.of_arm)
        continue;
      Outcome& copy = all.emplace_back(outcome);
      copy.cell.experiment = shared.experiment;
      copy.cell.arm = shared.arm;
      for (Measurement& m : copy.measured)
        if (m.arm == shared.of_arm) m.arm = shared.arm;
    }
  return all;
}

// What `number(outcome, measurement)` makes of a measurement is its column; none leaves it out.
template <class Column>
Results results(std::span<const Outcome> outcomes, std::string_view experiment, std::string title,
                std::string column, Column&& number) {
  std::map<std::pair<std::string, std::int64_t>, std::vector<double>> found;
  Results made{.experiment = std::string(experiment),
               .title = std::string(experiment) + ": " + std::move(title),
               .column = std::move(column)};
  for (const Outcome& outcome : outcomes) {
    if (outcome.cell.experiment != experiment) continue;
    for (const Measurement& m : outcome.measured) {
      const std::optional<std::int64_t> at = number(outcome, m);
      if (!at) continue;
      found[{m.arm, *at}].push_back(m.value);
      if (std::ranges::find(made.columns, *at) == made.columns.end()) made.columns.push_back(*at);
    }
  }
  std::ranges::sort(made.columns);
  for (const std::string& arm : arms_of(outcomes, experiment)) {
    Row row{.arm = arm, .cells = {}, .seeds = {}};
    for (const std::int64_t at : made.columns) {
      row.seeds.push_back(found[{arm, at}]);
      row.cells.push_back(interval_of(row.seeds.back()));
    }
    if (std::ranges::any_of(row.cells, [](const Interval& cell) { return cell.n > 0; }))
      made.rows.push_back(std::move(row));
  }
  return made;
}

using Maybe = std::optional<std::int64_t>;

// The number behind a metric's name: 3 of recall_3.
Maybe number_behind(std::string_view metric, std::string_view name) {
  if (!metric.starts_with(name)) return {};
  std::int64_t number = 0;
  const char* const end = metric.data() + metric.size();
  if (std::from_chars(metric.data() + name.size(), end, number).ptr != end) return {};
  return number;
}

// Arms of E4 begin with their task: copy_rope.
std::string_view task_of(std::string_view arm) { return arm.substr(0, arm.find('_')); }

std::vector<Results> task_tables(std::span<const Outcome> outcomes) {
  std::vector<std::string> tasks;
  for (const Outcome& outcome : outcomes)
    if (const std::string task(task_of(outcome.cell.arm));
        outcome.cell.experiment == "E4" && std::ranges::find(tasks, task) == tasks.end())
      tasks.push_back(task);
  std::vector<Results> made;
  for (const std::string& task : tasks) {
    made.push_back(
        results(outcomes, "E4",
                task + "; share of answers without a mistake by symbols, median of the seeds and "
                       "the extremes",
                "symbols", [&](const Outcome&, const Measurement& m) -> Maybe {
                  if (m.metric != "exact" || task_of(m.arm) != task) return {};
                  return m.length;
                }));
    made.back().all_or_nothing = true;
    for (const Outcome& outcome : outcomes)
      if (outcome.cell.experiment == "E4" && task_of(outcome.cell.arm) == task)
        made.back().trained = outcome.cell.most;
  }
  return made;
}

// A row for each scheme of E1: its loss by rate, of the first seed alone, with E1's own rate among
// them.
Results sweep_table(std::span<const Outcome> outcomes) {
  std::vector<Outcome> swept;
  if (std::ranges::none_of(outcomes, [](const Outcome& o) { return o.cell.experiment == "E3"; }))
    return {};
  for (const Outcome& outcome : outcomes) {
    if (outcome.cell.seed != 1 || outcome.cell.scored > 0 ||  // not of twice the length
        (outcome.cell.experiment != "E1" && outcome.cell.experiment != "E3"))
      continue;
    Outcome& copy = swept.emplace_back(outcome);
    copy.cell.experiment = "E3";
    for (Measurement& m : copy.measured) m.arm = m.arm.substr(0, m.arm.find("_x"));
  }
  return results(swept, "E3",
                 "nats a byte at the trained length, by learning rate in millionths, one seed",
                 "rate", [](const Outcome& outcome, const Measurement& m) -> Maybe {
                   if (m.metric != "nats" || m.length != outcome.cell.shape.trained_length)
                     return {};
                   return std::llround(outcome.cell.rate * 1e6);
                 });
}

void probe_tables(std::span<const Outcome> outcomes, std::vector<Results>& made) {
  for (const bool trained : {false, true})
    made.push_back(results(outcomes, "E5",
                           std::string("R² of a linear probe for the position, by layer, ") +
                               (trained ? "after training" : "before training"),
                           "layer", [&](const Outcome& outcome, const Measurement& m) -> Maybe {
                             if ((m.step == outcome.cell.steps) != trained) return {};
                             return number_behind(m.metric, "position_r2_");
                           }));
  for (const auto& [metric, title] :
       {std::pair("told_apart", "share of texts told apart from the same words in another order"),
        std::pair("true_order", "share of texts likelier than the same words in another order")})
    made.push_back(results(outcomes, "E5", std::string(title) + ", by steps of training", "step",
                           [&](const Outcome&, const Measurement& m) -> Maybe {
                             if (m.metric != metric) return {};
                             return m.step;
                           }));
}

}  // namespace

std::string_view name(Judgement judgement) {
  switch (judgement) {
    case Judgement::contradicted: return "contradicted";
    case Judgement::reproduced: return "reproduced";
    case Judgement::not_seen: return "not seen here";
    case Judgement::too_few: return "too few seeds";
  }
  return "";
}

Expected<std::vector<Outcome>> read_outcomes(const std::string& path) {
  std::vector<fs::path> files;
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed))
      if (at->path().extension() == ".json" || at->path().extension() == ".jsonl")
        files.push_back(at->path());
    std::ranges::sort(files);
  } else if (fs::exists(path, failed)) {
    files.emplace_back(path);
  }
  std::vector<Outcome> outcomes;
  for (const fs::path& file : files) POSENC_CHECK(read_lines(file, outcomes));
  if (outcomes.empty())
    return fail("lab", "needs results that posenc lab run wrote", "none in " + path,
                "posenc lab run --preset quick --out " + path);
  std::string_view text;
  for (const Outcome& outcome : outcomes) {
    if (outcome.text.empty()) continue;
    if (!text.empty() && text != outcome.text)
      return fail("lab", "results must be of one text", std::string(text) + " and " + outcome.text,
                  "keep those of each text in a folder of their own");
    text = outcome.text;
  }
  // In the order in which presets list them: by experiment, then as the arms stand there.
  std::vector<std::string> order;
  for (const Preset& preset : presets()) {
    const Expected<std::vector<Cell>> cells = cells_of(preset);
    for (const Cell& cell : *cells)
      if (const std::string key = cell.experiment + cell.arm;
          std::ranges::find(order, key) == order.end())
        order.push_back(key);
  }
  const auto rank = [&](const Outcome& outcome) {
    const auto at = std::ranges::find(order, outcome.cell.experiment + outcome.cell.arm);
    return std::tuple(std::string_view(outcome.cell.experiment), at - order.begin(),
                      outcome.cell.seed);
  };
  std::ranges::stable_sort(outcomes, {}, rank);
  const auto twice = std::ranges::adjacent_find(outcomes, {}, rank);
  if (twice != outcomes.end())
    return fail("lab", "a run may be there once, and of one preset alone",
                twice->cell.experiment + " " + twice->cell.arm + ", seed " +
                    std::to_string(twice->cell.seed) + " twice",
                "keep presets in folders of their own");
  return outcomes;
}

std::vector<Judged> judge(std::span<const Outcome> given) {
  const std::vector<Outcome> outcomes = with_shared(given);
  std::vector<Judged> list;
  for (const Hypothesis& hypothesis : hypotheses())
    if (Judged made = judged(outcomes, hypothesis); made.difference.n > 1)
      list.push_back(std::move(made));
  std::vector<double> p;
  for (const Judged& each : list) p.push_back(each.p);
  const std::vector<double> corrected = holm(p);
  for (std::size_t i = 0; i < list.size(); ++i) {
    Judged& each = list[i];
    each.holm = corrected[i];
    if (each.difference.n < enough_seeds) each.judgement = Judgement::too_few;
    if (each.difference.n < enough_seeds || each.holm >= 0.05) continue;
    const bool above = each.difference.mean > each.hypothesis->bound;
    each.judgement =
        above == each.hypothesis->above ? Judgement::reproduced : Judgement::contradicted;
  }
  std::ranges::stable_sort(list, {}, &Judged::judgement);
  return list;
}

std::string measured_text(std::span<const Judged> judged, std::string_view claim) {
  std::string text;
  for (const Judged& each : judged) {
    if (each.hypothesis->claim != claim || each.difference.n < enough_seeds) continue;
    const bool is_share = each.hypothesis->left.metric == "exact";
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, ", difference %+.3f ±%.3f %s over %d seeds",
                  each.difference.mean, each.difference.half_width,
                  is_share ? "of the answers" : "nats", static_cast<int>(each.difference.n));
    text += text.empty() ? "" : "; ";
    text += std::string(each.hypothesis->statement) + ": " + std::string(name(each.judgement)) +
            numbers;
  }
  return text.empty() ? text : text + ".";
}

std::vector<Results> tables(std::span<const Outcome> given) {
  const std::vector<Outcome> outcomes = with_shared(given);
  std::vector<Results> made;
  for (const Experiment& experiment : experiments()) {
    const std::string title(experiment.title);
    const bool stretches = experiment.name == "E2" || experiment.name == "E8";
    const auto add = [&](std::string what, std::string column, auto&& number) {
      made.push_back(results(outcomes, experiment.name, title + "; " + std::move(what),
                             std::move(column), number));
    };
    if (experiment.name == "E3") {
      made.push_back(sweep_table(outcomes));
      continue;
    }
    if (experiment.name == "E4") {
      std::ranges::move(task_tables(outcomes), std::back_inserter(made));
      continue;
    }
    add(stretches ? "nats a byte by length, before tuning" : "nats a byte by length", "length",
        [&](const Outcome& outcome, const Measurement& m) -> Maybe {
          const auto [first, last] = steps_of(outcome, m.arm);
          if (m.metric != "nats" || m.step != (stretches ? first : last)) return {};
          if (stretches && m.arm == outcome.cell.arm) return {};  // what `none` is before tuning
          return m.length;
        });
    if (stretches)
      add("nats a byte at the greatest length, by steps of tuning", "step",
          [&](const Outcome& outcome, const Measurement& m) -> Maybe {
            if (m.metric != "nats" || m.arm == outcome.cell.arm ||
                m.length != outcome.cell.tests.back())
              return {};
            return m.step;
          });
    if (experiment.name == "E1")
      add("nats a byte while training, by steps (E3)", "step",
          [](const Outcome& outcome, const Measurement& m) -> Maybe {
            if (m.metric != "training" || m.step * 5 % outcome.cell.steps != 0) return {};
            return m.step;
          });
    if (experiment.name == "E5") probe_tables(outcomes, made);
    std::vector<std::int64_t> times;
    for (const Outcome& outcome : outcomes)
      for (const Measurement& m : outcome.measured)
        if (outcome.cell.experiment == experiment.name && m.metric == "recall_1" &&
            std::ranges::find(times, m.length) == times.end())
          times.push_back(m.length);
    std::ranges::sort(times);
    for (const std::int64_t length : times) {
      add("share of facts found in a text of " + std::to_string(length) +
              ", by the eighth where they stand",
          "eighth", [&](const Outcome& outcome, const Measurement& m) -> Maybe {
            if (m.length != length || m.step != steps_of(outcome, m.arm).second) return {};
            return number_behind(m.metric, "recall_");
          });
      made.back().length = length;
    }
  }
  std::erase_if(made, [](const Results& table) { return table.columns.size() < 2; });
  return made;
}

}  // namespace posenc::lab
