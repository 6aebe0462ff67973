// Student's distribution of four degrees: one token that a quantised model sees otherwise weighs
// little, and a hundred that are off weigh as they should. The scale is that of the hypothesis
// which fits best, so that a server whose fault nobody knows makes no near miss sure.
#include "evidence/lab/endpoint/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace posenc::lab {
namespace {

constexpr double freedom = 4, own_part = 0.5, before = 0.5;
constexpr double median_of_student = 0.7407;  // of |t|, four degrees

// ln of the density, but for what all hypotheses have alike.
double log_density(double difference, double scale) {
  const double z = difference / scale;
  return -(freedom + 1) / 2 * std::log1p(z * z / freedom) - std::log(scale);
}

}  // namespace

double log_likelihood(const Observed& text, std::span<const float> computed, double scale) {
  double sum = 0;
  std::size_t next = 0;
  for (const Seen& seen : text.seen) {
    if (next + seen.chances.size() > computed.size()) break;
    double of_token = 0;
    for (const Chance& chance : seen.chances)
      of_token += log_density(apart(chance.log_probability, computed[next++]), scale);
    if (!seen.chances.empty()) sum += of_token / static_cast<double>(seen.chances.size());
  }
  return own_part * sum;
}

bool Scored::whole(std::size_t hypothesis) const {
  std::size_t all = 0;
  for (const Seen& seen : text.seen) all += seen.chances.size();
  return all > 0 && computed[hypothesis].size() == all;
}

double apart(float seen, float computed) {
  return (seen - computed) / (1 + std::abs(static_cast<double>(seen)) / 4);
}

double scale_of(std::vector<double> differences) {
  if (differences.empty()) return 0;
  for (double& one : differences) one = std::abs(one);
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::ranges::nth_element(differences, middle);
  return *middle / median_of_student;
}

std::vector<double> differences(const Observed& text, std::span<const float> computed) {
  std::vector<double> made;
  made.reserve(computed.size());
  for (const Seen& seen : text.seen)
    for (const Chance& chance : seen.chances) {
      if (made.size() == computed.size()) return made;
      made.push_back(apart(chance.log_probability, computed[made.size()]));
    }
  return made;
}

void Judge::add(Scored text) { texts_.push_back(std::move(text)); }

double Judge::scale(std::size_t hypothesis) const {
  std::vector<double> all;
  for (const Scored& one : texts_) {
    if (one.computed[hypothesis].empty()) continue;
    const std::vector<double> more = differences(one.text, one.computed[hypothesis]);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all.empty() ? std::numeric_limits<double>::infinity() : scale_of(std::move(all));
}

double Judge::scale() const {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t h = 0; h < hypotheses_; ++h)
    if (!texts_.empty() && texts_.back().whole(h)) least = std::min(least, scale(h));
  return std::max(floor_, std::isfinite(least) ? least : floor_);
}

std::vector<double> Judge::scores() const {
  const double common = scale();
  std::vector<double> made(hypotheses_, 0);
  for (const Scored& one : texts_) {
    // Those that fell behind within it are compared over what they have read.
    std::size_t best = hypotheses_;
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t h = 0; h < hypotheses_; ++h)
      if (one.whole(h))
        if (const double whole = log_likelihood(one.text, one.computed[h], common); whole > most) {
          most = whole;
          best = h;
        }
    if (best == hypotheses_) continue;
    for (std::size_t h = 0; h < hypotheses_; ++h) {
      const std::span<const float> own(one.computed[h]);
      if (own.empty()) continue;  // as far behind as it was
      made[h] += log_likelihood(one.text, own, common) -
                 log_likelihood(one.text, std::span(one.computed[best]).first(own.size()), common);
    }
  }
  const double best = made.empty() ? 0 : *std::ranges::max_element(made);
  for (double& score : made) score -= best;
  return made;
}

std::vector<double> Judge::probabilities() const {
  std::vector<double> made = scores();
  double sum = 0;
  for (std::size_t h = 0; h < made.size(); ++h) {
    const double prior =
        h == 0 ? before
               : (1 - before) / static_cast<double>(std::max<std::size_t>(1, made.size() - 1));
    made[h] = prior * std::exp(made[h]);
    sum += made[h];
  }
  for (double& one : made) one /= sum;
  return made;
}

std::vector<Judge::Misfit> Judge::misfits(std::size_t hypothesis) const {
  std::vector<Misfit> made;
  for (std::int64_t from = 1, to = 32; from < std::int64_t{1} << 24; from = to, to *= 2) {
    std::vector<double> all;
    bool beyond = false;
    for (const Scored& one : texts_) {
      if (one.computed[hypothesis].empty()) continue;
      const std::vector<double> off = differences(one.text, one.computed[hypothesis]);
      std::size_t next = 0;
      for (const Seen& seen : one.text.seen) {
        for (std::size_t i = 0; i < seen.chances.size(); ++i, ++next)
          if (seen.read >= from && seen.read < to) all.push_back(off[next]);
        beyond |= seen.read >= to;
      }
    }
    if (!all.empty()) {
      const auto n = std::ssize(all);
      made.push_back({from, to, scale_of(std::move(all)), n});
    }
    if (!beyond) break;
  }
  return made;
}

bool Judge::alike(std::size_t a, std::size_t b) const {
  // Half of the noise: what is further apart a few hundred tokens would show.
  const double limit = scale() / 2;
  for (const Scored& one : texts_) {
    const std::vector<float>&first = one.computed[a], &second = one.computed[b];
    if (!one.whole(a) || !one.whole(b)) return false;
    std::vector<double> off;
    for (std::size_t i = 0; i < first.size(); ++i) off.push_back(apart(first[i], second[i]));
    if (scale_of(std::move(off)) > limit) return false;
  }
  return true;
}

}  // namespace posenc::lab
