// What the fast kernels have not, over the emulated grid beside the host: xPos, the engines'
// arithmetic, real positions, values, and the gradient of learned frequencies.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/cuda/backend.h"
#include "backends/cuda/tensors_test.h"
#include "posenc/cuda.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"

namespace posenc::cuda {
namespace {

constexpr Geometry geometry{.heads = 2, .kv_heads = 2, .head_dim = 64};
constexpr std::int64_t tokens = 7;

Expected<void> on_host(const Plan& plan, const Tensor& x, std::int64_t first, Side side,
                       const Tensor& out, Action action) {
  const Positions positions = Positions::range(first, x.shape[2]);
  switch (action) {
    case Action::forward: return posenc::rotate(plan, x, positions, side, out);
    case Action::transpose: return rotate_transpose(plan, x, positions, side, out);
    case Action::inverse: return rotate_inverse(plan, x, positions, side, out);
  }
  return {};
}

Rotations rotations_of(const Plan& plan) {
  auto made = Rotations::make(std::span(&plan, 1), emulated());
  EXPECT_TRUE(made) << made.error().message();
  return made.value_or(Rotations{});
}

// The largest difference from the host in the same type, beside the number that it is of.
double off(const Plan& plan, DType dtype, Side side, Action action, std::int64_t first) {
  Numbers here(dtype, {2, 2, tokens, 64}), there(dtype, here.view.shape);
  here.fill(1), there.fill(1);
  const auto expected = on_host(plan, here.view, first, side, here.view, action);
  EXPECT_TRUE(expected) << expected.error().message();
  const auto done = rotate(rotations_of(plan), there.view, {}, {.first = first}, there.view, {},
                           {.action = action, .side = side});
  EXPECT_TRUE(done) << done.error().message();
  double worst = 0;
  here.each([&](std::int64_t at) {
    const double wanted = here.view.get(at);
    worst =
        std::max(worst, std::abs(there.view.get(at) - wanted) / std::max(1.0, std::abs(wanted)));
  });
  return worst;
}

constexpr Action actions[] = {Action::forward, Action::transpose, Action::inverse};

class SpecialOnDevice : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryType, SpecialOnDevice, testing::ValuesIn(dtypes),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(SpecialOnDevice, XposGrowsQueriesAndShrinksKeys) {
  const Plan plan = *compile(Scheme(XPos{}), geometry);
  for (const Side side : {Side::query, Side::key, Side::value})
    for (const Action action : actions)
      EXPECT_LE(off(plan, GetParam(), side, action, 1000), 2 * tolerance(GetParam()));
}

TEST_P(SpecialOnDevice, HuggingFacesFloats) {
  const Plan plan =
      *compile(Scheme(Rope{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 4096}}),
               geometry, Angles::hf_float);
  for (const Action action : actions)
    EXPECT_LE(off(plan, GetParam(), Side::query, action, 131'072),
              action == Action::inverse ? tolerance(GetParam()) : 1e-15);
}

TEST_P(SpecialOnDevice, GgmlsFloats) {
  const Rope rope{.rope_theta = 5e5,
                  .scaling = Yarn{.factor = 4, .original_max_position_embeddings = 4096}};
  const Plan plan = *compile(Scheme(rope), geometry, Angles::ggml_float);
  ASSERT_TRUE(plan.rotate->ggml());
  for (const Action action : actions)
    EXPECT_LE(off(plan, GetParam(), Side::key, action, 131'072), tolerance(GetParam()));
}

TEST_P(SpecialOnDevice, ValuesRotateWithoutTheAmplitude) {
  Plan plan =
      *compile(Scheme(Rope{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 4096}}),
               geometry);
  plan.rotate->values = Values::rotated_and_back;
  for (const Action action : actions)
    EXPECT_LE(off(plan, GetParam(), Side::value, action, 77), tolerance(GetParam()));
}

TEST_P(SpecialOnDevice, RealPositions) {
  const Plan plan = *compile(Scheme(Rope{}), geometry);
  const std::vector<double> at{0.25, -1.75, 1e6 + 0.125, 3, -0.5, 1e-9, 4096.0625};
  Numbers here(GetParam(), {1, 2, tokens, 64}), there(GetParam(), here.view.shape);
  here.fill(1), there.fill(1);
  std::vector<double> angles(tokens * 32);
  const Tensor angle_view = Tensor::dense(angles.data(), DType::f64, {1, 1, tokens, 32});
  std::vector<double> list = at;
  ASSERT_TRUE(
      rotation_angles(plan, Tensor::dense(list.data(), DType::f64, {1, 1, tokens}), angle_view));
  ASSERT_TRUE(rotate_by(plan, here.view, angle_view, Side::query, here.view));
  ASSERT_TRUE(rotate(rotations_of(plan), there.view, {}, {.real_ids = at.data()}, there.view, {}));
  here.each([&](std::int64_t i) {
    EXPECT_NEAR(there.view.get(i), here.view.get(i), std::max(2e-10, 2 * tolerance(GetParam())));
  });
}

TEST(Special, ARealPositionThatIsNoneGivesNaN) {
  const Plan plan = *compile(Scheme(Rope{}), geometry);
  const std::vector<double> at{HUGE_VAL, 0.5};
  Numbers x(DType::f32, {1, 2, 2, 64});
  x.fill(1);
  ASSERT_TRUE(rotate(rotations_of(plan), x.view, {}, {.real_ids = at.data()}, x.view, {}));
  EXPECT_TRUE(std::isnan(x.view.get(x.view.offset(0, 0, 0, 5))));
  EXPECT_FALSE(std::isnan(x.view.get(x.view.offset(0, 0, 1, 5))));
}

TEST(Special, RealPositionsNeedFrequenciesBelowPi) {
  Plan plan = *compile(Scheme(Rope{}), geometry);
  plan.rotate->frequencies.radians[0] = 4;
  const std::vector<double> at(1);
  const Numbers x(DType::f32, {1, 2, 1, 64});
  const auto done = rotate(rotations_of(plan), x.view, {}, {.real_ids = at.data()}, x.view, {});
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().rule.contains("below pi"));
}

TEST(Special, AnEnginesPositionsStayBelowAFloats) {
  Plan plan = *compile(Scheme(Rope{}), geometry);
  plan.rotate->kind = HfFloat{};
  const Numbers x(DType::f32, {1, 2, 1, 64});
  EXPECT_TRUE(rotate(rotations_of(plan), x.view, {}, {.first = (1 << 24) - 1}, x.view, {}));
  EXPECT_FALSE(rotate(rotations_of(plan), x.view, {}, {.first = 1 << 24}, x.view, {}));
}

TEST(Special, ATableOfGgmlsAnglesIsOfOnePlan) {
  const Plan plan = *compile(Scheme(Rope{}), geometry, Angles::ggml_float);
  const Plan plans[] = {plan, plan};
  EXPECT_FALSE(Rotations::make(plans, emulated()));
}

TEST(Special, RotatedValuesGoToThePages) {
  Plan plan = *compile(Scheme(Rope{}), geometry);
  plan.rotate->values = Values::rotated_and_back;
  Numbers q(DType::f32, {1, 2, tokens, 64}), k(DType::f32, q.view.shape),
      v(DType::f32, q.view.shape), keys(DType::f32, {1, 2, tokens, 64}),
      values(DType::f32, keys.view.shape);
  q.fill(1), k.fill(2), v.fill(3);
  const std::vector<std::int64_t> slots{0, 1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(rotate_and_append(rotations_of(plan), q.view, k.view, v.view, {.first = 40}, q.view,
                                {},
                                {.keys = keys.view, .values = values.view, .slots = slots.data()}));
  ASSERT_TRUE(posenc::rotate(plan, v.view, Positions::range(40, tokens), Side::value, v.view));
  v.each([&](std::int64_t at) { EXPECT_NEAR(values.view.get(at), v.view.get(at), 1e-6); });
}

// --- learned frequencies -------------------------------------------------------------------------

class Frequencies : public testing::TestWithParam<DType> {
 protected:
  // The gradient by the kernel in so many parts.
  static std::vector<double> gradient(const Plan& plan, const Numbers& rotated,
                                      const Numbers& upstream, const DevicePositions& there,
                                      std::int64_t parts) {
    const auto count = static_cast<std::int64_t>(plan.rotate->frequencies.radians.size());
    std::vector<double> workspace(static_cast<std::size_t>(parts * count)),
        out(static_cast<std::size_t>(count));
    const auto done =
        rotate_frequency_gradient(rotations_of(plan), rotated.view, upstream.view, there,
                                  Tensor::dense(workspace.data(), DType::f64, {parts, count}),
                                  Tensor::dense(out.data(), DType::f64, {count}));
    EXPECT_TRUE(done) << done.error().message();
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryType, Frequencies, testing::ValuesIn(dtypes),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(Frequencies, AsOnTheHostForEveryHeadAxisAndNumberOfParts) {
  Plan plan;
  plan.rotate = Rotate{.slice = {.pairing = Pairing::interleaved, .rotary_dim = 8},
                       .frequencies = {.heads = 2, .axes = 2}};
  for (const double f : random(2 * 2 * 4, 9)) plan.rotate->frequencies.radians.push_back(f);
  Numbers rotated(GetParam(), {2, 2, tokens, 16}), upstream(GetParam(), rotated.view.shape);
  rotated.fill(1), upstream.fill(2);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 2 * 2 * tokens; ++i) ids.push_back(i * 5 % 13);
  std::vector<double> wanted(16);
  ASSERT_TRUE(posenc::rotate_frequency_gradient(
      plan, rotated.view, upstream.view, *Positions::ids(ids, 2, 2),
      Tensor::dense(wanted.data(), DType::f64, {2, 2, 4})));
  for (const std::int64_t parts : {1, 3, 50}) {
    const auto found = gradient(plan, rotated, upstream, {.ids = ids.data()}, parts);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12) << i;
  }
}

TEST_P(Frequencies, SharedByHeadsTheyAddUpOverThem) {
  const Plan plan = *compile(Scheme(Rope{}), geometry);
  Numbers rotated(GetParam(), {1, 2, tokens, 64}, 3), upstream(GetParam(), rotated.view.shape);
  rotated.fill(1), upstream.fill(2);
  std::vector<double> wanted(32);
  ASSERT_TRUE(posenc::rotate_frequency_gradient(
      plan, rotated.view, upstream.view, Positions::range(9, tokens),
      Tensor::dense(wanted.data(), DType::f64, {1, 1, 32})));
  const auto found = gradient(plan, rotated, upstream, {.first = 9}, 2);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12) << i;
}

TEST(FrequenciesOnDevice, RefuseAWorkspaceOfAnotherSize) {
  const Plan plan = *compile(Scheme(Rope{}), geometry);
  const Numbers x(DType::f32, {1, 2, tokens, 64});
  std::vector<double> memory(64);
  const auto refused = [&](std::int64_t columns, std::int64_t out) {
    return !rotate_frequency_gradient(rotations_of(plan), x.view, x.view, {},
                                      Tensor::dense(memory.data(), DType::f64, {1, columns}),
                                      Tensor::dense(memory.data() + 32, DType::f64, {out}));
  };
  EXPECT_FALSE(refused(32, 32));
  EXPECT_TRUE(refused(31, 32));
  EXPECT_TRUE(refused(32, 16));
}

}  // namespace
}  // namespace posenc::cuda
