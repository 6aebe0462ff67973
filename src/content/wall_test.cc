// Wall attention beside its sums of log gates, pair by pair and channel by channel.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/content/content_test.h"

namespace posenc {
namespace {

// ln σ(x + 1) of random x.
Numbers random_gates(std::initializer_list<std::int64_t> shape, unsigned seed) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  std::vector<double> gates = random(count, seed);
  for (double& x : gates) x = -std::log1p(std::exp(-x - 1));
  return Numbers(DType::f64, shape, gates);
}
Numbers random_channels(const Call& call) {
  return random_gates({call.batch, call.heads, call.keys, call.dim}, 31);
}

using Channels = std::function<Numbers(const Call&)>;

Subject wall_subject(bool scalar = false, const Channels& channels_of = random_channels) {
  const auto scalars_of = [](const Call& call) {
    return random_gates({call.batch, call.heads, call.keys}, 32);
  };
  return {.with =
              [=](const Call& call, const Subject::Act& act) {
                const Numbers channels = channels_of(call), scalars = scalars_of(call);
                return act(Wall{.channel_gates = {channels.view},
                                .log_gates = {scalar ? scalars.view : Tensor{}}});
              },
          .weights =
              [=](const Call& call, std::int64_t b, std::int64_t h) {
                const Numbers channels = channels_of(call), scalars = scalars_of(call);
                const Numbers q = call.rotated(call.q, call.query_positions, Side::query);
                const Numbers k = call.rotated(call.k, call.key_positions, Side::key);
                Matrix z = call.scores(b, h);
                for (std::int64_t i = 0; i < call.queries; ++i) {
                  std::vector<double> sum(static_cast<std::size_t>(call.dim));
                  double of_head = 0;
                  for (std::int64_t j = call.keys - 1; j >= 0; --j) {
                    double& logit = z[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
                    if (logit != -infinite) {
                      logit = scalar ? of_head : 0;
                      for (std::int64_t c = 0; c < call.dim; ++c)
                        logit += call.logit_scale(b, h, i) * q.at(b, h, i, c) *
                                 k.at(b, h / (call.heads / call.kv_heads), j, c) *
                                 std::exp(sum[static_cast<std::size_t>(c)]);
                    }
                    // Tokens up to the query, hidden ones left out.
                    if (call.mask.keep != nullptr && call.mask.keep[b * call.keys + j] == 0)
                      continue;
                    if (call.query_positions.segment(i) != call.key_positions.segment(j) ||
                        call.key_positions.at(j, b) > call.query_positions.at(i, b))
                      continue;
                    of_head += scalars.view.get(scalars.view.offset(b, h, j));
                    for (std::int64_t c = 0; c < call.dim; ++c)
                      sum[static_cast<std::size_t>(c)] += channels.at(b, h, j, c);
                  }
                }
                return softmax(z);
              }};
}

TEST(AttendWall, IsItsFormula) { expect_formula_in_all_calls(wall_subject()); }
TEST(AttendWall, IsItsFormulaBesideAForgetGate) { expect_formula_in_all_calls(wall_subject(true)); }
TEST(AttendWall, IsItsFormulaInEveryDtype) { expect_formula_in_all_dtypes(wall_subject(true)); }
TEST(AttendWall, GivesTheSameBitsOnAnyThreads) { expect_same_bits_on_any_threads(wall_subject()); }
TEST(AttendWall, DoesNotTouchHiddenNumbers) { expect_hidden_nan_is_harmless(wall_subject()); }
TEST(AttendWall, GivesNaNForNaN) { expect_seen_nan_is_given(wall_subject()); }
TEST(AttendWall, TakesNoTokens) { expect_no_tokens_are_no_error(wall_subject()); }
TEST(AttendWall, RefusesOtherPartsOfAPlan) { expect_other_plan_parts_are_refused(wall_subject()); }
TEST(AttendWall, RefusesMasksThatAreNotCausal) {
  expect_only_causal_masks_are_taken(wall_subject());
}
TEST(AttendWall, RefusesKeysOutOfOrder) { expect_keys_out_of_order_are_refused(wall_subject()); }

Channels constant(double gate) {
  return [=](const Call& call) {
    const std::int64_t count = call.batch * call.heads * call.keys * call.dim;
    return Numbers(DType::f64, {call.batch, call.heads, call.keys, call.dim},
                   std::vector<double>(static_cast<std::size_t>(count), gate));
  };
}

TEST(AttendWall, OpenGatesForgetNothing) {
  for (Call& call : calls()) {
    SCOPED_TRACE(call.name);
    wall_subject(false, constant(0)).run(call);
    Numbers plain = call.out;
    plain.view.data = plain.memory.data();
    ASSERT_TRUE(attend_reference(call.inputs(), call.plan, plain.view));
    expect_near(call.out, plain, 1e-12);
  }
}

// A closed gate in the middle of a block, at a block's edge and beside another; and one of a single
// channel.
TEST(AttendWall, ClosedGatesStartAnew) {
  Call call = causal_text(200);
  const auto gates = [](const Call& of) {
    Numbers made = random_channels(of);
    for (const std::int64_t l : {0, 5, 64, 130, 131, 150}) {
      for (std::int64_t c = 0; c < (l == 150 ? 1 : of.dim); ++c)
        for (std::int64_t h = 0; h < of.heads; ++h)
          made.view.set(made.view.offset(0, h, l, c), -infinite);
    }
    return made;
  };
  wall_subject(false, gates).expect_formula(call, 1e-12);
}

// Over a block a product of such gates is e^−640 and its inverse no float.
TEST(AttendWall, SteepGatesStayWithinAFloat) {
  Call call{.heads = 4, .kv_heads = 2, .queries = 150, .keys = 150, .dim = 20, .dtype = DType::f32};
  call.query_positions = call.key_positions = Positions::range(0, 150);
  call.fill();
  const auto gates = [](const Call& of) {
    Numbers made = random_channels(of);
    for (std::int64_t e = 0; e < made.view.size(); ++e)
      made.view.set(e, e % 3 == 0 ? -10.0 : made.view.get(e));
    return made;
  };
  wall_subject(false, gates).expect_formula(call, tolerance(DType::f32));
}

// Sums of half a million, differences of a few.
TEST(AttendWall, LongSumsKeepTheirDifferences) {
  const std::int64_t keys = 50000;
  Call call{.heads = 1, .queries = 1, .keys = keys, .dim = 1, .dtype = DType::f32};
  call.query_positions = Positions::range(keys - 1, 1);
  call.key_positions = Positions::range(0, keys);
  call.fill();
  call.q.view.set(0, 2);
  for (std::int64_t j = keys - 4; j < keys; ++j) call.k.view.set(j, 3);
  std::vector<double> gates(static_cast<std::size_t>(keys), -10.1);
  std::fill(gates.end() - 4, gates.end(), -0.1);
  const Numbers channels(DType::f64, {1, 1, keys, 1}, gates);
  ASSERT_TRUE(attend(call.inputs(), Wall{.channel_gates = {channels.view}}, {}, call.out.view));
  double sum = 0, weights = 0, forgotten = 0;
  for (std::int64_t j = keys - 1; j >= 0; --j) {
    const double weight = std::exp(2 * call.k.view.get(j) * std::exp(forgotten));
    sum += weight * call.v.view.get(j);
    weights += weight;
    forgotten += gates[static_cast<std::size_t>(j)];
  }
  EXPECT_NEAR(call.out.view.get(0), sum / weights, 1e-6);
}

TEST(AttendWall, GatesOfPaddingAreNotRead) {
  Call call;
  call.keep = {0, 1, 1, 0, 1, 1};
  call.fill();
  Numbers gates = random_channels(call);
  for (const std::int64_t h : {0, 1})
    for (const std::int64_t l : {0, 3}) gates.view.set(gates.view.offset(0, h, l, 2), NAN);
  const auto done = attend(call.inputs(), Wall{.channel_gates = {gates.view}}, {}, call.out.view);
  ASSERT_TRUE(done) << done.error().message();
  for (std::int64_t i = 1; i < 6; ++i) EXPECT_TRUE(std::isfinite(call.out.at(0, 0, i, 0)));
}

// Token by token over what is cached, as it was attended at once.
TEST(AttendWall, DecodesWhatItPrefills) {
  Call call{.heads = 4, .kv_heads = 2, .queries = 90, .keys = 90, .dim = 8, .dtype = DType::f32};
  call.query_positions = call.key_positions = Positions::range(0, 90);
  call.fill();
  const Numbers gates = random_channels(call);
  ASSERT_TRUE(attend(call.inputs(), Wall{.channel_gates = {gates.view}}, {}, call.out.view));
  Numbers token(DType::f32, {1, 4, 1, 8}, std::vector<double>(32));
  for (std::int64_t t = 0; t < 90; ++t) {
    const auto first = [](Tensor x, std::int64_t from, std::int64_t count) {
      x.data = static_cast<std::byte*>(x.data) +
               from * x.stride[2] * static_cast<std::int64_t>(size_of(x.dtype));
      x.shape[2] = count;
      return x;
    };
    const AttentionInputs in{first(call.q.view, t, 1),     first(call.k.view, 0, t + 1),
                             first(call.v.view, 0, t + 1), Positions::range(t, 1),
                             Positions::range(0, t + 1),   {}};
    ASSERT_TRUE(attend(in, Wall{.channel_gates = {first(gates.view, 0, t + 1)}}, {}, token.view));
    for (std::int64_t h = 0; h < 4; ++h)
      for (std::int64_t c = 0; c < 8; ++c)
        ASSERT_NEAR(token.at(0, h, 0, c), call.out.at(0, h, t, c), 1e-6) << t;
  }
}

TEST(WallErrors, GatesMustFit) {
  const auto with = [](const Wall& wall) {
    Call call;
    call.fill();
    const auto done = attend(call.inputs(), wall, {}, call.out.view);
    return done ? "" : done.error().message();
  };
  const Numbers right(DType::f32, {1, 2, 6, 4}, std::vector<double>(48, -1.0));
  const Numbers wrong(DType::f32, {1, 6, 2, 4}, std::vector<double>(48, -1.0));
  const Numbers above(DType::f32, {1, 2, 6, 4}, std::vector<double>(48, 0.5));
  EXPECT_EQ(with({.channel_gates = {right.view}}), "");
  EXPECT_NE(with({}).find("wall.channel_gates must be given"), std::string::npos);
  EXPECT_NE(with({.channel_gates = {wrong.view}})
                .find("channel_gates must be [1, 2, 6, 4], got [1, 6, 2, 4]"),
            std::string::npos);
  EXPECT_NE(with({.channel_gates = {above.view}})
                .find("channel_gates must be at most 0, got 0.5 at key 0"),
            std::string::npos);
  EXPECT_NE(with({.channel_gates = {right.view}, .log_gates = {right.view}}).find("log_gates"),
            std::string::npos);
}

}  // namespace
}  // namespace posenc
