// Angles as turns in fixed point. A frequency is a fraction of a turn per position with 128 bits behind the point, and whole
// turns do not matter: one integer product modulo 1 is the whole reduction of the range, at any position, of either sign.
// The phase is off by less than (|position| · 2^-64 + 1) · 2^-64 turns for each axis, which at 2^62 is 10^-19 radians.
//
// Text for the host and for the device (C++20, no other header of posenc): both compute the same bits. The host is compiled
// without contraction (-ffp-contract=off) and the device without it (-fmad=false), and what is fused says so.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define POSENC_DEVICE __host__ __device__ inline
#else
#include <cmath>
#define POSENC_DEVICE inline
#endif

namespace posenc::cuda {

struct alignas(16) Turns {
  std::uint64_t high = 0, low = 0;  // (high · 2^64 + low) · 2^-128 turns per position
};

template <class Real>
struct CosSin {
  Real cos, sin;
};

#ifndef __CUDA_ARCH__
__extension__ typedef unsigned __int128 Uint128;  // NOLINT: `using` takes no __extension__
#endif
POSENC_DEVICE std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return static_cast<std::uint64_t>(static_cast<Uint128>(a) * b >> 64);
#endif
}

POSENC_DEVICE float fused(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fmaf_rn(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}
POSENC_DEVICE double fused(double a, double b, double c) {
#ifdef __CUDA_ARCH__
  return __fma_rn(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}

// position · turns modulo 1, in units of 2^-64 turns. Phases of several axes add up, modulo 1 as well.
POSENC_DEVICE std::uint64_t phase_of(std::int64_t position, Turns turns) {
  const auto p = static_cast<std::uint64_t>(position);  // p - 2^64 where position is negative
  return p * turns.high + high_product(p, turns.low) - (position < 0 ? turns.low : 0);
}

// The cosine and sine of a phase, by polynomials in the distance from the next quarter of a turn, which is at most an eighth.
// As published minimax fits (Remez): sin(π/2 y) = y S(y²), cos(π/2 y) = C(y²) for |y| ≤ 1/2. Errors: 2^-23.7 of float, 2^-51.7
// of double.
POSENC_DEVICE CosSin<float> cos_sin_of(float y) {
  const float z = y * y;
  float s = fused(z, -0x1.2d9bb8p-8f, 0x1.465ec6p-4f);
  s = fused(z, s, -0x1.4abbbap-1f);
  s = fused(z, s, -0x1.a0f36ep-25f);
  s = fused(y, 0x1.921fb6p+0f, y * s);
  float c = fused(z, 0x1.d9c364p-11f, -0x1.55c57cp-6f);
  c = fused(z, c, 0x1.03c1dcp-2f);
  c = fused(z, c, -0x1.3bd3ccp+0f);
  c = fused(z, c, 1.0f);
  return {c, s};
}
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

// How far it is from the quarter that is next, in quarters: -1/2 to 1/2.
POSENC_DEVICE void split(std::uint64_t phase, std::uint64_t& quarter, float& y) {
  quarter = (phase + (std::uint64_t{1} << 61)) >> 62;
  const auto rest = static_cast<std::int64_t>(phase - (quarter << 62));
  y = static_cast<float>(static_cast<std::int32_t>(rest >> 30)) * 0x1p-32f;
}
POSENC_DEVICE void split(std::uint64_t phase, std::uint64_t& quarter, double& y) {
  quarter = (phase + (std::uint64_t{1} << 61)) >> 62;
  y = static_cast<double>(static_cast<std::int64_t>(phase - (quarter << 62))) * 0x1p-62;
}

template <class Real>
POSENC_DEVICE CosSin<Real> cos_sin(std::uint64_t phase) {
  std::uint64_t quarter = 0;
  Real y = 0;
  split(phase, quarter, y);
  const CosSin<Real> near = cos_sin_of(y);
  const bool exchanged = (quarter & 1) != 0;
  const Real c = exchanged ? near.sin : near.cos, s = exchanged ? near.cos : near.sin;
  return {((quarter + 1) & 2) != 0 ? -c : c, (quarter & 2) != 0 ? -s : s};
}

}  // namespace posenc::cuda
