#include "posenc/angles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"
#include "tests/random.h"

namespace posenc {
namespace {

constexpr std::int64_t heads = 2, seq = 9, pairs = 3, dim = 2 * pairs;

Tensor view(std::vector<double>& x, std::int64_t columns) {
  return Tensor::dense(x.data(), {1, heads, std::ssize(x) / heads / columns, columns});
}

// With one step at every token it is RoPE, a token further on: the first has turned already.
TEST(SummedAngles, OfEqualStepsAreRopes) {
  const Plan plan = compile(Rope{}, {.head_dim = dim}).value();
  std::vector<double> steps(heads * seq * pairs, 1), angles(steps.size());
  ASSERT_TRUE(
      summed_angles(view(steps, pairs), plan.rotate->frequencies.radians, {}, view(angles, pairs)));
  std::vector<double> x = random(heads * seq * dim, 1), y = x;
  ASSERT_TRUE(rotate(plan, view(x, dim), Positions::range(1, seq), Side::key, view(x, dim)));
  ASSERT_TRUE(rotate_by(plan, view(y, dim), view(angles, pairs), Side::key, view(y, dim)));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-13);
}

TEST(SummedAngles, GoOnWhereTheTokensBeforeEnded) {
  const std::vector<double> factor = {1, 0.5, -2};
  std::vector<double> steps = random(heads * seq * pairs, 2), whole(steps.size());
  ASSERT_TRUE(summed_angles(view(steps, pairs), factor, {}, view(whole, pairs)));
  const auto tail = [](std::vector<double>& x, std::int64_t first, std::int64_t count) {
    Tensor some = view(x, pairs);
    some.data = static_cast<double*>(some.data) + first * some.stride[2];
    some.shape[2] = count;
    return some;
  };
  Tensor start = tail(whole, 5, 1);
  start.rank = 3;
  start.shape = {1, heads, pairs};
  start.stride = {start.stride[0], start.stride[1], 1};
  std::vector<double> parts(steps.size());
  ASSERT_TRUE(summed_angles(tail(steps, 6, 3), factor, start, tail(parts, 6, 3)));
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = (h * seq + 6) * pairs; i < (h + 1) * seq * pairs; ++i)
      EXPECT_NEAR(parts[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(i)], 1e-13);
}

// A step larger than a double can hold beside others: what is between two tokens behind it is what
// they say.
TEST(SummedAngles, BehindASteepStepKeepTheirDifferences) {
  const std::vector<double> factor = {1, 0.5, -2};
  for (const double steep : {1e9, -1e20, 3.4e38, -1.7e308}) {
    std::vector<double> steps = random(heads * seq * pairs, 6), angles(steps.size());
    const auto at = [](std::int64_t h, std::int64_t t, std::int64_t r) {
      return static_cast<std::size_t>((h * seq + t) * pairs + r);
    };
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t r = 0; r < pairs; ++r) steps[at(h, 2, r)] = steep;
    ASSERT_TRUE(summed_angles(view(steps, pairs), factor, {}, view(angles, pairs)));
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t r = 0; r < pairs; ++r)
        for (std::int64_t t = 3; t < seq; ++t)
          EXPECT_NEAR(angles[at(h, t, r)] - angles[at(h, t - 1, r)],
                      factor[static_cast<std::size_t>(r)] * steps[at(h, t, r)], 1e-12)
              << steep << " before token " << t;
  }
}

TEST(SummedAngles, WithoutFullTurnsRotateAlike) {
  const double start = 3e8, step = 0.5;
  std::vector<double> from(heads * pairs, start), steps(heads * seq * pairs, step),
      angles(steps.size());
  const Tensor begin = Tensor::dense(from.data(), {1, heads, pairs});
  ASSERT_TRUE(summed_angles(view(steps, pairs), {}, begin, view(angles, pairs)));
  for (std::int64_t t = 0; t < seq; ++t)
    EXPECT_NEAR(std::sin(angles[static_cast<std::size_t>(t * pairs)]),
                std::sin(start + step * static_cast<double>(t + 1)), 1e-7);
}

// Of a loss Σ weight · rotated, by differences.
TEST(SummedAngles, HaveTheirGradient) {
  const Plan plan = compile(Rope{}, {.head_dim = dim}).value();
  const std::vector<double> factor = {1, 0.5, 0.25};
  std::vector<double> steps = random(heads * seq * pairs, 3), x = random(heads * seq * dim, 4),
                      weight = random(heads * seq * dim, 5), angles(steps.size()), y(x.size());
  const auto loss = [&] {
    EXPECT_TRUE(summed_angles(view(steps, pairs), factor, {}, view(angles, pairs)));
    EXPECT_TRUE(rotate_by(plan, view(x, dim), view(angles, pairs), Side::query, view(y, dim)));
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += weight[i] * y[i];
    return sum;
  };
  loss();
  std::vector<double> by_angle(angles.size()), by_step(angles.size());
  ASSERT_TRUE(angle_gradient(plan, view(y, dim), view(weight, dim), view(by_angle, pairs)));
  ASSERT_TRUE(summed_angles_gradient(view(by_angle, pairs), factor, view(by_step, pairs)));
  for (std::size_t i = 0; i < steps.size(); i += 5) {
    const double at = steps[i], step = 1e-5;
    steps[i] = at + step;
    const double more = loss();
    steps[i] = at - step;
    const double less = loss();
    steps[i] = at;
    EXPECT_NEAR(by_step[i], (more - less) / (2 * step), 1e-7) << i;
  }
}

TEST(SummedAngles, RefuseShapesThatDoNotMatch) {
  std::vector<double> steps(heads * seq * pairs), out(steps.size());
  const std::vector<double> two = {1, 2};
  const auto done = summed_angles(view(steps, pairs), two, {}, view(out, pairs));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("each of 3 pairs"), std::string::npos);
  EXPECT_FALSE(summed_angles(view(steps, pairs), {}, view(out, pairs), view(out, pairs)));
}

}  // namespace
}  // namespace posenc
