// Time taken, and what many runs of it say.
#pragma once

#include <functional>
#include <vector>

#include "posenc/error.h"

namespace posenc::detail {

using Action = std::function<Expected<void>()>;

// Seconds on a clock: of one thread its own processor time, in which no other program has a part.
double now(int threads);

double quantile(std::vector<double> numbers, double part);
inline double median(const std::vector<double>& numbers) { return quantile(numbers, 0.5); }

// The relative standard error of a median, its spread taken from the quartiles, whom no outlier
// moves.
double error_of_median(const std::vector<double>& numbers);

// Seconds of one run: of so many that the clock's own cost does not show.
class Timed {
 public:
  Timed(const Action& act, int threads);
  double once() const;

 private:
  const Action& act_;
  int threads_;
  int repeats_ = 1;
};

}  // namespace posenc::detail
