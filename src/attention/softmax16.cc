// The softmax of a row whose weights meet values as bfloat16, in intrinsics like the products in
// gemm16.cc: it takes more time than these do.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/attention/softmax.h"
#include "src/kernels/gemm16.h"

#if POSENC_SIMD && defined(__x86_64__)
#define POSENC_PAIRS 1
// g++ 12 warns of what its own header leaves undefined on purpose.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#define POSENC_PAIRS 0
#endif

namespace posenc::detail {

#if POSENC_PAIRS

namespace {

constexpr std::int64_t lanes = 16, whole = 2 * gemm16_pairs;
constexpr float hidden = -std::numeric_limits<float>::infinity();

[[gnu::target("avx512f")]] float sum_of(__m512 v) {
  float lane[lanes];
  _mm512_storeu_ps(lane, v);
  return std::accumulate(lane, lane + lanes, 0.0f);
}

[[gnu::target("avx512f")]] float most_of(__m512 v) {
  float lane[lanes];
  _mm512_storeu_ps(lane, v);
  return *std::max_element(lane, lane + lanes);
}

// The largest logit of [from, to), to which the bias is added, if there is one.
[[gnu::target("avx512f")]] float largest(const SoftmaxRow<float>& row, std::int64_t from,
                                         std::int64_t to) {
  const __m512 factor = _mm512_set1_ps(row.factor), of_bias = _mm512_set1_ps(row.bias_factor);
  float* const x = row.x;
  __m512 most = _mm512_set1_ps(hidden), second = most;
  for (std::int64_t j = from; j < to; j += 2 * lanes) {
    __m512 a = _mm512_mul_ps(_mm512_loadu_ps(x + j), factor),
           b = _mm512_mul_ps(_mm512_loadu_ps(x + j + lanes), factor);
    if (row.bias != nullptr) {
      a = _mm512_fmadd_ps(_mm512_loadu_ps(row.bias + j), of_bias, a);
      b = _mm512_fmadd_ps(_mm512_loadu_ps(row.bias + j + lanes), of_bias, b);
      _mm512_storeu_ps(x + j, a);
      _mm512_storeu_ps(x + j + lanes, b);
    }
    most = _mm512_max_ps(most, a);
    second = _mm512_max_ps(second, b);
  }
  return most_of(_mm512_max_ps(most, second));
}

// e^(x · factor − top) by 2^n · (1 + r·P(r)), fitted within 9.2e-8 relatively (as in softmax.cc); 0
// where it is so little that sums do not show it.
[[gnu::target("avx512f")]] inline __m512 exponential(__m512 x, __m512 factor, __m512 top) {
  const __m512 y = _mm512_mul_ps(_mm512_fmsub_ps(x, factor, top), _mm512_set1_ps(1.44269504f));
  // Of NaN too.
  const __mmask16 shows = _mm512_cmp_ps_mask(y, _mm512_set1_ps(-92.0f), _CMP_NLT_UQ);
  // Added to it, a number is rounded to an integer, which stands in the lowest bits.
  const __m512 rounder = _mm512_set1_ps(0x1.8p23f), rounded = _mm512_add_ps(y, rounder),
               r = _mm512_sub_ps(y, _mm512_sub_ps(rounded, rounder));
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(0.00132647273f), r, _mm512_set1_ps(0.00967151299f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.0555073358f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.240222424f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.693147004f));
  const __m512 power = _mm512_castsi512_ps(_mm512_add_epi32(
      _mm512_slli_epi32(_mm512_castps_si512(rounded), 23), _mm512_set1_epi32(0x3f800000)));
  return _mm512_maskz_fmadd_ps(shows, _mm512_mul_ps(p, r), power, power);
}

template <bool keeps>
[[gnu::target("avx512f,avx512bf16")]] void weigh(SoftmaxRow<float>& row, float row_max,
                                                 std::int64_t from, std::int64_t to,
                                                 Pair16* pairs) {
  const __m512 factor = _mm512_set1_ps(row.bias == nullptr ? row.factor : 1.0f),
               top = _mm512_set1_ps(row_max);
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  float* const x = row.x;
  __m512 sum = _mm512_setzero_ps(), second = sum, rounded = sum;
  for (std::int64_t j = from; j < to; j += 2 * lanes) {
    const __m512 a = exponential(_mm512_loadu_ps(x + j), factor, top),
                 b = exponential(_mm512_loadu_ps(x + j + lanes), factor, top);
    sum = _mm512_add_ps(sum, a);
    second = _mm512_add_ps(second, b);
    const __m512bh both = _mm512_cvtne2ps_pbh(b, a);
    _mm512_storeu_si512(pairs + (j - row.first) / 2, reinterpret_cast<__m512i>(both));
    rounded = _mm512_dpbf16_ps(rounded, both, ones);
    if constexpr (keeps) {
      _mm512_storeu_ps(x + j, a);
      _mm512_storeu_ps(x + j + lanes, b);
    }
  }
  row.added = sum_of(_mm512_add_ps(sum, second));
  row.added_rounded = sum_of(rounded);
}

float fold_by_pairs(SoftmaxRow<float>& row, Pair16* pairs, bool keeps) {
  float* const x = row.x;
  const std::int64_t first = row.first, last = row.last;
  row.added = row.added_rounded = 0;
  const auto nothing = [&] {
    std::fill(pairs, pairs + (last - first) / 2, Pair16{0});
    if (keeps) std::fill(x + first, x + last, 0.0f);
    return 1.0f;
  };
  if (row.begin >= row.end) return nothing();
  const std::int64_t from = first + (row.begin - first) / whole * whole,
                     to = first + (row.end - first + whole - 1) / whole * whole;
  std::fill(x + from, x + row.begin, hidden);
  std::fill(x + row.end, x + to, hidden);
  const float old = row.row_max, most = largest(row, from, to);
  float row_max = std::max(old, most);
  if (row_max == hidden) {  // all are hidden, or NaN
    if (std::none_of(x + row.begin, x + row.end, [](float logit) { return std::isnan(logit); }))
      return nothing();
    row_max = 0;
  }
  std::fill(pairs, pairs + (from - first) / 2, Pair16{0});
  std::fill(pairs + (to - first) / 2, pairs + (last - first) / 2, Pair16{0});
  keeps ? weigh<true>(row, row_max, from, to, pairs) : weigh<false>(row, row_max, from, to, pairs);
  if (keeps) {
    std::fill(x + first, x + from, 0.0f);
    std::fill(x + to, x + last, 0.0f);
  }
  const float correction = row_max == old ? 1 : std::exp(old - row_max);
  row.row_max = row_max;
  row.sum = row.sum * correction + row.added;
  return correction;
}

}  // namespace

#endif

float fold_pairs(SoftmaxRow<float>& row, Pair16* pairs, [[maybe_unused]] bool keeps) {
#if POSENC_PAIRS
  if (chosen_products16() != Products16::none) return fold_by_pairs(row, pairs, keeps);
#endif
  const float correction = fold(row);
  const std::int64_t count = row.last - row.first;
  pair_columns(row.x + row.first, 0, 1, count, pairs, count / 2);
  row.added_rounded = 0;
  for (std::int64_t i = 0; i < count / 2; ++i)
    row.added_rounded +=
        std::bit_cast<float>(pairs[i] << 16) + std::bit_cast<float>(pairs[i] & 0xffff0000u);
  return correction;
}

}  // namespace posenc::detail
