// CoPE beside its formula, pair by pair, and where its counts end.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/content/content_test.h"

namespace posenc {
namespace {

// A scheme with random embeddings; heads 1: shared.
Subject cope_subject(std::int64_t positions = 12, bool shared = true, bool before_scale = false) {
  const auto embeddings = [=](const Call& call) {
    const std::int64_t heads = shared ? 1 : call.heads;
    return Numbers(DType::f64, {heads, positions, call.dim},
                   random(heads * positions * call.dim, 21, 0.7));
  };
  return {.with =
              [=](const Call& call, const Subject::Act& act) {
                const Numbers e = embeddings(call);
                return act(Cope{.embeddings = {e.view}, .before_scale = before_scale});
              },
          .weights =
              [=](const Call& call, std::int64_t b, std::int64_t h) {
                const Numbers e = embeddings(call);
                const Matrix z = call.scores(b, h);
                Matrix logits = z;
                for (std::size_t i = 0; i < z.size(); ++i) {
                  const auto product = [&](std::int64_t row) {
                    double sum = 0;
                    for (std::int64_t c = 0; c < call.dim; ++c) {
                      sum += call.q.at(b, h, static_cast<std::int64_t>(i), c) *
                             e.view.get(e.view.offset(shared ? 0 : h, row, c));
                    }
                    return before_scale ? sum * call.logit_scale(b, h, static_cast<std::int64_t>(i))
                                        : sum;
                  };
                  std::vector<double> products;
                  for (std::int64_t n = 0; n < positions; ++n) products.push_back(product(n));
                  double counted = 0;  // Σ_{l=j..i} σ(z_il), hidden keys having z = −∞
                  for (std::size_t j = z[i].size(); j-- > 0;) {
                    counted += 1 / (1 + std::exp(-z[i][j]));
                    const double p = std::min(counted, static_cast<double>(positions - 1));
                    const double w = p - std::floor(p);
                    logits[i][j] += (1 - w) * products[static_cast<std::size_t>(std::floor(p))] +
                                    w * products[static_cast<std::size_t>(std::ceil(p))];
                  }
                }
                return softmax(logits);
              }};
}

TEST(AttendCope, IsThePapersFormula) { expect_formula_in_all_calls(cope_subject()); }
TEST(AttendCope, IsThePapersFormulaInEveryDtype) { expect_formula_in_all_dtypes(cope_subject(64)); }
TEST(AttendCope, IsTheRepositorysFormula) {
  expect_formula_in_all_calls(cope_subject(12, true, true));
}
TEST(AttendCope, TakesEmbeddingsForEachHead) {
  expect_formula_in_all_calls(cope_subject(12, false));
}
TEST(AttendCope, TakesMorePositionsThanKeys) { expect_formula_in_all_calls(cope_subject(300)); }
TEST(AttendCope, TakesOnePosition) { expect_formula_in_all_calls(cope_subject(1)); }
TEST(AttendCope, GivesTheSameBitsOnAnyThreads) { expect_same_bits_on_any_threads(cope_subject()); }
TEST(AttendCope, DoesNotTouchHiddenNumbers) { expect_hidden_nan_is_harmless(cope_subject()); }
TEST(AttendCope, GivesNaNForNaN) { expect_seen_nan_is_given(cope_subject()); }
TEST(AttendCope, TakesNoTokens) { expect_no_tokens_are_no_error(cope_subject()); }
TEST(AttendCope, RefusesOtherPartsOfAPlan) { expect_other_plan_parts_are_refused(cope_subject()); }
TEST(AttendCope, RefusesMasksThatAreNotCausal) {
  expect_only_causal_masks_are_taken(cope_subject());
}
TEST(AttendCope, RefusesKeysOutOfOrder) { expect_keys_out_of_order_are_refused(cope_subject()); }

// Gates of 1 count every token: the position is the distance plus 1, as in a relative embedding.
TEST(AttendCope, SaturatedGatesAreARelativeEmbedding) {
  Call call{.queries = 100, .keys = 100};
  call.query_positions = call.key_positions = Positions::range(0, 100);
  call.fill();
  // Products of 400 or more make gates of 1 in double; the constant drops out of the softmax.
  for (std::int64_t e = 0; e < call.q.view.size(); e += 4) call.q.view.set(e, 30);
  for (std::int64_t e = 0; e < call.k.view.size(); e += 4) call.k.view.set(e, 30);
  const std::int64_t rows = 20;
  const Numbers e(DType::f64, {rows, 4}, random(rows * 4, 5));
  const auto done = attend(call.inputs(), Cope{.embeddings = {e.view}}, {}, call.out.view);
  ASSERT_TRUE(done) << done.error().message();

  // Relative vectors meet q before the scale, 1/√4.
  std::vector<double> doubled;
  for (std::int64_t n = 0; n < e.view.size(); ++n) doubled.push_back(2 * e.view.get(n));
  Plan relative;
  relative.relative = Relative{.row_count = rows, .key = Table::own(doubled, rows, 4)};
  std::vector<std::int32_t> next;
  for (std::int32_t d = 0; d < rows - 1; ++d) next.push_back(d + 1);
  relative.relative->rows.row = next;
  Numbers wanted(DType::f64, {1, 2, 100, 4}, std::vector<double>(800));
  ASSERT_TRUE(attend_reference(call.inputs(), relative, wanted.view));
  expect_near(call.out, wanted, 1e-11);
}

// The position of a key far back is capped: every key beyond meets the last row.
TEST(AttendCope, PositionsAreCapped) {
  Call call{.heads = 1, .queries = 1, .keys = 200, .dim = 1};
  call.query_positions = Positions::range(199, 1);
  call.key_positions = Positions::range(0, 200);
  call.fill();
  call.q.view.set(0, 1);
  for (std::int64_t j = 0; j < 200; ++j) {
    call.k.view.set(j, 0);                    // gates of one half
    call.v.view.set(j, j < 199 - 3 ? 1 : 0);  // positions ½, 1, 1½, 2, then 2½ and more
  }
  const Numbers e(DType::f64, {3, 1}, {0, 0, -infinite});
  const auto done = attend(call.inputs(), Cope{.embeddings = {e.view}}, {}, call.out.view);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(call.out.view.get(0), 0);  // all that stand at 2 or beyond have no weight
}

TEST(AttendCope, TakesTheAuthorsLayout) {
  Call call;
  call.fill();
  const Numbers rows(DType::f32, {5, 4}, random(20, 9));
  Numbers columns(DType::f32, {1, 4, 5}, std::vector<double>(20));
  for (std::int64_t n = 0; n < 5; ++n) {
    for (std::int64_t c = 0; c < 4; ++c) {
      columns.view.set(c * 5 + n, rows.view.get(n * 4 + c));
    }
  }
  std::vector<std::vector<double>> outs;
  for (const Tensor& e : {rows.view, columns.view.swapped(1, 2)}) {
    ASSERT_TRUE(attend(call.inputs(), Cope{.embeddings = {e}}, {}, call.out.view));
    outs.push_back(call.out.memory);
  }
  EXPECT_EQ(outs[0], outs[1]);
}

TEST(CopeErrors, EmbeddingsMustFit) {
  const auto with = [](std::initializer_list<std::int64_t> shape) {
    Call call;
    call.fill();
    const Numbers e(DType::f64, shape, std::vector<double>(64));
    const auto done = attend(call.inputs(), Cope{.embeddings = {e.view}}, {}, call.out.view);
    return done ? "" : done.error().message();
  };
  EXPECT_EQ(with({16, 4}), "");
  EXPECT_EQ(with({2, 8, 4}), "");
  EXPECT_NE(with({4, 16}).find("cope.embeddings must be [positions, 4]"), std::string::npos);
  EXPECT_NE(with({3, 4, 4}).find("got [3, 4, 4]"), std::string::npos);
  EXPECT_NE(with({0, 4}).find("cope.embeddings must be"), std::string::npos);
}

}  // namespace
}  // namespace posenc
