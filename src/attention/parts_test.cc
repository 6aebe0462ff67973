// Attention over some of the keys, merged with that over the others: outputs by log_sums, gradients
// by whole rows.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "posenc/gradients.h"
#include "tests/random.h"

namespace posenc {
namespace {

constexpr std::int64_t part_heads = 4, part_tokens = 30, part_dim = 8;

struct PartProblem {
  std::vector<double> q = random(part_heads * part_tokens * part_dim, 1),
                      k = random(2 * part_tokens * part_dim, 2),
                      v = random(2 * part_tokens * part_dim, 3),
                      g = random(part_heads * part_tokens * part_dim, 4);
  Plan plan = {};
  Mask mask = {.window = 11};
  std::vector<double> sinks = {};

  static Tensor of(std::vector<double>& x, std::int64_t heads) {
    return Tensor::dense(x.data(), {1, heads, part_tokens, part_dim});
  }
  // All queries, and keys [first, last).
  AttentionInputs keys(std::int64_t first, std::int64_t last) {
    const auto some = [&](std::vector<double>& x) {
      Tensor view = of(x, 2);
      view.data = static_cast<double*>(view.data) + first * part_dim;
      view.shape[2] = last - first;
      return view;
    };
    AttentionInputs in{.q = of(q, part_heads),
                       .k = some(k),
                       .v = some(v),
                       .queries = Positions::range(0, part_tokens),
                       .keys = Positions::range(first, last - first),
                       .mask = mask};
    if (!sinks.empty()) in.sink_logits = Tensor::dense(sinks.data(), {part_heads});
    return in;
  }
};

struct PartOutput {
  std::vector<double> out = std::vector<double>(part_heads * part_tokens * part_dim),
                      log_sums = std::vector<double>(part_heads * part_tokens);
  Tensor view() { return PartProblem::of(out, part_heads); }
  Tensor sums() { return Tensor::dense(log_sums.data(), {1, part_heads, part_tokens}); }
};

TEST(LogSums, AreLogarithmsOfTheSumsOfExponentials) {
  PartProblem problem;
  problem.sinks = {0.5, -1, 2, 0};
  PartOutput found;
  const AttentionInputs in = problem.keys(0, part_tokens);
  ASSERT_TRUE(attend(in, problem.plan, found.view(), found.sums()));
  std::vector<double> logits(part_heads * part_tokens * part_tokens), out = found.out;
  ASSERT_TRUE(
      attend_reference(in, problem.plan, PartProblem::of(out, part_heads),
                       Tensor::dense(logits.data(), {1, part_heads, part_tokens, part_tokens})));
  for (std::size_t row = 0; row < found.log_sums.size(); ++row) {
    double sum = std::exp(problem.sinks[row / part_tokens]);
    for (std::size_t j = 0; j < part_tokens; ++j) sum += std::exp(logits[row * part_tokens + j]);
    EXPECT_NEAR(found.log_sums[row], std::log(sum), 1e-13);
  }
}

TEST(LogSums, OfAQueryThatSeesNothingAreMinusInfinity) {
  PartProblem problem;
  PartOutput found;
  ASSERT_TRUE(attend(problem.keys(20, 30), problem.plan, found.view(), found.sums()));
  EXPECT_EQ(found.log_sums[0], -INFINITY);
  EXPECT_EQ(found.out[0], 0);
}

TEST(LogSums, MergePartsIntoTheWhole) {
  PartProblem problem;
  PartOutput whole, a, b;
  ASSERT_TRUE(attend(problem.keys(0, 30), problem.plan, whole.view(), whole.sums()));
  ASSERT_TRUE(attend(problem.keys(0, 13), problem.plan, a.view(), a.sums()));
  ASSERT_TRUE(attend(problem.keys(13, 30), problem.plan, b.view(), b.sums()));
  for (std::size_t n = 0; n < whole.out.size(); ++n) {
    const std::size_t row = n / part_dim;
    const double merged = a.out[n] * std::exp(a.log_sums[row] - whole.log_sums[row]) +
                          b.out[n] * std::exp(b.log_sums[row] - whole.log_sums[row]);
    EXPECT_NEAR(merged, whole.out[n], 1e-14);
  }
}

TEST(LogSums, OfAnotherShapeAreAnError) {
  PartProblem problem;
  PartOutput found;
  Tensor sums = found.sums();
  sums.shape[2] = 29;
  const auto done = attend(problem.keys(0, 30), problem.plan, found.view(), sums);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("log_sums must be"), std::string::npos);
}

TEST(WholeRows, GradientsOfPartsAddUp) {
  PartProblem problem;
  problem.plan.bias = Slopes{.slope = {0.5, 0.25, 0.125, 1}};
  problem.plan.logits.softcap = 3;
  PartOutput out;
  ASSERT_TRUE(attend(problem.keys(0, 30), problem.plan, out.view(), out.sums()));
  std::vector<double> dots(out.log_sums.size());
  for (std::size_t n = 0; n < out.out.size(); ++n) dots[n / part_dim] += out.out[n] * problem.g[n];
  const WholeRows rows{.log_sums = out.sums(),
                       .dots = Tensor::dense(dots.data(), {1, part_heads, part_tokens})};
  const Tensor g = PartProblem::of(problem.g, part_heads);

  std::vector<double> q(problem.q.size()), k(problem.k.size()), slopes(part_heads);
  ASSERT_TRUE(attend_backward(problem.keys(0, 30), problem.plan, g,
                              {.q = PartProblem::of(q, part_heads),
                               .k = PartProblem::of(k, 2),
                               .slopes = Tensor::dense(slopes.data(), {part_heads})}));
  std::vector<double> sum_q(q.size()), sum_slopes(slopes.size());
  for (const auto& [first, last] : {std::pair<std::int64_t, std::int64_t>{0, 13}, {13, 30}}) {
    std::vector<double> part_q(q.size()), part_k(k.size()), part_slopes(part_heads);
    Tensor of_k = PartProblem::of(part_k, 2);
    of_k.shape[2] = last - first;
    ASSERT_TRUE(attend_backward(problem.keys(first, last), problem.plan, g,
                                {.q = PartProblem::of(part_q, part_heads),
                                 .k = of_k,
                                 .slopes = Tensor::dense(part_slopes.data(), {part_heads})},
                                rows));
    for (std::size_t n = 0; n < q.size(); ++n) sum_q[n] += part_q[n];
    for (std::size_t n = 0; n < slopes.size(); ++n) sum_slopes[n] += part_slopes[n];
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t n = 0; n < (last - first) * part_dim; ++n)
        EXPECT_NEAR(part_k[static_cast<std::size_t>(of_k.offset(0, h) + n)],
                    k[static_cast<std::size_t>((h * part_tokens + first) * part_dim + n)], 1e-13);
  }
  for (std::size_t n = 0; n < q.size(); ++n) EXPECT_NEAR(sum_q[n], q[n], 1e-13);
  for (std::size_t n = 0; n < slopes.size(); ++n) EXPECT_NEAR(sum_slopes[n], slopes[n], 1e-12);
}

TEST(WholeRows, AreGivenTogetherAndWithoutSinks) {
  PartProblem problem;
  PartOutput out;
  const Tensor g = PartProblem::of(problem.g, part_heads);
  EXPECT_FALSE(attend_backward(problem.keys(0, 30), {}, g, {}, {.log_sums = out.sums()}));
  problem.sinks = {1, 2, 3, 4};
  const auto done =
      attend_backward(problem.keys(0, 30), {}, g, {}, {.log_sums = out.sums(), .dots = out.sums()});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("sink logits must be absent"), std::string::npos);
}

// What stands beside a query changes none of its bits, from 12 rows on.
TEST(AttendSomeQueries, HaveTheBitsOfAll) {
  PartProblem problem;
  std::vector<float> q = random<float>(part_heads * part_tokens * part_dim, 1),
                     k = random<float>(2 * part_tokens * part_dim, 2), all(q.size()),
                     some(part_heads * 6 * part_dim);
  const auto view = [](std::vector<float>& x, std::int64_t heads, std::int64_t tokens) {
    return Tensor::dense(x.data(), {1, heads, tokens, part_dim});
  };
  AttentionInputs in{.q = view(q, part_heads, part_tokens),
                     .k = view(k, 2, part_tokens),
                     .v = view(k, 2, part_tokens),
                     .queries = Positions::range(0, part_tokens),
                     .keys = Positions::range(0, part_tokens)};
  ASSERT_TRUE(attend(in, {}, view(all, part_heads, part_tokens)));
  for (std::int64_t first = 0; first + 6 <= part_tokens; first += 5) {
    in.q = view(q, part_heads, part_tokens);
    in.q.data = q.data() + first * part_dim;
    in.q.shape[2] = 6;
    in.queries = Positions::range(first, 6);
    ASSERT_TRUE(attend(in, {}, view(some, part_heads, 6)));
    for (std::int64_t h = 0; h < part_heads; ++h)
      for (std::int64_t n = 0; n < 6 * part_dim; ++n)
        EXPECT_EQ(some[static_cast<std::size_t>(h * 6 * part_dim + n)],
                  all[static_cast<std::size_t>((h * part_tokens + first) * part_dim + n)]);
  }
}

TEST(Meanwhile, TheCallersThreadCalls) {
  PartProblem problem;
  PartOutput out;
  AttentionInputs in = problem.keys(0, 30);
  int calls = 0;
  in.meanwhile = [&] { ++calls; };
  in.threads.count = 1;
  ASSERT_TRUE(attend(in, {}, out.view()));
  EXPECT_GT(calls, 0);
}

}  // namespace
}  // namespace posenc
