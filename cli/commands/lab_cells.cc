// posenc lab cells, run and again: small models that learn with every scheme, a cell at a time.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "evidence/lab/train/report.h"
#include "evidence/lab/train/weights.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

namespace fs = std::filesystem;

struct CellFlags {
  std::string preset, experiment, cell, out, text, results, weights;
  std::vector<std::string> arms;
  std::uint64_t seeds = 0;
  int jobs = 1;
  std::int64_t sample = 0, tenths = 10;
};

void add_choice(CLI::App& app, CellFlags& flags) {
  app.add_option("--experiment", flags.experiment, "One of them alone: E1 to E10, or E13")
      ->type_name("NAME");
  app.add_option("--arms", flags.arms, "Only these arms of it, such as rope,alibi")
      ->delimiter(',')
      ->type_name("NAME,…");
  app.add_option("--seeds", flags.seeds, "Only seeds up to this one")
      ->check(CLI::PositiveNumber)
      ->default_str("");
}

void add_preset(CLI::App& app, CellFlags& flags) {
  app.add_option("--preset", flags.preset, "quick, standard or full")->type_name("NAME");
  add_choice(app, flags);
}

void add_text(CLI::App& app, CellFlags& flags) {
  app.add_option("--text", flags.text,
                 "A folder of *.pod or *.txt to learn from; default: perl-doc's")
      ->type_name("DIR");
}

bool chosen(const lab::Cell& cell, const CellFlags& flags) {
  return (flags.experiment.empty() || cell.experiment == flags.experiment) &&
         (flags.seeds == 0 || cell.seed <= flags.seeds) &&
         (flags.arms.empty() || std::ranges::find(flags.arms, cell.arm) != flags.arms.end());
}

Expected<std::vector<lab::Cell>> cells(const CellFlags& flags) {
  POSENC_TRY(preset, lab::find_preset(flags.preset));
  POSENC_TRY(list, lab::cells_of(preset, flags.experiment));
  std::erase_if(list, [&](const lab::Cell& cell) { return !chosen(cell, flags); });
  if (list.empty())
    return fail("lab", "no cell is of these arms and seeds", "", "posenc lab cells lists all");
  return std::move(list);
}

Expected<lab::Corpus> corpus(const std::string& folder) {
  if (!folder.empty()) return lab::Corpus::read(folder);
  POSENC_TRY(usual, lab::Corpus::usual_folder());
  return lab::Corpus::read(usual);
}

Expected<void> run_to(const lab::Cell& cell, const lab::Corpus& text, const std::string& path,
                      const std::function<void(double)>& told, const std::string& weights = {}) {
  const auto keep = [&](lab::Decoder& decoder) -> Expected<void> {
    if (weights.empty()) return {};
    POSENC_TRY(bytes, lab::weights_of(cell, decoder));
    return write_whole(weights, {bytes});
  };
  POSENC_TRY(line, lab::run_cell(cell, text, told, 10, keep));
  return write_whole(path, {line, "\n"});
}

// Cells of which the folder has no result yet, shared out among threads. Each runs on one thread,
// and what a run finds does not depend on the others.
class Runs {
 public:
  Runs(std::vector<lab::Cell> cells, const lab::Corpus& text, const std::string& folder)
      : text_(text), folder_(folder) {
    for (lab::Cell& cell : cells)
      if (!fs::exists(path_of(cell))) todo_.push_back(std::move(cell));
    done_.resize(todo_.size(), 0);
  }

  Expected<void> run(int jobs) {
    {
      Progress progress("lab", todo_.size());
      std::vector<std::jthread> threads;
      threads.reserve(static_cast<std::size_t>(jobs));
      for (int i = 0; i < jobs; ++i) threads.emplace_back([this, &progress] { work(progress); });
    }
    if (failed_) return std::unexpected(*failed_);
    return {};
  }
  std::size_t count() const { return todo_.size(); }

 private:
  std::string path_of(const lab::Cell& cell) const {
    return (fs::path(folder_) / (lab::name_of(cell) + ".json")).string();
  }

  void work(Progress& progress) {
    for (std::size_t at = next_++; at < todo_.size() && !stop_; at = next_++) {
      const lab::Cell& cell = todo_[at];
      const Expected<void> done =
          run_to(cell, text_, path_of(cell), [&](double part) { tell(progress, at, part); });
      if (done) continue;
      const std::scoped_lock lock(mutex_);
      failed_ = done.error();
      stop_ = true;
    }
  }

  void tell(Progress& progress, std::size_t at, double part) {
    const std::scoped_lock lock(mutex_);
    done_[at] = part;
    double done = 0;
    for (const double each : done_) done += each;
    progress.tell_share(done / static_cast<double>(todo_.size()),
                        fmt::format("{} {}, seed {}; {:.0f} of {} cells done", todo_[at].experiment,
                                    todo_[at].arm, todo_[at].seed, std::floor(done), todo_.size()));
  }

  const lab::Corpus& text_;
  std::string folder_;
  std::vector<lab::Cell> todo_;
  std::vector<double> done_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::optional<Error> failed_;
};

Expected<int> run_preset(const CellFlags& flags, const lab::Corpus& text) {
  POSENC_TRY(list, cells(flags));
  std::error_code failed;
  fs::create_directories(flags.out, failed);
  if (failed) return fail("--out", "must be a folder", flags.out, failed.message());
  Runs runs(std::move(list), text, flags.out);
  POSENC_CHECK(runs.run(flags.jobs));
  write_out("{} cells run; posenc lab report {}\n", runs.count(), flags.out);
  return 0;
}

Expected<int> run_one(const CellFlags& flags, const lab::Corpus& text) {
  constexpr std::size_t longest = 1 << 20;
  POSENC_TRY(json, named_text(flags.cell, longest));
  POSENC_TRY(cell, lab::read_cell(json, flags.cell));
  Progress progress("lab", 1);
  const auto told = [&](double part) {
    progress.tell_share(part, fmt::format("{} {}, seed {}", cell.experiment, cell.arm, cell.seed));
  };
  POSENC_CHECK(run_to(cell, text, flags.out, told, flags.weights));
  return 0;
}

Run define_cells(CLI::App& app) {
  auto flags = std::make_shared<CellFlags>();
  flags->preset = "quick";
  add_preset(app, *flags);
  app.footer(
      "A line is all that `posenc lab run --cell` needs. Any scheduler can run them:\n"
      "  posenc lab cells --preset standard | split -l 1 --additional-suffix=.json - cell-\n"
      "  ls cell-*.json | parallel posenc lab run --cell {} --out results/{}");
  return [flags]() -> Expected<int> {
    POSENC_TRY(list, cells(*flags));
    for (const lab::Cell& cell : list) write_out("{}\n", lab::to_json(cell));
    return 0;
  };
}

Run define_run(CLI::App& app) {
  auto flags = std::make_shared<CellFlags>();
  add_preset(app, *flags);
  app.add_option("--cell", flags->cell,
                 "One cell, a line of `posenc lab cells`; - for standard input")
      ->type_name("FILE");
  app.add_option("--out", flags->out,
                 "The result's file; of a preset a folder, in which results that "
                 "are there are not run again")
      ->required();
  app.add_option("--weights", flags->weights,
                 "Write what the cell has learned there, for `posenc lab say` (.safetensors)")
      ->type_name("FILE");
  add_text(app, *flags);
  app.add_option("--jobs", flags->jobs, "Cells side by side, each on one thread")
      ->check(CLI::Range(1, 256));
  app.footer(
      "A result is written whole or not at all: after a stop, however hard, the same command goes "
      "on.\n\n"
      "Examples:\n"
      "  posenc lab run --preset quick --out out/lab --jobs 2\n"
      "  posenc lab cells | head -1 | posenc lab run --cell - --out one.json");
  return [flags]() -> Expected<int> {
    if (flags->cell.empty() == flags->preset.empty())
      return fail("lab run", "takes either --cell or --preset",
                  flags->cell.empty() ? "neither" : "both", "write --preset quick");
    if (!flags->weights.empty() && flags->cell.empty())
      return fail("--weights", "is of one cell", "--preset", "name the cell by --cell");
    POSENC_TRY(text, corpus(flags->text));
    return flags->cell.empty() ? run_preset(*flags, text) : run_one(*flags, text);
  };
}

// What a sample of results gives when its cells are run again. Exit code 1: another number on the
// same kind of processor.
Expected<int> run_sample(const CellFlags& flags) {
  POSENC_TRY(outcomes, lab::read_outcomes(flags.results));
  std::erase_if(outcomes, [&](const lab::Outcome& o) { return !chosen(o.cell, flags); });
  if (outcomes.empty())
    return fail("lab again", "no result is of these arms and seeds", "",
                "posenc lab report " + flags.results + " names them");
  POSENC_TRY(text, corpus(flags.text));
  const std::size_t all = outcomes.size(),
                    some = flags.sample > 0 ? std::min(all, static_cast<std::size_t>(flags.sample))
                                            : all;
  bool other = false;
  for (std::size_t i = 0; i < some; ++i) {
    const lab::Outcome& outcome = outcomes[i * all / some];
    const std::string name =
        fmt::format("{} {}, seed {}", outcome.cell.experiment, outcome.cell.arm, outcome.cell.seed);
    Expected<lab::Again> again = lab::Again{};
    {
      Progress progress("lab", 100);
      again = lab::run_again(
          outcome, text,
          [&](double part) { progress.tell(static_cast<std::size_t>(part * 99), name); },
          flags.tenths);
    }
    if (!again) return std::unexpected(again.error());
    other = other || (again->same_kind && again->most > 0);
    write_out("{:<36}{:>4} numbers  {}{}\n", name, again->compared,
              again->most > 0 ? fmt::format("one differs by {:g}", again->most) : "all the same",
              again->same_kind ? "" : ", on another kind of processor");
  }
  return other ? 1 : 0;
}

Run define_again(CLI::App& app) {
  auto flags = std::make_shared<CellFlags>();
  app.add_option("RESULTS", flags->results, "A folder of results, or a file of them, a line each")
      ->type_name("RESULTS")
      ->required();
  add_choice(app, *flags);
  app.add_option("--sample", flags->sample, "So many of them, spread evenly; default: all")
      ->check(CLI::PositiveNumber)
      ->default_str("");
  app.add_option("--tenths", flags->tenths, "Of the training, nothing tested if fewer than ten")
      ->check(CLI::Range(1, 10));
  add_text(app, *flags);
  app.footer(
      "Every line of results has the cell that it came from. On the same kind of processor each "
      "number must come out again, to\n"
      "the last digit that is written; elsewhere products are summed in another order.\n\n"
      "Examples:\n"
      "  posenc lab again evidence/lab/results/standard.jsonl --sample 5\n"
      "  posenc lab again evidence/lab/results/standard.jsonl --experiment E4 --arms copy_rope "
      "--seeds 1\n"
      "  posenc lab again evidence/lab/results/standard.jsonl --tenths 1");
  return [flags]() -> Expected<int> { return run_sample(*flags); };
}

}  // namespace

extern const Command lab_again{"again", "run results again from their own lines, and compare",
                               define_again};
extern const Command lab_cells{"cells", "what a preset trains: a line of JSON for each run",
                               define_cells};
extern const Command lab_run{"run", "train one cell, or all of a preset", define_run};

}  // namespace posenc::cli
