#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "posenc/apply.h"
#include "posenc/attention.h"
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

// V-JEPA 2's function, channel by channel: x·cos + y·sin with y the neighbours turned, and tables
// that are laid out for halves. head_dim 16 leaves 3 · 4 channels that rotate.
std::vector<double> as_vjepa2(const std::vector<double>& x, const std::array<double, 3>& at) {
  constexpr std::size_t own = 4;
  std::vector<double> y = x;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (std::size_t c = 0; c < own; ++c) {
      const std::size_t channel = axis * own + c, partner = channel ^ 1;
      const double omega = std::pow(10000.0, -static_cast<double>(c % (own / 2)) / (own / 2.0));
      const double angle = at[axis] * omega, sign = c % 2 == 0 ? -1 : 1;
      y[channel] = x[channel] * std::cos(angle) + sign * x[partner] * std::sin(angle);
    }
  }
  return y;
}

Plan vjepa2() {
  const Axial axial{
      .rope_theta = 10000, .pairing = Pairing::interleaved, .tiled = true, .axes_dim = {4, 4, 4}};
  return *compile(Scheme{axial}, {.heads = 1, .kv_heads = 1, .head_dim = 16});
}

TEST(AxialScheme, VJepa2sPairsRotateByTwoAngles) {
  std::vector<double> x(16);
  for (std::size_t c = 0; c < x.size(); ++c) x[c] = std::sin(static_cast<double>(3 * c + 1));
  const std::array<double, 3> at{3, 11, 250};
  std::vector<double> y = x;
  const Tensor view = Tensor::dense(y.data(), {1, 1, 1, 16});
  const std::vector<std::int64_t> ids{3, 11, 250};
  ASSERT_TRUE(rotate(vjepa2(), view, *Positions::ids(ids, 3, 1), Side::query, view));
  const std::vector<double> wanted = as_vjepa2(x, at);
  for (std::size_t c = 0; c < y.size(); ++c) EXPECT_NEAR(y[c], wanted[c], 1e-14) << c;
}

// ⟨M x, g⟩ = ⟨x, Mᵀ g⟩, by which its gradient goes back.
TEST(AxialScheme, VJepa2sTransposeIsOne) {
  std::vector<double> x(16), g(16);
  for (std::size_t c = 0; c < x.size(); ++c) {
    x[c] = std::sin(static_cast<double>(3 * c + 1));
    g[c] = std::cos(static_cast<double>(5 * c + 2));
  }
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
    return sum;
  };
  const std::vector<std::int64_t> ids{3, 11, 250};
  const Positions at = *Positions::ids(ids, 3, 1);
  std::vector<double> forward = x, back = g;
  const Tensor to = Tensor::dense(forward.data(), {1, 1, 1, 16}),
               from = Tensor::dense(back.data(), {1, 1, 1, 16});
  ASSERT_TRUE(rotate(vjepa2(), to, at, Side::query, to));
  ASSERT_TRUE(rotate_transpose(vjepa2(), from, at, Side::query, from));
  EXPECT_NEAR(dot(forward, g), dot(x, back), 1e-13);
  EXPECT_FALSE(rotate_inverse(vjepa2(), from, at, Side::query, from));
}

// The loop that runs plans, block by block, gives what the reference gives.
TEST(AxialScheme, VJepa2AttendsAsTheReference) {
  constexpr std::int64_t tokens = 70;
  std::vector<double> q(tokens * 16), out(q.size()), wanted(q.size());
  for (std::size_t e = 0; e < q.size(); ++e) q[e] = std::sin(static_cast<double>(e * e % 97));
  std::vector<std::int64_t> ids;
  for (const std::int64_t stride : {14, 7, 1})
    for (std::int64_t t = 0; t < tokens; ++t) ids.push_back(t / stride % 7);
  const auto view = [&](std::vector<double>& x) {
    return Tensor::dense(x.data(), {1, 1, tokens, 16});
  };
  const Positions at = *Positions::ids(ids, 3, 1);
  const AttentionInputs in{.q = view(q), .k = view(q), .v = view(q), .queries = at, .keys = at};
  ASSERT_TRUE(attend(in, vjepa2(), view(out)));
  ASSERT_TRUE(attend_reference(in, vjepa2(), view(wanted)));
  for (std::size_t e = 0; e < out.size(); ++e) EXPECT_NEAR(out[e], wanted[e], 1e-13);
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
