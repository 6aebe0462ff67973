// FIRE beside its network, evaluated pair by pair.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/content/content_test.h"

namespace posenc {
namespace {

Fire random_fire(std::int64_t heads, std::int64_t units = 32) {
  return {.hidden_weight = random(units, 11),
          .hidden_bias = random(units, 12, 0.5),
          .output_weight = random(heads * units, 13, 0.3),
          .output_bias = random(heads, 14),
          .initial_length = 50,
          .length_multiplier = 0.9};
}

// The network as it reads.
double network(const Fire& fire, std::int64_t h, double x) {
  const std::size_t units = fire.hidden_weight.size();
  double sum = fire.output_bias[static_cast<std::size_t>(h)];
  for (std::size_t u = 0; u < units; ++u) {
    sum += fire.output_weight[static_cast<std::size_t>(h) * units + u] *
           std::max(0.0, fire.hidden_weight[u] * x + fire.hidden_bias[u]);
  }
  return sum;
}

// The bias as the paper has it (section 3 and the listing of appendix C).
double paper_bias(const Fire& fire, std::int64_t h, std::int64_t i, std::int64_t j) {
  const double length = std::abs(fire.length_multiplier * fire.initial_length);
  const double distance = std::abs(static_cast<double>(i - j));
  const double top = std::log(std::abs(fire.c) * distance + 1);
  const double bottom =
      std::log(std::abs(fire.c) * std::max(static_cast<double>(i), length) + 1) + 1e-6;
  return network(fire, h, top / bottom);
}

Subject fire_subject(const std::function<Fire(std::int64_t)>& make = [](auto h) {
  return random_fire(h);
}) {
  return {.with = [=](const Call& call, const Subject::Act& act) { return act(make(call.heads)); },
          .weights =
              [=](const Call& call, std::int64_t b, std::int64_t h) {
                const Fire fire = make(call.heads);
                Matrix z = call.scores(b, h);
                for (std::int64_t i = 0; i < call.queries; ++i) {
                  for (std::int64_t j = 0; j < call.keys; ++j) {
                    z[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] += paper_bias(
                        fire, h, call.query_positions.at(i, b), call.key_positions.at(j, b));
                  }
                }
                return softmax(z);
              }};
}

TEST(AttendFire, IsThePapersFormula) { expect_formula_in_all_calls(fire_subject()); }
TEST(AttendFire, IsThePapersFormulaInEveryDtype) { expect_formula_in_all_dtypes(fire_subject()); }
TEST(AttendFire, GivesTheSameBitsOnAnyThreads) { expect_same_bits_on_any_threads(fire_subject()); }
TEST(AttendFire, DoesNotTouchHiddenNumbers) { expect_hidden_nan_is_harmless(fire_subject()); }
TEST(AttendFire, GivesNaNForNaN) { expect_seen_nan_is_given(fire_subject()); }
TEST(AttendFire, TakesNoTokens) { expect_no_tokens_are_no_error(fire_subject()); }
TEST(AttendFire, RefusesOtherPartsOfAPlan) { expect_other_plan_parts_are_refused(fire_subject()); }

TEST(AttendFire, SeesBothWaysWithoutACausalMask) {
  for (Call& call : calls()) {
    SCOPED_TRACE(call.name);
    call.mask.causal = false;
    call.fill();
    fire_subject().expect_formula(call, tolerance(DType::f64));
  }
}

TEST(AttendFire, SeesAPrefix) {
  Call call{.queries = 90, .keys = 90, .mask = {.prefix = 70}};
  call.query_positions = call.key_positions = Positions::range(0, 90);
  call.fill();
  fire_subject().expect_formula(call, tolerance(DType::f64));
}

TEST(AttendFire, UnitsThatNeverTurnAreConstants) {
  const auto make = [](std::int64_t heads) {
    Fire fire = random_fire(heads, 4);
    fire.hidden_weight = {0, 0, 1, -1};
    fire.hidden_bias = {0.5, -0.5, 0, 0.25};
    return fire;
  };
  Call call;
  call.fill();
  fire_subject(make).expect_formula(call, tolerance(DType::f64));
}

TEST(AttendFire, WithoutHiddenUnitsIsNoPositionAtAll) {
  const auto make = [](std::int64_t heads) {
    return Fire{.output_bias = std::vector<double>(static_cast<std::size_t>(heads), 3)};
  };
  Call call;
  call.fill();
  Numbers plain = call.out;
  plain.view.data = plain.memory.data();
  fire_subject(make).run(call);
  ASSERT_TRUE(attend_reference(call.inputs(), {}, plain.view));
  expect_near(call.out, plain, 1e-14);
}

TEST(Fire, ArgumentsOfThePastStayWithinZeroAndOne) {
  const Fire fire;
  for (const std::int64_t i : {0, 1, 511, 512, 513, 10000, 100000000}) {
    for (const std::int64_t j : {std::int64_t{0}, i / 3, i / 2, i - 1, i}) {
      if (j < 0) continue;
      EXPECT_GE(fire.interpolated(i, j), 0);
      EXPECT_LE(fire.interpolated(i, j), 1);
    }
  }
  EXPECT_NEAR(fire.interpolated(100000000, 0), 1, 1e-6);  // the first token, however far
  EXPECT_EQ(fire.interpolated(77, 77), 0);
}

// Below L the distance alone counts; a max(i, L) read as min(i, L) would fail here and above.
TEST(Fire, NormaliserIsTheLongerOfPositionAndThreshold) {
  const Fire fire;
  EXPECT_EQ(fire.interpolated(500, 400), fire.interpolated(100, 0));
  EXPECT_GT(fire.interpolated(600, 500), fire.interpolated(1200, 1100));
  EXPECT_NEAR(fire.interpolated(10, 0), std::log(2.0) / (std::log(0.1 * 512 + 1) + 1e-6), 1e-15);
}

TEST(FireBias, IsWhatAttentionAdds) {
  const Fire fire = random_fire(3);
  std::vector<double> bias(3 * 5 * 7);
  ASSERT_TRUE(fire_bias(fire, Positions::range(60, 5), Positions::range(58, 7),
                        Tensor::dense(bias.data(), {3, 5, 7})));
  EXPECT_NEAR(bias[2 * 35 + 4 * 7 + 1], paper_bias(fire, 2, 64, 59), 1e-14);
  EXPECT_NEAR(bias[1 * 35 + 0 * 7 + 6], paper_bias(fire, 1, 60, 64), 1e-14);
}

TEST(FireErrors, WeightsMustFit) {
  const auto with = [](auto&& change) {
    return broken_rule(fire_subject([&](std::int64_t heads) {
                         Fire fire = random_fire(heads);
                         change(fire);
                         return fire;
                       }),
                       Call{});
  };
  EXPECT_EQ(with([](Fire&) {}), "");
  EXPECT_NE(with([](Fire& fire) {
              fire.output_weight.pop_back();
            }).find("fire.output_weight must have 64 numbers, got 63"),
            std::string::npos);
  EXPECT_NE(
      with([](Fire& fire) { fire.hidden_bias[3] = NAN; }).find("fire.hidden_bias must be finite"),
      std::string::npos);
  EXPECT_NE(with([](Fire& fire) { fire.c = INFINITY; }).find("fire.c must be finite"),
            std::string::npos);
}

TEST(FireErrors, PositionsMustHaveOneAxis) {
  Call call;
  const std::vector<std::int64_t> ids = {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5};
  call.query_positions = call.key_positions = *Positions::ids(ids, 2);
  EXPECT_NE(broken_rule(fire_subject(), call).find("positions must have one axis, got 2"),
            std::string::npos);
}

}  // namespace
}  // namespace posenc
