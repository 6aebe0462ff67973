// What runs say together: tables with intervals over seeds, and what becomes of what was claimed
// beforehand.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evidence/lab/statistics.h"
#include "evidence/lab/train/experiments.h"

namespace posenc::lab {

// The outcomes in all *.json and *.jsonl of a folder, or in one such file, in the order of their
// cells. Errors: none there, a line that no run wrote, outcomes of different texts or the same cell
// twice with different numbers.
Expected<std::vector<Outcome>> read_outcomes(const std::string& path);

enum class Judgement { contradicted, reproduced, not_seen, too_few };
std::string_view name(
    Judgement judgement);  // "contradicted", "reproduced", "not seen here", "too few seeds"

struct Judged {
  const Hypothesis* hypothesis;
  Interval difference;  // left − right over seeds, 95 %
  double p = 1;         // Student's, that the true difference is the bound
  double holm = 1;      // among all that were judged together
  double sign_flip = 1;
  Judgement judgement = Judgement::not_seen;
};
// Those that at least two seeds speak of, the contradicted first. A difference is taken within a
// seed; beyond the bound, or on its wrong side, it counts from a corrected p below 0.05 and six
// seeds on.
std::vector<Judged> judge(std::span<const Outcome> outcomes);

// All that was judged of a claim of posenc verify, as its text there: "…: reproduced, +0.31 ±0.02
// nats over 6 seeds; …". "" where fewer than six seeds speak of it.
std::string measured_text(std::span<const Judged> judged, std::string_view claim);

// A row of a table: an arm's mean at each column with its 95 % interval, and what each seed has
// there.
struct Row {
  std::string arm;
  std::vector<Interval> cells;
  std::vector<std::vector<double>> seeds;
};
struct Results {
  std::string experiment, title,
      column;  // what columns are: "length", "step", "symbols", "layer", "eighth", "rate"
  std::vector<std::int64_t> columns;
  std::vector<Row> rows;
  std::int64_t length = 0;   // of the texts, where columns are eighths
  std::int64_t trained = 0;  // the most symbols of training, where columns are symbols
  // Runs that either learn a task or do not: a mean says nothing of them, so that medians and
  // extremes are shown.
  bool all_or_nothing = false;
};
// Of each experiment: values by length after the last step; of E1 losses while training; of E2 by
// length before tuning and at the greatest length by step; of E3 by rate (in millionths); of E4 a
// table for each task; of E5 what a probe finds by layer, before and after training; where there
// are facts, which share is found by the eighth of the text, a table for each length.
std::vector<Results> tables(std::span<const Outcome> outcomes);

}  // namespace posenc::lab
