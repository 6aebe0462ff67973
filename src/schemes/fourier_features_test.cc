// Golden vectors of SAM and of diffusers are in tests/conformance.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/schemes.h"

namespace posenc {
namespace {

// The vectors of points [point][axis].
std::vector<double> features(const FourierFeatures& scheme, std::int64_t width,
                             const std::vector<std::vector<double>>& points) {
  const auto plan = compile(scheme, {.width = width});
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  const auto count = std::ssize(points);
  std::vector<double> at, rows(static_cast<std::size_t>(count * width));
  for (std::size_t axis = 0; axis < points[0].size(); ++axis)
    for (const auto& point : points) at.push_back(point[axis]);
  EXPECT_TRUE(position_vectors(*plan, Tensor::dense(at.data(), {scheme.axes, 1, count}),
                               Tensor::dense(rows.data(), {1, count, width})));
  return rows;
}

TEST(FourierFeatures, AreSinesAndCosinesOfTurns) {
  const FourierFeatures scheme{.frequencies = Table::own({1, 2, 3, 4}, 2, 2)};
  const double a = 2 * std::numbers::pi * (0.5 * 1 + 0.25 * 3),
               b = 2 * std::numbers::pi * (0.5 * 2 + 0.25 * 4);
  const auto rows = features(scheme, 4, {{0.5, 0.25}});
  const double wanted[] = {std::sin(a), std::sin(b), std::cos(a), std::cos(b)};
  for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(rows[c], wanted[c], 1e-15) << c;
}

// The mean over B of cos 2πB·δ is exp(−2π²σ²|δ|²).
TEST(FourierFeatures, HaveDotProductsThatAreAGaussianOfTheDistance) {
  constexpr std::int64_t width = 1 << 16;
  const double sigma = 0.7;
  const auto rows =
      features({.sigma = sigma}, width, {{0, 0}, {0.1, 0.2}, {5.1, -2.8}, {5.0, -3.0}});
  const auto dot = [&](std::int64_t a, std::int64_t b) {
    double sum = 0;
    for (std::int64_t c = 0; c < width; ++c)
      sum += rows[static_cast<std::size_t>(a * width + c)] *
             rows[static_cast<std::size_t>(b * width + c)];
    return sum / (width / 2);
  };
  const double squared = 2 * std::pow(std::numbers::pi * sigma, 2) * (0.1 * 0.1 + 0.2 * 0.2);
  EXPECT_NEAR(dot(0, 1), std::exp(-squared), 0.01);
  EXPECT_NEAR(dot(2, 3), dot(0, 1), 1e-9);
}

TEST(FourierFeatures, DrawTheSameWhereNoneAreGiven) {
  EXPECT_EQ(compile(FourierFeatures{}, {.width = 8}), compile(FourierFeatures{}, {.width = 8}));
}

TEST(FourierFeatures, NeedAnEvenWidth) {
  EXPECT_EQ(compile(FourierFeatures{}, {.width = 7}).error().rule, "width must be even");
}

TEST(FourierFeatures, RefuseATableOfAnotherShape) {
  const FourierFeatures scheme{.frequencies = Table::own({1, 2, 3, 4}, 2, 2)};
  EXPECT_FALSE(compile(scheme, {.width = 8}));
}

}  // namespace
}  // namespace posenc
