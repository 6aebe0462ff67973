// Stick-breaking attention beside its product, broken off key by key.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "src/content/content_test.h"

namespace posenc {
namespace {

// Whether a key stands before the query, not beside it.
bool before(const Call& call, std::int64_t b, std::int64_t i, std::int64_t j) {
  return call.key_positions.at(j, b) < call.query_positions.at(i, b);
}

// A_ij = σ(z_ij) Π_{j<l<i} (1 − σ(z_il)), as products.
Matrix shares(const Call& call, bool attend_current, std::int64_t b, std::int64_t h) {
  Matrix z = call.scores(b, h);
  for (std::size_t i = 0; i < z.size(); ++i) {
    double left = 1;
    for (std::size_t back = 0; back < z[i].size(); ++back) {
      const std::size_t j = z[i].size() - 1 - back;
      const bool takes =
          z[i][j] != -infinite && (attend_current || before(call, b, static_cast<std::int64_t>(i),
                                                            static_cast<std::int64_t>(j)));
      const double share = takes ? 1 / (1 + std::exp(-z[i][j])) : 0;
      z[i][j] = share * left;
      left *= 1 - share;
    }
  }
  return z;
}

Subject stick_breaking_subject(bool attend_current = false) {
  return {.with =
              [=](const Call&, const Subject::Act& act) {
                return act(StickBreaking{.attend_current = attend_current});
              },
          .weights = [=](const Call& call, std::int64_t b,
                         std::int64_t h) { return shares(call, attend_current, b, h); }};
}

TEST(AttendStickBreaking, IsThePapersFormula) {
  expect_formula_in_all_calls(stick_breaking_subject());
}
TEST(AttendStickBreaking, IsTheFormulaWithTheOwnToken) {
  expect_formula_in_all_calls(stick_breaking_subject(true));
}
TEST(AttendStickBreaking, IsThePapersFormulaInEveryDtype) {
  expect_formula_in_all_dtypes(stick_breaking_subject());
}
TEST(AttendStickBreaking, GivesTheSameBitsOnAnyThreads) {
  expect_same_bits_on_any_threads(stick_breaking_subject());
}
TEST(AttendStickBreaking, DoesNotTouchHiddenNumbers) {
  expect_hidden_nan_is_harmless(stick_breaking_subject());
}
TEST(AttendStickBreaking, GivesNaNForNaN) {
  expect_seen_nan_is_given(stick_breaking_subject(true));
}
TEST(AttendStickBreaking, TakesNoTokens) {
  expect_no_tokens_are_no_error(stick_breaking_subject());
}
TEST(AttendStickBreaking, RefusesOtherPartsOfAPlan) {
  expect_other_plan_parts_are_refused(stick_breaking_subject());
}
TEST(AttendStickBreaking, RefusesMasksThatAreNotCausal) {
  expect_only_causal_masks_are_taken(stick_breaking_subject());
}
TEST(AttendStickBreaking, RefusesKeysOutOfOrder) {
  expect_keys_out_of_order_are_refused(stick_breaking_subject());
}

struct WithRemainder {
  Call call{.queries = 150, .keys = 150};
  Numbers remainder{DType::f64, {1, 2, 150}, std::vector<double>(300, NAN)};

  explicit WithRemainder(double scale = 1, bool attend_current = false) {
    call.query_positions = call.key_positions = Positions::range(0, 150);
    call.scale = scale;
    call.fill();
    for (std::int64_t e = 0; e < call.v.view.size(); ++e) call.v.view.set(e, 1);
    const auto done = attend(call.inputs(), StickBreaking{.attend_current = attend_current}, {},
                             call.out.view, remainder.view);
    EXPECT_TRUE(done) << done.error().message();
  }
};

// With values of 1 the output is the sum of weights.
TEST(AttendStickBreaking, WeightsSumToAtMostOneAndTheRestIsTheRemainder) {
  for (const double scale : {0.1, 1.0, 10.0}) {
    const WithRemainder all(scale);
    for (std::int64_t i = 0; i < 150; ++i) {
      const double sum = all.call.out.at(0, 1, i, 2);
      const double rest = all.remainder.view.get(all.remainder.view.offset(0, 1, i));
      EXPECT_LE(sum, 1 + 1e-15);
      EXPECT_NEAR(sum + rest, 1, 1e-13) << "query " << i;
    }
  }
}

TEST(AttendStickBreaking, FirstTokenHasNothingBeforeIt) {
  const WithRemainder all;
  EXPECT_EQ(all.call.out.at(0, 0, 0, 0), 0);
  EXPECT_EQ(all.remainder.view.get(0), 1);
}

TEST(AttendStickBreaking, NearerOfTwoEqualKeysTakesMore) {
  Call call{.heads = 1, .queries = 1, .keys = 4, .dim = 1};
  call.query_positions = Positions::range(4, 1);
  call.key_positions = Positions::range(0, 4);
  call.fill();
  for (std::int64_t j = 0; j < 4; ++j) {
    call.k.view.set(j, 0);
    call.v.view.set(j, std::pow(10.0, static_cast<double>(j)));
  }
  stick_breaking_subject().run(call);
  EXPECT_NEAR(call.out.view.get(0), 1000 / 2.0 + 100 / 4.0 + 10 / 8.0 + 1 / 16.0, 1e-12);
}

// A product of shares would be 0 long before; its logarithm is not.
TEST(AttendStickBreaking, RemainderFarBelowTheSmallestFloatIsExact) {
  Call call{.heads = 1, .queries = 1, .keys = 300, .dim = 1, .dtype = DType::f32};
  call.query_positions = Positions::range(300, 1);
  call.key_positions = Positions::range(0, 300);
  call.fill();
  call.q.view.set(0, 1);
  for (std::int64_t j = 0; j < 300; ++j) call.k.view.set(j, 1);
  Numbers remainder(DType::f64, {1, 1, 1}, {0});
  const auto done = attend(call.inputs(), StickBreaking{}, {}, call.out.view, remainder.view);
  ASSERT_TRUE(done) << done.error().message();
  const double wanted = -300 * std::log1p(std::exp(1.0));  // −394, e^−394 = 10^−171
  EXPECT_NEAR(std::log(remainder.view.get(0)) / wanted, 1, 1e-6);
}

// σ of these is 1 or 0 in any number.
TEST(AttendStickBreaking, InfiniteLogitsTakeAllOrNothing) {
  Call call{.heads = 1, .queries = 1, .keys = 3, .dim = 1};
  call.query_positions = Positions::range(3, 1);
  call.key_positions = Positions::range(0, 3);
  call.fill();
  call.q.view.set(0, 1);
  for (std::int64_t j = 0; j < 3; ++j) call.v.view.set(j, static_cast<double>(j + 1));
  call.k.view.set(0, 1);
  call.k.view.set(1, infinite);
  call.k.view.set(2, -infinite);
  stick_breaking_subject().run(call);
  EXPECT_EQ(call.out.view.get(0), 2);
}

TEST(StickBreakingErrors, RemainderMustFit) {
  Call call;
  call.fill();
  Numbers remainder(DType::f64, {1, 6, 2}, std::vector<double>(12));
  const auto done = attend(call.inputs(), StickBreaking{}, {}, call.out.view, remainder.view);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "remainder must be [1, 2, 6]");
}

}  // namespace
}  // namespace posenc
