#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/schemes.h"

namespace posenc {
namespace {

Rotate rotate_of(const Fope& scheme, const Geometry& geometry) {
  const auto plan = compile(scheme, geometry);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  return plan ? *plan->rotate : Rotate{};
}

TEST(FopeScheme, LeavesOutWhatTurnsLessThanOnce) {
  const Rotate rotate = rotate_of({.max_position_embeddings = 512}, {.head_dim = 64});
  ASSERT_TRUE(rotate.mix());
  const std::int64_t inputs = rotate.mix()->inputs;
  EXPECT_EQ(rotate.mix()->outputs, inputs);
  ASSERT_GT(inputs, 0);
  ASSERT_LT(inputs, 32);
  EXPECT_GT(rotate.at(0, 0, inputs - 1), 2 * std::numbers::pi / 512);
  EXPECT_LE(std::pow(10000, -2.0 * static_cast<double>(inputs) / 64), 2 * std::numbers::pi / 512);
  for (std::int64_t r = inputs; r < 32; ++r) EXPECT_EQ(rotate.at(0, 0, r), 0);
}

TEST(FopeScheme, WithoutAMixtureRotatesAsRope) {
  const auto fope = compile(Fope{.num_inv_freq = 4}, {.head_dim = 8});
  const auto rope = compile(Rope{}, {.head_dim = 8});
  ASSERT_TRUE(fope && rope);
  std::vector<double> x(24);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  std::vector<double> a = x, b = x;
  const Tensor one = Tensor::dense(a.data(), {1, 1, 3, 8}),
               other = Tensor::dense(b.data(), {1, 1, 3, 8});
  ASSERT_TRUE(rotate(*fope, one, Positions::range(9, 3), Side::key, one));
  ASSERT_TRUE(rotate(*rope, other, Positions::range(9, 3), Side::key, other));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-14);
}

TEST(FopeScheme, TheRestTurnsAndStretchesUnlessItsSineIsZero) {
  for (const double sine : {0.0, 1.0}) {
    const auto plan = compile(Fope{.num_inv_freq = 0, .rest_sine = sine}, {.head_dim = 2});
    ASSERT_TRUE(plan) << plan.error().message();
    std::vector<double> x = {3, 5};
    const Tensor view = Tensor::dense(x.data(), {1, 1, 1, 2});
    ASSERT_TRUE(rotate(*plan, view, Positions::range(77, 1), Side::query, view));
    EXPECT_EQ(x, (std::vector<double>{3 - 5 * sine, 3 * sine + 5}));
  }
}

TEST(FopeScheme, OneMixtureOfTwoServesAllKeyHeads) {
  const Rotate rotate = rotate_of({.num_inv_freq = 1, .cos_coef = {2}, .sin_coef = {3, 4}},
                                  {.heads = 4, .kv_heads = 2, .head_dim = 2});
  EXPECT_EQ(rotate.mix()->heads, 2);
  EXPECT_EQ(rotate.mix()->cosine, (std::vector<double>{2, 2}));
  EXPECT_EQ(rotate.mix()->sine, (std::vector<double>{3, 4}));
}

TEST(FopeScheme, FewerPairsBeginWithEverySecondFrequency) {
  const Rotate rotate = rotate_of({.num_inv_freq = 4, .mixed_pairs = 2}, {.head_dim = 8});
  EXPECT_EQ(rotate.mix()->cosine, (std::vector<double>{1, 0, 0, 0, 0, 1, 0, 0}));
}

TEST(FopeScheme, RefusesWhatDoesNotFit) {
  const auto refused = [](const Fope& scheme, std::int64_t head_dim) {
    const auto plan = compile(scheme, {.heads = 2, .head_dim = head_dim});
    return plan ? "" : plan.error().message();
  };
  EXPECT_NE(refused({.num_inv_freq = 2, .cos_coef = {1, 2, 3}}, 8).find("3 numbers"),
            std::string::npos);
  EXPECT_NE(refused({.mixed_pairs = 5}, 8).find("the 4 pairs or fewer"), std::string::npos);
  EXPECT_NE(refused({}, 7).find("even"), std::string::npos);
  EXPECT_FALSE(compile(Fope{}, {.head_dim = 8}, Angles::hf_float));
}

}  // namespace
}  // namespace posenc
