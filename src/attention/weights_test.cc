#include "src/attention/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {

class Weights : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(, Weights, testing::ValuesIn(detail::instruction_sets()),
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
  void find(T scale, bool before_scale) {
    detail::find_weights({.keys = std::ssize(weight),
                          .hide = hide.data(),
                          .bias = bias.data(),
                          .bias_before_scale = before_scale,
                          .scale = scale,
                          .weight = weight.data(),
                          .delta = delta.data()});
  }
};

// Logits within some units of 0 make exponentials right to few roundings.
template <class T>
void expect_formula(std::size_t keys, bool before_scale) {
  const Row<T> before(keys);
  Row<T> row(keys);
  row.find(T{2}, before_scale);
  std::vector<double> weight(keys);
  double sum = 0, mean = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    if (before.hide[j] != 0) continue;
    const double x = static_cast<double>(before.weight[j]), b = static_cast<double>(before.bias[j]);
    weight[j] = std::exp(before_scale ? (x + b) * 2 : x * 2 + b);
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

TEST_P(Weights, AreThoseOfTheFormula) {
  for (const std::size_t keys : {64, 128, 2112}) {
    for (const bool before_scale : {false, true}) {
      expect_formula<float>(keys, before_scale);
      expect_formula<double>(keys, before_scale);
    }
  }
}

TEST_P(Weights, AreZeroWhereNothingIsSeen) {
  Row<float> row(64);
  row.hide.assign(64, Row<float>::hidden);
  row.find(1, false);
  EXPECT_EQ(row.weight, std::vector<float>(64));
  EXPECT_EQ(row.delta, std::vector<float>(64));
}

TEST_P(Weights, AreNaNForAllWhoseRowSeesANaN) {
  Row<float> row(64);
  row.weight[1] = NAN;
  row.find(1, false);
  for (std::size_t j = 0; j < 64; ++j) {
    EXPECT_EQ(std::isnan(row.weight[j]), j % 3 != 0) << j;
    EXPECT_EQ(std::isnan(row.delta[j]), j % 3 != 0) << j;
  }
}

TEST_P(Weights, AreZeroWhereTheyWouldBeSubnormal) {
  Row<float> row(64);
  for (std::size_t j = 0; j < 64; ++j) row.weight[j] = -2 * static_cast<float>(j);
  row.find(1, false);
  EXPECT_EQ(row.weight[47], 0);  // e^−94, a subnormal
  EXPECT_GT(row.weight[31], 0);
}

TEST_P(Weights, DotsAreSums) {
  for (std::size_t count = 0; count < 40; ++count) {
    const auto a = random<double>(count, 1), b = random<double>(count, 2);
    double sum = 0;
    for (std::size_t c = 0; c < count; ++c) sum += a[c] * b[c];
    EXPECT_NEAR(detail::dot(a.data(), b.data(), std::ssize(a)), sum, 1e-13) << count;
  }
}

}  // namespace
}  // namespace posenc
