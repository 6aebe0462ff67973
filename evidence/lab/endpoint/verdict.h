// Which hypothesis explains what a server said: likelihoods over all texts, and what rounding and
// quantisation alone would do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "evidence/lab/endpoint/score.h"

namespace posenc::lab {

// How far two log-probabilities stand apart, in units that are alike for likely tokens and unlikely
// ones: what is unlikely is off by more under the same rounding.
double apart(float seen, float computed);

// The scale of Student's distribution of four degrees that such differences come from, by their
// median; 0 of none.
double scale_of(std::vector<double> differences);

// One text, as the server scored it and as hypotheses do.
struct Scored {
  Observed text = {};
  // [hypothesis][Σ chances]; fewer where it fell too far behind within the text, empty where it was
  // out before
  std::vector<std::vector<float>> computed = {};
  bool whole(std::size_t hypothesis) const;
};

// How well hypotheses explain texts.
class Judge {
 public:
  // `floor`: the scale that rounding and quantisation alone have.
  Judge(std::size_t hypotheses, double floor) : hypotheses_(hypotheses), floor_(floor) {}
  void add(Scored text);

  std::span<const Scored> texts() const { return texts_; }
  double floor() const { return floor_; }
  // Of the differences of a hypothesis, over all texts that it was asked about.
  double scale(std::size_t hypothesis) const;
  // Of the hypothesis that fits best, at least the floor: what all are judged by.
  double scale() const;
  // Logarithms of likelihoods, each minus that of the best of those that read the same texts; ≤ 0.
  // Neighbouring tokens err alike: a token counts for half, and those that might have come next
  // in its place for one together.
  std::vector<double> scores() const;
  // The file's own rotation is as probable beforehand as all others together.
  std::vector<double> probabilities() const;
  // How much further than the floor the best hypothesis is off where a token has read so far.
  struct Misfit {
    std::int64_t from = 0, to = 0;  // tokens read
    double scale = 0;
    std::int64_t n = 0;
  };
  std::vector<Misfit> misfits(std::size_t hypothesis) const;
  // Whether no text so far tells the two apart by more than the noise.
  bool alike(std::size_t a, std::size_t b) const;

 private:
  std::size_t hypotheses_;
  double floor_;
  std::vector<Scored> texts_;
};

// The logarithm of a likelihood, of as much of a text as was computed, but for what all hypotheses
// have alike. A token counts for half, and those that might have come next in its place for one
// together.
double log_likelihood(const Observed& text, std::span<const float> computed, double scale);

// Differences of a text's log-probabilities from as many computed ones.
std::vector<double> differences(const Observed& text, std::span<const float> computed);

}  // namespace posenc::lab
