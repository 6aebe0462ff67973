// A running sum of steps times a factor, as an angle. Rotations meet differences of such sums, and
// a difference is as good as the larger of the two: what has grown large is kept without its full
// turns, which no rotation sees, so that a step of 1e20 radians spoils nothing behind it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace posenc::detail {

class AngleSum {
 public:
  static constexpr double most = 1 << 26;  // radians: differences are good to 1e-8

  AngleSum() = default;
  AngleSum(double start, double factor) : begin_(within_a_turn(start)), factor_(factor) {}

  double angle() const { return begin_ + factor_ * sum_; }
  void add(double step) {
    if (!(std::abs(factor_ * step) < most)) {
      set(angle());
      return set(begin_ + within_a_turn(factor_ * step));
    }
    sum_ += step;
    if (!(std::abs(angle()) < most)) set(angle());
  }

 private:
  void set(double angle) {
    begin_ = within_a_turn(angle);
    sum_ = 0;
  }
  static double within_a_turn(double angle) {
    if (std::abs(angle) < most) return angle;
    constexpr double largest = std::numeric_limits<double>::max();
    if (std::isinf(angle)) angle = std::copysign(largest, angle);  // of a finite step
    return std::atan2(std::sin(angle), std::cos(angle));
  }

  double begin_ = 0, factor_ = 1, sum_ = 0;
};

}  // namespace posenc::detail
