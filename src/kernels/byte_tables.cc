// In intrinsics, since Highway looks bytes up within blocks of 16 alone.
#include "src/kernels/byte_tables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "posenc/tensor.h"
#include "src/kernels/cpuid.h"

#if POSENC_SIMD && defined(__x86_64__)
#include <immintrin.h>

#define POSENC_VBMI gnu::target("avx512f,avx512bw,avx512vbmi")

namespace posenc::detail {
namespace {

constexpr std::int64_t byte_line = 64, float_lanes = 16;  // numbers of a line, and of a vector

// The system keeps the registers of AVX-512 where the kernels of it were chosen.
bool has_byte_lookup() {
  constexpr unsigned vbmi = 1u << 1;
  static const bool has = (CpuidLeaf(7).c & vbmi) != 0;
  return has;
}

// The two bytes of bfloat16 for each of 128 magnitudes.
struct alignas(64) ByteTables {
  std::array<std::uint8_t, 128> low, high;

  explicit ByteTables(DType dtype) {
    for (std::size_t magnitude = 0; magnitude < low.size(); ++magnitude) {
      auto byte = static_cast<std::uint8_t>(magnitude);
      const auto number = static_cast<float>(Tensor::dense(&byte, dtype, {1}).get(0));
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(number) >> 16U;
      low[magnitude] = static_cast<std::uint8_t>(bits & 0xffU);
      high[magnitude] = static_cast<std::uint8_t>(bits >> 8U);
    }
  }
};
const ByteTables& tables_of(DType dtype) {
  static const ByteTables e4m3(DType::e4m3), e5m2(DType::e5m2);
  return dtype == DType::e4m3 ? e4m3 : e5m2;
}

// Where a line's bytes must stand for its floats to fill four vectors in their order:
// weaving bytes goes by blocks of 16, and of the words that come of it the even ones are a vector
// and the odd ones another.
constexpr std::array<std::uint8_t, byte_line> woven = [] {
  std::array<std::uint8_t, byte_line> from{};
  for (std::size_t block = 0; block < 4; ++block)
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t pair = 0; pair < 4; ++pair)
        for (std::size_t odd = 0; odd < 2; ++odd)
          from[16 * block + 8 * half + 2 * pair + odd] =
              static_cast<std::uint8_t>(4 * block + pair + 16 * odd + 32 * half);
  return from;
}();

struct Lookup {
  __m512i order, low[2], high[2];

  [[POSENC_VBMI]] explicit Lookup(const ByteTables& tables)
      : order(_mm512_loadu_si512(woven.data())),
        low{_mm512_load_si512(tables.low.data()), _mm512_load_si512(tables.low.data() + byte_line)},
        high{_mm512_load_si512(tables.high.data()),
             _mm512_load_si512(tables.high.data() + byte_line)} {}
};

// The floats of a line.
[[POSENC_VBMI, gnu::always_inline]] inline void load_line(const Lookup& by,
                                                          const std::uint8_t* from,
                                                          __m512 (&x)[4]) {
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80)),
                upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const __m512i bytes = _mm512_permutexvar_epi8(by.order, _mm512_loadu_si512(from));
  const __m512i low = _mm512_permutex2var_epi8(by.low[0], bytes, by.low[1]);
  const __m512i magnitude = _mm512_permutex2var_epi8(by.high[0], bytes, by.high[1]);
  constexpr int first_or_both = 0xf8;  // a | (b & c)
  const __m512i high = _mm512_ternarylogic_epi64(magnitude, bytes, sign, first_or_both);
  const __m512i words[2] = {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
  for (int half = 0; half < 2; ++half) {
    x[2 * half] = _mm512_castsi512_ps(_mm512_slli_epi32(words[half], 16));
    x[2 * half + 1] = _mm512_castsi512_ps(_mm512_and_si512(words[half], upper));
  }
}

// The sums of four vectors' lanes.
[[POSENC_VBMI, gnu::always_inline]] inline __m128 four_sums(const __m512 (&v)[4]) {
  const __m512 one = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1])),
               two = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
  const __m512d first = _mm512_castps_pd(one), second = _mm512_castps_pd(two);
  const __m512 sums = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(first, second)),
                                    _mm512_castpd_ps(_mm512_unpackhi_pd(first, second)));
  const __m128 a = _mm_add_ps(_mm512_castps512_ps128(sums), _mm512_extractf32x4_ps(sums, 1)),
               b = _mm_add_ps(_mm512_extractf32x4_ps(sums, 2), _mm512_extractf32x4_ps(sums, 3));
  return _mm_add_ps(a, b);
}

const std::uint8_t* bytes_from(const CachedRows& x, std::int64_t row) {
  return static_cast<const std::uint8_t*>(x.first) + row * x.step;
}

// `keys` dots of `rows` rows, of four keys at a time.
template <int rows>
[[POSENC_VBMI]] void dots_of_lines(const Lookup& by, const CachedRows& k, std::int64_t keys,
                                   std::int64_t width, const float* q, std::int64_t q_step,
                                   float* to, std::int64_t to_step, const CachedRows* values) {
  constexpr std::int64_t ahead = 16;  // keys
  for (std::int64_t j = 0; j < keys; j += 4) {
    const std::int64_t count = std::min<std::int64_t>(keys - j, 4);
    // Behind the last key it is read again.
    const std::uint8_t* key[4];
    for (std::int64_t i = 0; i < 4; ++i) key[i] = bytes_from(k, j + std::min(i, count - 1));
    __m512 sum[rows][4];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int i = 0; i < 4; ++i) sum[r][i] = _mm512_setzero_ps();
    }
    for (std::int64_t c = 0; c < width; c += byte_line) {
#pragma GCC unroll 8
      for (int i = 0; i < 4; ++i) {
        if (values != nullptr) {
          __builtin_prefetch(key[i] + ahead * k.step + c);
          __builtin_prefetch(bytes_from(*values, j + i) + c);
        }
        __m512 x[4];
        load_line(by, key[i] + c, x);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          const float* const query = q + r * q_step + c;
#pragma GCC unroll 8
          for (int n = 0; n < 4; ++n)
            sum[r][i] = _mm512_fmadd_ps(x[n], _mm512_loadu_ps(query + n * float_lanes), sum[r][i]);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      float four[4];
      _mm_storeu_ps(four, four_sums(sum[r]));
      std::copy_n(four, count, to + r * to_step + j);
    }
  }
}

// Weighted sums of one line of the columns.
template <int rows>
[[POSENC_VBMI]] void add_line(const Lookup& by, const CachedRows& v, std::int64_t column,
                              std::int64_t keys, const float* weights, std::int64_t weights_step,
                              float* sums, std::int64_t sums_step) {
  __m512 sum[rows][4];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < 4; ++n) sum[r][n] = _mm512_loadu_ps(sums + r * sums_step + n * float_lanes);
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    __m512 x[4];
    load_line(by, bytes_from(v, j) + column, x);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const __m512 weight = _mm512_set1_ps(weights[r * weights_step + j]);
#pragma GCC unroll 8
      for (int n = 0; n < 4; ++n) sum[r][n] = _mm512_fmadd_ps(weight, x[n], sum[r][n]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < 4; ++n) _mm512_storeu_ps(sums + r * sums_step + n * float_lanes, sum[r][n]);
  }
}

// Calls act of four rows, then of two and of one.
template <class Act>
void by_few_rows(std::int64_t rows, const Act& act) {
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) act(std::integral_constant<int, 4>(), row);
  if (row + 2 <= rows) act(std::integral_constant<int, 2>(), row), row += 2;
  if (row < rows) act(std::integral_constant<int, 1>(), row);
}

bool is_looked_up(const CachedRows& x, std::int64_t width) {
  return (x.dtype == DType::e4m3 || x.dtype == DType::e5m2) && width % byte_line == 0 &&
         has_byte_lookup();
}

}  // namespace

bool dots_by_tables(const CachedRows& k, std::int64_t keys, std::int64_t width, const float* q,
                    std::int64_t q_step, std::int64_t rows, float* to, std::int64_t to_step,
                    const CachedRows* values) {
  if (!is_looked_up(k, width)) return false;
  const Lookup by(tables_of(k.dtype));
  // Values of another type lie elsewhere than their bytes are counted here.
  const CachedRows* const beside = values && values->dtype == k.dtype ? values : nullptr;
  by_few_rows(rows, [&]<int count>(std::integral_constant<int, count>, std::int64_t row) {
    dots_of_lines<count>(by, k, keys, width, q + row * q_step, q_step, to + row * to_step, to_step,
                         row == 0 ? beside : nullptr);
  });
  return true;
}

bool add_by_tables(const CachedRows& v, std::int64_t keys, std::int64_t width, const float* weights,
                   std::int64_t weights_step, std::int64_t rows, float* sums,
                   std::int64_t sums_step) {
  if (!is_looked_up(v, width)) return false;
  const Lookup by(tables_of(v.dtype));
  by_few_rows(rows, [&]<int count>(std::integral_constant<int, count>, std::int64_t row) {
    for (std::int64_t c = 0; c < width; c += byte_line)
      add_line<count>(by, v, c, keys, weights + row * weights_step, weights_step,
                      sums + row * sums_step + c, sums_step);
  });
  return true;
}

}  // namespace posenc::detail

#else

namespace posenc::detail {

bool dots_by_tables(const CachedRows&, std::int64_t, std::int64_t, const float*, std::int64_t,
                    std::int64_t, float*, std::int64_t) {
  return false;
}
bool add_by_tables(const CachedRows&, std::int64_t, std::int64_t, const float*, std::int64_t,
                   std::int64_t, float*, std::int64_t) {
  return false;
}

}  // namespace posenc::detail
#endif
