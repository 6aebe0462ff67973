// Rows of cos and sin of position · frequency, made one position at a time and never stored as a
// table over positions.
//
// Position p is j steps from the nearest multiple of 8, p = 8m + j with j from -3 to 4. Its row is
// a product of unit complex numbers,
//   row(p) = base(64⌊m/8⌋) · coarse(8(m mod 8)) · fine(j),
// each factor the cos and sin of its own exact position · frequency. A recurrence from one position
// to the next would be shorter, but its errors add up, and its bits depend on where it began. With
// three factors the bits depend on p alone, so a range may be cut anywhere and shared among
// threads; and it takes sines for one row in 64, besides 14 rows made once. fine(-j) is fine(j)
// conjugate: two rows on both sides of 8m have four of their eight products in common.
//
// The last product, which every row needs, is of a type F. Rows of doubles and floats multiply
// doubles, and float rows are rounded once. What is rounded to 16 bits afterwards multiplies base ·
// coarse and fine rounded to float: within 2^-22.4 of the exact row (cos_sin_rows_test.cc), in half
// the vectors and without conversions.
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

// What rows are made of: frequencies and what multiplies cos and sin. Borrowed from a plan.
struct CosSinRule {
  std::span<const double> frequency;  // [row or 1][axis][pair]
  std::int64_t rows = 1;              // heads with angles of their own
  std::int64_t axes = 1;
  std::int64_t pairs = 0;  // of one head
  bool backward = false;   // rotate by the negative angle
  bool swapped = false;    // sines stand for cosines and cosines for sines; then backward too
  double amplitude = 1;
  std::span<const double> magnitudes = {};  // [pair], beside the amplitude; empty: none
  bool divides = false;                     // by the magnitudes
  const XposDecay* growth = nullptr;
  bool shrinks = false;                // keys: growth to the negative power
  std::span<const double> phase = {};  // [row or 1][pair], added to every angle; empty: none
  // Whose mixtures of these cosines and sines rotate instead, of heads from mix_first on; null:
  // none. There is one row of angles then.
  const Mix* mix = nullptr;
  std::int64_t mix_first = 0, mix_heads = 1;

  bool scales() const { return amplitude != 1 || !magnitudes.empty(); }

  // Heads whose rows differ.
  std::int64_t heads_with_rows() const { return mix != nullptr ? mix_heads : rows; }

  static CosSinRule of(const Waves& waves);
  static CosSinRule of(const Rotate& rotate, Side side, Action action);
  // That of some of its heads.
  CosSinRule of_heads(std::int64_t first, std::int64_t count) const;
  // Of angles that are given for so many heads: no axes, hence no factors.
  static CosSinRule of_angles(const Rotate& rotate, std::int64_t heads, Side side, Action action);
};

// Zeroed doubles, aligned to a cache line.
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

// Whether rows for elements of a dtype have float factors: not those of several axes, whose rows
// are products of more, not those that xPos' growth takes beyond a float, and not those that are
// mixed.
inline bool has_float_factors(DType dtype, const CosSinRule& rule) {
  return size_of(dtype) == 2 && rule.axes == 1 && rule.growth == nullptr && rule.mix == nullptr;
}

// The factors cached from the last position for the next. Belongs to one thread, whose scratch it
// uses.
template <class F>
struct CosSinRows {
  static constexpr std::int64_t none = std::int64_t{1} << 62;  // Sentinel: no row is cached yet.
  static constexpr std::int64_t lanes = 16;  // rows are padded to multiples: whole vectors

  // Every row is cos[size], then sin[size], of all pairs of all heads.
  struct Axis {
    const double* frequency = nullptr;              // [size], zeros behind the last
    double fastest = 0;                             // largest |frequency|
    double* base = nullptr;                         // the row of 64⌊m/8⌋
    double* coarse = nullptr;                       // 8 rows; the first, of position 0, is not used
    F* centre = nullptr;                            // the row of 8m: base · coarse
    F* fine = nullptr;                              // 8 rows from -3 on; that of 0 is not used
    std::int64_t base_of = none, centre_of = none;  // whose ⌊m/8⌋ and m these rows are
    unsigned coarse_made = 0, fine_made = 0;        // a bit a row: only those asked for are made
  };

  explicit CosSinRows(const CosSinRule& from);

  Scratch scratch_;  // before what is taken from it
  CosSinRule rule;
  std::int64_t count = 0;   // pairs of all heads
  std::int64_t size = 0;    // the same in whole vectors
  Axis* axes = nullptr;     // [rule.axes]
  F* all_axes = nullptr;    // with several axes: the row that is the product of theirs
  double* exact = nullptr;  // of float factors: a row before it is rounded

  // m of a position.
  static std::int64_t centre_of(std::int64_t position) { return (position + 3) >> 3; }

  // Multiplies a row by xPos' growth over `position` steps and, of the base alone among the three
  // factors, by the amplitude and the pairs' magnitudes.
  void scale_row(double* row, double position, bool is_base) const;
  // Turns a row by the phases; like the amplitude they belong to the base.
  void shift_row(double* row) const;
  // Of a row backward, (cos, −sin): multiplies by i, so that it is (sin, cos). Belongs to the base
  // too.
  void swap_row(double* row) const;
  // cos and sin one by one, for angles too large for the argument reduction of SinCos().
  void exact_row_slowly(const Axis& axis, std::int64_t position, double* row) const;
};

}  // namespace posenc::detail
