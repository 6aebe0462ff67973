// Angles as turns in fixed point. A frequency is a fraction of a turn per position with 128 bits
// behind the point, and whole turns do not matter: one integer product modulo 1 is the whole
// reduction of the range, at any position, of either sign. The phase is off by less than
// (|position| · 2^-64 + 1) · 2^-64 turns for each axis, which at 2^62 is 10^-19 radians.
//
// Text for the host and for the device (C++20, of posenc turns.h alone): both compute the same
// bits. The host is compiled without contraction (-ffp-contract=off) and the device without it
// (-fmad=false), and what is fused says so.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "posenc/turns.h"

#if defined(__CUDACC__) || defined(__HIP__)
#define POSENC_DEVICE __host__ __device__ inline
#else
#define POSENC_DEVICE inline
#endif

namespace posenc::cuda {

template <class Real>
struct CosSin {
  Real cos, sin;
};

#if !defined(__CUDA_ARCH__) && !defined(__OPENCL_CPP_VERSION__)
__extension__ typedef unsigned __int128 Uint128;  // NOLINT: `using` takes no __extension__
#endif
POSENC_DEVICE std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#elif defined(__OPENCL_CPP_VERSION__)
  return mul_hi(a, b);
#else
  return static_cast<std::uint64_t>(static_cast<Uint128>(a) * b >> 64);
#endif
}

POSENC_DEVICE std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
  return __umulhi(a, b);
#else
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(a) * b >> 32);
#endif
}

#if defined(__CUDA_ARCH__)
POSENC_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
POSENC_DEVICE double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
#elif defined(__HIP__)
POSENC_DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
POSENC_DEVICE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
POSENC_DEVICE float fused(float a, float b, float c) { return std::fma(a, b, c); }
POSENC_DEVICE double fused(double a, double b, double c) { return std::fma(a, b, c); }
#endif

// position · turns modulo 1, in units of 2^-64 turns. Phases of several axes add up, modulo 1 as
// well.
POSENC_DEVICE std::uint64_t phase_of(std::int64_t position, Turns turns) {
  const auto p = static_cast<std::uint64_t>(position);  // p - 2^64 where position is negative
  return p * turns.high + high_product(p, turns.low) - (position < 0 ? turns.low : 0);
}

// The same at a real position, of turns between -1/2 and 1/2 of which whole ones do matter. `sure`:
// the position is finite and below 2^62.
POSENC_DEVICE std::uint64_t phase_of(double position, Turns turns, bool& sure) {
  sure = position > -0x1p62 && position < 0x1p62;
  if (!sure) return 0;
  auto whole = static_cast<std::int64_t>(position);
  if (static_cast<double>(whole) > position) --whole;
  const auto part = static_cast<std::uint64_t>((position - static_cast<double>(whole)) * 0x1p63)
                    << 1;
  const bool negative = turns.high >> 63 != 0;
  const std::uint64_t behind = high_product(part, negative ? ~turns.high : turns.high);
  return phase_of(whole, turns) + (negative ? 0 - behind : behind);
}

// The cosine and sine of a phase in double, by polynomials in the distance from the next quarter of
// a turn, which is at most an eighth. As published minimax fits (Remez): sin(π/2 y) = y S(y²),
// cos(π/2 y) = C(y²) for |y| ≤ 1/2. Error: 2^-51.7.
POSENC_DEVICE CosSin<double> cos_sin_of(double y) {
  const double z = y * y;
  double s = 6.017885122061075193e-12;
  s = fused(z, s, -6.687805487477465743e-10);
  s = fused(z, s, 5.692172341924170240e-8);
  s = fused(z, s, -3.598843234357913927e-6);
  s = fused(z, s, 1.604411847872859249e-4);
  s = fused(z, s, -4.681754135318684509e-3);
  s = fused(z, s, 7.969262624616704503e-2);
  s = fused(z, s, -6.459640975062462537e-1);
  s = fused(z, s, 6.123233995736766036e-17);  // π/2 less its double
  s = fused(y, 1.570796326794896558, y * s);
  double c = 6.506656904874760981e-11;
  c = fused(z, c, -6.386325490062887851e-9);
  c = fused(z, c, 4.710874077444727845e-7);
  c = fused(z, c, -2.520204223656273559e-5);
  c = fused(z, c, 9.192602748385333598e-4);
  c = fused(z, c, -2.086348076335291747e-2);
  c = fused(z, c, 2.536695079010480126e-1);
  c = fused(z, c, -1.233700550136169827);
  c = fused(z, c, 1.0);
  return {c, s};
}

// The quarter of a turn that is next to a phase, and how far the phase is from it, signed, in units
// of 2^-62 quarters: half a quarter at most.
POSENC_DEVICE std::int64_t split(std::uint64_t phase, std::uint64_t& quarter) {
  quarter = (phase + (std::uint64_t{1} << 61)) >> 62;
  return static_cast<std::int64_t>(phase - (quarter << 62));
}

// What is so many quarters on from where it was computed.
template <class Real>
POSENC_DEVICE CosSin<Real> of_quarter(std::uint64_t quarter, CosSin<Real> near) {
  const bool exchanged = (quarter & 1) != 0;
  const Real c = exchanged ? near.sin : near.cos, s = exchanged ? near.cos : near.sin;
  return {((quarter + 1) & 2) != 0 ? -c : c, (quarter & 2) != 0 ? -s : s};
}

template <class Real>
POSENC_DEVICE CosSin<Real> cos_sin(std::uint64_t phase);

template <>
POSENC_DEVICE CosSin<double> cos_sin<double>(std::uint64_t phase) {
  std::uint64_t quarter = 0;
  const std::int64_t rest = split(phase, quarter);
  return of_quarter(quarter, cos_sin_of(static_cast<double>(rest) * 0x1p-62));
}

// In float the polynomials are computed in integers too, so that every language and compiler has
// these bits: no product can be fused with a sum, and no sum be made in another order. With u twice
// the distance, 0 to 1, and z = u²: 1 - z C(z) and u S(z), minimax fits whose coefficients are of
// 2^-32. Error: 2^-24.95, all 2^32 distances tried; nearly all of it is the rounding to float.
template <>
POSENC_DEVICE CosSin<float> cos_sin<float>(std::uint64_t phase) {
  std::uint64_t quarter = 0;
  const std::int64_t rest = split(phase, quarter);
  const bool behind = rest < 0;
  const auto u = static_cast<std::uint32_t>((behind ? ~rest : rest) >> 29);
  const std::uint32_t z = high_product(u, u);
  std::uint32_t c = 1'399'910 - high_product(15'167u, z);
  c = 68'093'819 - high_product(c, z);
  c = 1'324'675'872 - high_product(c, z);
  c = 0x8000'0000 - (high_product(c, z) >> 1);
  std::uint32_t s = 157'073 - high_product(1'325u, z);
  s = 10'696'154 - high_product(s, z);
  s = 346'799'333 - high_product(s, z);
  s = high_product(3'373'259'426 - high_product(s, z), u);
  const float cosine = static_cast<float>(c) * 0x1p-31f, sine = static_cast<float>(s) * 0x1p-32f;
  return of_quarter<float>(quarter, {cosine, behind ? -sine : sine});
}

// The cosine and sine of an angle in radians that an engine has formed as a float, below 2^50: in
// double, so that rounded to float they are the nearest but for one in 10^7.
POSENC_DEVICE CosSin<double> cos_sin_of_angle(float radians) {
  // 2/π in three parts; the product with the first, of 29 bits, is exact.
  const double a = radians, high = a * 0x1.45f306dp-1;
  if (!(high > -0x1p50 && high < 0x1p50)) {
    const double nothing = high * 1e300 * 1e300 - high * 1e300 * 1e300;  // NaN
    return {nothing, nothing};
  }
  const auto quarter = static_cast<std::int64_t>(high + (high < 0 ? -0.5 : 0.5));
  double y = high - static_cast<double>(quarter);
  y = fused(a, 0x1.9391054p-30, y);
  y = fused(a, 0x1.4fe13abe8fa9ap-59, y);
  return of_quarter(static_cast<std::uint64_t>(quarter), cos_sin_of(y));
}

POSENC_DEVICE double power_of_2(std::int64_t power) {  // -1022 to 1023
#ifdef __CUDA_ARCH__
  return __longlong_as_double((power + 1023) << 52);
#else
  return std::bit_cast<double>((power + 1023) << 52);
#endif
}

// 2^x. Errors: |x| · 2^-53 + 2^-51 of itself; 0 and infinity beyond a double's range.
POSENC_DEVICE double exp2_of(double x) {
  if (!(x > -1080)) return x < 0 ? 0 : x;  // NaN stays
  if (x > 1030) x = 1030;
  const auto whole = static_cast<std::int64_t>(x + (x < 0 ? -0.5 : 0.5));
  const double r = x - static_cast<double>(whole);
  // ln(2)^k / k!, of Taylor's series: |r| ≤ 1/2.
  double sum = 1.3691488853904128e-12;
  sum = fused(sum, r, 2.5678435993488206e-11);
  sum = fused(sum, r, 4.4455382718708116e-10);
  sum = fused(sum, r, 7.054911620801123e-09);
  sum = fused(sum, r, 1.01780860092397e-07);
  sum = fused(sum, r, 1.321548679014431e-06);
  sum = fused(sum, r, 1.5252733804059841e-05);
  sum = fused(sum, r, 0.0001540353039338161);
  sum = fused(sum, r, 0.0013333558146428443);
  sum = fused(sum, r, 0.009618129107628477);
  sum = fused(sum, r, 0.05550410866482158);
  sum = fused(sum, r, 0.24022650695910072);
  sum = fused(sum, r, 0.6931471805599453);
  sum = fused(sum, r, 1.0);
  // In two steps, so that both are powers that a double has.
  const std::int64_t half = whole / 2;
  return sum * power_of_2(half) * power_of_2(whole - half);
}

}  // namespace posenc::cuda
