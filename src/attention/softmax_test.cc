// The softmax of a row block by block, and its gradient, by every instruction set.
#include "src/attention/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {

class SoftmaxGradient : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(, SoftmaxGradient, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& test) { return std::string(test.param.name); });

class OnlineSoftmaxRow : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(, OnlineSoftmaxRow, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& test) { return std::string(test.param.name); });

// A row of products, gradients and biases, of which every third key is hidden and holds NaN.
template <class T>
struct Row {
  static constexpr T hidden = -std::numeric_limits<T>::infinity();
  std::vector<T> weight, delta, hide, bias;

  explicit Row(std::size_t keys)
      : weight(random<T>(keys, 1)),
        delta(random<T>(keys, 2)),
        hide(keys),
        bias(random<T>(keys, 3)) {
    for (std::size_t j = 0; j < keys; j += 3) {
      hide[j] = hidden;
      weight[j] = delta[j] = NAN;
    }
  }
  void find(T bias_factor) {
    for (std::size_t j = 0; j < hide.size(); ++j) {
      if (hide[j] != 0) weight[j] = hidden;
    }
    detail::differentiate(detail::SoftmaxGradientRow<T>{.end = std::ssize(weight),
                                                        .bias = bias.data(),
                                                        .bias_factor = bias_factor,
                                                        .weight = weight.data(),
                                                        .delta = delta.data()});
  }
};

// Logits within some units of 0 make exponentials right to few roundings.
template <class T>
void expect_formula(std::size_t keys, T bias_factor) {
  const Row<T> before(keys);
  Row<T> row(keys);
  row.find(bias_factor);
  std::vector<double> weight(keys);
  double sum = 0, mean = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    if (before.hide[j] != 0) continue;
    const double x = static_cast<double>(before.weight[j]), b = static_cast<double>(before.bias[j]);
    weight[j] = std::exp(x + b * static_cast<double>(bias_factor));
    sum += weight[j];
    mean += weight[j] * static_cast<double>(before.delta[j]);
  }
  const double unit = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
  for (std::size_t j = 0; j < keys; ++j) {
    const double a = weight[j] / sum;
    EXPECT_NEAR(static_cast<double>(row.weight[j]), a, unit * a) << j;
    const double delta = a == 0 ? 0 : a * (static_cast<double>(before.delta[j]) - mean / sum);
    EXPECT_NEAR(static_cast<double>(row.delta[j]), delta, 4 * unit * a) << j;
  }
}

TEST_P(SoftmaxGradient, AreThoseOfTheFormula) {
  for (const std::size_t keys : {64, 128, 2112}) {
    expect_formula<float>(keys, 1);
    expect_formula<double>(keys, 1);
    expect_formula<float>(keys, 0.5);
    expect_formula<double>(keys, 0.5);
  }
}

TEST_P(SoftmaxGradient, AreZeroWhereNothingIsSeen) {
  Row<float> row(64);
  row.hide.assign(64, Row<float>::hidden);
  row.find(1);
  EXPECT_EQ(row.weight, std::vector<float>(64));
  EXPECT_EQ(row.delta, std::vector<float>(64));
}

TEST_P(SoftmaxGradient, AreNaNForAllWhoseRowSeesANaN) {
  Row<float> row(64);
  row.weight[1] = NAN;
  row.find(1);
  for (std::size_t j = 0; j < 64; ++j) {
    EXPECT_EQ(std::isnan(row.weight[j]), j % 3 != 0) << j;
    EXPECT_EQ(std::isnan(row.delta[j]), j % 3 != 0) << j;
  }
}

TEST_P(SoftmaxGradient, AreZeroWhereTheyWouldBeSubnormal) {
  Row<float> row(64);
  for (std::size_t j = 0; j < 64; ++j) row.weight[j] = -2 * static_cast<float>(j);
  row.find(1);
  EXPECT_EQ(row.weight[47], 0);  // e^−94, a subnormal
  EXPECT_GT(row.weight[31], 0);
}

// Rows of several blocks, of which the middle one holds the largest logits and a part is hidden.
template <class T>
void expect_online_weights() {
  constexpr std::int64_t blocks = 3, keys = 40;  // a block is no whole number of vectors
  const auto logits = random<T>(blocks * keys, 7);
  detail::SoftmaxRow<T> row;
  std::vector<double> weight(blocks * keys);
  double sum = 0, largest = -std::numeric_limits<double>::infinity();
  const auto logit = [&](std::int64_t i) {
    return static_cast<double>(logits[static_cast<std::size_t>(i)]) + (i / keys == 1 ? 9 : 0);
  };
  const auto seen = [](std::int64_t j) { return j >= 3 && j < 33; };
  for (std::int64_t block = 0; block < blocks; ++block) {
    std::vector<T> x(keys + 24, T{99});
    for (std::int64_t j = 0; j < keys; ++j)
      x[static_cast<std::size_t>(j)] = static_cast<T>(logit(block * keys + j));
    row.x = x.data();
    row.last = keys;
    row.begin = 3;
    row.end = 33;
    const double correction = static_cast<double>(detail::fold(row));
    sum *= correction;
    for (std::int64_t i = 0; i < block * keys; ++i)
      weight[static_cast<std::size_t>(i)] *= correction;
    for (std::int64_t j = 0; j < keys; ++j) {
      weight[static_cast<std::size_t>(block * keys + j)] =
          static_cast<double>(x[static_cast<std::size_t>(j)]);
      if (seen(j)) largest = std::max(largest, logit(block * keys + j));
    }
  }
  for (std::int64_t i = 0; i < blocks * keys; ++i) {
    const double wanted = seen(i % keys) ? std::exp(logit(i) - largest) : 0;
    sum += wanted;
    EXPECT_NEAR(weight[static_cast<std::size_t>(i)], wanted,
                8 * static_cast<double>(std::numeric_limits<T>::epsilon()))
        << i;
  }
  EXPECT_NEAR(static_cast<double>(row.sum), sum,
              100 * static_cast<double>(std::numeric_limits<T>::epsilon()) * sum);
}

TEST_P(OnlineSoftmaxRow, WeightsOfBlocksAreThoseOfTheWholeRow) {
  expect_online_weights<float>();
  expect_online_weights<double>();
}

TEST_P(OnlineSoftmaxRow, OfNothingSeenIsZero) {
  std::vector<float> x(64, NAN);
  detail::SoftmaxRow<float> row;
  row.x = x.data();
  row.last = 64;
  EXPECT_EQ(detail::fold(row), 1);
  EXPECT_EQ(x, std::vector<float>(64));
  EXPECT_EQ(row.sum, 0);
}

}  // namespace
}  // namespace posenc
