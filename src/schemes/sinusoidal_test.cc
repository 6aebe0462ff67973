// Golden tables of five programs are in tests/conformance.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include "posenc/apply.h"
#include "posenc/schemes.h"

namespace posenc {
namespace {

Waves waves_of(const Sinusoidal& scheme, std::int64_t width) {
  const auto plan = scheme.compiled({.width = width});
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  return plan ? std::get<Waves>(plan->add->kind) : Waves{};
}

double last_wavelength(const Sinusoidal& scheme, std::int64_t width) {
  return 2 * std::numbers::pi / waves_of(scheme, width).frequency.back();
}

TEST(SinusoidalScheme, LastWavelengthFallsShortOfTheBase) {
  EXPECT_NEAR(last_wavelength({}, 64), 47117, 0.5);
  EXPECT_NEAR(last_wavelength({}, 128), 54410, 0.5);
  EXPECT_NEAR(last_wavelength({}, 512), 60611, 0.5);
}

TEST(SinusoidalScheme, SpacingEndsReachesTheBaseExactly) {
  for (const std::int64_t width : {4, 64, 128, 512}) {
    EXPECT_DOUBLE_EQ(last_wavelength({.spacing = WaveSpacing::ends}, width),
                     2 * std::numbers::pi * 10000)
        << width;
  }
}

TEST(SinusoidalScheme, FrequenciesAreExactToAFewRoundings) {
  const auto frequency = waves_of({}, 512).frequency;
  ASSERT_EQ(frequency.size(), 256u);
  for (std::size_t r = 0; r < frequency.size(); ++r) {
    const long double exact = std::pow(10000.0L, -2.0L * static_cast<long double>(r) / 512.0L);
    EXPECT_LE(std::abs(frequency[r] - exact), 1e-15L * exact) << r;
  }
}

TEST(SinusoidalScheme, OddWidthWithASineHasOneMorePairThanCosines) {
  const Waves waves = waves_of({.odd = OddWidth::sine}, 7);
  ASSERT_EQ(waves.frequency.size(), 4u);
  EXPECT_DOUBLE_EQ(waves.frequency[3], std::pow(10000.0, -6.0 / 7));
}

TEST(SinusoidalScheme, OddWidthWithAZeroHasHalfAsManyPairs) {
  const Waves waves = waves_of({.spacing = WaveSpacing::ends, .odd = OddWidth::zero}, 7);
  ASSERT_EQ(waves.frequency.size(), 3u);
  EXPECT_DOUBLE_EQ(waves.frequency[1], 0.01);  // 10000^(−1/2): two steps from 1 to 1/10000
}

TEST(SinusoidalScheme, TwoChannelsWithSpacingEndsDoNotDivideByZero) {
  EXPECT_EQ(waves_of({.spacing = WaveSpacing::ends}, 2).frequency, std::vector<double>{1.0});
}

TEST(SinusoidalScheme, OneChannelIsASineOrAZero) {
  EXPECT_EQ(waves_of({.odd = OddWidth::sine}, 1).frequency, std::vector<double>{1.0});
  EXPECT_TRUE(waves_of({.odd = OddWidth::zero}, 1).frequency.empty());
}

TEST(SinusoidalScheme, PassesRowsOn) {
  const Waves waves = waves_of({.row_offset = 2, .padding_idx = 1}, 8);
  EXPECT_EQ(waves.row_offset, 2);
  EXPECT_EQ(waves.zero_row, 1);
}

TEST(SinusoidalScheme, ScalesTheEmbeddingByTheRootOfTheWidthWhenAsked) {
  EXPECT_EQ(Sinusoidal{}.compiled({.width = 64})->add->embedding_scale, 1);
  EXPECT_EQ(Sinusoidal{.scale_embedding = true}.compiled({.width = 64})->add->embedding_scale, 8);
}

TEST(SinusoidalScheme, EachAxisHasTheSeriesOfItsOwnChannels) {
  const Waves waves = waves_of({.axes_dim = {4, 6}}, 10);
  const auto rows = waves_of({}, 4).frequency, columns = waves_of({}, 6).frequency;
  EXPECT_EQ(waves.axes, 2);
  EXPECT_EQ(waves.blocks, (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(waves.frequency, (std::vector{rows[0], rows[1], 0.0, 0.0, 0.0,  //
                                          0.0, 0.0, columns[0], columns[1], columns[2]}));
}

TEST(SinusoidalScheme, AxesMayHaveBasesAndScalesOfTheirOwn) {
  const Waves waves =
      waves_of({.axes_dim = {4, 4}, .axis_base = {100, 4}, .position_scale = {2, 3}}, 8);
  EXPECT_EQ(waves.frequency, (std::vector{2.0, 2 * 0.1, 0.0, 0.0, 0.0, 0.0, 3.0, 3 * 0.5}));
}

TEST(SinusoidalScheme, ColumnsMayStandBeforeRows) {
  const Waves waves = waves_of({.axes_dim = {4, 2}, .axis_order = {1, 0}}, 6);
  EXPECT_EQ(waves.blocks, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(waves.frequency, (std::vector{0.0, 1.0, 0.01, 1.0, 0.0, 0.0}));
}

TEST(SinusoidalScheme, RefusesAnOrderThatLeavesAnAxisOut) {
  for (const std::vector<std::int64_t>& order :
       {std::vector<std::int64_t>{0, 0}, {1}, {0, 2}, {0, 1, 2}})
    EXPECT_FALSE((Sinusoidal{.axes_dim = {2, 2}, .axis_order = order}.compiled({.width = 4})));
}

TEST(SinusoidalScheme, OneScaleIsOfAllAxes) {
  EXPECT_EQ((waves_of({.axes_dim = {2, 2}, .position_scale = {5}}, 4).frequency),
            (std::vector{5.0, 0.0, 0.0, 5.0}));
  EXPECT_EQ((waves_of({.position_scale = {5}}, 2).frequency), (std::vector{5.0}));
}

TEST(SinusoidalScheme, DividesItsVectorsByTheRootOfTheWidthWhenAsked) {
  EXPECT_EQ(waves_of({.divide_vectors = true}, 64).amplitude, 0.125);
  EXPECT_EQ(waves_of({}, 64).amplitude, 1);
}

TEST(SinusoidalScheme, RefusesAxesThatDoNotFit) {
  for (const Sinusoidal& scheme :
       {Sinusoidal{.axes_dim = {4, 3}}, Sinusoidal{.axes_dim = {4, 6}},
        Sinusoidal{.axes_dim = {2, 0}}, Sinusoidal{.axes_dim = {4, 4}, .axis_base = {100}},
        Sinusoidal{.axes_dim = {2, 2, 2}, .position_scale = {1, 2}},
        Sinusoidal{.padding_idx = 1, .axes_dim = {4, 4}}})
    EXPECT_FALSE(scheme.compiled({.width = 8}));
}

// add(p + k) = M_k · add(p) with a block of M_k for each axis, whatever the order of channels.
TEST(SinusoidalScheme, AShiftIsALinearMapByAxis) {
  constexpr std::int64_t width = 18;
  const double from[] = {3.5, -2, 40}, by[] = {0.25, 7, -1.5};
  for (const WaveLayout layout : {WaveLayout::interleaved, WaveLayout::concatenated}) {
    for (const bool cosine_first : {false, true}) {
      const Plan plan =
          *Sinusoidal{.layout = layout, .cosine_first = cosine_first, .axes_dim = {8, 6, 4}}
               .compiled({.width = width});
      const Waves& waves = std::get<Waves>(plan.add->kind);
      std::vector<double> at = {from[0],         from[0] + by[0], from[1],
                                from[1] + by[1], from[2],         from[2] + by[2]};
      std::vector<double> rows(2 * width);
      ASSERT_TRUE(position_vectors(plan, Tensor::dense(at.data(), {3, 1, 2}),
                                   Tensor::dense(rows.data(), {1, 2, width})));
      std::int64_t channel = 0, pair = 0;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t block = waves.blocks[axis];
        for (std::int64_t r = 0; r < block / 2; ++r, ++pair) {
          const double turn = by[axis] * waves.frequency[axis * 9 + static_cast<std::size_t>(pair)];
          const bool apart = layout == WaveLayout::concatenated;
          std::int64_t sine = channel + (apart ? r : 2 * r);
          std::int64_t cosine = sine + (apart ? block / 2 : 1);
          if (cosine_first) std::swap(sine, cosine);
          const auto x = [&](std::int64_t row, std::int64_t c) {
            return rows[static_cast<std::size_t>(row * width + c)];
          };
          EXPECT_NEAR(x(1, sine), std::cos(turn) * x(0, sine) + std::sin(turn) * x(0, cosine),
                      1e-13);
          EXPECT_NEAR(x(1, cosine), std::cos(turn) * x(0, cosine) - std::sin(turn) * x(0, sine),
                      1e-13);
        }
        channel += block;
      }
    }
  }
}

TEST(SinusoidalScheme, NeedsAWidth) {
  EXPECT_EQ(Sinusoidal{}.compiled({}).error().message(),
            "sinusoidal: width must be known, got 0; set --width");
}

TEST(SinusoidalScheme, RefusesAnAbsurdWidth) {
  EXPECT_EQ(Sinusoidal{}.compiled({.width = INT64_MAX}).error().rule,
            "width must be at most 2^26 = 67108864");
}

TEST(SinusoidalScheme, RefusesAnOffsetBeyondWhatADoubleCounts) {
  for (const std::int64_t offset : {INT64_MIN, INT64_MAX}) {
    EXPECT_FALSE((Sinusoidal{.row_offset = offset}.compiled({.width = 8}))) << offset;
  }
}

}  // namespace
}  // namespace posenc
