// Logarithms and powers in sums of two and three doubles, and 2/π to as many digits as the largest
// double needs.
#include "src/wasm/small_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace posenc::detail {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// ln 2 in parts: a product of the first two with a small whole number is exact.
constexpr double ln2[] = {0x1.62e42fefa3800p-1, 0x1.ef35793c76000p-45, 0x1.cc01f97b57a08p-87};

// An unevaluated sum of two doubles, low no more than half a unit of high (Dekker 1971).
struct Double2 {
  double high, low;
};

Double2 quick_sum(double a, double b) {  // |a| ≥ |b|
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Double2 sum(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

Double2 split(double a) {  // into halves of 26 bits
  const double t = 134217729 * a, high = t - (t - a);
  return {high, a - high};
}

Double2 product(double a, double b) {
  const double p = a * b;
  const Double2 x = split(a), y = split(b);
  return {p, ((x.high * y.high - p) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

Double2 operator+(Double2 a, Double2 b) {
  const Double2 s = sum(a.high, b.high);
  return quick_sum(s.high, s.low + (a.low + b.low));
}

Double2 operator*(Double2 a, Double2 b) {
  const Double2 p = product(a.high, b.high);
  return quick_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

Double2 operator/(Double2 a, double b) {
  const double q = a.high / b;
  const Double2 back = product(q, b);
  return quick_sum(q, ((a.high - back.high) - back.low + a.low) / b);
}

// e^(x)·2^-scale, for |x| below 750.
Double2 exponential(Double2 x, int& scale) {
  const double k = std::floor(x.high / ln2[0] + 0.5);
  scale = static_cast<int>(k);
  Double2 r = Double2{x.high - k * ln2[0], 0} + Double2{x.low, 0};
  r = r + Double2{-k * ln2[1], 0} + Double2{-k * ln2[2], 0};
  // e^r − 1 from that of r/512, doubled nine times: (1 + s)² − 1 = 2s + s².
  r = {r.high / 512, r.low / 512};
  Double2 series = r / 8;
  for (int n = 7; n >= 1; n--) series = (r + r * series) / n;
  for (int i = 0; i < 9; i++) series = series * series + Double2{2 * series.high, 2 * series.low};
  return Double2{1, 0} + series;
}

double scaled(Double2 x, int scale) {
  if (scale > -1022 || (scale == -1022 && x.high >= 1)) return std::ldexp(x.high + x.low, scale);
  // Subnormal: rounded once, from both parts, to the bits that are left.
  const double bias = std::ldexp(1, -1022 - scale);
  const Double2 s = sum(bias, x.high);
  return std::ldexp((s.high + (s.low + x.low)) - bias, scale);
}

// Of a positive finite number. y₀ is right to a few units; e^(−y₀)·x − 1 is what it lacks.
Double2 logarithm(Double2 x) {
  int scale = 0;
  const double mantissa = std::frexp(x.high, &scale);
  const Double2 m = {mantissa, std::ldexp(x.low, -scale)};
  const int low_half = mantissa < 0.70710678118654752 ? 1 : 0;
  const double f = std::ldexp(mantissa, low_half) - 1, s = f / (2 + f), z = s * s;
  const double exponent = scale - low_half;
  if (exponent == 0 && std::abs(f) < 1e-11) {  // ln(1 + g) = g − g²/2
    const Double2 g = quick_sum(f, std::ldexp(m.low, low_half));
    return g + product(g.high, -g.high / 2);
  }
  // 2·artanh(s) by its series.
  double series = 0;
  for (int n = 23; n >= 3; n -= 2) series = (series + 1.0 / n) * z;
  const double guess = 2 * s * (1 + series);
  const Double2 y = Double2{guess, 0};
  int shift = 0;
  Double2 back = exponential({-y.high, -y.low}, shift);
  const Double2 one =
      back * Double2{std::ldexp(m.high, low_half + shift), std::ldexp(m.low, low_half + shift)};
  const Double2 lacks = one + Double2{-1, 0};
  const double d = lacks.high;
  const Double2 whole = sum(exponent * ln2[0], exponent * ln2[1]) + Double2{exponent * ln2[2], 0};
  // ln(1 + d) = d − d²/2 + …
  return whole + (y + (lacks + Double2{-d * d / 2, 0}));
}

// e^x.
double power_of_e(Double2 x) {
  if (x.high > 710) return infinity;
  if (x.high < -746) return 0;
  int scale = 0;
  const Double2 y = exponential(x, scale);
  return scaled(y, scale);
}

}  // namespace

double small_exp(double x) {
  // As fdlibm, whose e^r = 1 + 2r/(2 − r·coth) needs five coefficients.
  if (std::isnan(x)) return x;
  if (x > 710) return infinity;
  if (x < -746) return 0;
  constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  const double k = std::floor(x / 0.69314718055994531 + 0.5);
  const double high = x - k * ln2_high, low = k * ln2_low, r = high - low, t = r * r;
  const double c =
      r - t * (1.66666666666666019037e-01 +
               t * (-2.77777777770155933842e-03 +
                    t * (6.61375632143793436117e-05 +
                         t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
  return std::ldexp(1 + (r * c / (2 - c) - low + high), static_cast<int>(k));
}

double small_log(double x) {
  if (!(x > 0) || x == infinity) return x == 0 ? -infinity : x < 0 ? (x - x) / 0.0 : x;
  const Double2 y = logarithm({x, 0});
  return y.high + y.low;
}

double small_log1p(double x) {
  if (!(x > -1) || x == infinity) return x == -1 ? -infinity : x < -1 ? (x - x) / 0.0 : x;
  if (std::abs(x) < 1e-20) return x;
  const Double2 y = logarithm(sum(1, x));
  return y.high + y.low;
}

double small_exp2(double x) {
  if (std::isnan(x)) return x;
  if (x >= 1024) return infinity;
  if (x < -1080) return 0;
  const double whole = std::floor(x + 0.5), rest = x - whole;
  int scale = 0;
  const Double2 y =
      exponential(product(rest, ln2[0]) + product(rest, ln2[1]) + Double2{rest * ln2[2], 0}, scale);
  return scaled(y, scale + static_cast<int>(whole));
}

double small_pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y)) return x + y;
  const bool whole = y == std::floor(y), odd = whole && 2 * std::floor(y / 2) != y;
  const double size = std::abs(x);
  if (x < 0 && !whole && size != infinity) return (x - x) / 0.0;
  const bool negative = odd && std::signbit(x);
  const auto sign = [&](double result) { return negative ? -result : result; };
  if (size == 1) return sign(1);
  if (std::abs(y) == infinity) return (size > 1) == (y > 0) ? infinity : 0;
  if (size == 0 || size == infinity) return sign((size == 0) == (y > 0) ? 0 : infinity);
  const Double2 log = logarithm({size, 0});
  const double about = y * log.high;
  if (!(about < 710)) return sign(infinity);
  if (!(about > -746)) return sign(0);
  return sign(power_of_e(product(y, log.high) + Double2{y * log.low, 0}));
}

double small_fma(double a, double b, double c) {
  const Double2 exact = product(a, b), low = sum(c, exact.low), high = sum(exact.high, low.high);
  Double2 rest = sum(low.low, high.low);
  // Rounded to odd, so that the last rounding sees that something was cut off.
  const auto bits = std::bit_cast<std::uint64_t>(rest.high);
  if (rest.low != 0 && bits % 2 == 0)
    rest.high = std::bit_cast<double>((rest.low > 0) == (rest.high > 0) ? bits + 1 : bits - 1);
  return high.high + rest.high;
}

int reduce_by_half_pi(double x, double rest[2]) {
  // 2/π, 32 bits a word, behind the point.
  constexpr std::uint32_t two_over_pi[] = {
      0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB,
      0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E,
      0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B,
      0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7,
      0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1,
      0x1F8D5D08, 0x56033046, 0xFC7B6BAB};
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t mantissa = (bits & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1} << 52);
  const int exponent = static_cast<int>(bits >> 52) - 1075;  // x = mantissa·2^exponent
  // Bits of 2/π that make whole turns (multiples of 8 halves of π) are left out: `first` and those
  // after it count.
  const int first = exponent > 3 ? exponent - 3 : 0;
  const auto word = [&](int i) -> std::uint64_t {  // 32 bits of 2/π from first + 32 i
    const int at = first + 32 * i, index = at / 32, shift = at % 32;
    const std::uint64_t pair = std::uint64_t{two_over_pi[index]} << 32 | two_over_pi[index + 1];
    return pair >> (32 - shift) & 0xffffffff;
  };
  // mantissa · window, six words of it: product[0] is the highest of eight.
  std::uint32_t product[8] = {};
  for (int half = 0; half < 2; half++) {
    const std::uint64_t factor = half == 0 ? mantissa & 0xffffffff : mantissa >> 32;
    std::uint64_t carry = 0;
    for (int i = 5; i >= 0; i--) {
      const int at = i + 2 - half;
      carry += factor * word(i) + product[at];
      product[at] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    product[1 - half] = static_cast<std::uint32_t>(product[1 - half] + carry);
  }
  // As a fraction the product's point stands `point` bits from its top.
  const int point = 64 + exponent - first;
  const auto bits_from = [&](int at) -> std::uint64_t {  // 64 bits from there
    const int index = at / 32, shift = at % 32;
    const auto get = [&](int i) -> std::uint64_t { return i < 8 ? product[i] : 0; };
    const std::uint64_t high = get(index) << 32 | get(index + 1);
    return shift == 0 ? high : high << shift | get(index + 2) >> (32 - shift);
  };
  int n = static_cast<int>(bits_from(point - 3) >> 61);
  std::uint64_t high = bits_from(point), low = bits_from(point + 64);
  const bool up = high >> 63;  // the nearest multiple is the next one
  if (up) {
    n = (n + 1) & 7;
    low = ~low + 1;
    high = ~high + (low == 0 ? 1 : 0);
  }
  const auto lead = [](std::uint64_t a) { return static_cast<double>(a >> 11 << 11); };
  Double2 f = sum(std::ldexp(lead(high), -64), std::ldexp(static_cast<double>(high & 2047), -64));
  f = f + Double2{std::ldexp(lead(low), -128), 0} +
      Double2{std::ldexp(static_cast<double>(low & 2047), -128), 0};
  if (up) f = {-f.high, -f.low};
  f = f * Double2{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  rest[0] = f.high;
  rest[1] = f.low;
  return n;
}

}  // namespace posenc::detail
