// Facts of each rotating pair, and the bands of neighbouring pairs that a scaling treats alike.
#include "src/explain/pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <variant>

#include "src/explain/text.h"
#include "src/model/compare.h"

namespace posenc::detail {
namespace {

constexpr double turn = 2 * std::numbers::pi;
constexpr double still = std::numeric_limits<double>::infinity();

// How many times slower the scaling made a pair; infinite for a pair it stopped.
double slowdown(const PairFact& pair) {
  return pair.frequency == 0 ? still : pair.unscaled / pair.frequency;
}

bool same(double a, double b) {
  return a == b || (std::isfinite(b) && std::abs(a - b) <= 1e-9 * std::abs(b));
}

std::string times(double ratio, int significant) {
  return ratio >= 1 ? "÷" + shown(ratio, significant) : "×" + shown(1 / ratio, significant);
}

struct Run {
  std::size_t first, last;
  double least, most;
  bool constant() const { return same(least, most); }
  bool fixed() const { return constant() && (same(least, 1) || least == still); }
};

std::string effect(const Run& run) {
  if (run.least == still) return "still";
  if (!run.constant()) return times(run.least, 3) + " to " + times(run.most, 3);
  return same(run.least, 1) ? "untouched" : times(run.least, 5);
}

// Joins neighbours for which `joins` holds for both.
template <class Joins>
std::vector<Run> joined(const std::vector<Run>& runs, Joins joins) {
  std::vector<Run> out;
  for (const Run& run : runs) {
    if (out.empty() || !joins(out.back()) || !joins(run)) {
      out.push_back(run);
      continue;
    }
    out.back().last = run.last;
    out.back().least = std::min(out.back().least, run.least);
    out.back().most = std::max(out.back().most, run.most);
  }
  return out;
}

}  // namespace

std::optional<Rotate> unscaled_rotation(const LayerGroup& group) {
  const Rope* rope = rope_of(group);
  if (!rope || std::holds_alternative<Explicit>(rope->scaling)) return {};
  if (std::holds_alternative<Unscaled>(rope->scaling) && rope->frequency_factors.empty()) return {};
  Rope plain = *rope;
  plain.scaling = Unscaled{};
  plain.frequency_factors.clear();
  Expected<Plan> plan = compile(Scheme(plain), group.geometry);
  if (!plan) return {};
  return plan->rotate;
}

std::vector<PairFact> pair_facts(const Rotate& rotate, const std::optional<Rotate>& unscaled,
                                 std::int64_t trained, std::int64_t asked) {
  // Where a pair takes several axes (mixed), its speed is that along its own direction.
  const auto speed = [](const Rotate& plan, std::int64_t pair) {
    double sum = 0;
    for (std::int64_t axis = 0; axis < plan.frequencies.axes; axis++) {
      const double f = plan.at(0, axis, pair);
      if (plan.frequencies.axes == 1) return f;
      sum = std::hypot(sum, f);
    }
    return sum;
  };
  std::vector<PairFact> facts(static_cast<std::size_t>(rotate.pairs()));
  for (std::int64_t r = 0; r < rotate.pairs(); r++) {
    PairFact& fact = facts[static_cast<std::size_t>(r)];
    fact.pair = r;
    for (std::int64_t axis = rotate.frequencies.axes - 1; axis >= 0; axis--)
      if (rotate.at(0, axis, r) != 0) fact.axis = axis;
    fact.frequency = speed(rotate, r);
    fact.unscaled = unscaled && r < unscaled->pairs() ? speed(*unscaled, r) : fact.frequency;
    fact.wavelength = turn / std::abs(fact.frequency);
    fact.turns_trained = static_cast<double>(trained) * std::abs(fact.frequency) / turn;
    fact.turns_asked = static_cast<double>(asked) * std::abs(fact.frequency) / turn;
  }
  return facts;
}

std::vector<Band> scaling_bands(std::span<const PairFact> pairs) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < pairs.size(); i++) {
    const double ratio = slowdown(pairs[i]);
    if (!runs.empty() && same(runs.back().least, ratio)) {
      runs.back().last = i;
    } else {
      runs.push_back({i, i, ratio, ratio});
    }
  }
  // A blend changes from pair to pair: its lone pairs are one band.
  runs = joined(runs, [](const Run& run) {
    return !run.fixed() && (run.first == run.last || !run.constant());
  });
  constexpr std::size_t most = 5;
  if (runs.size() > most) runs = joined(runs, [](const Run& run) { return !run.fixed(); });

  std::vector<Band> bands;
  bands.reserve(runs.size());
  for (const Run& run : runs)
    bands.push_back({pairs[run.first].pair, pairs[run.last].pair, effect(run)});
  return bands;
}

}  // namespace posenc::detail
