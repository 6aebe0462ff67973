// What a rotation must be, whatever its numbers: checked on plans written by hand.
#include "src/kernels/rotation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "tests/random.h"

namespace posenc::rotation_test {
namespace {

std::vector<double> geometric(std::int64_t pairs, double theta = 10000) {
  std::vector<double> frequency;
  for (std::int64_t r = 0; r < pairs; ++r) {
    frequency.push_back(std::pow(theta, -static_cast<double>(r) / static_cast<double>(pairs)));
  }
  return frequency;
}

Plan rope_plan(std::int64_t rotary_dim, Pairing pairing = Pairing::halves) {
  Plan plan;
  plan.rotate = Rotate{.slice = {.pairing = pairing, .rotary_dim = rotary_dim},
                       .frequencies = {.radians = geometric(rotary_dim / 2)}};
  return plan;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

using Verb = Expected<void> (*)(const Plan&, const Tensor&, const Positions&, Side, const Tensor&,
                                Threads);

// One head's vector at one position, out of place.
std::vector<double> at(Verb verb, const Plan& plan, std::vector<double> x,
                       const Positions& positions, Side side = Side::query) {
  std::vector<double> out(x.size());
  const auto dim = static_cast<std::int64_t>(x.size());
  const auto done = verb(plan, Tensor::dense(x.data(), {1, dim}), positions, side,
                         Tensor::dense(out.data(), {1, dim}), {});
  EXPECT_TRUE(done) << done.error().message();
  return out;
}
std::vector<double> at(Verb verb, const Plan& plan, std::vector<double> x, std::int64_t position,
                       Side side = Side::query) {
  return at(verb, plan, std::move(x), Positions::range(position, 1), side);
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b,
                 double tolerance = 1e-12) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "channel " << i;
}

// --- angles -------------------------------------------------------------------------------------

// A long double has eleven more bits: enough to judge a double at a billion radians.
TEST(RotationAngle, ExactProductIsKeptFarOut) {
  if (sizeof(long double) == sizeof(double)) GTEST_SKIP() << "no longer type to compare with";
  for (const double frequency : {1.0, 0.8659643233600653, 0.1, 1.0 / 3}) {
    for (const std::int64_t position : {131071LL, 9999999LL, 999999937LL}) {
      detail::Angle angle;
      angle.add(position, frequency);
      const long double exact = static_cast<long double>(position) * frequency;
      EXPECT_NEAR(angle.cosine(), static_cast<double>(std::cos(exact)), 1e-10);
      EXPECT_NEAR(angle.sine(), static_cast<double>(std::sin(exact)), 1e-10);
    }
  }
}

TEST(RotationAngle, SumsOverAxes) {
  detail::Angle angle;
  angle.add(7, 0.25);
  angle.add(9, -0.5);
  EXPECT_DOUBLE_EQ(angle.cosine(), std::cos(1.75 - 4.5));
}

// --- the rotation itself -----------------------------------------------------------------------

TEST(RotationOfPairs, IsCounterclockwise) {
  Plan plan;
  plan.rotate = Rotate{.slice = {.rotary_dim = 2},
                       .frequencies = {.radians = {std::acos(0.0)}}};  // a quarter turn a position
  expect_near(at(rotate, plan, {1, 0}, 1), {0, 1});
  expect_near(at(rotate, plan, {0, 1}, 1), {-1, 0});
}

TEST(RotationOfPairs, HalvesPairWithTheOtherHalf) {
  Plan plan = rope_plan(4);
  plan.rotate->frequencies.radians = {std::acos(0.0), 0};
  expect_near(at(rotate, plan, {1, 2, 3, 4}, 1), {-3, 2, 1, 4});
}

TEST(RotationOfPairs, InterleavedPairWithTheNeighbour) {
  Plan plan = rope_plan(4, Pairing::interleaved);
  plan.rotate->frequencies.radians = {std::acos(0.0), 0};
  expect_near(at(rotate, plan, {1, 2, 3, 4}, 1), {-2, 1, 3, 4});
}

// Two blocks of four: (0, 2), (1, 3) and (4, 6), (5, 7) are pairs 0, 1 and 2, 3.
TEST(RotationOfPairs, BlocksArePairedEachByItself) {
  Plan plan = rope_plan(8);
  plan.rotate->slice.blocks = 2;
  plan.rotate->frequencies.radians = {0, std::acos(0.0), std::acos(0.0), 0};
  expect_near(at(rotate, plan, {0, 1, 2, 3, 4, 5, 6, 7}, 1), {0, -3, 2, 1, -6, 5, 4, 7});
}

TEST(RotationOfPairs, InterleavedBlocksAreOneSlice) {
  Plan plan = rope_plan(8, Pairing::interleaved), blocks = plan;
  blocks.rotate->slice.blocks = 2;
  const auto x = random(8);
  EXPECT_EQ(at(rotate, plan, x, 5), at(rotate, blocks, x, 5));
}

TEST(RotationOfPairs, ChannelsOutsideTheSliceAreUntouched) {
  Plan plan = rope_plan(4);
  plan.rotate->slice.first_dim = 3;
  plan.rotate->amplitude = 2;
  const auto x = random(9);
  const auto y = at(rotate, plan, x, 11);
  for (const std::size_t channel : {0, 1, 2, 7, 8}) EXPECT_EQ(y[channel], x[channel]);
  for (const std::size_t channel : {3, 4, 5, 6}) EXPECT_NE(y[channel], x[channel]);
}

TEST(RotationOfPairs, PlanWithoutARotationCopies) {
  const auto x = random(5);
  EXPECT_EQ(at(rotate, Plan{}, x, 11), x);
}

TEST(RotationOfPairs, AxesAreSummed) {
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.rotary_dim = 2}, .frequencies = {.axes = 2, .radians = {0.5, 0.25}}};
  const std::vector<std::int64_t> ids = {3, 8};
  const auto positions = Positions::ids(ids, 2);
  expect_near(at(rotate, plan, {1, 0}, *positions), {std::cos(3.5), std::sin(3.5)});
}

TEST(RotationOfPairs, TextPositionsAnswerForAllAxes) {
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.rotary_dim = 2}, .frequencies = {.axes = 3, .radians = {0.5, 0.25, 0.125}}};
  expect_near(at(rotate, plan, {1, 0}, 4), {std::cos(3.5), std::sin(3.5)});
}

TEST(RotationOfPairs, HeadsMayRotateAtTheirOwnPace) {
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.rotary_dim = 2}, .frequencies = {.heads = 2, .radians = {0.5, 0.25}}};
  std::vector<double> x = {1, 0, 1, 0};
  const Tensor tensor = Tensor::dense(x.data(), {2, 1, 2});
  ASSERT_TRUE(rotate(plan, tensor, Positions::range(2, 1), Side::query, tensor));
  expect_near(x, {std::cos(1), std::sin(1), std::cos(0.5), std::sin(0.5)});
}

// --- properties ---------------------------------------------------------------------------------

class RotationProperty : public testing::TestWithParam<Pairing> {
 protected:
  const Plan plan = rope_plan(12, GetParam());
  const std::vector<double> q = random(12, 1), k = random(12, 2);
};

TEST_P(RotationProperty, NormIsKept) {
  const auto y = at(rotate, plan, q, 4095);
  EXPECT_NEAR(dot(y, y), dot(q, q), 1e-12);
}

TEST_P(RotationProperty, RotationsCompose) {
  expect_near(at(rotate, plan, at(rotate, plan, q, 17), 25), at(rotate, plan, q, 42));
}

TEST_P(RotationProperty, ScoreDependsOnTheOffsetAlone) {
  const auto score = [&](std::int64_t i, std::int64_t j) {
    return dot(at(rotate, plan, q, i), at(rotate, plan, k, j, Side::key));
  };
  for (const std::int64_t shift : {1, 1000, 1000000}) {
    EXPECT_NEAR(score(9 + shift, 4 + shift), score(9, 4), 1e-9) << shift;
  }
  EXPECT_GT(std::abs(score(9, 5) - score(9, 4)), 1e-3);
}

TEST_P(RotationProperty, TransposeIsTheInverse) {
  expect_near(at(rotate_transpose, plan, at(rotate, plan, q, 99), 99), q);
}

// (R_i q)·(R_j k) = q·(R_{j−i} k): the key moves by j − i, not by i − j.
TEST_P(RotationProperty, TransposedRotationsCombineToTheKeysOffset) {
  const auto left = at(rotate_transpose, plan, at(rotate, plan, k, 30), 12);
  expect_near(left, at(rotate, plan, k, 18));
}

INSTANTIATE_TEST_SUITE_P(Pairings, RotationProperty,
                         testing::Values(Pairing::halves, Pairing::interleaved),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST(RotationPairings, DifferByAPermutationOfChannels) {
  const auto x = random(8);
  std::vector<double> y(8);
  for (std::size_t r = 0; r < 4; ++r) y[2 * r] = x[r], y[2 * r + 1] = x[r + 4];
  const auto halves = at(rotate, rope_plan(8), x, 77);
  const auto interleaved = at(rotate, rope_plan(8, Pairing::interleaved), y, 77);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(halves[r], interleaved[2 * r]);
    EXPECT_EQ(halves[r + 4], interleaved[2 * r + 1]);
  }
}

// A plan with everything a rotation can have.
Plan rich() {
  Plan plan = rope_plan(8);
  plan.rotate->slice.first_dim = 1;
  plan.rotate->amplitude = 1.25;
  plan.rotate->kind =
      Plain{.growth = XposDecay{.factor = {0.3, 0.5, 0.7, 0.9}, .scale = 16, .centre = 5},
            .magnitudes = {1, 1.25, 0.75, 1.5}};
  plan.rotate->values = Values::rotated_and_back;
  return plan;
}

class RotationSide : public testing::TestWithParam<Side> {};

TEST_P(RotationSide, InverseUndoesAmplitudeAndGrowthToo) {
  const auto x = random(10);
  const auto rotated = at(rotate, rich(), x, 42, GetParam());
  expect_near(at(rotate_inverse, rich(), rotated, 42, GetParam()), x);
}

// d(y·g)/dx by central differences; the map is linear, so they are exact but for rounding.
TEST_P(RotationSide, TransposeIsTheGradient) {
  const auto x = random(10, 1), g = random(10, 2);
  const auto gradient = at(rotate_transpose, rich(), g, 42, GetParam());
  for (std::size_t c = 0; c < x.size(); ++c) {
    auto up = x, down = x;
    up[c] += 0.5;
    down[c] -= 0.5;
    const double slope = dot(at(rotate, rich(), up, 42, GetParam()), g) -
                         dot(at(rotate, rich(), down, 42, GetParam()), g);
    EXPECT_NEAR(gradient[c], slope, 1e-12) << "channel " << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Sides, RotationSide, testing::Values(Side::query, Side::key, Side::value),
                         [](const auto& each) {
                           return each.param == Side::query ? "query"
                                  : each.param == Side::key ? "key"
                                                            : "value";
                         });

TEST(RotationGrowth, QueriesGrowByWhatKeysShrink) {
  Plan plan;
  plan.rotate = Rotate{.slice = {.rotary_dim = 2},
                       .frequencies = {.radians = {0}},
                       .kind = Plain{.growth = XposDecay{.factor = {0.5}, .scale = 8}}};
  expect_near(at(rotate, plan, {1, 1}, 16, Side::query), {0.25, 0.25});
  expect_near(at(rotate, plan, {1, 1}, 16, Side::key), {4, 4});
}

TEST(RotationGrowth, ScoreStillDependsOnTheOffsetAlone) {
  const auto q = random(10, 1), k = random(10, 2);
  const auto score = [&](std::int64_t i, std::int64_t j) {
    return dot(at(rotate, rich(), q, i), at(rotate, rich(), k, j, Side::key));
  };
  EXPECT_NEAR(score(20, 11), score(40, 31), 1e-9);
}

TEST(RotationValues, OnlyRotateWithoutAmplitudeOrGrowth) {
  Plan plain = rope_plan(8);
  plain.rotate->slice.first_dim = 1;
  const auto x = random(10);
  EXPECT_EQ(at(rotate, rich(), x, 42, Side::value), at(rotate, plain, x, 42, Side::query));
}

TEST(RotationValues, PassUnchangedUnlessThePlanRotatesThem) {
  const auto x = random(8);
  EXPECT_EQ(at(rotate, rope_plan(8), x, 42, Side::value), x);
}

// --- views --------------------------------------------------------------------------------------

struct Case {
  DType dtype;
  std::int64_t batch, heads, seq, dim;
};

class RotationViews : public testing::TestWithParam<Case> {
 protected:
  std::int64_t count() const {
    const Case& c = GetParam();
    return c.batch * c.heads * c.seq * c.dim;
  }
  // x rounded to the dtype, in [batch][head][seq][dim] order, written through a view.
  void fill(const Tensor& view) const {
    const auto x = random(count());
    visit(view, [&](std::int64_t offset, std::size_t i) { view.set(offset, x[i]); });
  }
  static void visit(const Tensor& view, auto&& act) {
    std::size_t i = 0;
    for (std::int64_t b = 0; b < view.shape[0]; ++b) {
      for (std::int64_t h = 0; h < view.shape[1]; ++h) {
        for (std::int64_t t = 0; t < view.shape[2]; ++t) {
          for (std::int64_t c = 0; c < view.shape[3]; ++c) act(view.offset(b, h, t, c), i++);
        }
      }
    }
  }
  // What a dense double rotation gives, rounded once to the dtype.
  std::vector<double> expected(const Plan& plan, const Positions& positions) const {
    const Case& c = GetParam();
    std::vector<double> rounded(static_cast<std::size_t>(count()) + 1), y(rounded.size());
    const Tensor typed = Tensor::dense(rounded.data(), c.dtype, {c.batch, c.heads, c.seq, c.dim});
    fill(typed);
    const Tensor exact = Tensor::dense(y.data(), {c.batch, c.heads, c.seq, c.dim});
    visit(exact,
          [&](std::int64_t, std::size_t i) { y[i] = typed.get(static_cast<std::int64_t>(i)); });
    EXPECT_TRUE(rotate(plan, exact, positions, Side::query, exact));
    visit(typed, [&](std::int64_t offset, std::size_t i) { typed.set(offset, y[i]); });
    visit(typed, [&](std::int64_t offset, std::size_t i) { y[i] = typed.get(offset); });
    return y;
  }
  // Computed in float where the tensor is not double, so off by a few of its roundings, of numbers
  // up to 4, and by a step of the dtype where that turns the last rounding.
  void expect_holds(const Tensor& view, const std::vector<double>& wanted) const {
    const double computed = GetParam().dtype == DType::f64 ? 0x1p-50 : 0x1p-21;
    const double steps[] = {0, 0, 0x1p-10, 0x1p-7};  // of 1, in the order of DType
    const double step = steps[static_cast<std::size_t>(GetParam().dtype)];
    visit(view, [&](std::int64_t offset, std::size_t i) {
      EXPECT_NEAR(view.get(offset), wanted[i], computed + std::abs(wanted[i]) * step) << i;
    });
  }
  Plan plan() const {
    Plan plan = rope_plan(GetParam().dim / 2 * 2);
    if (GetParam().dim < 2) plan.rotate.reset();
    return plan;
  }
};

TEST_P(RotationViews, SequenceBeforeHeadsInMemory) {
  const Case& c = GetParam();
  std::vector<double> storage(static_cast<std::size_t>(count()) + 1);
  const Tensor view =
      Tensor::dense(storage.data(), c.dtype, {c.batch, c.seq, c.heads, c.dim}).swapped(1, 2);
  fill(view);
  const Positions positions = Positions::range(100, c.seq);
  ASSERT_TRUE(rotate(plan(), view, positions, Side::query, view));
  expect_holds(view, expected(plan(), positions));
}

TEST_P(RotationViews, QueriesOfPackedQkvLeaveTheirNeighboursAlone) {
  const Case& c = GetParam();
  std::vector<double> storage(static_cast<std::size_t>(3 * count()) + 1);
  Tensor qkv =
      Tensor::dense(storage.data(), c.dtype, {c.batch, c.seq, 3 * c.heads, c.dim}).swapped(1, 2);
  visit(qkv, [&](std::int64_t offset, std::size_t) { qkv.set(offset, 7); });
  Tensor q = qkv;
  q.shape[1] = c.heads;
  fill(q);
  const Positions positions = Positions::range(3, c.seq);
  ASSERT_TRUE(rotate(plan(), q, positions, Side::query, q));
  expect_holds(q, expected(plan(), positions));
  for (std::int64_t h = c.heads; h < 3 * c.heads && c.batch * c.seq * c.dim > 0; ++h) {
    EXPECT_EQ(qkv.get(qkv.offset(0, h)), 7);
  }
}

TEST_P(RotationViews, OutOfPlaceIntoOtherStrides) {
  const Case& c = GetParam();
  std::vector<double> from(static_cast<std::size_t>(count()) + 1), to(from.size());
  const Tensor x = Tensor::dense(from.data(), c.dtype, {c.batch, c.heads, c.seq, c.dim});
  const Tensor y =
      Tensor::dense(to.data(), c.dtype, {c.batch, c.dim, c.seq, c.heads}).swapped(1, 3);
  fill(x);
  const Positions positions = Positions::range(0, c.seq);
  ASSERT_TRUE(rotate(plan(), x, positions, Side::query, y));
  expect_holds(y, expected(plan(), positions));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [batch, heads, seq, dim] :
         std::vector<std::array<std::int64_t, 4>>{{2, 3, 5, 7},
                                                  {1, 1, 1, 2},
                                                  {1, 5, 1, 16},
                                                  {2, 0, 3, 8},
                                                  {2, 3, 0, 8},
                                                  {0, 1, 2, 4},
                                                  {1, 2, 3, 1}}) {
      all.push_back({dtype, batch, heads, seq, dim});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, RotationViews, testing::ValuesIn(cases()), [](const auto& each) {
  const Case& c = each.param;
  return std::string(name(c.dtype)) + "_" + std::to_string(c.batch) + "x" +
         std::to_string(c.heads) + "x" + std::to_string(c.seq) + "x" + std::to_string(c.dim);
});

TEST(RotationBatch, EverySequenceHasItsPositions) {
  std::vector<double> x = {1, 0, 1, 0};
  Plan plan;
  plan.rotate = Rotate{.slice = {.rotary_dim = 2}, .frequencies = {.radians = {1}}};
  const Tensor tensor = Tensor::dense(x.data(), {2, 1, 1, 2});
  const std::vector<std::int64_t> ids = {3, 4};
  ASSERT_TRUE(rotate(plan, tensor, *Positions::ids(ids, 1, 2), Side::query, tensor));
  expect_near(x, {std::cos(3), std::sin(3), std::cos(4), std::sin(4)});
}

}  // namespace
}  // namespace posenc::rotation_test
