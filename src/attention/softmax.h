// Softmax of rows of logits, forwards by blocks of keys and backwards over a whole row, and the
// other functions of logits that a weight is made of; by vectors where there are any. T is float or
// double.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "src/kernels/gemm16.h"

namespace posenc::detail {

// A query's logits as they meet a block of keys (online softmax: Milakov 2018).
template <class T>
struct SoftmaxRow {
  // [first, last) are written; the query sees what is in [begin, end) and not −∞. In: products, of
  // which a multiple of panel_columns() from `first` on may be read. Out: e^(logit − row_max).
  T* x = nullptr;
  std::int64_t first = 0, last = 0, begin = 0, end = 0;
  T factor = 1;             // of the products
  const T* bias = nullptr;  // [key] added to the logits, times bias_factor; null: nothing
  T bias_factor = 1;
  T row_max = -std::numeric_limits<T>::infinity();  // largest logit so far
  T sum = 0;                                        // of e^(logit − row_max) so far
  T added = 0;                                      // what this block added to it
  T added_rounded = 0;  // by fold_pairs(): the same of weights as they were rounded
};

// x ← cap·tanh(x/cap) of `count` numbers and of what else their last vector holds; `slope`, if
// given, receives the derivatives 1 − tanh².
void softcap(float* x, std::int64_t count, float cap, float* slope = nullptr);
void softcap(double* x, std::int64_t count, double cap, double* slope = nullptr);

// Returns the correction: what sums weighted by older blocks are to be multiplied by.
float fold(SoftmaxRow<float>& row);
double fold(SoftmaxRow<double>& row);

// The same for products of pairs: weights are rounded to bfloat16 at `pairs` [(last − first) / 2],
// where last − first is a multiple of 2 · gemm16_pairs. x holds them unrounded only if `keeps`.
float fold_pairs(SoftmaxRow<float>& row, Pair16* pairs, bool keeps);

// What a logit that has no value adds to a sum of e^(logit − row_max); −∞ adds nothing.
template <class T>
double share_of_sink(T sink, T row_max) {
  if (sink == -std::numeric_limits<T>::infinity()) return 0;
  return sink == row_max ? 1 : std::exp(static_cast<double>(sink - row_max));
}

// A query's whole row of logits, and the gradient by it.
template <class T>
struct SoftmaxGradientRow {
  std::int64_t begin = 0, end = 0;  // what the query sees, but for −∞
  const T* bias = nullptr;          // [key], as above
  T bias_factor = 1;
  T* weight = nullptr;  // in: products. Out: the weight α of the key, 0 where hidden
  T* delta = nullptr;   // in: e, the gradient by α. Out: α (e − Σ α e), that by the logit
  // The logit that has no value; −∞: none.
  T sink = -std::numeric_limits<T>::infinity();
  // Of a row that holds some of the keys that the query sees: over all of them ln Σ e^logit, and Σ
  // α e.
  bool of_whole = false;
  T log_sum = 0;
  double whole_mean = 0;
};

// Weights that would be subnormal, as of tokens far away, are 0. All are 0 where nothing is seen,
// NaN where what is seen is. Returns the gradient by the sink.
double differentiate(const SoftmaxGradientRow<float>& row);
double differentiate(const SoftmaxGradientRow<double>& row);

// --- what takes the block_keys numbers of a row; −∞ and NaN go in and come out as they should ----

constexpr std::int64_t block_keys = 64;  // a word of a mask

// A query's running softmax over words of keys (online softmax, as above).
template <class T>
struct SoftmaxOfWords {
  static constexpr std::int64_t columns = 16;  // vectors are no longer
  T row_max = -std::numeric_limits<T>::infinity();
  T sums[columns] = {};  // of e^(logit − row_max) so far, key j in column j % 16

  double sum() const {
    double all = 0;
    for (const T each : sums) all += static_cast<double>(each);
    return all;
  }
};

// x ← e^(x − row_max), as fold() does it for a row.
float fold_word(float* x, SoftmaxOfWords<float>& row);
double fold_word(double* x, SoftmaxOfWords<double>& row);

// x ← e^(x − shift); 0 where that would be subnormal. x is never much above shift.
void exponentials(float* x, float shift);
void exponentials(double* x, double shift);

// σ(x) = 1/(1 + e^−x)
void sigmoids(const float* x, float* out);
void sigmoids(const double* x, double* out);

// A stick from which keys break off a share σ(x) of what is left, the last first: x ← what each
// gets, e^left being what the last one finds. Returns −ln of the part that all of them leave.
float break_off(float* x, float left);
double break_off(double* x, double left);

// scores[j] += before + slope · Σ ln σ(x[l]) over the keys l behind j that are seen, whose bits
// `seen` has. Returns what all of them add.
float forget(const float* x, std::uint64_t seen, float slope, float before, float* scores);
double forget(const double* x, std::uint64_t seen, double slope, double before, double* scores);

}  // namespace posenc::detail
