// GRAPE-AP beside its gates of every query and key, pair by pair.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "posenc/schemes.h"
#include "src/content/content_test.h"

namespace posenc {
namespace {

constexpr std::int64_t said_by_p = 5;

Numbers random_p(const Call& call, std::int64_t tokens, unsigned seed) {
  return Numbers(DType::f64, {call.batch, call.heads, tokens, said_by_p},
                 random(call.batch * call.heads * tokens * said_by_p, seed, 2.0));
}

// Slopes of ALiBi where none are given.
Subject grape_ap_subject(const std::vector<double>& slopes = {}, double of_p = 1) {
  const auto numbers = [=](const Call& call, bool keys) {
    Numbers p = random_p(call, keys ? call.keys : call.queries, keys ? 42 : 41);
    for (std::int64_t e = 0; e < p.view.size(); ++e) p.view.set(e, of_p * p.view.get(e));
    return p;
  };
  return {.with =
              [=](const Call& call, const Subject::Act& act) {
                const Numbers queries = numbers(call, false), keys = numbers(call, true);
                return act(
                    GrapeAp{.p_queries = {queries.view}, .p_keys = {keys.view}, .slopes = slopes});
              },
          .weights =
              [=](const Call& call, std::int64_t b, std::int64_t h) {
                const Numbers queries = numbers(call, false), keys = numbers(call, true);
                const double slope = slopes.empty()
                                         ? alibi_slopes(call.heads)->at(static_cast<std::size_t>(h))
                                     : slopes.size() == 1 ? slopes[0]
                                                          : slopes[static_cast<std::size_t>(h)];
                Matrix z = call.scores(b, h);
                for (std::int64_t i = 0; i < call.queries; ++i) {
                  const auto gate = [&](std::int64_t l) {
                    double x = 0;
                    for (std::int64_t c = 0; c < said_by_p; ++c)
                      x += queries.at(b, h, i, c) * keys.at(b, h, l, c) / said_by_p;
                    return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x)));
                  };
                  for (std::int64_t j = 0; j < call.keys; ++j) {
                    double& logit = z[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
                    if (logit == -infinite) continue;
                    for (std::int64_t l = j + 1; l < call.keys; ++l)
                      if (call.sees(b, i, l)) logit += slope * gate(l);
                  }
                }
                return softmax(z);
              }};
}

TEST(AttendGrapeAp, IsThePapersFormula) { expect_formula_in_all_calls(grape_ap_subject()); }
TEST(AttendGrapeAp, IsThePapersFormulaInEveryDtype) {
  expect_formula_in_all_dtypes(grape_ap_subject());
}
TEST(AttendGrapeAp, GivesTheSameBitsOnAnyThreads) {
  expect_same_bits_on_any_threads(grape_ap_subject());
}
TEST(AttendGrapeAp, DoesNotTouchHiddenNumbers) {
  expect_hidden_nan_is_harmless(grape_ap_subject());
}
TEST(AttendGrapeAp, GivesNaNForNaN) { expect_seen_nan_is_given(grape_ap_subject()); }
TEST(AttendGrapeAp, TakesNoTokens) { expect_no_tokens_are_no_error(grape_ap_subject()); }
TEST(AttendGrapeAp, RefusesOtherPartsOfAPlan) {
  expect_other_plan_parts_are_refused(grape_ap_subject());
}
TEST(AttendGrapeAp, RefusesMasksThatAreNotCausal) {
  expect_only_causal_masks_are_taken(grape_ap_subject());
}
TEST(AttendGrapeAp, RefusesKeysOutOfOrder) {
  expect_keys_out_of_order_are_refused(grape_ap_subject());
}

TEST(AttendGrapeAp, TakesSlopesOfHeadsOrOneForAll) {
  for (const std::vector<double>& slopes : {std::vector<double>{0.7}, {0.5, 0, 1, 0.1}}) {
    Call call = causal_text(100);
    grape_ap_subject(slopes).expect_formula(call, 1e-12);
  }
}

// Then σ is ½ at every pair.
TEST(AttendGrapeAp, OfNothingSaidIsAlibiTimesTheLogarithmOfTwo) {
  Call call = causal_text(100);
  grape_ap_subject({0.25}, 0).run(call);
  Plan alibi;
  alibi.bias = Slopes{.slope = std::vector<double>(4, 0.25 * std::log(2))};
  Numbers out(DType::f64, {1, 4, 100, 8}, std::vector<double>(3200));
  ASSERT_TRUE(attend_reference(call.inputs(), alibi, out.view));
  expect_near(call.out, out, 1e-12);
}

// A query's p that is the same for all makes gates of tokens alone.
TEST(AttendGrapeAp, WhereAllQueriesSayTheSameIsForgetting) {
  Call call = causal_text(150);
  Numbers queries(DType::f64, {1, 4, 150, 1}, std::vector<double>(600, 1)),
      keys(DType::f64, {1, 4, 150, 1}, random(600, 8, 3.0));
  Numbers gates(DType::f64, {1, 4, 150}, std::vector<double>(600));
  for (std::int64_t e = 0; e < 600; ++e)
    gates.view.set(e, -std::log1p(std::exp(-keys.view.get(e))));
  ASSERT_TRUE(attend(call.inputs(), Forgetting{{gates.view}}, {}, call.out.view));
  const Numbers wanted = call.out;
  ASSERT_TRUE(attend(call.inputs(), GrapeAp{{queries.view}, {keys.view}, {1}}, {}, call.out.view));
  expect_near(call.out, wanted, 1e-12);
}

TEST(AttendGrapeAp, OfATokenAtATimeIsThatOfAText) {
  Call whole = causal_text(140);
  const Numbers queries = random_p(whole, 140, 41), keys = random_p(whole, 140, 42);
  ASSERT_TRUE(attend(whole.inputs(), GrapeAp{{queries.view}, {keys.view}}, {}, whole.out.view));
  for (const std::int64_t t : {0, 1, 63, 64, 139}) {
    const auto tokens = [](Tensor x, std::int64_t first, std::int64_t count) {
      x.data = static_cast<double*>(x.data) + first * x.stride[2];
      x.shape[2] = count;
      return x;
    };
    Numbers out(DType::f64, {1, 4, 1, 8}, std::vector<double>(32));
    const AttentionInputs one{tokens(whole.q.view, t, 1), tokens(whole.k.view, 0, t + 1),
                              tokens(whole.v.view, 0, t + 1), Positions::range(t, 1),
                              Positions::range(0, t + 1)};
    ASSERT_TRUE(attend(one, GrapeAp{{tokens(queries.view, t, 1)}, {tokens(keys.view, 0, t + 1)}},
                       {}, out.view));
    for (std::int64_t h = 0; h < 4; ++h)
      for (std::int64_t c = 0; c < 8; ++c)
        EXPECT_NEAR(out.at(0, h, 0, c), whole.out.at(0, h, t, c), 1e-12);
  }
}

TEST(GrapeApErrors, NameWhatDoesNotFit) {
  Call call;
  call.fill();
  const Numbers p = random_p(call, 6, 1), few = random_p(call, 5, 1);
  const auto with = [&](const GrapeAp& scheme) {
    const auto done = attend(call.inputs(), scheme, {}, call.out.view);
    return done ? "" : done.error().message();
  };
  EXPECT_EQ(with({{p.view}, {p.view}}), "");
  EXPECT_NE(with({{p.view}, {}}).find("must be given, got no p_keys"), std::string::npos);
  EXPECT_NE(with({{p.view}, {few.view}}).find("grape_ap.p_keys must be [1, 2, 6, u], got"),
            std::string::npos);
  EXPECT_NE(with({{p.view}, {p.view}, {1, 2, 3}}).find("must have one number, or 2, got 3"),
            std::string::npos);
  EXPECT_NE(with({{p.view}, {p.view}, {-1}}).find("must be at least 0, got -1"), std::string::npos);
}

}  // namespace
}  // namespace posenc
