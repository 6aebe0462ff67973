// The experiments as data: what is trained, at what cost, and what was claimed before it was run.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "evidence/lab/train/cell.h"

namespace posenc::lab {

// A preset is how much of everything: steps, seeds and lengths.
struct Preset {
  std::string_view name, about;
  std::int64_t width, layers, heads;
  std::int64_t steps, texts, trained_length;
  std::int64_t longest;  // tests: trained_length, doubled up to this
  std::int64_t seeds;
  std::vector<std::int64_t> extending;  // steps after which a stretched model is tested
  std::int64_t task_steps;
};
std::span<const Preset> presets();  // quick, standard, full
Expected<Preset> find_preset(std::string_view name);

struct Experiment {
  std::string_view name, title;
  std::string_view presets = "standard full";  // those that have it
};
std::span<const Experiment> experiments();

// All cells of a preset, or those of one experiment. Errors: no such experiment.
Expected<std::vector<Cell>> cells_of(const Preset& preset, std::string_view experiment = {});

// The same run under another name: what an experiment compares with is not trained twice.
struct SharedArm {
  std::string_view experiment, arm, of_experiment, of_arm;
};
std::span<const SharedArm> shared_arms();

// One number of a run: nats after the last step at `times` the trained length (zero-shot: before
// tuning), exact for `times` symbols, training or tuned, the loss at a part of the steps, or
// another metric of Measurement, before training where `at` is 0.
struct Reading {
  std::string_view arm;
  std::string_view metric = "nats";
  std::int64_t times = 1;
  double at = 1;
};

// That left − right, paired by seed, lies above `bound`, or below. Stated before the runs; `claim`
// is its number in posenc verify.
struct Hypothesis {
  std::string_view experiment, claim, statement;
  Reading left, right;
  bool above = true;  // else below
  double bound = 0;   // the smallest difference that would matter, in nats or in shares of answers
};
std::span<const Hypothesis> hypotheses();

}  // namespace posenc::lab
