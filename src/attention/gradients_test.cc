// attend_backward against central differences of attend_reference, in double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "src/attention/gradients_test.h"

namespace posenc {
namespace {

using Problem = GradientProblem;
constexpr std::int64_t dim = gradient_dim;

// --- parts of a plan ----------------------------------------------------------------------------

void rope(Problem& p) {
  p.plan.rotate = Rotate{.slice = {.rotary_dim = dim}, .frequencies = {.radians = {1, 0.4, 0.1}}};
}
void partial_rope(Problem& p) {
  p.plan.rotate =
      Rotate{.slice = {.pairing = Pairing::interleaved, .first_dim = 1, .rotary_dim = 4},
             .frequencies = {.radians = {0.7, 0.2}},
             .amplitude = 1.3};
}
void xpos(Problem& p) {
  rope(p);
  p.plan.rotate->kind =
      Plain{.growth = XposDecay{.factor = {0.5, 0.7, 0.9}, .scale = 4, .centre = 2}};
}
void rotated_values(Problem& p) {
  rope(p);
  p.plan.rotate->values = Values::rotated_and_back;
  p.plan.rotate->amplitude = 1.2;
}
void staying_values(Problem& p) {
  rotated_values(p);
  p.plan.rotate->values = Values::rotated;
}
void mixed(Problem& p) {
  p.kv_heads = p.heads = 2;
  p.plan.rotate = Rotate{.slice = {.rotary_dim = 4},
                         .frequencies = {.heads = 2, .axes = 2, .radians = random(2 * 2 * 2, 9)}};
  const std::vector<std::int64_t> ids = {0, 0, 1, 1, 2, 0, 1, 0, 1, 2};
  p.queries = p.keys = *Positions::ids(ids, 2);
}
void query_phases(Problem& p) {
  partial_rope(p);
  p.plan.rotate->kind = Plain{.phase = Phase{.heads = 4, .radians = random(4 * 2, 10)}};
}
void key_phases(Problem& p) {
  rotated_values(p);
  p.plan.rotate->kind = Plain{.phase = Phase{.side = Side::key, .radians = random(3, 11)}};
}
// Of three frequencies two pairs have mixtures, of each key head. Their logits depend on positions
// and not by distances, so that slopes by frequencies are steep far out: hence small numbers.
void mixture(Problem& p) {
  rope(p);
  p.plan.rotate->kind = Mix{.heads = 2,
                            .inputs = 3,
                            .outputs = 2,
                            .cosine = random(2 * 3 * 2, 14, 0.3),
                            .sine = random(2 * 3 * 2, 15, 0.3),
                            .rest_sine = 0.5};
}
void shared_mixture(Problem& p) {
  partial_rope(p);
  p.plan.rotate->kind =
      Mix{.inputs = 2, .outputs = 2, .cosine = random(4, 16, 0.3), .sine = random(4, 17, 0.3)};
}
void near_and_far(Problem& p) {
  rope(p);
  p.plan.rotate->kind =
      Regions{.window = 2, .region = {{}, {{.divisor = 3, .offset = 1}, {.divisor = 3}, 0.5}}};
  p.plan.bias = Slopes{.slope = {0.5, 0.25, 0.125, 0.0625}};
  p.sinks = random(4, 18);
}
void chunks(Problem& p) {
  partial_rope(p);
  const PositionMap within{.modulus = 3};
  p.plan.rotate->kind = Regions{.chunk = 3,
                                .region = {{within, within},
                                           {{.modulus = 3, .offset = 3, .most = 4}, within},
                                           {{.modulus = 1, .offset = 4}, within}}};
}
// Four of the six channels, and phases that all key heads share.
void polar(Problem& p) {
  p.plan.rotate =
      Rotate{.slice = {.first_dim = 1, .rotary_dim = 8},
             .frequencies = {.radians = {1, 0.4, 0.1, 0.05}},
             .kind = Polar{.phase = Phase{.side = Side::key, .radians = random(4, 12)}}};
}
void interleaved_polar(Problem& p) {
  polar(p);
  p.plan.rotate->slice.pairing = Pairing::interleaved;
  p.plan.rotate->amplitude = 1.2;
}
void slopes(Problem& p) { p.plan.bias = Slopes{.slope = {0.5, 0.25, 0.1, 0.7}}; }
void slopes_before_scale(Problem& p) {
  p.plan.bias = Slopes{.slope = {0.5, 0.25, 0.1, 0.7}, .bidirectional = true, .before_scale = true};
}

// Seven distances in five rows, saturating; the middle row serves for three of them.
DistanceRows five_rows() { return {.first = -3, .row = {0, 1, 2, 2, 2, 3, 4}}; }

void bias_of(Problem& p, std::int64_t heads) {
  p.bias = random(heads * 5, 5);
  p.plan.bias = BiasTable{.rows = five_rows(),
                          .row_count = 5,
                          .values = Table::borrow(Tensor::dense(p.bias.data(), {heads, 5}))};
}
void bias(Problem& p) { bias_of(p, p.heads); }
void shared_bias(Problem& p) { bias_of(p, 1); }

void relative(Problem& p, std::int64_t heads, bool query, bool key, bool value) {
  p.plan.relative = Relative{.rows = five_rows(),
                             .row_count = 5,
                             .uses_query = query,
                             .uses_key = key,
                             .uses_value = value};
  const auto table = [&](std::vector<double>& numbers, unsigned seed) {
    numbers = random(heads * 5 * dim, seed);
    return Table::borrow(heads == 1 ? Tensor::dense(numbers.data(), {5, dim})
                                    : Tensor::dense(numbers.data(), {heads, 5, dim}));
  };
  if (query) p.plan.relative->query = table(p.query, 6);
  if (key) p.plan.relative->key = table(p.key, 7);
  if (value) p.plan.relative->value = table(p.value, 8);
}
void shaw(Problem& p) { relative(p, 1, false, true, true); }
void deberta(Problem& p) { relative(p, p.heads, true, true, false); }
void every_table(Problem& p) { relative(p, p.heads, true, true, true); }
void shared_tables(Problem& p) { relative(p, 1, true, true, true); }

// Three profiles of every query, or key, or both; the first distance has no row.
void profiles_of(Problem& p, std::int64_t heads, bool query, bool key) {
  relative(p, heads, query, key, false);
  Relative& part = *p.plan.relative;
  part.rows = {.first = -3, .row = {no_row, 1, 2, 2, 2, 3, 4}};
  part.profiles = 3;
  const auto table = [&](std::vector<double>& numbers) {
    numbers.resize(static_cast<std::size_t>(heads * 5 * 3));
    return Table::borrow(heads == 1 ? Tensor::dense(numbers.data(), {5, 3})
                                    : Tensor::dense(numbers.data(), {heads, 5, 3}));
  };
  if (query) part.query = table(p.query);
  if (key) part.key = table(p.key);
}
void query_profiles(Problem& p) { profiles_of(p, 1, false, true); }
void key_profiles(Problem& p) { profiles_of(p, p.heads, true, false); }
void every_profile(Problem& p) {
  profiles_of(p, p.heads, true, true);
  rope(p);
  bias(p);
  p.plan.logits = Logits{.multiplier = 1.7, .beta = 0.3, .floor = 2, .offset = 1, .softcap = 2};
}

void logits(Problem& p) {
  p.plan.logits = Logits{.multiplier = 1.7, .beta = 0.3, .floor = 2, .offset = 1};
}
void rope_and_slopes(Problem& p) {
  rope(p);
  slopes(p);
  logits(p);
}
void everything(Problem& p) {
  xpos(p);
  p.plan.rotate->values = Values::rotated_and_back;
  bias(p);
  every_table(p);
  logits(p);
}

struct Part {
  const char* name;
  void (*add)(Problem&);
};
void PrintTo(const Part& part, std::ostream* out) { *out << part.name; }

class AttendBackward : public testing::TestWithParam<Part> {
 protected:
  Problem problem() const {
    Problem p;
    GetParam().add(p);
    return p;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Plans, AttendBackward,
    testing::Values(Part{"nothing", [](Problem&) {}}, Part{"rope", rope},
                    Part{"partial_rope", partial_rope}, Part{"xpos", xpos},
                    Part{"rotated_values", rotated_values}, Part{"staying_values", staying_values},
                    Part{"mixed", mixed}, Part{"query_phases", query_phases},
                    Part{"key_phases", key_phases}, Part{"near_and_far", near_and_far},
                    Part{"chunks", chunks}, Part{"mixture", mixture},
                    Part{"shared_mixture", shared_mixture}, Part{"polar", polar},
                    Part{"interleaved_polar", interleaved_polar}, Part{"slopes", slopes},
                    Part{"slopes_before_scale", slopes_before_scale}, Part{"bias", bias},
                    Part{"shared_bias", shared_bias}, Part{"shaw", shaw}, Part{"deberta", deberta},
                    Part{"every_table", every_table}, Part{"shared_tables", shared_tables},
                    Part{"logits", logits}, Part{"query_profiles", query_profiles},
                    Part{"key_profiles", key_profiles}, Part{"every_profile", every_profile},
                    Part{"rope_and_slopes", rope_and_slopes}, Part{"everything", everything}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(AttendBackward, CausalIsTheSlopeOfTheLoss) {
  Problem p = problem();
  expect_gradients(p.filled());
}

TEST_P(AttendBackward, OpenIsTheSlopeOfTheLoss) {
  Problem p = problem();
  p.mask.causal = false;
  expect_gradients(p.filled());
}

// The first query of each sequence sees no key.
TEST(AttendBackwardPhases, OfEachKeyHeadHaveASlope) {
  Problem p;
  rope(p);
  p.plan.rotate->kind =
      Plain{.phase = Phase{.side = Side::key, .heads = 2, .radians = random(2 * 3, 13)}};
  expect_gradients(p.filled());
}

TEST_P(AttendBackward, WithPaddingIsTheSlopeOfTheLoss) {
  Problem p = problem();
  const std::vector<std::uint8_t> keep = {0, 1, 1, 1, 0, 0, 0, 1, 1, 1};
  p.mask.keep = keep.data();
  expect_gradients(p.filled());
}

// The last queries over all keys, more of both than a block holds.
TEST_P(AttendBackward, AcrossBlocksIsTheSlopeOfTheLoss) {
  Problem p = problem();
  if (p.plan.rotate && p.plan.rotate->frequencies.axes > 1) {
    const auto ids = [](std::int64_t first, std::int64_t count) {
      std::vector<std::int64_t> axes;
      for (std::int64_t t = 0; t < count; ++t) axes.push_back((first + t) / 10);
      for (std::int64_t t = 0; t < count; ++t) axes.push_back((first + t) % 10);
      return *Positions::ids(axes, 2);
    };
    p.queries = ids(65, 35);
    p.keys = ids(0, 100);
  } else {
    p.queries = Positions::range(65, 35);
    p.keys = Positions::range(0, 100);
  }
  p.batch = 1;
  p.mask.window = 70;
  if (p.plan.rotate && p.plan.rotate->growth())
    std::get<Plain>(p.plan.rotate->kind).growth->scale = 64;
  expect_gradients(p.filled());
}

TEST_P(AttendBackward, HasTheSameBitsForAnyNumberOfThreads) {
  // Key heads enough for the threads, and one, of which the queries are shared out.
  for (const auto& [batch, kv_heads, tokens] : {std::tuple{3, 2, 65}, {1, 1, 300}}) {
    Problem p = problem();
    const Rotate* const rotate = p.plan.rotate ? &*p.plan.rotate : nullptr;
    if (rotate && (rotate->frequencies.heads > kv_heads ||
                   (rotate->mix() && rotate->mix()->heads > kv_heads)))
      continue;
    p.batch = batch;
    p.kv_heads = kv_heads;
    p.queries = p.keys = Positions::range(0, tokens);
    p.filled();
    const Gradients one(p, {.count = 1});
    for (const int count : {2, 3, 5}) {
      const Gradients many(p, {.count = count});
      EXPECT_TRUE(many == one) << count << " threads, " << kv_heads << " key heads";
    }
  }
}

// --- masks --------------------------------------------------------------------------------------

void expect_masked(const Mask& mask, const Positions& tokens = Positions::range(0, 9)) {
  Problem p;
  everything(p);
  p.mask = mask;
  p.queries = p.keys = tokens;
  expect_gradients(p.filled());
}

TEST(AttendBackwardMask, Window) { expect_masked({.window = 3}); }
TEST(AttendBackwardMask, WindowBothWays) { expect_masked({.causal = false, .window = 2}); }
TEST(AttendBackwardMask, Chunk) { expect_masked({.chunk = 4}); }
TEST(AttendBackwardMask, Prefix) { expect_masked({.window = 2, .prefix = 3}); }
TEST(AttendBackwardMask, Blocks) {
  const std::vector<std::int32_t> blocks = {-1, 3,  3,  3,  -1, -1, 0, 0, -1,
                                            -1, -1, -1, -1, 2,  2,  2, 2, 2};
  expect_masked({.window = 2, .blocks = blocks.data()});
}
// Queries that see nothing among them, and one key twice as far as the others.
TEST(AttendBackwardMask, Keys) {
  std::vector<std::int32_t> lists;
  for (std::int32_t row = 0; row < 18; ++row)
    for (const std::int32_t id : {row % 9, (row * 5 + 3) % 9, (row * 7 + 1) % 9})
      lists.push_back(row % 6 == 5 || std::ranges::find(lists.end() - std::ssize(lists) % 3,
                                                        lists.end(), id) != lists.end()
                          ? -1
                          : id);
  expect_masked({.keys = lists.data(), .key_count = 3});
  expect_masked({.causal = false, .window = 6, .keys = lists.data(), .key_count = 3});
}
TEST(AttendBackwardMask, Packed) {
  const std::vector<std::int64_t> cu_seqlens = {0, 2, 3, 9};
  expect_masked({}, *Positions::packed(cu_seqlens));
}
TEST(AttendBackwardMask, PositionsInAnyOrder) {
  const std::vector<std::int64_t> ids = {4, 2, 8, 0, 6, 1};
  expect_masked({}, *Positions::ids(ids));
}
TEST(AttendBackwardMask, EverySequenceItsPositions) {
  const std::vector<std::int64_t> ids = {0, 1, 2, 3, 3, 4, 5, 6};
  expect_masked({}, *Positions::ids(ids, 1, 2));
}

TEST(AttendBackwardMask, WhatSeesNothingHasZeroGradients) {
  Problem p;
  everything(p);
  const std::vector<std::uint8_t> none(10);
  p.mask.keep = none.data();
  const Gradients by(p.filled());
  for (const auto* each :
       {&by.q, &by.k, &by.v, &by.bias, &by.query, &by.key, &by.value, &by.frequency}) {
    EXPECT_EQ(*each, std::vector<double>(each->size()));
  }
}

TEST(AttendBackwardMask, HiddenTokensMayHoldNaN) {
  Problem p;
  everything(p);
  std::vector<std::uint8_t> keep(10, 1);
  keep[2] = keep[7] = 0;
  p.mask.keep = keep.data();
  const Gradients clean(p.filled());
  for (std::int64_t row : {2, 7, 12, 17}) {
    p.k[static_cast<std::size_t>(row * dim)] = p.v[static_cast<std::size_t>(row * dim + 1)] = NAN;
  }
  const Gradients by(p);
  EXPECT_EQ(by.q, clean.q);
  EXPECT_EQ(by.v, clean.v);
  EXPECT_EQ(by.key, clean.key);
  EXPECT_EQ(by.query, clean.query);
}

// --- shapes and types ---------------------------------------------------------------------------

TEST(AttendBackwardShapes, OneToken) {
  Problem p{.batch = 1, .queries = Positions::range(3, 1), .keys = Positions::range(3, 1)};
  everything(p);
  expect_gradients(p.filled());
}

TEST(AttendBackwardShapes, OneKeyHeadForAll) {
  Problem p{.kv_heads = 1};
  everything(p);
  expect_gradients(p.filled());
}

TEST(AttendBackwardShapes, NoTokensWriteTables) {
  Problem p{.queries = Positions::range(0, 0), .keys = Positions::range(0, 3)};
  bias(p);
  const Gradients by(p.filled());
  EXPECT_EQ(by.k, std::vector<double>(by.k.size()));
  EXPECT_EQ(by.bias, std::vector<double>(20));
}

// head_dim 7, which no vector divides; strided tensors; a gradient in the memory of its input.
TEST(AttendBackwardShapes, AnyStridesAndInPlace) {
  constexpr std::int64_t seq = 5, heads = 2, odd = 7;
  const auto x = random(3 * seq * heads * odd, 1), w = random(seq * heads * odd, 2);
  // [seq, 3, heads, dim] in memory: q, k and v of one projection.
  const auto part = [](std::vector<double>& all, std::int64_t which) {
    Tensor t =
        Tensor::dense(all.data() + which * heads * odd, {1, seq, 3 * heads, odd}).swapped(1, 2);
    t.shape[1] = heads;
    return t;
  };
  const Positions at = Positions::range(0, seq);
  Plan plan;
  plan.bias = Slopes{.slope = {0.5, 0.25}};
  const auto loss = [&](std::vector<double> all) {
    std::vector<double> out(w.size());
    EXPECT_TRUE(attend_reference({part(all, 0), part(all, 1), part(all, 2), at, at}, plan,
                                 Tensor::dense(out.data(), {1, heads, seq, odd})));
    double sum = 0;
    for (std::size_t e = 0; e < w.size(); ++e) sum += w[e] * out[e];
    return sum;
  };
  std::vector<double> all = x, weights = w;
  ASSERT_TRUE(attend_backward({part(all, 0), part(all, 1), part(all, 2), at, at}, plan,
                              Tensor::dense(weights.data(), {1, heads, seq, odd}),
                              {.q = part(all, 0), .k = part(all, 1), .v = part(all, 2)}));
  for (std::size_t e = 0; e < x.size(); ++e) {
    std::vector<double> above = x, below = x;
    above[e] += 1e-5;
    below[e] -= 1e-5;
    EXPECT_NEAR(all[e], (loss(above) - loss(below)) / 2e-5, 1e-8) << e;
  }
}

// Inputs that 16 bits hold, so that every dtype differentiates the same attention. Float sums of
// some hundred terms near 1 are off by 1e-5; the 16-bit types round that once.
TEST(AttendBackwardTypes, OtherTypesGiveTheDoubleOnesRounded) {
  Problem p;
  everything(p);
  p.queries = p.keys = Positions::range(0, 40);
  std::get<Plain>(p.plan.rotate->kind).growth->scale = 64;
  p.filled();
  for (auto* x : {&p.q, &p.k, &p.v, &p.loss_weight}) {
    for (double& value : *x)
      value = static_cast<double>(bfloat16_to_float(double_to_bfloat16(value)));
  }
  const Gradients wide(p);
  const auto largest = [](const std::vector<double>& x) {
    return std::abs(*std::ranges::max_element(x, {}, [](double a) { return std::abs(a); }));
  };
  for (const auto& [dtype, unit] :
       {std::pair{DType::f32, 0.0}, {DType::bf16, 0x1p-8}, {DType::f16, 0x1p-11}}) {
    std::vector<std::vector<float>> storage;
    const auto narrow = [&, dtype = dtype](std::vector<double>& x, std::int64_t h,
                                           const Positions& tokens) {
      storage.emplace_back(x.size());
      const Tensor t =
          Tensor::dense(storage.back().data(), dtype, {p.batch, h, tokens.size(), dim});
      for (std::size_t e = 0; e < x.size(); ++e) t.set(static_cast<std::int64_t>(e), x[e]);
      return t;
    };
    const Tensor q = narrow(p.q, p.heads, p.queries), k = narrow(p.k, p.kv_heads, p.keys),
                 v = narrow(p.v, p.kv_heads, p.keys), g = narrow(p.loss_weight, p.heads, p.queries);
    std::vector<double> bias(wide.bias.size()), key(wide.key.size());
    ASSERT_TRUE(attend_backward({q, k, v, p.queries, p.keys, p.mask}, p.plan, g,
                                {.q = q,
                                 .k = k,
                                 .v = v,
                                 .bias = Tensor::dense(bias.data(), {p.heads, 5}),
                                 .relative_key = Tensor::dense(key.data(), {p.heads, 5, dim})}));
    const auto expect_close = [&, unit = unit](const std::vector<double>& want, auto&& got,
                                               double u) {
      const double absolute = 1e-5 * largest(want);
      for (std::size_t e = 0; e < want.size(); ++e) {
        EXPECT_NEAR(got(e), want[e], absolute + u * std::abs(want[e])) << e << " of unit " << unit;
      }
    };
    expect_close(wide.q, [&](std::size_t e) { return q.get(static_cast<std::int64_t>(e)); }, unit);
    expect_close(wide.k, [&](std::size_t e) { return k.get(static_cast<std::int64_t>(e)); }, unit);
    expect_close(wide.v, [&](std::size_t e) { return v.get(static_cast<std::int64_t>(e)); }, unit);
    expect_close(wide.bias, [&](std::size_t e) { return bias[e]; }, 0);
    expect_close(wide.key, [&](std::size_t e) { return key[e]; }, 0);
  }
}

// A key vector that all distances share adds the same to each logit of a query, which the softmax
// does not see: in exact arithmetic Σ_j α_j (g_j − Σ_l α_l g_l) is 0. What differences of the loss
// show is their rounding.
TEST(AttendBackwardTables, AKeyVectorOfAllDistancesHasNoGradient) {
  Problem p;
  p.key = random(dim, 7);
  p.plan.relative = Relative{.rows = {.first = 0, .row = {0}},
                             .row_count = 1,
                             .uses_key = true,
                             .key = Table::borrow(Tensor::dense(p.key.data(), {1, dim}))};
  const Gradients by(p.filled());
  for (const double gradient : by.key) EXPECT_NEAR(gradient, 0, 1e-14);
}

// --- errors -------------------------------------------------------------------------------------

Expected<void> tried(Problem& p, const AttentionGradients& to) {
  return attend_backward(p.inputs(), p.plan, p.tensor(p.loss_weight, p.heads, p.queries), to);
}

TEST(AttendBackwardErrors, AGradientOfAPartThePlanLacks) {
  Problem p;
  double slope = 0;
  const auto done = tried(p.filled(), {.slopes = Tensor::dense(&slope, {1})});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(),
            "attend_backward: the gradient of the slopes needs a plan with such a part, got none; "
            "leave the gradient absent");
}

TEST(AttendBackwardErrors, AGradientOfAnotherShape) {
  Problem p;
  std::vector<double> q(p.filled().q.size() / 2);
  EXPECT_FALSE(tried(p, {.q = Tensor::dense(q.data(), {1, p.heads, 5, dim})}));
}

TEST(AttendBackwardErrors, ADistanceBeyondATableLeavesGradientsAlone) {
  Problem p;
  bias(p);
  std::get<BiasTable>(*p.plan.bias).rows.saturates = false;
  std::vector<double> q(p.filled().q.size(), 7);
  EXPECT_FALSE(tried(p, {.q = p.tensor(q, p.heads, p.queries)}));
  EXPECT_EQ(q, std::vector<double>(q.size(), 7));
}

TEST(AttendBackwardErrors, FrequenciesOfAnEngine) {
  Problem p;
  p.plan.rotate =
      Rotate{.slice = {.rotary_dim = 2}, .frequencies = {.radians = {1}}, .kind = HfFloat{}};
  double frequency = 0;
  EXPECT_FALSE(tried(p.filled(), {.rotation_frequency = Tensor::dense(&frequency, {1, 1, 1})}));
  EXPECT_TRUE(tried(p, {}));
}

}  // namespace
}  // namespace posenc
