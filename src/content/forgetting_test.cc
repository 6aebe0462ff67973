// Forgetting attention beside its sums of log gates, pair by pair.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/content/content_test.h"

namespace posenc {
namespace {

Numbers random_gates(const Call& call) {
  std::vector<double> gates = random(call.batch * call.heads * call.keys, 31);
  for (double& x : gates) x = -std::log1p(std::exp(-x - 1));  // ln σ(x + 1)
  return Numbers(DType::f64, {call.batch, call.heads, call.keys}, gates);
}

Subject forgetting_subject(const std::function<Numbers(const Call&)>& gates_of = random_gates) {
  return {
      .with =
          [=](const Call& call, const Subject::Act& act) {
            const Numbers gates = gates_of(call);
            return act(Forgetting{.log_gates = {gates.view}});
          },
      .weights =
          [=](const Call& call, std::int64_t b, std::int64_t h) {
            const Numbers gates = gates_of(call);
            Matrix z = call.scores(b, h);
            for (std::int64_t i = 0; i < call.queries; ++i) {
              for (std::int64_t j = 0; j < call.keys; ++j) {
                double& logit = z[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
                if (logit == -infinite) continue;
                // The tokens after j up to the query, hidden ones left out.
                for (std::int64_t l = j + 1; l < call.keys; ++l) {
                  const bool kept = call.mask.keep == nullptr || call.mask.keep[b * call.keys + l];
                  if (kept && call.query_positions.segment(i) == call.key_positions.segment(l) &&
                      call.key_positions.at(l, b) <= call.query_positions.at(i, b)) {
                    logit += gates.view.get(gates.view.offset(b, h, l));
                  }
                }
              }
            }
            return softmax(z);
          }};
}

TEST(AttendForgetting, IsThePapersFormula) { expect_formula_in_all_calls(forgetting_subject()); }
TEST(AttendForgetting, IsThePapersFormulaInEveryDtype) {
  expect_formula_in_all_dtypes(forgetting_subject());
}
TEST(AttendForgetting, GivesTheSameBitsOnAnyThreads) {
  expect_same_bits_on_any_threads(forgetting_subject());
}
TEST(AttendForgetting, DoesNotTouchHiddenNumbers) {
  expect_hidden_nan_is_harmless(forgetting_subject());
}
TEST(AttendForgetting, GivesNaNForNaN) { expect_seen_nan_is_given(forgetting_subject()); }
TEST(AttendForgetting, TakesNoTokens) { expect_no_tokens_are_no_error(forgetting_subject()); }
TEST(AttendForgetting, RefusesOtherPartsOfAPlan) {
  expect_other_plan_parts_are_refused(forgetting_subject());
}
TEST(AttendForgetting, RefusesMasksThatAreNotCausal) {
  expect_only_causal_masks_are_taken(forgetting_subject());
}
TEST(AttendForgetting, RefusesKeysOutOfOrder) {
  expect_keys_out_of_order_are_refused(forgetting_subject());
}

// What a plan alone gives for the same call.
Numbers plain(const Call& call, const Plan& plan) {
  Numbers out(DType::f64, {call.batch, call.heads, call.queries, call.dim},
              std::vector<double>(static_cast<std::size_t>(call.out.view.size())));
  EXPECT_TRUE(attend_reference(call.inputs(), plan, out.view));
  return out;
}

Subject constant_gates(double gate) {
  return forgetting_subject([=](const Call& call) {
    return Numbers(
        DType::f64, {call.batch, call.heads, call.keys},
        std::vector<double>(static_cast<std::size_t>(call.batch * call.heads * call.keys), gate));
  });
}

TEST(AttendForgetting, OpenGatesForgetNothing) {
  for (Call& call : calls()) {
    SCOPED_TRACE(call.name);
    constant_gates(0).run(call);
    expect_near(call.out, plain(call, call.plan), 1e-12);
  }
}

TEST(AttendForgetting, ConstantGatesAreAlibi) {
  Call call{.queries = 100, .keys = 100};
  call.query_positions = call.key_positions = Positions::range(0, 100);
  call.fill();
  constant_gates(-0.125).run(call);
  Plan alibi;
  alibi.bias = Slopes{.slope = {0.125, 0.125}};
  expect_near(call.out, plain(call, alibi), 1e-12);
}

// A closed gate in the middle of a window, of a block and at a block's edge.
TEST(AttendForgetting, ClosedGatesStartAnew) {
  Call call{.queries = 200, .keys = 200};
  call.query_positions = call.key_positions = Positions::range(0, 200);
  call.fill();
  const auto gates = [](const Call& of) {
    Numbers made = random_gates(of);
    for (const std::int64_t l : {0, 5, 64, 130, 131}) {
      for (std::int64_t h = 0; h < of.heads; ++h) {
        made.view.set(made.view.offset(0, h, l), -infinite);
      }
    }
    return made;
  };
  forgetting_subject(gates).expect_formula(call, 1e-12);
  // The token of the closed gate sees itself alone.
  for (std::int64_t c = 0; c < call.dim; ++c) {
    EXPECT_EQ(call.out.at(0, 1, 130, c), call.v.at(0, 0, 130, c));
  }
}

// Neighbours of one tile whose sums lie too far apart to share biases, and that see other keys.
TEST(AttendForgetting, NearlyClosedGatesMeetClosedOnes) {
  Call call{.queries = 100, .keys = 100};
  call.query_positions = call.key_positions = Positions::range(0, 100);
  call.fill();
  const auto gates = [](const Call& of) {
    Numbers made = random_gates(of);
    for (std::int64_t h = 0; h < of.heads; ++h) {
      for (std::int64_t l = 0; l < of.keys; ++l)
        made.view.set(made.view.offset(0, h, l), l % 37 == 33 ? -infinite : -0.1 - 5.0 * (l % 2));
    }
    return made;
  };
  forgetting_subject(gates).expect_formula(call, 1e-12);
}

// Sums of half a million, differences of a few: in float they would be off by 1/32 or more.
TEST(AttendForgetting, LongSumsKeepTheirDifferences) {
  const std::int64_t keys = 50000;
  Call call{.heads = 1, .queries = 1, .keys = keys, .dim = 1, .dtype = DType::f32};
  call.query_positions = Positions::range(keys - 1, 1);
  call.key_positions = Positions::range(0, keys);
  call.fill();
  std::vector<double> gates(static_cast<std::size_t>(keys), -10.1);
  std::fill(gates.end() - 4, gates.end(), -0.1);
  const Numbers log_gates(DType::f64, {1, 1, keys}, gates);
  const auto done =
      attend(call.inputs(), Forgetting{.log_gates = {log_gates.view}}, {}, call.out.view);
  ASSERT_TRUE(done) << done.error().message();
  double sum = 0, weights = 0, forgotten = 0;
  for (std::int64_t j = keys - 1; j >= 0; --j) {
    const double weight = std::exp(call.q.view.get(0) * call.k.view.get(j) + forgotten);
    sum += weight * call.v.view.get(j);
    weights += weight;
    forgotten += gates[static_cast<std::size_t>(j)];
  }
  EXPECT_NEAR(call.out.view.get(0), sum / weights, 1e-6);
}

TEST(AttendForgetting, GatesOfPaddingAreNotRead) {
  Call call;
  call.keep = {0, 1, 1, 0, 1, 1};
  call.fill();
  Numbers gates = random_gates(call);
  for (const std::int64_t h : {0, 1}) {
    for (const std::int64_t l : {0, 3}) gates.view.set(gates.view.offset(0, h, l), NAN);
  }
  const auto done = attend(call.inputs(), Forgetting{.log_gates = {gates.view}}, {}, call.out.view);
  ASSERT_TRUE(done) << done.error().message();
  for (std::int64_t i = 1; i < 6; ++i) EXPECT_TRUE(std::isfinite(call.out.at(0, 0, i, 0)));
}

TEST(ForgettingErrors, GatesMustFit) {
  const auto with = [](std::initializer_list<std::int64_t> shape, double gate) {
    Call call;
    call.fill();
    const Numbers gates(DType::f32, shape, std::vector<double>(12, gate));
    const auto done =
        attend(call.inputs(), Forgetting{.log_gates = {gates.view}}, {}, call.out.view);
    return done ? "" : done.error().message();
  };
  EXPECT_EQ(with({1, 2, 6}, -1), "");
  EXPECT_NE(with({1, 6, 2}, -1).find("log_gates must be [1, 2, 6], got [1, 6, 2]"),
            std::string::npos);
  EXPECT_NE(with({1, 2, 6}, 0.5).find("log_gates must be at most 0, got 0.5 at key 0"),
            std::string::npos);
  EXPECT_NE(with({1, 2, 6}, NAN).find("log_gates must be at most 0"), std::string::npos);
}

// Gates that read no token are those gates for every token.
TEST(AttendForgetting, ABiasStandsForGatesThatReadNoToken) {
  Call call;
  call.fill();
  const std::vector<double> bias = {0.3, 40};
  Numbers gates(DType::f64, {1, 2, 6}, std::vector<double>(12));
  for (std::int64_t e = 0; e < 12; ++e)
    gates.view.set(e, -std::log1p(std::exp(-bias[static_cast<std::size_t>(e / 6)])));
  ASSERT_TRUE(attend(call.inputs(), Forgetting{.log_gates = {gates.view}}, {}, call.out.view));
  const auto wanted = call.out.memory;
  ASSERT_TRUE(attend(call.inputs(), Forgetting{.gate_bias = bias}, {}, call.out.view));
  EXPECT_EQ(call.out.memory, wanted);
}

TEST(ForgettingErrors, GatesOrABiasMustBeGiven) {
  Call call;
  call.fill();
  const auto none = attend(call.inputs(), Forgetting{}, {}, call.out.view);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().rule, "forgetting.log_gates must be given");
  const auto wrong = attend(call.inputs(), Forgetting{.gate_bias = {1, 2, 3}}, {}, call.out.view);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().rule, "forgetting.gate_bias must have one number, or 2");
}

TEST(ContentErrors, OnlyStickBreakingLeavesARemainder) {
  Call call;
  call.fill();
  Numbers rest(DType::f64, {1, 2, 6}, std::vector<double>(12));
  const auto done =
      attend(call.inputs(), Forgetting{.gate_bias = {1}}, {}, call.out.view, rest.view);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "forgetting leaves no remainder");
}

}  // namespace
}  // namespace posenc
