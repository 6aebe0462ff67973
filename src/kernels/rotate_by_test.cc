// Rotation by given angles: against rotation by positions, against the plain formula, and its
// gradient.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"
#include "src/kernels/rotation.h"
#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {

class RotateBy : public EveryInstructionSet {};

INSTANTIATE_TEST_SUITE_P(Sets, RotateBy, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

std::vector<double> some(std::int64_t count, double scale = 1) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back(scale * std::sin(0.7 * static_cast<double>(i * i) + 1));
  return numbers;
}

Plan plan_of(Pairing pairing, std::int64_t rotary_dim, std::int64_t first_dim = 0,
             double amplitude = 1) {
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.pairing = pairing, .first_dim = first_dim, .rotary_dim = rotary_dim},
             .frequencies = {.radians = some(rotary_dim / 2)},
             .amplitude = amplitude};
  return plan;
}

// What one line says of channel c of a vector.
double rotated(const Rotate& how, const std::vector<double>& x, const double* angle,
               std::int64_t c) {
  for (std::int64_t r = 0; r < how.pairs(); ++r) {
    const auto [a, b] = detail::channels(how, r);
    const double one = x[static_cast<std::size_t>(a)], two = x[static_cast<std::size_t>(b)];
    if (c == a) return how.amplitude * (one * std::cos(angle[r]) - two * std::sin(angle[r]));
    if (c == b) return how.amplitude * (one * std::sin(angle[r]) + two * std::cos(angle[r]));
  }
  return x[static_cast<std::size_t>(c)];
}

struct Sharing {
  const char* name;
  std::int64_t batch, heads;  // of the angles
};

// Angles have no side, its phases are added to them: of heads that share angles, and of their own.
TEST_P(RotateBy, AddsThePhasesOfItsSide) {
  constexpr std::int64_t heads = 3, seq = 7, dim = 20;
  Plan plan = plan_of(Pairing::halves, dim);
  plan.rotate->kind = Plain{
      .phase = Phase{.side = Side::key, .heads = heads, .radians = random(heads * dim / 2, 9)}};
  const Positions at = Positions::range(90, seq);
  std::vector<double> angles(seq * dim / 2);
  const Tensor by = Tensor::dense(angles.data(), {1, 1, seq, dim / 2});
  ASSERT_TRUE(rotation_angles(plan, at, by));
  for (const Side side : {Side::query, Side::key}) {
    std::vector<double> wanted = random(heads * seq * dim, 4), got = wanted;
    const Tensor w = Tensor::dense(wanted.data(), {1, heads, seq, dim});
    const Tensor g = Tensor::dense(got.data(), {1, heads, seq, dim});
    ASSERT_TRUE(rotate(plan, w, at, side, w));
    ASSERT_TRUE(rotate_by(plan, g, by, side, g));
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12) << i;
    ASSERT_TRUE(rotate_by_inverse(plan, g, by, side, g));
    EXPECT_NEAR(got[1], random(heads * seq * dim, 4)[1], 1e-12);
  }
  std::vector<double> two(2 * seq * dim);
  const Tensor x = Tensor::dense(two.data(), {1, 2, seq, dim});
  EXPECT_FALSE(rotate_by(plan, x, by, Side::key, x));
}

TEST_P(RotateBy, RefusesRotationsThatAskForAQueryAndAKey) {
  constexpr std::int64_t seq = 2, dim = 4;
  Plan plan = plan_of(Pairing::halves, dim);
  plan.rotate->kind = Regions{.window = 1, .region = {{}, {.query = {.most = 3}}}};
  std::vector<double> data(seq * dim, 1), angle(seq * dim / 2, 1);
  const Tensor x = Tensor::dense(data.data(), {1, 1, seq, dim}),
               by = Tensor::dense(angle.data(), {1, 1, seq, dim / 2});
  for (const auto& refused :
       {rotate_by(plan, x, by, Side::query, x), rotate_by_inverse(plan, x, by, Side::key, x)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cure, "use attend()");
  }
}

TEST_P(RotateBy, IsWhatOneLineSays) {
  constexpr std::int64_t batch = 2, heads = 3, seq = 5, dim = 46;
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
    for (const Sharing& sharing : {Sharing{"shared", 1, 1},
                                   {"by sequence", batch, 1},
                                   {"by head", 1, heads},
                                   {"own", batch, heads}}) {
      const Plan plan = plan_of(pairing, 38, 4, 1.25);
      const Rotate& how = *plan.rotate;
      std::vector<double> data = some(batch * heads * seq * dim, 2),
                          angle = some(sharing.batch * sharing.heads * seq * how.pairs(), 1e6);
      const std::vector<double> before = data;
      const Tensor x = Tensor::dense(data.data(), {batch, heads, seq, dim}),
                   angles = Tensor::dense(angle.data(),
                                          {sharing.batch, sharing.heads, seq, how.pairs()});
      ASSERT_TRUE(rotate_by(plan, x, angles, Side::query, x));
      for_each_index(x, [&](auto b, auto h, auto t, auto c) {
        const auto at = static_cast<std::size_t>(x.offset(b, h, t));
        const std::vector<double> vector(before.begin() + static_cast<std::ptrdiff_t>(at),
                                         before.begin() + static_cast<std::ptrdiff_t>(at) + dim);
        const double* const by =
            angle.data() + angles.offset(sharing.batch == 1 ? 0 : b, sharing.heads == 1 ? 0 : h, t);
        ASSERT_NEAR(data[at + static_cast<std::size_t>(c)], rotated(how, vector, by, c), 1e-14)
            << sharing.name << " " << b << h << t << " channel " << c;
      });
    }
  }
}

TEST_P(RotateBy, AnglesOfPositionsRotateAsPositionsDo) {
  const Plan plan = *compile(Rope{}, {.head_dim = 64});
  const Positions positions = Positions::range(1000, 70);
  std::vector<float> data(70 * 64), wanted;
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<float>(some(1)[0] + 0.01 * static_cast<double>(i % 97));
  wanted = data;
  const Tensor x = Tensor::dense(data.data(), {1, 1, 70, 64}),
               like = Tensor::dense(wanted.data(), {1, 1, 70, 64});
  std::vector<double> angle(70 * 32);
  const Tensor angles = Tensor::dense(angle.data(), {1, 1, 70, 32});
  ASSERT_TRUE(rotation_angles(plan, positions, angles));
  ASSERT_TRUE(rotate_by(plan, x, angles, Side::key, x));
  ASSERT_TRUE(rotate(plan, like, positions, Side::key, like));
  for (std::size_t i = 0; i < data.size(); ++i) ASSERT_NEAR(data[i], wanted[i], 2e-7) << i;
}

TEST_P(RotateBy, HugeAndUnusualAnglesAreThoseOfTheLibrary) {
  const Plan plan = plan_of(Pairing::halves, 8);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> angle = {1e15, -3e9, 0, nan}, data = {1, 1, 1, 1, 0, 0, 0, 0};
  const Tensor x = Tensor::dense(data.data(), {1, 8});
  ASSERT_TRUE(rotate_by(plan, x, Tensor::dense(angle.data(), {1, 4}), Side::query, x));
  EXPECT_EQ(data[0], std::cos(1e15));
  EXPECT_EQ(data[5], std::sin(-3e9));
  EXPECT_EQ(data[2], 1);
  EXPECT_TRUE(std::isnan(data[3]));
}

TEST_P(RotateBy, InverseUndoesAndTransposeTurnsBack) {
  const Plan plan = plan_of(Pairing::interleaved, 16, 0, 2);
  std::vector<double> angle = some(3 * 8, 50), data = some(3 * 16);
  const std::vector<double> before = data;
  const Tensor x = Tensor::dense(data.data(), {3, 16}),
               angles = Tensor::dense(angle.data(), {3, 8});
  ASSERT_TRUE(rotate_by(plan, x, angles, Side::query, x));
  ASSERT_TRUE(rotate_by_inverse(plan, x, angles, Side::query, x));
  for (std::size_t i = 0; i < data.size(); ++i) ASSERT_NEAR(data[i], before[i], 1e-15);
  ASSERT_TRUE(rotate_by(plan, x, angles, Side::query, x));
  ASSERT_TRUE(rotate_by_transpose(plan, x, angles, Side::query, x));
  for (std::size_t i = 0; i < data.size(); ++i) ASSERT_NEAR(data[i], 4 * before[i], 1e-14);
}

TEST_P(RotateBy, HasTheSameBitsForAnyNumberOfThreads) {
  constexpr std::int64_t seq = 600, dim = 128;
  const Plan plan = plan_of(Pairing::halves, dim);
  std::vector<double> angle = some(2 * seq * dim / 2, 30);
  std::vector<float> one(2 * seq * dim, 0.5f), many;
  const Tensor angles = Tensor::dense(angle.data(), {2, 1, seq, dim / 2});
  many = one;
  const Tensor x = Tensor::dense(one.data(), {2, 1, seq, dim}),
               y = Tensor::dense(many.data(), {2, 1, seq, dim});
  ASSERT_TRUE(rotate_by(plan, x, angles, Side::query, x, {1}));
  ASSERT_TRUE(rotate_by(plan, y, angles, Side::query, y, {3}));
  EXPECT_EQ(one, many);
}

// --- real positions ------------------------------------------------------------------------------

TEST(AnglesAt, AreTheSumOverAxesOfPositionTimesFrequency) {
  Plan plan = plan_of(Pairing::halves, 8);
  plan.rotate->frequencies.axes = 2;
  plan.rotate->frequencies.radians = {1, 0.5, 0, 0, 0, 0, 0.25, 2};
  std::vector<double> at = {-1.5, 0.125, 3, -0.5}, angle(2 * 4);
  ASSERT_TRUE(rotation_angles(plan, Tensor::dense(at.data(), {2, 1, 2}),
                              Tensor::dense(angle.data(), {1, 1, 2, 4})));
  EXPECT_EQ(angle, (std::vector<double>{-1.5, -0.75, 0.75, 6, 0.125, 0.0625, -0.125, -1}));
}

TEST(AnglesAt, ScoreDependsOnTheDistanceAlone) {
  const Plan plan = *compile(Rope{}, {.head_dim = 32});
  std::vector<double> first;
  for (const double shift : {0.0, -17.3, 1234.56}) {
    std::vector<double> at = {shift + 0.25, shift - 2.5}, angle(2 * 16), data = some(2 * 32);
    const Tensor angles = Tensor::dense(angle.data(), {1, 1, 2, 16}),
                 x = Tensor::dense(data.data(), {1, 1, 2, 32});
    ASSERT_TRUE(rotation_angles(plan, Tensor::dense(at.data(), {1, 1, 2}), angles));
    ASSERT_TRUE(rotate_by(plan, x, angles, Side::query, x));
    double score = 0;
    for (std::size_t c = 0; c < 32; ++c) score += data[c] * data[32 + c];
    first.push_back(score);
    EXPECT_NEAR(score, first[0], 1e-11) << shift;
  }
}

TEST(AnglesAt, RefuseAPositionThatIsNotFinite) {
  const Plan plan = plan_of(Pairing::halves, 8);
  std::vector<double> at = {1, std::numeric_limits<double>::infinity()}, angle(8);
  const auto done = rotation_angles(plan, Tensor::dense(at.data(), {1, 1, 2}),
                                    Tensor::dense(angle.data(), {1, 1, 2, 4}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "positions must be finite");
}

// --- gradient and refusals -----------------------------------------------------------------------

TEST(AngleGradient, IsTheSlopeOfTheLoss) {
  const Plan plan = plan_of(Pairing::interleaved, 6, 2, 1.5);
  constexpr std::int64_t batch = 2, heads = 2, seq = 3, dim = 8;
  std::vector<double> angle = some(seq * 3, 2), x = some(batch * heads * seq * dim),
                      weight = some(batch * heads * seq * dim, 3);
  const auto shape = [](std::vector<double>& numbers, std::int64_t last, std::int64_t b,
                        std::int64_t h) {
    return Tensor::dense(numbers.data(), {b, h, seq, last});
  };
  const auto loss = [&](std::vector<double>& at) {
    std::vector<double> y = x;
    const Tensor out = shape(y, dim, batch, heads);
    EXPECT_TRUE(rotate_by(plan, out, shape(at, 3, 1, 1), Side::query, out));
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * weight[i];
    return sum;
  };
  std::vector<double> y = x, gradient(angle.size());
  const Tensor out = shape(y, dim, batch, heads);
  ASSERT_TRUE(rotate_by(plan, out, shape(angle, 3, 1, 1), Side::query, out));
  ASSERT_TRUE(
      angle_gradient(plan, out, shape(weight, dim, batch, heads), shape(gradient, 3, 1, 1)));
  for (std::size_t i = 0; i < angle.size(); ++i) {
    std::vector<double> more = angle, less = angle;
    more[i] += 1e-5;
    less[i] -= 1e-5;
    EXPECT_NEAR(gradient[i], (loss(more) - loss(less)) / 2e-5, 1e-8) << i;
  }
}

std::string refused(const Plan& plan, Side side, std::initializer_list<std::int64_t> angles_shape) {
  std::vector<double> data(2 * 8), angle(64);
  const Tensor x = Tensor::dense(data.data(), {2, 8});
  const auto done = rotate_by(plan, x, Tensor::dense(angle.data(), angles_shape), side, x);
  return done ? "" : done.error().rule;
}

TEST(RotateByRefuses, APlanThatDoesNotRotateTheSide) {
  EXPECT_EQ(refused({}, Side::query, {2, 4}), "the plan must rotate this side");
  EXPECT_EQ(refused(plan_of(Pairing::halves, 8), Side::value, {2, 4}),
            "the plan must rotate this side");
}

TEST(RotateByRefuses, AnglesOfAnotherShape) {
  const Plan plan = plan_of(Pairing::halves, 8);
  EXPECT_EQ(refused(plan, Side::query, {2, 4}), "");
  for (const auto& shape :
       {std::initializer_list<std::int64_t>{2, 3}, {3, 4}, {2, 2, 4}, {2, 1, 2, 4}})
    EXPECT_NE(refused(plan, Side::query, shape).find("angles must be [batch or 1"),
              std::string::npos);
}

TEST(RotateByRefuses, XposAndAnEnginesAngles) {
  const Plan xpos = *compile(XPos{}, {.head_dim = 8});
  const Plan engine = *compile(Rope{}, {.head_dim = 8}, Angles::hf_float);
  EXPECT_EQ(refused(xpos, Side::query, {2, 4}), "the plan must not have xPos' growth");
  EXPECT_EQ(refused(engine, Side::query, {2, 4}),
            "the plan must not have the angles of an engine's floats");
}

}  // namespace
}  // namespace posenc
