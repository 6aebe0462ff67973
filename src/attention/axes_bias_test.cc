// Sums of biases, each by the distance on an axis of its own: words of a page.
#include <gtest/gtest.h>

#include <vector>

#include "posenc/schemes.h"
#include "src/attention/gradients_test.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {
namespace of_axes {

class AxesBias : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, AxesBias, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

// Words at random places of two pages, `most` the largest coordinate.
Positions words(std::int64_t count, std::int64_t most) {
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < 2 * count; ++t) ids.push_back(t % count);
  for (const double place : random(4 * count, 51))
    ids.push_back(static_cast<std::int64_t>((place + 4) / 8 * static_cast<double>(most)));
  for (std::int64_t& id : ids) id = std::max<std::int64_t>(id, 0);
  return *Positions::ids(ids, 3, 2);
}

GradientProblem page(const Positions& positions) {
  GradientProblem p{.queries = positions, .keys = positions, .mask = {.causal = false}};
  p.plan = *compile(AxisBuckets{.axis_num_buckets = 16, .axis_max_distance = 20, .axis_unit = 3},
                    {.heads = p.heads, .head_dim = gradient_dim});
  auto& bias = std::get<BiasTable>(*p.plan.bias);
  p.bias = random(p.heads * bias.row_count, 31);
  bias.values = Table::borrow(Tensor::dense(p.bias.data(), {p.heads, bias.row_count}));
  return p.filled();
}

void expect_reference(GradientProblem& p) {
  // The problem has moved.
  auto& bias = std::get<BiasTable>(*p.plan.bias);
  bias.values = Table::borrow(Tensor::dense(p.bias.data(), {p.heads, bias.row_count}));
  std::vector<double> out(p.out.size(), NAN);
  const auto done = attend(p.inputs(), p.plan, p.tensor(out, p.heads, p.queries));
  ASSERT_TRUE(done) << done.error().message();
  p.loss();
  for (std::size_t e = 0; e < out.size(); ++e) ASSERT_NEAR(out[e], p.out[e], 1e-11) << e;
}

TEST_P(AxesBias, IsThatOfPlainLoops) {
  for (const std::int64_t count : {1, 2, 15, 16, 33, 130}) {
    SCOPED_TRACE(count);
    GradientProblem p = page(words(count, 200));
    expect_reference(p);
  }
}

// So far apart that 32 bits do not hold what lies between.
TEST_P(AxesBias, ReachesAnyDistance) {
  for (const std::int64_t most : {std::int64_t{1} << 30, std::int64_t{1} << 40}) {
    GradientProblem p = page(words(40, most));
    expect_reference(p);
  }
}

TEST_P(AxesBias, MasksGoByTheOrderOfTokens) {
  GradientProblem p = page(words(24, 100));
  std::vector<std::uint8_t> keep(48);
  for (std::size_t j = 0; j < keep.size(); ++j) keep[j] = j % 5 != 2;
  p.mask = {.causal = true, .window = 9, .keep = keep.data()};
  p.filled();
  expect_reference(p);
}

// Text alone has t = x = y, as positions of one axis have everywhere.
TEST_P(AxesBias, OneAxisStandsForAll) {
  GradientProblem p = page(Positions::range(3, 20));
  expect_reference(p);
}

TEST_P(AxesBias, OneQueryDecodes) {
  GradientProblem p = page(words(50, 300));
  std::vector<std::int64_t> last;
  for (std::int64_t axis = 0; axis < 3; ++axis)
    for (std::int64_t b = 0; b < 2; ++b) last.push_back(p.keys.at(49, b, axis));
  p.queries = *Positions::ids(last, 3, 2);
  p.filled();
  expect_reference(p);
}

TEST(AxesBiasGradients, AreTheSlopesOfTheLoss) {
  GradientProblem p = page(words(6, 90));
  auto& bias = std::get<BiasTable>(*p.plan.bias);
  bias.values = Table::borrow(Tensor::dense(p.bias.data(), {p.heads, bias.row_count}));
  expect_gradients(p);
}

TEST(AxesBiasMap, IsWhatAttentionAdds) {
  const Positions at = words(9, 60);
  GradientProblem p = page(at);
  auto& bias_part = std::get<BiasTable>(*p.plan.bias);
  bias_part.values = Table::borrow(Tensor::dense(p.bias.data(), {p.heads, bias_part.row_count}));
  const Positions first = at.slice(0, 0, 9);
  std::vector<double> map(static_cast<std::size_t>(p.heads * 81));
  const auto done = bias(p.plan, first, first, Tensor::dense(map.data(), {p.heads, 9, 9}));
  ASSERT_TRUE(done) << done.error().message();
  for (std::int64_t i = 0; i < 9; ++i) {
    for (std::int64_t j = 0; j < 9; ++j) {
      double sum = 0;
      for (std::int64_t axis = 0; axis < 3; ++axis) {
        const std::int64_t row =
            *bias_part.of_axis(axis).at(first.at(i, 0, axis) - first.at(j, 0, axis));
        sum += p.bias[static_cast<std::size_t>(2 * bias_part.row_count + row)];
      }
      EXPECT_EQ(map[static_cast<std::size_t>(2 * 81 + i * 9 + j)], sum);
    }
  }
}

TEST(AxesBiasPlan, HasTheRotationsAxes) {
  Plan plan = *compile(AxisBuckets{.divided = false}, {.heads = 2});
  plan.rotate = Rotate{.slice = {.rotary_dim = 4}, .frequencies = {.radians = {1, 0.1}}};
  const auto refused = checked(plan, 4);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("3 and 1"), std::string::npos)
      << refused.error().message();
}

TEST(AxesBiasPlan, RefusesPositionsOfOtherAxes) {
  GradientProblem p = page(words(5, 60));
  auto& bias = std::get<BiasTable>(*p.plan.bias);
  bias.values = Table::borrow(Tensor::dense(p.bias.data(), {p.heads, bias.row_count}));
  const std::vector<std::int64_t> two(20);
  p.queries = p.keys = *Positions::ids(two, 2, 2);
  const auto refused = attend(p.inputs(), p.plan, p.tensor(p.out, p.heads, p.queries));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("one axis or the 3"), std::string::npos)
      << refused.error().message();
}

}  // namespace of_axes
}  // namespace
}  // namespace posenc
