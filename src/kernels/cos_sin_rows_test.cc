// How near a row of cos and sin is to the exact one, on every instruction set of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "posenc/apply.h"
#include "src/kernels/rotate.h"
#include "tests/kernel_memory.h"

#if POSENC_QUADMATH
#include <quadmath.h>
#endif

namespace posenc {
namespace {

// position · frequency has 77 bits at most, so this is its sine to the last of 113.
#if POSENC_QUADMATH
__extension__ typedef __float128 Quadruple;
Quadruple sine(Quadruple x) { return sinq(x); }
Quadruple cosine(Quadruple x) { return cosq(x); }
#else
// 64 bits of a long double: the product as two doubles, whose sum the formula takes.
struct Quadruple {
  long double high, low;
};
long double sine(Quadruple x) {
  return std::sin(x.high) * std::cos(x.low) + std::cos(x.high) * std::sin(x.low);
}
long double cosine(Quadruple x) {
  return std::cos(x.high) * std::cos(x.low) - std::sin(x.high) * std::sin(x.low);
}
#endif

Quadruple product(std::int64_t position, double frequency) {
#if POSENC_QUADMATH
  return static_cast<Quadruple>(position) * frequency;
#else
  const double p = static_cast<double>(position), high = p * frequency;
  return {high, std::fma(p, frequency, -high)};
#endif
}

class CosSinRows : public EveryInstructionSet {};

INSTANTIATE_TEST_SUITE_P(Sets, CosSinRows, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

// Waves are cos and sin handed on as they are. The bound of apply.h in float; in double three
// products of factors within an ulp, none of which grows with the position.
void expect_exact(const std::vector<double>& frequency, const std::vector<std::int64_t>& ids) {
  const auto pairs = static_cast<std::int64_t>(frequency.size());
  const auto count = static_cast<std::int64_t>(ids.size());
  Plan plan;
  plan.add = Add{.kind = Waves{.width = 2 * pairs, .frequency = frequency}};
  std::vector<float> floats(static_cast<std::size_t>(2 * pairs * count));
  std::vector<double> doubles(floats.size());
  const Positions positions = *Positions::ids(ids);
  ASSERT_TRUE(position_vectors(plan, positions, Tensor::dense(floats.data(), {count, 2 * pairs})));
  ASSERT_TRUE(position_vectors(plan, positions, Tensor::dense(doubles.data(), {count, 2 * pairs})));
  double worst_float = 0, worst_double = 0;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const std::int64_t position = ids[i / static_cast<std::size_t>(2 * pairs)];
    const double f = frequency[i / 2 % static_cast<std::size_t>(pairs)];
    const Quadruple angle = product(position, f);
    const auto wanted = i % 2 == 0 ? sine(angle) : cosine(angle);
    const double float_error = std::abs(static_cast<double>(floats[i] - wanted));
    const double double_error = std::abs(static_cast<double>(doubles[i] - wanted));
    const double bound = 0x1p-25 + 3 * 0x1p-53 * (2 + static_cast<double>(position) * f);
    worst_float = std::max(worst_float, float_error / bound);
    worst_double = std::max(worst_double, double_error);
  }
  EXPECT_LE(worst_float, 1);
  EXPECT_LE(worst_double, 6 * 0x1p-53);
}

std::vector<double> of_base(double base) { return geometric(64, base); }
constexpr double bases[] = {1e4, 5e5, 1e6, 1e7};

TEST_P(CosSinRows, AreExactAtRandomPositions) {
  std::mt19937 engine(1);
  for (const double base : bases) {
    std::vector<std::int64_t> ids(500);
    for (auto& id : ids) id = engine() % (1 << 24);
    expect_exact(of_base(base), ids);
  }
}

TEST_P(CosSinRows, AreExactAroundPowersOfTwo) {
  std::vector<std::int64_t> ids = {0};
  for (int bit = 0; bit <= 24; ++bit) {
    for (const std::int64_t id : {(1 << bit) - 1, 1 << bit, (1 << bit) + 1}) ids.push_back(id);
  }
  for (const double base : bases) expect_exact(of_base(base), ids);
}

// The whole number nearest to a multiple of π/2 over the frequency, and, for frequency 1, the best
// rational approximations of π and π/2.
TEST_P(CosSinRows, AreExactWhereSinesAndCosinesAreNearlyZero) {
  std::mt19937 engine(2);
  for (const double base : bases) {
    const auto frequency = of_base(base);
    std::vector<std::int64_t> ids = {3,      11,     22,      333,     355,     710,
                                     51819,  52174,  103993,  104348,  208341,  312689,
                                     573204, 833719, 1146408, 4272943, 5419351, 10838702};
    for (const double f : frequency) {
      for (int i = 0; i < 8; ++i) {
        const double quarter =
            std::floor(std::ldexp(engine(), -32) * 0x1p24 * f / 1.5707963267948966);
        const auto id = std::llround(quarter * 1.5707963267948966 / f);
        ids.push_back(std::min<std::int64_t>(id, 1 << 24));
      }
    }
    expect_exact(frequency, ids);
  }
}

TEST_P(CosSinRows, AreExactOnBothSidesOfTheLargestAngleOfTheVectors) {
  std::vector<std::int64_t> ids;
  for (std::int64_t id = 99999900; id < 100000100; ++id) ids.push_back(id);
  expect_exact({1, 0.5, 1.0 / 3}, ids);
}

TEST_P(CosSinRows, OfRandomFrequenciesAreExact) {
  std::mt19937_64 engine(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> frequency(40);
  for (double& f : frequency) f = uniform(engine) * 3;
  std::vector<std::int64_t> ids(500);
  for (auto& id : ids) id = static_cast<std::int64_t>(engine() >> 40);
  expect_exact(frequency, ids);
}

// The bound of apply.h for 16 bits, in steps of 2^-25: half an ulp of the cos and sin of both
// factors, 2 √2 together, and of what is rounded in their product, 3 without fused multiply-add.
void expect_float_rows_near(const std::vector<double>& frequency,
                            const std::vector<std::int64_t>& ids) {
  const auto pairs = static_cast<std::int64_t>(frequency.size());
  const Rotate rotate{.slice = {.rotary_dim = 2 * pairs}, .frequencies = {.radians = frequency}};
  const auto rule = detail::CosSinRule::of(rotate, Side::query, detail::Action::forward);
  std::vector<float> rows(2 * frequency.size() * ids.size());
  detail::float_rows(rule, ids, rows.data());
  double worst = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t r = 0; r < frequency.size(); ++r) {
      const Quadruple angle = product(ids[i], frequency[r]);
      const float* const row = rows.data() + 2 * frequency.size() * i;
      const double bound =
          0x1p-25 * 5.83 + 3 * 0x1p-53 * (2 + std::abs(static_cast<double>(ids[i])) * frequency[r]);
      const double errors[] = {
          std::abs(static_cast<double>(row[r] - cosine(angle))),
          std::abs(static_cast<double>(row[frequency.size() + r] - sine(angle)))};
      for (const double error : errors) worst = std::max(worst, error / bound);
    }
  }
  EXPECT_LE(worst, 1);
}

// Found by a search through all positions below 2^24: there a cos or sin is off by 2^-22.70 to
// 2^-22.84 with fused multiply-add, at the last by 2^-22.64 without.
TEST_P(CosSinRows, OfSixteenBitTensorsAreNearTheExactOnesAtTheWorstPositions) {
  const std::pair<double, std::int64_t> worst[] = {
      {1e4, 7181630}, {5e5, 9734}, {1e6, 14221293}, {1e7, 8832332}, {1e4, 9134727}};
  for (const auto& [base, position] : worst) {
    std::vector<std::int64_t> ids;
    for (std::int64_t id = position - 32; id < position + 32; ++id) ids.push_back(id);
    expect_float_rows_near(of_base(base), ids);
  }
}

TEST_P(CosSinRows, OfSixteenBitTensorsAreNearTheExactOnesAtRandomPositions) {
  std::mt19937_64 engine(4);
  for (const double base : bases) {
    std::vector<std::int64_t> ids = {0, 1, 63, 64, 99999999, 100000001, -1, -5, -64, -1000003};
    for (int i = 0; i < 500; ++i) ids.push_back(static_cast<std::int64_t>(engine() >> 36));
    expect_float_rows_near(of_base(base), ids);
  }
}

}  // namespace
}  // namespace posenc
