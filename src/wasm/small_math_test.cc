// Held against long double, where that has 64 bits or more.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <gtest/gtest.h>

#include "src/wasm/small_math.h"

namespace posenc::detail {
namespace {

constexpr bool wide = std::numeric_limits<long double>::digits >= 64;
constexpr double infinity = std::numeric_limits<double>::infinity();

// How far off, in units of the last place of the exact result.
double ulps(double got, long double exact) {
  if (std::isinf(exact) || std::abs(exact) > std::numeric_limits<double>::max())
    return std::isinf(got) ? 0 : infinity;
  const int exponent = std::max(std::ilogb(exact), -1022);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) /
                             std::ldexp(1.0L, exponent - 52));
}

struct Worst {
  double ulp = 0, x = 0, y = 0;
  void see(double u, double at, double and_at = 0) {
    if (!(u <= ulp)) *this = {u, at, and_at};
  }
};

// Each test has the numbers from the first on, whatever ran before it.
class SmallMath : public testing::Test {
 protected:
  double uniform(double a, double b) {
    return std::uniform_real_distribution<double>(a, b)(random_bits_);
  }
  std::mt19937_64 random_bits_{1};
};

TEST_F(SmallMath, PowersAreRoundedCorrectlyButForAHair) {
  if (!wide) GTEST_SKIP() << "long double is double here";
  Worst worst;
  for (int i = 0; i < 200000; i++) {
    const double x = std::exp(uniform(-20, 20)), y = uniform(-20, 20);
    worst.see(ulps(small_pow(x, y), std::pow(static_cast<long double>(x), y)), x, y);
    const double base = uniform(1.5, 1e7), exponent = uniform(0, 1);
    worst.see(ulps(small_pow(base, exponent), std::pow(static_cast<long double>(base), exponent)),
              base, exponent);
    const double near = 1 + uniform(-1e-6, 1e-6), far = uniform(-1e6, 1e6);
    worst.see(ulps(small_pow(near, far), std::pow(static_cast<long double>(near), far)), near, far);
    // As near to 1 as can be, and as far as the range goes.
    const double nearest = 1 + uniform(-1, 1) * std::exp(uniform(-35, -1));
    const double furthest = uniform(-700, 700) / std::log(nearest);
    if (nearest == 1) continue;
    worst.see(
        ulps(small_pow(nearest, furthest), std::pow(static_cast<long double>(nearest), furthest)),
        nearest, furthest);
  }
  EXPECT_LT(worst.ulp, 0.503) << worst.x << " " << worst.y;
}

TEST_F(SmallMath, LogarithmsAreRoundedCorrectlyButForAHair) {
  if (!wide) GTEST_SKIP() << "long double is double here";
  Worst log, log1p, exp2;
  for (int i = 0; i < 200000; i++) {
    const double any = std::exp(uniform(-700, 700)),
                 near = 1 + uniform(-1, 1) * std::exp(uniform(-40, -1));
    for (const double x : {any, near})
      log.see(ulps(small_log(x), std::log(static_cast<long double>(x))), x);
    const double x = std::exp(uniform(-700, 700)), y = uniform(-1, 1) * std::exp(uniform(-40, 0));
    for (const double each : {x, y})
      log1p.see(ulps(small_log1p(each), std::log1p(static_cast<long double>(each))), each);
    const double z = uniform(-1070, 1024);
    exp2.see(ulps(small_exp2(z), std::exp2(static_cast<long double>(z))), z);
  }
  EXPECT_LT(log.ulp, 0.502) << log.x;
  EXPECT_LT(log1p.ulp, 0.502) << log1p.x;
  EXPECT_LT(exp2.ulp, 0.502) << exp2.x;
}

TEST_F(SmallMath, ExponentialIsWithinOneUlp) {
  if (!wide) GTEST_SKIP() << "long double is double here";
  Worst worst;
  for (int i = 0; i < 400000; i++) {
    for (const double x : {uniform(-745, 709), uniform(-20, 1), uniform(-1e-3, 1e-3)})
      worst.see(ulps(small_exp(x), std::exp(static_cast<long double>(x))), x);
  }
  EXPECT_LT(worst.ulp, 1) << worst.x;
}

TEST_F(SmallMath, FusedProductsAreRoundedOnce) {
  for (int i = 0; i < 1000000; i++) {
    const double a = std::ldexp(uniform(-1, 1), static_cast<int>(random_bits_() % 60));
    const double b = std::ldexp(uniform(-1, 1), static_cast<int>(random_bits_() % 60));
    const double cs[] = {-a * b, std::ldexp(uniform(-1, 1), static_cast<int>(random_bits_() % 200)),
                         std::nextafter(-a * b, 0), 1.5 * a * b, 0};
    for (const double c : cs)
      ASSERT_EQ(small_fma(a, b, c), std::fma(a, b, c)) << a << " " << b << " " << c;
  }
}

// What IEEE 754 and C say of the ends.
TEST_F(SmallMath, EndsAreThoseOfTheCLibrary) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double ends[] = {0.0,      -0.0,      1,   -1,    0.5,    -0.5,   2,
                         -2,       3,         -3,  1e300, -1e300, 1e-300, 5e-324,
                         infinity, -infinity, nan, 709.9, -745.2, 1e18,   -7.5};
  const auto same = [](double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)) ||
           (std::isfinite(a) && std::abs(a - b) <= 1e-15 * std::abs(b));
  };
  for (const double x : ends) {
    EXPECT_PRED2(same, small_exp(x), std::exp(x)) << x;
    EXPECT_PRED2(same, small_exp2(x), std::exp2(x)) << x;
    EXPECT_PRED2(same, small_log(x), std::log(x)) << x;
    EXPECT_PRED2(same, small_log1p(x), std::log1p(x)) << x;
    for (const double y : ends)
      EXPECT_PRED2(same, small_pow(x, y), std::pow(x, y)) << x << "^" << y;
  }
}

// The C library's sine and cosine reduce exactly however large the angle.
TEST_F(SmallMath, LargeAnglesAreReducedExactly) {
  double worst = 0;
  for (int i = 0; i < 200000; i++) {
    const double x = i % 2 ? std::exp(uniform(0, 709)) : uniform(1, 1e9);
    double rest[2];
    const int n = reduce_by_half_pi(x, rest);
    ASSERT_LE(std::abs(rest[0]), 0.7854) << x;
    const double s = std::sin(rest[0]) + std::cos(rest[0]) * rest[1];
    const double c = std::cos(rest[0]) - std::sin(rest[0]) * rest[1];
    const double sine[] = {s, c, -s, -c}, cosine[] = {c, -s, -c, s};
    worst = std::max(
        {worst, std::abs(sine[n & 3] - std::sin(x)), std::abs(cosine[n & 3] - std::cos(x))});
  }
  EXPECT_LT(worst, 3e-16);
  // The double nearest to a multiple of π/2: 60 bits cancel.
  double rest[2];
  reduce_by_half_pi(0x1.6ac5b262ca1ffp+849, rest);
  EXPECT_NEAR(rest[0] / 4.687165924254624e-19, 1, 1e-15);
}

}  // namespace
}  // namespace posenc::detail
