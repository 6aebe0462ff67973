// Rows of cos and sin of position · frequency, made one position at a time and never stored as a
// table over positions.
//
// The row of position p is a product of unit complex numbers,
//   row(p) = anchor(64⌊p/64⌋) · fours(⌊p/4⌋ mod 16) · ones(p mod 4),
// each factor by a sine and cosine of its own exact position · frequency. Three factors and no chain:
// the bits depend on p alone, whatever was asked before and however a range is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "posenc/apply.h"
#include "posenc/plan.h"
#include "src/kernels/rotation.h"
#include "src/kernels/scratch.h"

namespace posenc::detail {

// What a row is made of. All of it is borrowed from a plan.
struct TurnRule {
  std::span<const double> frequency;  // [row][axis][pair]
  std::int64_t rows = 1;              // heads with frequencies of their own
  std::int64_t axes = 1;
  std::int64_t pairs = 0;  // of one head
  bool backward = false;   // by the negative angle
  double amplitude = 1;
  const Growth* growth = nullptr;
  bool shrinks = false;  // growth to the negative power

  static TurnRule of(const Waves& waves);
  static TurnRule of(const Rotate& rotate, Side side, Action action);
};

// Memory of doubles on cache lines.
class AlignedDoubles {
 public:
  AlignedDoubles() = default;
  explicit AlignedDoubles(std::int64_t count);
  double* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(double* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };
  std::unique_ptr<double[], Free> memory_;
};

// The factors at hand for one position after another. Belongs to one thread, whose scratch it uses.
struct Turns {
  static constexpr std::int64_t none = std::int64_t{1} << 62;  // no position's ⌊p/4⌋
  static constexpr std::int64_t lanes = 16;  // sizes are whole vectors of any kind

  // cos[size], then sin[size], of all pairs of all heads.
  struct Axis {
    const double* frequency = nullptr;          // [size], zeros behind the last
    double fastest = 0;                         // largest |frequency|
    double *anchor = nullptr, *near = nullptr;  // of 64⌊p/64⌋, and of 4⌊p/4⌋
    double *fours = nullptr, *ones = nullptr;   // [16] and [4] rows; the first, of 0, is not used
    std::int64_t anchored = none, neared = none;
    unsigned fours_made = 0, ones_made = 0;  // a bit a row
  };

  explicit Turns(const TurnRule& turn_rule);

  Scratch scratch_;  // before what is taken from it
  TurnRule rule;
  std::int64_t count = 0;  // pairs of all heads
  std::int64_t size = 0;   // the same in whole vectors
  Axis* axes = nullptr;    // [rule.axes]

  // Multiplies cos[size], sin[size] by the growth of `position` steps (and by the amplitude, of a
  // first factor).
  void magnify(double* row, double position, double amplitude) const;
  // cos and sin where the angle is too large for the vectors' reduction.
  void direct_slowly(const Axis& axis, std::int64_t position, double* row) const;
};

}  // namespace posenc::detail
