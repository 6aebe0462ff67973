// The loop of convolutions whose channels stand alone: rows of weights times rows of tokens.
#pragma once

#include <cstdint>

#include "src/kernels/elements.h"

namespace posenc::detail {

// How many neighbouring tokens sum_taps() makes in one go: what one reads, the next reads as well.
constexpr int tile_tokens = 4;

// Weights [tall · wide][step] and what a sum begins with, [step]; step is a multiple of row_lanes
// (rows.h).
template <class T>
struct Taps {
  const T* weights;
  const T* bias;
  std::int64_t tall, wide, step;
};

// to[token][i] = bias[i] + Σ_row Σ_tap weights[row][tap][i] · x[row][token + tap][i] for
// 1 to tile_tokens tokens and i < step. x is [tall][tokens + wide − 1] places of `step` numbers.
void sum_taps(const Taps<float>& taps, const float* const* x, int tokens, float* to,
              std::int64_t to_step);
void sum_taps(const Taps<double>& taps, const double* const* x, int tokens, double* to,
              std::int64_t to_step);
#if POSENC_SIMD
// The same of numbers of 16 bits, which become float on the way, each sum rounded once.
void sum_taps(const Taps<float>& taps, const Half* const* x, int tokens, Half* to,
              std::int64_t to_step);
void sum_taps(const Taps<float>& taps, const BFloat16* const* x, int tokens, BFloat16* to,
              std::int64_t to_step);
#endif

}  // namespace posenc::detail
