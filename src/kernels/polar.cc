// Polar rotations: softplus of channels and its slope by vectors, and what moves beside them.
#include "src/kernels/polar.h"

#if POSENC_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/polar.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// e^−|x|, 1 of NaN: Highway's rounds to an integer, which no NaN is.
template <class D, class V>
HWY_INLINE V ExponentialOfMinus(D d, V x) {
  return hn::Exp(d, hn::Neg(hn::Abs(hn::IfThenZeroElse(hn::IsNaN(x), x))));
}

// x -> max(x, 0) + ln(1 + e^−|x|); NaN of NaN, which Highway's e^x does not give.
template <class D, class V>
HWY_INLINE V Softplus(D d, V x) {
  const auto tail = hn::Log1p(d, ExponentialOfMinus(d, x));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Add(hn::Max(x, hn::Zero(d)), tail));
}

// e^min(x, 0)/(1 + e^−|x|), whatever of NaN.
template <class D, class V>
HWY_INLINE V SoftplusSlope(D d, V x) {
  const auto one = hn::Set(d, hn::TFromD<D>{1}), e = ExponentialOfMinus(d, x);
  const auto top = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(top, hn::Add(one, e));
}

// Calls act(tag, i) for whole vectors, then for the numbers that are left.
template <class T, class Act>
HWY_INLINE void ForEach(std::int64_t count, const Act& act) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) act(d, i);
  for (; i < count; ++i) act(hn::CappedTag<T, 1>(), i);
}

template <class T>
void Lengths(T* x, std::int64_t count) {
  ForEach<T>(count, [x](auto d, std::int64_t i)
                        HWY_ATTR { hn::StoreU(Softplus(d, hn::LoadU(d, x + i)), d, x + i); });
}

// A gradient of 0 stays: a hidden token may hold NaN.
template <class T>
void BySlopes(const T* x, T* gradient, std::int64_t count) {
  ForEach<T>(count, [x, gradient](auto d, std::int64_t i) HWY_ATTR {
    const auto slope = SoftplusSlope(d, hn::LoadU(d, x + i)), by = hn::LoadU(d, gradient + i);
    hn::StoreU(hn::IfThenElseZero(hn::Ne(by, hn::Zero(d)), hn::Mul(slope, by)), d, gradient + i);
  });
}

}  // namespace

void LengthsFloats(float* x, std::int64_t count) { Lengths(x, count); }
void LengthsDoubles(double* x, std::int64_t count) { Lengths(x, count); }
void BySlopesFloats(const float* x, float* gradient, std::int64_t count) {
  BySlopes(x, gradient, count);
}
void BySlopesDoubles(const double* x, double* gradient, std::int64_t count) {
  BySlopes(x, gradient, count);
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if !POSENC_SIMD || HWY_ONCE

#include <algorithm>

#include "src/kernels/elements.h"
#include "src/kernels/rotate_checked.h"
#include "src/kernels/rows.h"
#include "src/kernels/scratch.h"
#include "src/kernels/threads.h"

namespace posenc::detail {
namespace {

#if POSENC_SIMD
HWY_EXPORT(LengthsFloats);
HWY_EXPORT(LengthsDoubles);
HWY_EXPORT(BySlopesFloats);
HWY_EXPORT(BySlopesDoubles);

void lengths(float* x, std::int64_t count) { HWY_DYNAMIC_DISPATCH(LengthsFloats)(x, count); }
void lengths(double* x, std::int64_t count) { HWY_DYNAMIC_DISPATCH(LengthsDoubles)(x, count); }
void by_slopes(const float* x, float* gradient, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(BySlopesFloats)(x, gradient, count);
}
void by_slopes(const double* x, double* gradient, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(BySlopesDoubles)(x, gradient, count);
}
#else
template <class T>
void lengths(T* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = static_cast<T>(softplus(x[i]));
}
template <class T>
void by_slopes(const T* x, T* gradient, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    gradient[i] *= gradient[i] == 0 ? T{1} : static_cast<T>(softplus_slope(x[i]));
}
#endif

// The channels behind the slice move; of interleaved pairs the lengths spread, from the last on.
template <class T>
void widen_rows(const Rotate& rotate, std::int64_t head_dim, T* row, std::int64_t step,
                std::int64_t count) {
  const std::int64_t first = rotate.slice.first_dim, pairs = rotate.pairs(),
                     wide = head_dim + pairs;
  for (; count > 0; --count, row += step) {
    std::copy_backward(row + first + pairs, row + head_dim, row + wide);
    std::fill(row + wide, row + padded(wide), T{0});
    lengths(row + first, pairs);
    if (rotate.slice.pairing == Pairing::halves) {
      std::fill_n(row + first + pairs, pairs, T{0});
      continue;
    }
    for (std::int64_t r = pairs - 1; r >= 0; --r) {
      row[first + 2 * r] = row[first + r];
      row[first + 2 * r + 1] = 0;
    }
  }
}

template <class T>
void narrow_rows(const Rotate& rotate, std::int64_t head_dim, const T* plain,
                 std::int64_t plain_step, T* row, std::int64_t step, std::int64_t count) {
  const std::int64_t first = rotate.slice.first_dim, pairs = rotate.pairs();
  for (; count > 0; --count, row += step, plain += plain_step) {
    for (std::int64_t r = 0; r < pairs && rotate.slice.pairing == Pairing::interleaved; ++r)
      row[first + r] = row[first + 2 * r];
    by_slopes(plain + first, row + first, pairs);
    std::copy(row + first + 2 * pairs, row + head_dim + pairs, row + first + pairs);
  }
}

// Tokens of a head that are rotated at a time: what they share of cos and sin is worth making, and
// their rows stay in the second cache.
constexpr std::int64_t most_tokens = 256;

template <class T>
void rotate_blocks(const Rotate& rotate, const RotateArguments& arguments,
                   const Positions& positions, Side side, std::int64_t first, std::int64_t last) {
  const Tensor &x = arguments.x, &out = arguments.out;
  const std::int64_t heads = x.shape[1], seq = x.shape[2], step = padded(out.shape[3]);
  const std::int64_t blocks = (seq + most_tokens - 1) / most_tokens;
  Scratch scratch;
  T* const rows = scratch.take<T>(std::min(seq, most_tokens) * step);
  for (; first < last; ++first) {
    const std::int64_t b = first / blocks / heads, h = first / blocks % heads;
    const std::int64_t start = first % blocks * most_tokens;
    const std::int64_t count = std::min(most_tokens, seq - start);
    load_rows(x, x.offset(b, h, start), count, rows, step);
    widen_rows(rotate, x.shape[3], rows, step, count);
    Tensor view = Tensor::dense(rows, {1, 1, count, out.shape[3]});
    view.stride[2] = step;
    rotate_heads(rotate, h, view, positions.slice(b, start, count), side, Action::forward);
    store_rows(rows, step, count, T{1}, out, out.offset(b, h, start));
  }
}

}  // namespace

void widen(const Rotate& rotate, std::int64_t head_dim, float* rows, std::int64_t step,
           std::int64_t count) {
  widen_rows(rotate, head_dim, rows, step, count);
}
void widen(const Rotate& rotate, std::int64_t head_dim, double* rows, std::int64_t step,
           std::int64_t count) {
  widen_rows(rotate, head_dim, rows, step, count);
}

void narrow_gradient(const Rotate& rotate, std::int64_t head_dim, const float* plain,
                     std::int64_t plain_step, float* rows, std::int64_t step, std::int64_t count) {
  narrow_rows(rotate, head_dim, plain, plain_step, rows, step, count);
}
void narrow_gradient(const Rotate& rotate, std::int64_t head_dim, const double* plain,
                     std::int64_t plain_step, double* rows, std::int64_t step, std::int64_t count) {
  narrow_rows(rotate, head_dim, plain, plain_step, rows, step, count);
}

void rotate_polar(const Rotate& rotate, const RotateArguments& arguments,
                  const Positions& positions, Side side, Threads threads) {
  const Tensor& x = arguments.x;
  const std::int64_t blocks = (x.shape[2] + most_tokens - 1) / most_tokens;
  share_out(x.shape[0] * x.shape[1] * blocks, thread_count(threads, bytes_of(arguments.out)),
            [&](std::int64_t first, std::int64_t last) {
              if (computes_in_double(x.dtype))
                rotate_blocks<double>(rotate, arguments, positions, side, first, last);
              else
                rotate_blocks<float>(rotate, arguments, positions, side, first, last);
            });
}

}  // namespace posenc::detail
#endif
