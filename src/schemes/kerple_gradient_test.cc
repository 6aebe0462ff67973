#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "posenc/schemes.h"

namespace posenc {
namespace {

constexpr std::int64_t length = 12;

// A loss Σ weight·bias over the compiled table [curve][distance].
double weight_at(std::int64_t curve, std::int64_t distance) {
  return std::sin(static_cast<double>(7 * distance + 3 * curve + 1));
}

double loss_of(const Kerple& scheme) {
  const auto plan = scheme.compiled({.heads = 2, .length = length});
  EXPECT_TRUE(plan);
  const Tensor& values = std::get<BiasTable>(*plan->bias).values.values;
  double sum = 0;
  for (std::int64_t h = 0; h < values.shape[0]; ++h) {
    for (std::int64_t n = 0; n < length; ++n) {
      sum += weight_at(h, n) * values.get(values.offset(h, n));
    }
  }
  return sum;
}

void expect_gradients(Kerple scheme) {
  const auto curves = static_cast<std::int64_t>(std::max(scheme.p.size(), scheme.a.size()));
  std::vector<double> by_bias;
  for (std::int64_t h = 0; h < curves; ++h) {
    for (std::int64_t n = 0; n < length; ++n) by_bias.push_back(weight_at(h, n));
  }
  const auto by = kerple_gradients(scheme, Tensor::dense(by_bias.data(), {curves, length}));
  ASSERT_TRUE(by) << by.error().message();
  for (const auto& [numbers, gradients] :
       {std::pair{&scheme.p, &by->p}, std::pair{&scheme.a, &by->a}}) {
    ASSERT_EQ(numbers->size(), gradients->size());
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      const double at = (*numbers)[i];
      (*numbers)[i] = at + 1e-5;
      const double above = loss_of(scheme);
      (*numbers)[i] = at - 1e-5;
      const double below = loss_of(scheme);
      (*numbers)[i] = at;
      // n^p is 60 at most, its third derivative by p a thousand: 1e-10/6 of that, and rounding.
      const double slope = (above - below) / 2e-5;
      EXPECT_NEAR((*gradients)[i], slope, 1e-7 * (1 + std::abs(slope))) << i;
    }
  }
}

TEST(KerpleGradients, OfTheLogarithmPerHead) { expect_gradients({.p = {1, 3}, .a = {2, 0.5}}); }
TEST(KerpleGradients, OfThePowerPerHead) {
  expect_gradients({.kernel = KerpleKernel::power, .p = {1.7, 0.5}, .a = {0.5, 0.25}});
}
TEST(KerpleGradients, OneParameterForAllHeadsHasTheirSum) {
  expect_gradients({.p = {1.5}, .a = {2, 0.5}});
  expect_gradients({.kernel = KerpleKernel::power, .p = {1.7, 0.5}, .a = {0.5}});
}
TEST(KerpleGradients, OneCurveForAllHeads) { expect_gradients({.p = {1.5}, .a = {0.3}}); }

TEST(KerpleGradients, RefusesAnotherNumberOfHeads) {
  std::vector<double> by_bias(3 * length);
  EXPECT_EQ(
      kerple_gradients({.p = {1, 3}}, Tensor::dense(by_bias.data(), {3, length})).error().message(),
      "kerple_gradients: the bias gradient must be [2, distances], got [3, 12]; pass the one by "
      "the compiled plan's bias table");
  EXPECT_FALSE(kerple_gradients({}, {}));
}

}  // namespace
}  // namespace posenc
