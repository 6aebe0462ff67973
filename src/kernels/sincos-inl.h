// Sine and cosine of many doubles at once. Included once per instruction set.
#if defined(POSENC_SINCOS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_SINCOS_INL_H
#undef POSENC_SINCOS_INL_H
#else
#define POSENC_SINCOS_INL_H
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Where the reduction below ends: n = x · 2/π fits 26 bits.
constexpr double largest_angle = 1e8;

// sin and cos of high + low, |high| < largest_angle, |low| half an ulp of high at most; each within
// 0.6 ulp of max(|value|, 2^-26).
//
// Cody and Waite: π/2 is cut into three pieces of 27 bits and a rest, so that n · piece is exact
// with or without a fused multiply-add. The first two differences are exact too; the third rounds,
// and what it loses is kept in `tail`.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SinCos(D d, V high, V low, V& sine, V& cosine) {
  using hn::Add, hn::BitCast, hn::Mul, hn::MulAdd, hn::NegMulAdd, hn::Set, hn::Sub, hn::Xor;
  const hn::RebindToUnsigned<D> du;
  // Adding 1.5 · 2^52 rounds to a whole number and leaves it in the lowest bits.
  const V rounder = Set(d, 0x1.8p52);
  const V rounded = Add(Mul(high, Set(d, 0x1.45f306dc9c883p-1)), rounder);
  const V n = Sub(rounded, rounder);
  const auto quadrant = BitCast(du, rounded);

  V r = NegMulAdd(n, Set(d, 0x1.921fb54p+0), high);
  r = NegMulAdd(n, Set(d, 0x1.10b46p-30), r);
  const V rest = Sub(MulAdd(n, Set(d, 0x1.1a6263p-54), Mul(n, Set(d, 0x1.8a2e03707344ap-81))), low);
  const V x = Sub(r, rest);
  const V tail = Sub(Sub(r, x), rest);

  // Taylor to x^17 and x^16: what is left out is below 2^-58 for |x| <= π/4.
  const V z = Mul(x, x);
  V odd = MulAdd(z, Set(d, 0x1.952c77030ad4ap-49), Set(d, -0x1.ae7f3e733b81fp-41));
  odd = MulAdd(z, odd, Set(d, 0x1.6124613a86d09p-33));
  odd = MulAdd(z, odd, Set(d, -0x1.ae64567f544e4p-26));
  odd = MulAdd(z, odd, Set(d, 0x1.71de3a556c734p-19));
  odd = MulAdd(z, odd, Set(d, -0x1.a01a01a01a01ap-13));
  odd = MulAdd(z, odd, Set(d, 0x1.1111111111111p-7));
  odd = MulAdd(z, odd, Set(d, -0x1.5555555555555p-3));
  const V s = Add(x, MulAdd(Mul(x, z), odd, tail));

  V even = MulAdd(z, Set(d, 0x1.ae7f3e733b81fp-45), Set(d, -0x1.93974a8c07c9dp-37));
  even = MulAdd(z, even, Set(d, 0x1.1eed8eff8d898p-29));
  even = MulAdd(z, even, Set(d, -0x1.27e4fb7789f5cp-22));
  even = MulAdd(z, even, Set(d, 0x1.a01a01a01a01ap-16));
  even = MulAdd(z, even, Set(d, -0x1.6c16c16c16c17p-10));
  even = MulAdd(z, even, Set(d, 0x1.5555555555555p-5));
  const V one = Set(d, 1.0), half = Mul(z, Set(d, 0.5));
  const V near = Sub(one, half);  // what its rounding loses is added with the small terms
  const V small = NegMulAdd(x, tail, Sub(Sub(one, near), half));
  const V c = Add(near, MulAdd(Mul(z, z), even, small));

  // Odd quadrants exchange the two; the second bit is the sign of the sine.
  const auto exchange = hn::RebindMask(d, hn::TestBit(quadrant, hn::Set(du, 1ull)));
  const auto sign = hn::Set(du, 1ull << 63);
  const V sine_sign = BitCast(d, hn::And(hn::ShiftLeft<62>(quadrant), sign));
  const V cosine_sign =
      BitCast(d, hn::And(hn::ShiftLeft<62>(hn::Add(quadrant, hn::Set(du, 1ull))), sign));
  sine = Xor(hn::IfThenElse(exchange, c, s), sine_sign);
  cosine = Xor(hn::IfThenElse(exchange, s, c), cosine_sign);
}

}  // namespace posenc::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
