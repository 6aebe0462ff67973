// Floats to the pairs of bfloat16 that gemm16.h multiplies.
#include "src/kernels/elements.h"
#include "src/kernels/gemm16.h"
#include "src/kernels/rows.h"

#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/gemm16_pairs.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "src/kernels/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, row_lanes>;
using Bits = hn::RebindToUnsigned<Floats>;
constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(Floats()));

HWY_INLINE hn::Vec<Bits> Rounded(const float* x) {
  return RoundedUpperBits(Floats(), hn::LoadU(Floats(), x));
}

}  // namespace

void PairColumns(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                 Pair16* to, std::int64_t to_step) {
  const std::int64_t wide = padded(columns);
  for (std::int64_t row = 0; row < rows; ++row, x += step, to += to_step) {
    auto* const numbers = reinterpret_cast<BFloat16*>(to);
    for (std::int64_t c = 0; c < wide; c += lanes)
      StoreElements(hn::LoadU(Floats(), x + c), Floats(), numbers + c);
    std::memset(numbers + columns, 0,
                static_cast<std::size_t>(2 * to_step - columns) * sizeof(BFloat16));
  }
}

void PairRows(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
              std::int64_t padded_rows, Pair16* to, std::int64_t to_step) {
  const std::int64_t wide = padded(columns);
  const auto upper = hn::Set(Bits(), 0xffff0000u);
  for (std::int64_t row = 0; row < padded_rows; row += 2, to += to_step) {
    if (row >= rows) {
      std::fill_n(to, wide, Pair16{0});
      continue;
    }
    for (std::int64_t c = 0; c < wide; c += lanes) {
      const auto first = hn::ShiftRight<16>(Rounded(x + row * step + c));
      const auto second =
          row + 1 < rows ? hn::And(Rounded(x + (row + 1) * step + c), upper) : hn::Zero(Bits());
      hn::StoreU(hn::Or(first, second), Bits(), to + c);
    }
  }
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::detail {

HWY_EXPORT(PairColumns);
HWY_EXPORT(PairRows);

void pair_columns(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                  Pair16* to, std::int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(PairColumns)(x, step, rows, columns, to, to_step);
}
void pair_rows(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
               std::int64_t padded_rows, Pair16* to, std::int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(PairRows)(x, step, rows, columns, padded_rows, to, to_step);
}

}  // namespace posenc::detail
#endif

#else  // builds without vectors have no such products either

#include <bit>

namespace posenc::detail {
namespace {

Pair16 rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return (bits | 0x400000u) >> 16;
  return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

}  // namespace

void pair_columns(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                  Pair16* to, std::int64_t to_step) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t k = 0; k < to_step; ++k) {
      const float* const at = x + row * step + 2 * k;
      to[row * to_step + k] =
          (2 * k < columns ? rounded(at[0]) : 0) | (2 * k + 1 < columns ? rounded(at[1]) << 16 : 0);
    }
  }
}

void pair_rows(const float* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
               std::int64_t padded_rows, Pair16* to, std::int64_t to_step) {
  for (std::int64_t row = 0; row < padded_rows; row += 2) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const float* const at = x + row * step + c;
      to[row / 2 * to_step + c] =
          (row < rows ? rounded(at[0]) : 0) | (row + 1 < rows ? rounded(at[step]) << 16 : 0);
    }
  }
}

}  // namespace posenc::detail
#endif
