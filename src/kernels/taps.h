// The loop of convolutions whose channels stand alone: rows of weights times rows of tokens.
#pragma once

#include <cstdint>

#include "src/kernels/ahead.h"
#include "src/kernels/elements.h"
#include "src/kernels/rows.h"

namespace posenc::detail {

// How many neighbouring tokens sum_taps() makes in one go: what one reads, the next reads as well.
constexpr int tile_tokens = 4;

// Weights [tall · wide][step] and what a sum begins with, [step], of which channels [begin, end)
// are wanted: multiples of row_lanes (rows.h), as step is.
template <class T>
struct Taps {
  const T* weights;
  const T* bias;
  std::int64_t tall, wide, step, begin, end;
};

// Where the numbers of tokens lie, by row and column, `step` places a row.
template <class Element>
struct TokenPlaces {
  const Element* const* places;
  std::int64_t step;
  // Tokens that the next tile is the first to read. They, and the sums that it writes behind these,
  // are asked for on the way, as `ask` says. Null: there is no next tile in this row.
  const Element* const* next = nullptr;
  Ask ask = Ask::no;
};

// to[token][i] = bias[i] + Σ_row Σ_tap weights[row][tap][i] · x[row][token + tap][i] for
// 1 to tile_tokens tokens and the channels i of `taps`.
void sum_taps(const Taps<float>& taps, TokenPlaces<float> x, int tokens, float* to,
              std::int64_t to_step);
void sum_taps(const Taps<double>& taps, TokenPlaces<double> x, int tokens, double* to,
              std::int64_t to_step);
#if POSENC_SIMD
// The same of numbers of 16 bits, which become float on the way, each sum rounded once. Those of
// BFloat16 want each row of weights and the bias by pair_channels(), and no NaN in either whose
// lower 16 bits are not 0.
void sum_taps(const Taps<float>& taps, TokenPlaces<Half> x, int tokens, Half* to,
              std::int64_t to_step);
void sum_taps(const Taps<float>& taps, TokenPlaces<BFloat16> x, int tokens, BFloat16* to,
              std::int64_t to_step);
// Puts a row of [step] numbers in the order in which the processor takes channels apart.
void pair_channels(float* row, std::int64_t step);
#endif

}  // namespace posenc::detail
