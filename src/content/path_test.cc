// PaTH beside its factors, one after the other, and its keys as a cache has them.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "src/content/content_test.h"

namespace posenc {
namespace {

// Directions of length 1, strengths between 0 and 2, log gates.
struct Said {
  Numbers w, beta, log_gates;

  static Said of(const Call& call, DType dtype = DType::f64) {
    const std::int64_t tokens = call.batch * call.kv_heads * call.keys;
    std::vector<double> w = random(tokens * call.dim, 31), beta = random(tokens, 32),
                        gates = random(call.batch * call.heads * call.keys, 33);
    for (std::int64_t t = 0; t < tokens; ++t) {
      double sum = 0;
      const auto at = [&](std::int64_t c) -> double& {
        return w[static_cast<std::size_t>(t * call.dim + c)];
      };
      for (std::int64_t c = 0; c < call.dim; ++c) sum += at(c) * at(c);
      for (std::int64_t c = 0; c < call.dim; ++c) at(c) /= std::sqrt(sum);
    }
    for (double& x : beta) x = 2 / (1 + std::exp(-x));
    for (double& x : gates) x = -std::log1p(std::exp(-x - 1));
    return {Numbers(dtype, {call.batch, call.kv_heads, call.keys, call.dim}, w),
            Numbers(dtype, {call.batch, call.kv_heads, call.keys}, beta),
            Numbers(dtype, {call.batch, call.heads, call.keys}, gates)};
  }
  Path scheme() const { return {.w = {w.view}, .beta = {beta.view}}; }
};

// gated 0: without gates, 1: beside them, 2: these before the scale.
Subject path_subject(int gated = 0) {
  return {.with =
              [=](const Call& call, const Subject::Act& act) {
                const Said said = Said::of(call);
                Path path = said.scheme();
                if (gated > 0) path.log_gates = {said.log_gates.view};
                path.gates_before_scale = gated == 2;
                return act(path);
              },
          .weights =
              [=](const Call& call, std::int64_t b, std::int64_t h) {
                const Said said = Said::of(call);
                const Numbers q = call.rotated(call.q, call.query_positions, Side::query);
                const Numbers k = call.rotated(call.k, call.key_positions, Side::key);
                const std::int64_t key_head = h / (call.heads / call.kv_heads);
                Matrix z = call.scores(b, h);
                for (std::int64_t i = 0; i < call.queries; ++i) {
                  std::vector<double> along;
                  for (std::int64_t c = 0; c < call.dim; ++c) along.push_back(q.at(b, h, i, c));
                  double forgotten = 0;
                  for (std::int64_t j = call.keys - 1; j >= 0; --j) {
                    double& logit = z[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
                    const double scale = call.logit_scale(b, h, i);
                    if (logit != -infinite) {
                      logit = 0;
                      for (std::int64_t c = 0; c < call.dim; ++c)
                        logit +=
                            scale * along[static_cast<std::size_t>(c)] * k.at(b, key_head, j, c);
                      logit += gated == 2 ? scale * forgotten : forgotten;
                    }
                    // Tokens up to the query, hidden ones left out.
                    if (call.mask.keep != nullptr && call.mask.keep[b * call.keys + j] == 0)
                      continue;
                    if (call.query_positions.segment(i) != call.key_positions.segment(j) ||
                        call.key_positions.at(j, b) > call.query_positions.at(i, b))
                      continue;
                    double sum = 0;
                    for (std::int64_t c = 0; c < call.dim; ++c)
                      sum += along[static_cast<std::size_t>(c)] * said.w.at(b, key_head, j, c);
                    sum *= said.beta.view.get(said.beta.view.offset(b, key_head, j));
                    for (std::int64_t c = 0; c < call.dim; ++c)
                      along[static_cast<std::size_t>(c)] -= sum * said.w.at(b, key_head, j, c);
                    if (gated > 0)
                      forgotten += said.log_gates.view.get(said.log_gates.view.offset(b, h, j));
                  }
                }
                return softmax(z);
              }};
}

TEST(AttendPath, IsThePapersFormula) { expect_formula_in_all_calls(path_subject()); }
TEST(AttendPath, IsThePapersFormulaBesideAForgetGate) {
  expect_formula_in_all_calls(path_subject(1));
}
TEST(AttendPath, IsTheAuthorsCodeBesideAForgetGate) {
  expect_formula_in_all_calls(path_subject(2));
}
TEST(AttendPath, IsThePapersFormulaInEveryDtype) { expect_formula_in_all_dtypes(path_subject()); }
TEST(AttendPath, GivesTheSameBitsOnAnyThreads) { expect_same_bits_on_any_threads(path_subject()); }
TEST(AttendPath, DoesNotTouchHiddenNumbers) { expect_hidden_nan_is_harmless(path_subject()); }
TEST(AttendPath, GivesNaNForNaN) { expect_seen_nan_is_given(path_subject()); }
TEST(AttendPath, TakesNoTokens) { expect_no_tokens_are_no_error(path_subject()); }
TEST(AttendPath, RefusesOtherPartsOfAPlan) { expect_other_plan_parts_are_refused(path_subject()); }
TEST(AttendPath, RefusesMasksThatAreNotCausal) {
  expect_only_causal_masks_are_taken(path_subject());
}
TEST(AttendPath, RefusesKeysOutOfOrder) { expect_keys_out_of_order_are_refused(path_subject()); }

// Texts so long that queries cross four blocks of keys at once, beside the factors one by one.
std::vector<Call> long_calls() {
  std::vector<Call> all;
  const auto text = [&](std::string name, std::int64_t queries) -> Call& {
    Call& call = all.emplace_back(Call{.name = std::move(name),
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .queries = queries,
                                       .keys = 700,
                                       .dim = 8});
    call.query_positions = Positions::range(700 - queries, queries);
    call.key_positions = Positions::range(0, 700);
    return call;
  };
  text("a whole text", 700);
  text("the last 300 tokens", 300);
  text("a window of 100", 700).mask.window = 100;
  Call& hidden = text("blocks of hidden keys, and single ones", 700);
  for (int t = 0; t < 700; ++t) hidden.keep.push_back(t % 50 == 7 || (t >= 192 && t < 330) ? 0 : 1);
  const std::vector<std::int64_t> bounds = {0, 310, 700};
  Call& packed = text("two texts", 700);
  packed.query_positions = packed.key_positions = *Positions::packed(bounds);
  for (Call& call : all) call.fill();
  return all;
}

TEST(AttendPath, CrossesBlocksTogetherAsOneByOne) {
  for (Call& call : long_calls()) {
    SCOPED_TRACE(call.name);
    const Said said = Said::of(call);
    ASSERT_TRUE(attend(call.inputs(), said.scheme(), {}, call.out.view));
    const std::vector<double> together = call.out.memory;
    ASSERT_TRUE(attend_reference(call.inputs(), said.scheme(), {}, call.out.view));
    for (std::size_t n = 0; n < together.size(); ++n)
      ASSERT_NEAR(together[n], call.out.memory[n], 1e-11) << n;
  }
}

TEST(AttendPath, AFactorThatIsNoNumberReachesTheQueriesBehindItAlone) {
  std::vector<Call> calls = long_calls();
  Call& call = calls.front();
  Said said = Said::of(call);
  constexpr std::int64_t spoiled = 300;
  said.beta.view.set(said.beta.view.offset(0, 0, spoiled), NAN);
  ASSERT_TRUE(attend(call.inputs(), said.scheme(), {}, call.out.view));
  for (std::int64_t h = 0; h < 4; ++h)
    for (std::int64_t i = 0; i < 700; ++i)
      ASSERT_EQ(std::isnan(call.out.at(0, h, i, 0)), h < 2 && i >= spoiled) << h << " " << i;
}

TEST(AttendPath, StrengthsOfZeroAreNoPosition) {
  Call call = causal_text(150);
  Said said = Said::of(call);
  for (std::int64_t e = 0; e < said.beta.view.size(); ++e) said.beta.view.set(e, 0);
  ASSERT_TRUE(attend(call.inputs(), said.scheme(), {}, call.out.view));
  const Numbers got = call.out;
  const std::vector<double> memory = call.out.memory;
  ASSERT_TRUE(attend(call.inputs(), Plan{}, call.out.view));
  EXPECT_EQ(memory.size(), call.out.memory.size());
  for (std::size_t n = 0; n < memory.size(); ++n) EXPECT_NEAR(memory[n], call.out.memory[n], 1e-12);
}

// Two reflections at directions half an angle apart are a rotation by the angle: with alternating
// directions PaTH rotates by position, in a plane.
TEST(AttendPath, AlternatingReflectionsAreARotation) {
  const double angle = 0.3;
  Call call{.heads = 1, .kv_heads = 1, .queries = 100, .keys = 100, .dim = 2};
  call.query_positions = call.key_positions = Positions::range(0, 100);
  call.fill();
  Said said = Said::of(call);
  for (std::int64_t t = 0; t < 100; ++t) {
    said.beta.view.set(t, 2);
    const double by = t % 2 == 0 ? 0 : angle;
    said.w.view.set(2 * t, std::cos(by));
    said.w.view.set(2 * t + 1, std::sin(by));
  }
  Numbers logits(DType::f64, {1, 1, 100, 100}, std::vector<double>(10000));
  ASSERT_TRUE(attend_reference(call.inputs(), said.scheme(), {}, call.out.view, logits.view));
  // Tokens of even distance lie a number of pairs apart, each a rotation by 2·angle, one way or the
  // other.
  for (std::int64_t i = 0; i < 100; i += 7) {
    for (std::int64_t j = i % 2; j <= i; j += 2) {
      const double turned = static_cast<double>(i - j) * (i % 2 == 0 ? angle : -angle);
      const auto [a, b] = std::pair{call.k.at(0, 0, j, 0), call.k.at(0, 0, j, 1)};
      const double wanted =
          (call.q.at(0, 0, i, 0) * (a * std::cos(turned) + b * std::sin(turned)) +
           call.q.at(0, 0, i, 1) * (b * std::cos(turned) - a * std::sin(turned))) /
          std::sqrt(2.0);
      ASSERT_NEAR(logits.at(0, 0, i, j), wanted, 1e-12) << i << " " << j;
    }
  }
}

Tensor tokens(Tensor x, std::int64_t first, std::int64_t count) {
  x.data = static_cast<std::byte*>(x.data) +
           first * x.stride[2] * static_cast<std::int64_t>(size_of(x.dtype));
  x.shape[2] = count;
  return x;
}

// A prompt at once, then token by token, and some together: each time attention without position,
// or beside forget gates, over the keys as they stand gives what all at once gave.
TEST(PathKeys, DecodeWhatIsPrefilled) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    Call call = causal_text(200, dtype);
    const Said said = Said::of(call);
    Path path = said.scheme();
    const double within = dtype == DType::f64 ? 1e-12 : 2e-5;
    for (const bool gated : {false, true}) {
      if (gated) path.log_gates = {said.log_gates.view};
      ASSERT_TRUE(attend(call.inputs(), path, {}, call.out.view));
      Numbers cached = call.k;
      cached.view.data = cached.memory.data();
      std::int64_t held = 0;
      for (const std::int64_t count : {100, 1, 1, 1, 20, 1, 70, 1, 5}) {
        held += count;
        ASSERT_TRUE(path_keys(tokens(cached.view, 0, held),
                              tokens(said.w.view, held - count, count),
                              tokens(said.beta.view, held - count, count)));
        Numbers last(dtype, {1, 4, 1, 8}, std::vector<double>(32));
        const AttentionInputs in{tokens(call.q.view, held - 1, 1), tokens(cached.view, 0, held),
                                 tokens(call.v.view, 0, held),     Positions::range(held - 1, 1),
                                 Positions::range(0, held),        {}};
        ASSERT_TRUE(
            gated ? attend(in, Forgetting{{tokens(said.log_gates.view, 0, held)}}, {}, last.view)
                  : attend(in, Plan{}, last.view));
        for (std::int64_t h = 0; h < 4; ++h)
          for (std::int64_t c = 0; c < 8; ++c)
            ASSERT_NEAR(last.at(0, h, 0, c), call.out.at(0, h, held - 1, c), within) << held;
      }
    }
  }
}

TEST(PathKeys, RefuseWhatDoesNotFit) {
  Call call = causal_text(6);
  const Said said = Said::of(call);
  EXPECT_EQ(path_keys(tokens(call.k.view, 0, 5), said.w.view, said.beta.view).error().rule,
            "the newest tokens must be among the keys");
  EXPECT_NE(path_keys(call.k.view, said.w.view, tokens(said.beta.view, 0, 5))
                .error()
                .message()
                .find("path.beta must be [1, 2, 6]"),
            std::string::npos);
  EXPECT_EQ(path_keys(call.k.view, {}, said.beta.view).error().rule,
            "path.w and path.beta must be given");
}

TEST(PathErrors, FactorsMustFit) {
  Call call = causal_text(6);
  const Said said = Said::of(call);
  const auto with = [&](const Path& path) {
    const auto done = attend(call.inputs(), path, {}, call.out.view);
    return done ? "" : done.error().message();
  };
  EXPECT_EQ(with(said.scheme()), "");
  EXPECT_NE(with({}).find("path.w and path.beta must be given, got neither"), std::string::npos);
  EXPECT_NE(
      with({.w = {call.q.view}, .beta = {said.beta.view}}).find("path.w must be [1, 2, 6, 8]"),
      std::string::npos);
  EXPECT_NE(with({.w = {said.w.view}, .beta = {said.log_gates.view}}).find("path.beta must be"),
            std::string::npos);
}

}  // namespace
}  // namespace posenc
