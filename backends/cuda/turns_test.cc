// Angles in fixed point beside the same in 113 bits.
#include "backends/cuda/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace posenc::cuda {
namespace {

using Wide = __float128;
__extension__ typedef __int128 Int128;

// 2π as a sum of doubles that do not overlap.
constexpr Wide full_turn =
    static_cast<Wide>(0x1.921fb54442d18p+2) + static_cast<Wide>(0x1.1a62633145c07p-52);

// How far a phase is from position · frequency, in turns.
double off(std::int64_t position, double frequency) {
  const Wide turns = static_cast<Wide>(position) * static_cast<Wide>(frequency) / full_turn;
  // Whole turns first, as far as an integer holds them.
  const auto whole = static_cast<Int128>(turns);
  const Wide exact = turns - static_cast<Wide>(whole);
  const Wide found =
      static_cast<Wide>(phase_of(position, turns_of(frequency))) * static_cast<Wide>(0x1p-64);
  const auto distance = static_cast<double>(found - exact);
  return std::abs(distance - std::round(distance));
}

TEST(Turns, AreWithin2ToTheMinus62AtAnyPositionThatTheReferenceResolves) {
  double worst = 0;
  for (const std::int64_t p : {1LL, 2LL, 1000LL, 32'768LL, 1'000'003LL, 1LL << 31, (1LL << 40) + 7})
    for (int i = 0; i < 64; ++i)
      for (const std::int64_t sign : {1, -1})
        worst = std::max(worst, off(sign * p, std::pow(10000.0, -i / 64.0)));
  EXPECT_LT(worst, 0x1p-62);
}

// At 2^40 and more a phase of 64 bits alone is off by 2^-25 turns.
TEST(Turns, NeedTheirLowerHalf) {
  const Turns turns = turns_of(0.7);
  const std::int64_t p = (std::int64_t{1} << 62) - 1;
  const std::uint64_t with = phase_of(p, turns), without = phase_of(p, {turns.high, 0});
  EXPECT_GT(std::abs(static_cast<double>(static_cast<std::int64_t>(with - without))), 0x1p40);
}

TEST(Turns, OfAFrequencyBelowZeroAreThoseBackwards) {
  for (const double f : {1.0, 0.3, 1e-5, 7.0})
    for (const std::int64_t p : {1LL, 12345LL, 1LL << 50}) {
      const std::uint64_t forth = phase_of(p, turns_of(f)), back = phase_of(p, turns_of(-f));
      EXPECT_LE(std::min(forth + back, 0 - (forth + back)), 1u);
    }
}

TEST(Turns, OfFrequenciesThatAreTinyOrHugeAreWhole) {
  EXPECT_EQ(turns_of(0).high, 0u);
  EXPECT_EQ(turns_of(5e-324).low, 0u);
  EXPECT_LT(off(3, 1e9), 0x1p-60);
  EXPECT_LT(off(3, 0x1p60), 0x1p-40);
}

TEST(Turns, WholeTurnsOfAFrequencyVanish) {
  EXPECT_NEAR(static_cast<double>(turns_of(2 * std::numbers::pi).high) * 0x1p-64, 1.0, 1e-15);
}

template <class Real>
double worst_of_circle() {
  long double worst = 0;
  constexpr std::uint64_t step = 0x0001'2345'6789'abcd;
  std::uint64_t phase = 0;
  for (int i = 0; i < 1 << 18; ++i, phase += step) {
    const long double radians =
        2 * std::numbers::pi_v<long double> * (static_cast<long double>(phase) * 0x1p-64L);
    const CosSin<Real> found = cos_sin<Real>(phase);
    worst = std::max(
        {worst, std::abs(found.cos - std::cos(radians)), std::abs(found.sin - std::sin(radians))});
  }
  return static_cast<double>(worst);
}

TEST(Turns, FloatCosinesAreWithinTheBoundOfTheHeader) {
  EXPECT_LT(worst_of_circle<float>(), std::exp2(-24.95));
}

TEST(Turns, DoubleCosinesAreWithinTheBoundOfTheHeader) {
  EXPECT_LT(worst_of_circle<double>(), std::exp2(-51.7));
}

TEST(Turns, QuartersAreExact) {
  const auto at = [](std::uint64_t quarter) { return cos_sin<float>(quarter << 62); };
  EXPECT_EQ(at(0).cos, 1.0f);
  EXPECT_EQ(at(0).sin, 0.0f);
  EXPECT_EQ(at(1).sin, 1.0f);
  EXPECT_EQ(at(2).cos, -1.0f);
  EXPECT_EQ(at(3).sin, -1.0f);
}

TEST(Turns, PowersOfTwoAreWithinTheBoundOfTheHeader) {
  for (double x = -1070; x < 1020; x += 0.37) {
    const double wanted = std::exp2(x);
    EXPECT_NEAR(
        exp2_of(x), wanted,
        wanted * (std::abs(x) * 0x1p-53 + 0x1p-51) + std::numeric_limits<double>::denorm_min())
        << x;
  }
  EXPECT_EQ(exp2_of(-2000), 0);
  EXPECT_EQ(exp2_of(5000), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(exp2_of(std::numeric_limits<double>::quiet_NaN())));
}

// To the last place as the host's library, which rounds a double too.
TEST(Turns, CosinesOfAFloatsAngleRoundToTheNearest) {
  for (float angle = -2e7f; angle < 2e7f; angle += 1234.567f) {
    const CosSin<double> found = cos_sin_of_angle(angle);
    EXPECT_NEAR(found.cos, std::cos(static_cast<double>(angle)), 1e-15) << angle;
    EXPECT_NEAR(found.sin, std::sin(static_cast<double>(angle)), 1e-15) << angle;
  }
}

TEST(Turns, ARealPositionIsItsWholePartAndTheRest) {
  for (const double frequency : {1.0, -1.0, 3.1, -3.1, 1e-5})
    for (const double position : {0.25, -0.25, -7.75, 1e6 + 0.5, 4096.0, -1e-12}) {
      bool sure = false;
      const CosSin<double> found = cos_sin<double>(phase_of(position, turns_of(frequency), sure));
      const long double angle = static_cast<long double>(position) * frequency;
      const double rounding = 1e-15 + std::abs(static_cast<double>(angle)) * 0x1p-64;  // of `angle`
      EXPECT_TRUE(sure);
      EXPECT_NEAR(found.cos, static_cast<double>(std::cos(angle)), rounding) << position;
      EXPECT_NEAR(found.sin, static_cast<double>(std::sin(angle)), rounding) << position;
    }
}

}  // namespace
}  // namespace posenc::cuda
