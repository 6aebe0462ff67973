// The softmax of a row block by block, and its gradient, by every instruction set.
#include "src/attention/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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

class WordOfKeys : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(, WordOfKeys, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& test) { return std::string(test.param.name); });

// Numbers of a word of keys, every seventh hidden.
template <class T>
std::vector<T> word_of_keys(double by, bool hides = true) {
  std::vector<T> x = random<T>(detail::block_keys, 11);
  for (std::size_t j = 0; j < x.size(); ++j) {
    x[j] = static_cast<T>(static_cast<double>(x[j]) * by);
    if (hides && j % 7 == 3) x[j] = -std::numeric_limits<T>::infinity();
  }
  return x;
}

double log_sigmoid(double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); }

template <class T>
void expect_sticks(double by, double left) {
  const std::vector<T> z = word_of_keys<T>(by);
  std::vector<T> got = z;
  const double all = static_cast<double>(detail::break_off(got.data(), static_cast<T>(left)));
  const double unit = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
  double broken = 0;
  for (std::size_t j = z.size(); j-- > 0;) {
    const double x = static_cast<double>(z[j]);
    const double wanted = std::exp(left - broken + log_sigmoid(x));
    EXPECT_NEAR(static_cast<double>(got[j]), wanted, unit * (wanted + 1)) << j;
    broken -= log_sigmoid(-x);
  }
  EXPECT_NEAR(all, broken, unit * (1 + broken));
}

TEST_P(WordOfKeys, BreaksItsSharesOffAStick) {
  for (const double by : {0.01, 1.0, 20.0, 200.0})
    for (const double left : {0.0, -3.0}) {
      SCOPED_TRACE(by);
      expect_sticks<float>(by, left);
      expect_sticks<double>(by, left);
    }
}

TEST_P(WordOfKeys, BreaksNothingOffWhereAllAreHidden) {
  std::vector<float> z(64, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(detail::break_off(z.data(), -1), 0);
  EXPECT_EQ(z, std::vector<float>(64));
}

TEST_P(WordOfKeys, GivesNaNToAllBeforeANaN) {
  std::vector<double> z(64, 0.5);
  z[40] = NAN;
  EXPECT_TRUE(std::isnan(detail::break_off(z.data(), 0)));
  for (std::size_t j = 0; j < z.size(); ++j) EXPECT_EQ(std::isnan(z[j]), j <= 40) << j;
}

template <class T>
void expect_forgetting(double by, std::uint64_t seen) {
  std::vector<T> x = word_of_keys<T>(by, false), scores = random<T>(64, 12);
  for (std::size_t j = 0; j < x.size(); ++j)
    if ((seen >> j & 1) == 0) x[j] = NAN;  // may hold anything
  const std::vector<T> before = scores;
  constexpr double slope = 0.7, later = -2;
  const double all = static_cast<double>(
      detail::forget(x.data(), seen, static_cast<T>(slope), static_cast<T>(later), scores.data()));
  const double unit = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
  double forgotten = 0;
  for (std::size_t j = x.size(); j-- > 0;) {
    EXPECT_NEAR(static_cast<double>(scores[j]), static_cast<double>(before[j]) + later + forgotten,
                unit * (4 - forgotten))
        << j;
    if ((seen >> j & 1) != 0) forgotten += slope * log_sigmoid(static_cast<double>(x[j]));
  }
  EXPECT_NEAR(all, forgotten, unit * (1 - forgotten));
}

TEST_P(WordOfKeys, ForgetsByWhatIsSeen) {
  for (const double by : {0.01, 1.0, 30.0, 300.0})
    for (const std::uint64_t seen :
         {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{0x9e3779b97f4a7c15}}) {
      SCOPED_TRACE(by);
      expect_forgetting<float>(by, seen);
      expect_forgetting<double>(by, seen);
    }
}

// Words from the last to the first, of which a middle one has the largest logits.
template <class T>
void expect_words_of_softmax() {
  detail::SoftmaxOfWords<T> row;
  std::vector<std::vector<T>> weights;
  std::vector<double> logits;
  for (int word = 0; word < 4; ++word) {
    std::vector<T> x = word_of_keys<T>(word == 2 ? 9 : 1);
    for (const T each : x) logits.push_back(static_cast<double>(each));
    const T correction = detail::fold_word(x.data(), row);
    for (std::vector<T>& older : weights)
      for (T& each : older) each *= correction;
    weights.push_back(std::move(x));
  }
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  const double unit = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
  for (std::size_t n = 0; n < logits.size(); ++n)
    EXPECT_NEAR(static_cast<double>(weights[n / 64][n % 64]) / row.sum(), std::exp(logits[n]) / sum,
                unit)
        << n;
}

TEST_P(WordOfKeys, IsFoldedIntoASoftmax) {
  expect_words_of_softmax<float>();
  expect_words_of_softmax<double>();
}

TEST_P(WordOfKeys, OfHiddenKeysAddsNothing) {
  detail::SoftmaxOfWords<float> row;
  std::vector<float> x(64, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(detail::fold_word(x.data(), row), 1);
  EXPECT_EQ(x, std::vector<float>(64));
  EXPECT_EQ(row.sum(), 0);
}

}  // namespace
}  // namespace posenc
