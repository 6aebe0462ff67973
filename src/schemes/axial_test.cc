#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>

#include "tests/conformance/golden.h"

namespace posenc {
namespace {

constexpr std::int64_t height = 0, width = 1;

Rotate rotate_of(const Axial& scheme, const Geometry& geometry = {.head_dim = 16}) {
  const auto plan = scheme.compiled(geometry);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  return plan ? *plan->rotate : Rotate{};
}

// Pairs (r, r + stride) of one head turned at (row, column), from the plan's own numbers.
std::vector<double> turned(const Rotate& rotate, const std::vector<float>& x, double row,
                           double column) {
  const auto pairs = static_cast<std::size_t>(rotate.pairs());
  std::vector<double> y(x.size());
  for (std::size_t r = 0; r < pairs; ++r) {
    const auto pair = static_cast<std::int64_t>(r);
    const double angle = row * rotate.at(0, height, pair) + column * rotate.at(0, width, pair);
    y[r] = x[r] * std::cos(angle) - x[r + pairs] * std::sin(angle);
    y[r + pairs] = x[r] * std::sin(angle) + x[r + pairs] * std::cos(angle);
  }
  return y;
}

TEST(AxialScheme, RopeVitTurnsTheFirstPairsByTheColumn) {
  const Rotate rotate = rotate_of({});
  for (std::int64_t r = 0; r < 4; ++r) {
    const double frequency = std::pow(100.0, -4.0 * static_cast<double>(r) / 16);
    EXPECT_DOUBLE_EQ(rotate.at(0, width, r), frequency);
    EXPECT_EQ(rotate.at(0, height, r), 0);
    EXPECT_DOUBLE_EQ(rotate.at(0, height, 4 + r), frequency);
    EXPECT_EQ(rotate.at(0, width, 4 + r), 0);
  }
}

TEST(AxialScheme, OrderSwapsTheAxes) {
  const Rotate a = rotate_of({.order = AxisOrder::height_width}), b = rotate_of({});
  for (std::int64_t r = 0; r < 8; ++r) {
    EXPECT_EQ(a.at(0, height, r), b.at(0, width, r));
    EXPECT_EQ(a.at(0, width, r), b.at(0, height, r));
  }
}

TEST(AxialScheme, PixtralSharesOneSeriesOut) {
  const Rotate rotate = rotate_of({.rope_theta = 10000,
                                   .pairing = Pairing::halves,
                                   .order = AxisOrder::height_width,
                                   .frequencies = AxisFrequencies::alternating});
  for (std::int64_t r = 0; r < 4; ++r) {
    EXPECT_DOUBLE_EQ(rotate.at(0, height, r),
                     std::pow(10000.0, -4.0 * static_cast<double>(r) / 16));
    EXPECT_DOUBLE_EQ(rotate.at(0, width, 4 + r),
                     std::pow(10000.0, -(4.0 * static_cast<double>(r) + 2) / 16));
  }
}

TEST(AxialScheme, AlternatingKeepsTheEvenEntriesForTheHeight) {
  const Rotate rotate = rotate_of({.frequencies = AxisFrequencies::alternating});  // width first
  EXPECT_EQ(rotate.at(0, height, 4), 1);
  EXPECT_DOUBLE_EQ(rotate.at(0, width, 0), std::pow(100.0, -2.0 / 16));
}

TEST(AxialScheme, KimisAxesTakePairsInTurns) {
  const Rotate rotate = rotate_of({.rope_theta = 10000,
                                   .pairing = Pairing::halves,
                                   .frequencies = AxisFrequencies::in_turns});  // width first
  for (std::int64_t r = 0; r < 4; ++r) {
    const double frequency = std::pow(10000.0, -4.0 * static_cast<double>(r) / 16);
    EXPECT_DOUBLE_EQ(rotate.at(0, width, 2 * r), frequency);
    EXPECT_DOUBLE_EQ(rotate.at(0, height, 2 * r + 1), frequency);
    EXPECT_EQ(rotate.at(0, height, 2 * r), 0);
  }
}

TEST(AxialScheme, GemmaPairsWithinEachHalfOfTheHead) {
  const Geometry gemma{.head_dim = 72};
  EXPECT_EQ(rotate_of({.pairing = Pairing::halves, .blocks = true}, gemma).slice.blocks, 2);
  EXPECT_EQ(rotate_of({.pairing = Pairing::halves}, gemma).slice.blocks, 1);
}

TEST(AxialScheme, DinoTurnsByPatchCentresInTurns) {
  const Rotate rotate =
      rotate_of({.pairing = Pairing::halves, .order = AxisOrder::height_width, .normalised = true},
                {.head_dim = 16, .grid_height = 14, .grid_width = 10});
  for (std::int64_t i = 0; i < 10; ++i) {
    const double centre = 2 * (static_cast<double>(i) + 0.5) / 10 - 1;
    const double angle = 2 * std::numbers::pi * centre * std::pow(100.0, -4.0 * 3 / 16);
    EXPECT_NEAR(static_cast<double>(2 * i + 1 - 10) * rotate.at(0, width, 7), angle, 1e-15);
  }
  EXPECT_DOUBLE_EQ(rotate.at(0, height, 0), 2 * std::numbers::pi / 14);
}

TEST(AxialScheme, QwenVisionTowerTurnsAsItsOwnCode) {
  const auto record = golden::records("rotation", "name", "qwen2-vl-vision-2d").front();
  const Rotate rotate =
      rotate_of({.rope_theta = 10000, .pairing = Pairing::halves, .order = AxisOrder::height_width},
                {.head_dim = record.at("head_dim")});
  const auto q = golden::numbers<float>(record.at("q"));
  const auto want = golden::numbers<double>(record.at("q_out_f64"));
  std::vector<double> got;
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::size_t token = 0; token < 16; ++token) {
      // A 4 × 4 grid read in merge blocks of 2 × 2.
      const std::size_t block = token / 4, within = token % 4;
      const std::size_t row = block / 2 * 2 + within / 2, column = block % 2 * 2 + within % 2;
      const auto first = q.begin() + static_cast<std::ptrdiff_t>((head * 16 + token) * 16);
      const auto y = turned(rotate, {first, first + 16}, static_cast<double>(row),
                            static_cast<double>(column));
      got.insert(got.end(), y.begin(), y.end());
    }
  }
  golden::expect_close(got, want, golden::kRotationF64);
}

TEST(AxialScheme, GgmlVisionTurnsTheSame) {
  const auto record = golden::records("ggml", "mode", "vision").front();
  const Rotate rotate = rotate_of({.rope_theta = record.at("freq_base"),
                                   .pairing = Pairing::halves,
                                   .order = AxisOrder::height_width},
                                  {.head_dim = record.at("head_dim")});
  const auto x = golden::numbers<float>(record.at("x"));
  const auto positions = golden::numbers<double>(record.at("positions"));  // four rows of n_seq
  std::vector<double> got;
  for (std::size_t token = 0; token < 8; ++token) {
    for (std::size_t head = 0; head < 2; ++head) {
      const auto first = x.begin() + static_cast<std::ptrdiff_t>((token * 2 + head) * 16);
      const auto y = turned(rotate, {first, first + 16}, positions[token], positions[8 + token]);
      got.insert(got.end(), y.begin(), y.end());
    }
  }
  golden::expect_close(got, golden::numbers<double>(record.at("y")), golden::rotation_f32(9));
}

TEST(AxialScheme, NeedsAHeadOfWholePairsForBothAxes) {
  EXPECT_EQ(
      Axial{}.compiled({.head_dim = 18}).error().message(),
      "axial: head_dim must be divisible by 4, got 18; both axes need whole pairs: pad the head");
}

TEST(AxialScheme, NormalisedNeedsTheGrid) {
  EXPECT_EQ(
      Axial{.normalised = true}.compiled({.head_dim = 16, .grid_height = 14}).error().message(),
      "axial: grid_width must be known, got 0; set --grid-width");
}

TEST(AxialScheme, AListOfAxesBeginsEachSeriesAnew) {
  const Rotate rotate = rotate_of({.rope_theta = 100, .axes_dim = {4, 8}, .axis_theta = {50, 200}});
  EXPECT_EQ(rotate.slice.rotary_dim, 12);
  for (std::int64_t r = 0; r < 6; ++r) {
    const double k = static_cast<double>(r < 2 ? r : r - 2);
    const double f = r < 2 ? std::pow(50.0, -2 * k / 4) : std::pow(200.0, -2 * k / 8);
    EXPECT_DOUBLE_EQ(rotate.at(0, r < 2 ? 0 : 1, r), f);
    EXPECT_EQ(rotate.at(0, r < 2 ? 1 : 0, r), 0);
  }
}

TEST(AxialScheme, PositionsAreMultipliedFirst) {
  for (const std::vector<std::int64_t>& dims :
       {std::vector<std::int64_t>{}, std::vector<std::int64_t>{8, 8}}) {
    Axial axial{.axes_dim = dims};
    const Rotate plain = axial.compiled({.head_dim = 16})->rotate.value();
    for (const std::vector<double>& scales : {std::vector{0.5}, std::vector{0.5, 3.0}}) {
      axial.position_scale = scales;
      const Rotate scaled = axial.compiled({.head_dim = 16})->rotate.value();
      for (std::int64_t axis = 0; axis < 2; ++axis)
        for (std::int64_t r = 0; r < 8; ++r)
          EXPECT_EQ(scaled.at(0, axis, r),
                    (axis == 0 ? 0.5 : scales.back()) * plain.at(0, axis, r));
    }
    axial.position_scale = {1, 2, 3};
    EXPECT_FALSE(axial.compiled({.head_dim = 16}));
  }
}

TEST(AxialScheme, AListOfAxesThatCannotBeIsRefused) {
  for (const Axial& wrong :
       {Axial{.axes_dim = {3, 4}}, Axial{.axes_dim = {16, 16}}, Axial{.axes_dim = {0, 4}},
        Axial{.axes_dim = {2, 2, 2, 2, 2, 2, 2, 2, 2}}, Axial{.axis_theta = {100}},
        Axial{.axes_dim = {4, 4}, .axis_theta = {100}}, Axial{.blocks = true, .axes_dim = {4, 4}}})
    EXPECT_FALSE(wrong.compiled({.head_dim = 16}));
}

}  // namespace
}  // namespace posenc
