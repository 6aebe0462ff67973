// Rotations in other engines' arithmetic: what holds by construction. That they are those engines'
// own numbers is tests/conformance/rotation_test.cc and ggml_test.cc.
#include "src/kernels/parity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "posenc/apply.h"
#include "posenc/schemes.h"

namespace posenc {
namespace {

constexpr Geometry head{.head_dim = 64};
constexpr Angles engines[] = {Angles::hf_float, Angles::ggml_float};

Plan plan_of(Angles angles, const Rope& rope = {}) { return compile(rope, head, angles).value(); }

template <class Real>
std::vector<Real> numbers(std::size_t count) {
  std::vector<Real> x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = static_cast<Real>(static_cast<float>(std::sin(1.0 + 0.7 * static_cast<double>(i))));
  return x;
}

Tensor view(std::vector<double>& x) {
  return Tensor::dense(x.data(), {1, 1, static_cast<std::int64_t>(x.size() / 64), 64});
}

// Sixteen-bit elements, as their bits.
struct Short {
  DType dtype;
  std::vector<std::uint16_t> bits;
  Short(DType type, const std::vector<float>& values) : dtype(type) {
    for (const float v : values)
      bits.push_back(type == DType::f16 ? float_to_half(v) : float_to_bfloat16(v));
  }
  float operator[](std::size_t i) const {
    return dtype == DType::f16 ? half_to_float(bits[i]) : bfloat16_to_float(bits[i]);
  }
  Tensor tensor() {
    return Tensor::dense(bits.data(), dtype,
                         {1, 1, static_cast<std::int64_t>(bits.size() / 64), 64});
  }
  float kept(float value) const { return Short(dtype, {value})[0]; }
};

TEST(Parity, NearZeroTheEnginesAgreeWithTheTruth) {
  for (const Angles angles : engines) {
    auto x = numbers<double>(64 * 8), y = x;
    ASSERT_TRUE(rotate(plan_of(angles), view(x), Positions::range(0, 8), Side::query, view(x)));
    ASSERT_TRUE(
        rotate(plan_of(Angles::exact), view(y), Positions::range(0, 8), Side::query, view(y)));
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 2e-6) << name(angles);
  }
}

TEST(Parity, FarOutTheirErrorsShow) {
  for (const Angles angles : engines) {
    auto x = numbers<double>(64), y = x;
    const Positions far = Positions::range(1'000'000, 1);
    ASSERT_TRUE(rotate(plan_of(angles), view(x), far, Side::query, view(x)));
    ASSERT_TRUE(rotate(plan_of(Angles::exact), view(y), far, Side::query, view(y)));
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
    EXPECT_GT(most, 1e-3) << name(angles);
    EXPECT_LT(most, 0.5) << name(angles);
  }
}

TEST(Parity, PositionsThatAFloatDoesNotHoldAreRefused) {
  constexpr std::int64_t limit = std::int64_t{1} << 24;
  for (const Angles angles : engines) {
    auto x = numbers<double>(64);
    const Plan plan = plan_of(angles);
    EXPECT_TRUE(rotate(plan, view(x), Positions::range(limit - 1, 1), Side::query, view(x)));
    const auto refused = rotate(plan, view(x), Positions::range(limit, 1), Side::query, view(x));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("must stay below 2^24"), std::string::npos);
    EXPECT_FALSE(rotate(plan, view(x), Positions::range(-limit, 1), Side::query, view(x)));
    EXPECT_TRUE(
        rotate(plan_of(Angles::exact), view(x), Positions::range(limit, 1), Side::query, view(x)));
  }
}

// ⟨rotate(x), y⟩ = ⟨x, rotate_transpose(y)⟩: the gradient is the transpose.
TEST(Parity, TheTransposeIsTheGradient) {
  for (const Angles angles : engines) {
    const Plan plan =
        plan_of(angles, {.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 256}});
    const Positions where = Positions::range(900, 3);
    auto x = numbers<double>(64 * 3);
    std::vector<double> y(x.rbegin(), x.rend()), rotated = x, back = y;
    ASSERT_TRUE(rotate(plan, view(rotated), where, Side::query, view(rotated)));
    ASSERT_TRUE(rotate_transpose(plan, view(back), where, Side::query, view(back)));
    double forward = 0, backward = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      forward += rotated[i] * y[i];
      backward += x[i] * back[i];
    }
    EXPECT_NEAR(forward, backward, 1e-12) << name(angles);
  }
}

TEST(Parity, TheInverseUndoesWhatTheEngineDid) {
  for (const Angles angles : engines) {
    const Plan plan =
        plan_of(angles, {.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 256}});
    const Positions where = Positions::range(1'000'000, 3);
    const auto x = numbers<double>(64 * 3);
    auto y = x;
    ASSERT_TRUE(rotate(plan, view(y), where, Side::key, view(y)));
    ASSERT_TRUE(rotate_inverse(plan, view(y), where, Side::key, view(y)));
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-14) << name(angles);
  }
}

TEST(Parity, HuggingFaceRoundsCosineProductsAndSumToTheTensorsType) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Short x(dtype, numbers<float>(64));
    const Short before = x;
    const Plan plan = plan_of(Angles::hf_float);
    ASSERT_TRUE(rotate(plan, x.tensor(), Positions::range(777, 1), Side::query, x.tensor()));
    for (std::size_t r = 0; r < 32; ++r) {
      const float angle = 777.0f * static_cast<float>(plan.rotate->frequencies.radians[r]);
      const float c = x.kept(static_cast<float>(std::cos(static_cast<double>(angle))));
      const float s = x.kept(static_cast<float>(std::sin(static_cast<double>(angle))));
      const float a = before[r], b = before[r + 32];
      EXPECT_EQ(x[r], x.kept(x.kept(a * c) - x.kept(b * s)));
      EXPECT_EQ(x[r + 32], x.kept(x.kept(a * s) + x.kept(b * c)));
    }
  }
}

TEST(Parity, GgmlRoundsSixteenBitsOnce) {
  Short x(DType::f16, numbers<float>(64));
  const Short before = x;
  auto whole = numbers<float>(64);
  for (std::size_t i = 0; i < 64; ++i) whole[i] = before[i];
  const Tensor exact = Tensor::dense(whole.data(), {1, 1, 1, 64});
  const Plan plan = plan_of(Angles::ggml_float);
  ASSERT_TRUE(rotate(plan, x.tensor(), Positions::range(777, 1), Side::query, x.tensor()));
  ASSERT_TRUE(rotate(plan, exact, Positions::range(777, 1), Side::query, exact));
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(x[i], x.kept(whole[i]));
}

TEST(Parity, ValuesRotateWithoutTheAmplitude) {
  for (const Angles angles : engines) {
    const Plan plan =
        plan_of(angles, {.rotate_values = true,
                         .scaling = Yarn{.factor = 4, .original_max_position_embeddings = 256}});
    auto q = numbers<double>(64), v = q;
    ASSERT_TRUE(rotate(plan, view(q), Positions::range(9, 1), Side::query, view(q)));
    ASSERT_TRUE(rotate(plan, view(v), Positions::range(9, 1), Side::value, view(v)));
    for (std::size_t i = 0; i < q.size(); ++i)
      EXPECT_NEAR(q[i], plan.rotate->amplitude * v[i], 1e-6) << name(angles);
  }
}

TEST(Parity, AnglesAreWhatTheRotationTakesTheCosineOf) {
  for (const Angles angles : {Angles::exact, Angles::hf_float, Angles::ggml_float}) {
    const Plan plan = plan_of(angles);
    std::vector<double> angle(2 * 32), x(64 * 2, 0.0);
    x[0] = x[64 + 5] = 1;
    const Positions where = Positions::range(5000, 2);
    ASSERT_TRUE(rotation_angles(plan, where, Tensor::dense(angle.data(), {1, 1, 2, 32})));
    ASSERT_TRUE(rotate(plan, view(x), where, Side::query, view(x)));
    EXPECT_NEAR(x[0], std::cos(angle[0]), 1e-7) << name(angles);
    EXPECT_NEAR(x[64 + 5 + 32], std::sin(angle[32 + 5]), 1e-7) << name(angles);
  }
}

TEST(Parity, AnglesNeedARotationAndRoomForEveryPair) {
  std::vector<double> angle(31);
  const Tensor narrow = Tensor::dense(angle.data(), {1, 1, 1, 31});
  EXPECT_FALSE(rotation_angles(Plan{}, Positions::range(0, 1), narrow));
  EXPECT_FALSE(rotation_angles(plan_of(Angles::exact), Positions::range(0, 1), narrow));
}

}  // namespace
}  // namespace posenc
