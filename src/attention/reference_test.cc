// attend_reference beside formulas written out for a token or two; the fast kernels are compared with it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "posenc/attention.h"
#include "tests/random.h"

namespace posenc {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const Mask open{.causal = false};

// Two query heads over one key head, head_dim 4; as many keys as queries.
struct Attention {
  std::int64_t heads = 2, kv_heads = 1, seq = 6, dim = 4, batch = 1;
  std::vector<double> q = random(batch * heads * seq * dim, 1);
  std::vector<double> k = random(batch * kv_heads * seq * dim, 2);
  std::vector<double> v = random(batch * kv_heads * seq * dim, 3);
  std::vector<double> out = std::vector<double>(q.size(), NAN);
  std::vector<double> logits =
      std::vector<double>(static_cast<std::size_t>(batch * heads * seq * seq), NAN);

  Expected<void> tried(const Plan& plan, const Mask& mask, const Positions& positions) {
    const auto dense = [&](std::vector<double>& x, std::int64_t n, std::int64_t last) {
      return Tensor::dense(x.data(), {batch, n, seq, last});
    };
    return attend_reference({dense(q, heads, dim), dense(k, kv_heads, dim), dense(v, kv_heads, dim),
                             positions, positions, mask},
                            plan, dense(out, heads, dim), dense(logits, heads, seq));
  }
  void run(const Plan& plan, const Mask& mask, const Positions& positions) {
    const auto done = tried(plan, mask, positions);
    ASSERT_TRUE(done) << done.error().message();
  }
  void run(const Plan& plan, const Mask& mask = {}) { run(plan, mask, Positions::range(0, seq)); }

  using Token = std::vector<double>;
  Token token(const std::vector<double>& x, std::int64_t h, std::int64_t t) const {
    const auto start = x.begin() + (h * seq + t) * dim;
    return {start, start + dim};
  }
  Token q_at(std::int64_t h, std::int64_t t) const { return token(q, h, t); }
  Token k_at(std::int64_t t) const { return token(k, 0, t); }
  Token v_at(std::int64_t t) const { return token(v, 0, t); }
  Token out_at(std::int64_t h, std::int64_t t) const { return token(out, h, t); }
  double logit(std::int64_t h, std::int64_t i, std::int64_t j) const {
    return logits[static_cast<std::size_t>((h * seq + i) * seq + j)];
  }
  // Weights of a query over the keys, from its logits.
  std::vector<double> weights(std::int64_t h, std::int64_t i) const {
    std::vector<double> w;
    for (std::int64_t j = 0; j < seq; ++j) w.push_back(std::exp(logit(h, i, j)));
    const double sum = std::accumulate(w.begin(), w.end(), 0.0);
    for (double& x : w) x /= sum;
    return w;
  }
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<double> rotated(const Plan& plan, std::vector<double> x, std::int64_t position,
                            Side side) {
  const Tensor tensor = Tensor::dense(x.data(), {1, static_cast<std::int64_t>(x.size())});
  EXPECT_TRUE(rotate(plan, tensor, Positions::range(position, 1), side, tensor));
  return x;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << "element " << i;
}

Plan rope() {
  Plan plan;
  plan.rotate = Rotate{.rotary_dim = 4, .frequency = {1, 0.1}};
  return plan;
}

Plan alibi() {
  Plan plan;
  plan.bias = Slopes{.slope = {0.5, 0.25}};
  return plan;
}

// --- the plain formula --------------------------------------------------------------------------

TEST(AttendReference, LogitIsTheScaledProduct) {
  Attention a;
  a.run(Plan{});
  EXPECT_NEAR(a.logit(1, 4, 2), dot(a.q_at(1, 4), a.k_at(2)) / 2, 1e-14);
}

TEST(AttendReference, OutputIsTheWeightedMeanOfValues) {
  Attention a;
  a.run(Plan{});
  std::vector<double> mean(4);
  const auto w = a.weights(1, 3);
  for (std::size_t j = 0; j <= 3; ++j) {
    for (std::size_t c = 0; c < 4; ++c) mean[c] += w[j] * a.v_at(static_cast<std::int64_t>(j))[c];
  }
  expect_near(a.out_at(1, 3), mean);
}

TEST(AttendReference, WeightsOfAQuerySumToOne) {
  Attention a;
  std::fill(a.v.begin(), a.v.end(), 1.0);
  a.run(alibi());
  expect_near(a.out, std::vector<double>(a.out.size(), 1.0));
}

TEST(AttendReference, HugeLogitsDoNotOverflow) {
  Attention a;
  for (double& x : a.q) x *= 1e5;
  a.run(Plan{});
  for (const double x : a.out) EXPECT_TRUE(std::isfinite(x));
}

TEST(AttendReference, QueryHeadsShareTheirGroupsKeys) {
  Attention grouped{.heads = 4, .kv_heads = 2}, full{.heads = 4, .kv_heads = 4};
  full.q = grouped.q;
  full.k = full.v = {};
  for (const auto& [to, from] : {std::pair{&full.k, &grouped.k}, {&full.v, &grouped.v}}) {
    for (const std::ptrdiff_t head : {0, 0, 24, 24}) {
      to->insert(to->end(), from->begin() + head, from->begin() + head + 24);
    }
  }
  grouped.run(Plan{});
  full.run(Plan{});
  EXPECT_EQ(grouped.out, full.out);
}

TEST(AttendReference, WithoutMaskAndPositionOrderIsInvisible) {
  Attention a, b;
  for (const auto& [to, from, heads] :
       {std::tuple{&b.q, &a.q, 2}, {&b.k, &a.k, 1}, {&b.v, &a.v, 1}}) {
    for (std::ptrdiff_t h = 0; h < heads; ++h) {  // b's token t is a's token (t + 2) mod 6
      const auto first = to->begin() + h * 24;
      std::copy_n(from->begin() + h * 24, 24, first);
      std::rotate(first, first + 8, first + 24);
    }
  }
  a.run(Plan{}, open);
  b.run(Plan{}, open);
  for (std::int64_t t = 0; t < 6; ++t) expect_near(b.out_at(1, t), a.out_at(1, (t + 2) % 6));
}

TEST(AttendReference, SixteenBitOutputIsTheDoubleOneRounded) {
  std::vector<std::uint16_t> half(32);  // q, k, v, out: [2][4] each
  std::vector<double> wide(32);
  for (std::size_t i = 0; i < 24; ++i) {
    half[i] = double_to_half(std::sin(static_cast<double>(i * i)));
    wide[i] = half_to_float(half[i]);
  }
  const auto attend = [](auto* data, DType dtype) {
    const auto part = [&](int i) { return Tensor::dense(data + 8 * i, dtype, {2, 4}); };
    const Positions at = Positions::range(5, 2);
    return attend_reference({part(0), part(1), part(2), at, at}, rope(), part(3));
  };
  ASSERT_TRUE(attend(half.data(), DType::f16));
  ASSERT_TRUE(attend(wide.data(), DType::f64));
  for (std::size_t i = 24; i < 32; ++i) EXPECT_EQ(half[i], double_to_half(wide[i])) << i;
}

// --- plans --------------------------------------------------------------------------------------

TEST(AttendPlan, RotationTurnsQueryAndKey) {
  Attention a;
  a.run(rope());
  const auto q = rotated(rope(), a.q_at(1, 4), 4, Side::query),
             k = rotated(rope(), a.k_at(2), 2, Side::key);
  EXPECT_NEAR(a.logit(1, 4, 2), dot(q, k) / 2, 1e-14);
}

TEST(AttendPlan, RotationSeesOffsetsAlone) {
  Attention a, b;
  a.run(rope());
  b.run(rope(), {}, Positions::range(5000, 6));
  expect_near(a.out, b.out);
}

// o_i = R_iᵀ Σ_j α_ij R_j v_j = Σ_j α_ij R_{j−i} v_j: a rotation by j − i, which is negative.
TEST(AttendPlan, RotatedValuesArriveRotatedByTheirOffset) {
  Plan plan = rope();
  plan.rotate->values = true;
  Attention a;
  a.run(plan);
  const std::int64_t i = 4;
  const auto w = a.weights(0, i);
  std::vector<double> expected(4);
  for (std::int64_t j = 0; j <= i; ++j) {
    std::vector<double> v = a.v_at(j);
    const Tensor tensor = Tensor::dense(v.data(), {1, 4});
    ASSERT_TRUE(rotate_inverse(plan, tensor, Positions::range(i - j, 1), Side::value, tensor));
    for (std::size_t c = 0; c < 4; ++c) expected[c] += w[static_cast<std::size_t>(j)] * v[c];
  }
  expect_near(a.out_at(0, i), expected);
}

TEST(AttendPlan, SlopesAreAddedAfterTheScale) {
  Attention a, none;
  a.run(alibi());
  none.run(Plan{});
  EXPECT_NEAR(a.logit(1, 5, 2), none.logit(1, 5, 2) - 0.25 * 3, 1e-14);
}

TEST(AttendPlan, SlopesBeforeTheScaleAreScaledToo) {
  Plan plan = alibi();
  std::get<Slopes>(*plan.bias).before_scale = true;
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  EXPECT_NEAR(a.logit(1, 5, 2), none.logit(1, 5, 2) - 0.25 * 3 / 2, 1e-14);
}

TEST(AttendPlan, BiasTableIsReadByHeadAndDistance) {
  Plan plan;
  plan.bias = BiasTable{.rows = {.row = {0, 1, 2}},
                        .row_count = 3,
                        .values = Table::own({1, 2, 3, 10, 20, 30}, 2, 3)};
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  EXPECT_NEAR(a.logit(1, 3, 2), none.logit(1, 3, 2) + 20, 1e-13);
  EXPECT_NEAR(a.logit(0, 5, 0), none.logit(0, 5, 0) + 3, 1e-13);
}

// Distances −2 to 2 in rows 4 to 0: Shaw's c = clip(j − i, −2, 2) + 2.
Plan shaw(const std::vector<double>& key, const std::vector<double>& value) {
  Plan plan;
  plan.relative = Relative{.rows = {.first = -2, .row = {4, 3, 2, 1, 0}},
                           .row_count = 5,
                           .uses_value = true,
                           .key = Table::own(key, 5, 4),
                           .value = Table::own(value, 5, 4)};
  return plan;
}

TEST(AttendPlan, ShawByItsFormula) {
  const auto key = random(20, 7), value = random(20, 8);
  Attention a;
  a.run(shaw(key, value), open);
  const auto row = [](const std::vector<double>& table, std::int64_t i, std::int64_t j) {
    const std::int64_t c = std::clamp<std::int64_t>(j - i, -2, 2) + 2;
    return std::vector<double>(table.begin() + 4 * c, table.begin() + 4 * c + 4);
  };
  for (std::int64_t i = 0; i < 6; ++i) {
    std::vector<double> expected(4);
    const auto w = a.weights(1, i);
    for (std::int64_t j = 0; j < 6; ++j) {
      const double plain = dot(a.q_at(1, i), a.k_at(j)) + dot(a.q_at(1, i), row(key, i, j));
      EXPECT_NEAR(a.logit(1, i, j), plain / 2, 1e-13);
      for (std::size_t c = 0; c < 4; ++c) {
        expected[c] += w[static_cast<std::size_t>(j)] * (a.v_at(j)[c] + row(value, i, j)[c]);
      }
    }
    expect_near(a.out_at(1, i), expected);
  }
}

// The key meets a vector of the distance, of each head its own (DeBERTa's position to content).
TEST(AttendPlan, QueryTableMeetsTheKey) {
  auto table = random(2 * 3 * 4, 9);
  Plan plan;
  plan.relative = Relative{.rows = {.first = -1, .row = {0, 1, 2}},
                           .row_count = 3,
                           .uses_query = true,
                           .uses_key = false,
                           .query = Table::borrow(Tensor::dense(table.data(), {2, 3, 4}))};
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  const std::vector<double> past(table.begin() + (3 + 2) * 4,
                                 table.begin() + (3 + 3) * 4);  // head 1
  EXPECT_NEAR(a.logit(1, 5, 2), none.logit(1, 5, 2) + dot(a.k_at(2), past) / 2, 1e-13);
}

TEST(AttendPlan, RelativeVectorsMeetQueryAndKeyBeforeTheirTurn) {
  Plan relative = shaw(random(20, 7), random(20, 8));
  relative.relative->uses_query = true;
  relative.relative->query = Table::own(random(20, 9), 5, 4);
  Plan both = relative;
  both.rotate = rope().rotate;
  Attention a, b, c, d;
  a.run(both);
  b.run(rope());
  c.run(relative);
  d.run(Plan{});
  EXPECT_NEAR(a.logit(1, 5, 2) - b.logit(1, 5, 2), c.logit(1, 5, 2) - d.logit(1, 5, 2), 1e-13);
}

TEST(AttendPlan, LogitScaleGrowsWithTheQuery) {
  Plan plan;
  plan.logits = Logits{.multiplier = 3, .beta = 0.5, .floor = 2};
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  EXPECT_NEAR(a.logit(1, 1, 0), 3 * none.logit(1, 1, 0), 1e-13);
  EXPECT_NEAR(a.logit(1, 5, 0), 3 * (1 + 0.5 * std::log(3.0)) * none.logit(1, 5, 0), 1e-13);
}

TEST(AttendPlan, WhatWasAddedToTheEmbeddingIsNotAddedAgain) {
  Plan plan;
  plan.add = Add{.kind = Ramp{.width = 4}};
  Attention a, none;
  a.run(plan);
  none.run(Plan{});
  EXPECT_EQ(a.out, none.out);
}

// --- masks --------------------------------------------------------------------------------------

// Which keys each query sees, as text: "1" seen.
std::string seen(const Mask& mask, const Positions& positions) {
  Attention a{.heads = 1};
  a.run(Plan{}, mask, positions);
  std::string text;
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = 0; j < 6; ++j) text += a.logit(0, i, j) == -inf ? '.' : '1';
    text += i < 5 ? " " : "";
  }
  return text;
}
std::string seen(const Mask& mask) { return seen(mask, Positions::range(0, 6)); }

TEST(AttendMask, CausalHidesTheFuture) {
  EXPECT_EQ(seen({}), "1..... 11.... 111... 1111.. 11111. 111111");
}

TEST(AttendMask, WindowOfThreeSeesItselfAndTwoBefore) {
  EXPECT_EQ(seen({.window = 3}), "1..... 11.... 111... .111.. ..111. ...111");
}

TEST(AttendMask, WindowWithoutCausalReachesBothWays) {
  EXPECT_EQ(seen({.causal = false, .window = 2}), "11.... 111... .111.. ..111. ...111 ....11");
}

TEST(AttendMask, ChunkOfThreeStartsAnewAtEachMultiple) {
  EXPECT_EQ(seen({.chunk = 3}), "1..... 11.... 111... ...1.. ...11. ...111");
}

TEST(AttendMask, ChunksAreCountedFromPositionZero) {
  EXPECT_EQ(seen({.chunk = 4}, Positions::range(2, 6)),
            "1..... 11.... ..1... ..11.. ..111. ..1111");
}

TEST(AttendMask, ChunkWithoutCausalIsABlock) {
  EXPECT_EQ(seen({.causal = false, .chunk = 4}), "1111.. 1111.. 1111.. 1111.. ....11 ....11");
}

TEST(AttendMask, PrefixIsSeenByAll) {
  EXPECT_EQ(seen({.prefix = 3}), "111... 111... 111... 1111.. 11111. 111111");
}

TEST(AttendMask, PrefixIsSeenThroughAWindow) {
  EXPECT_EQ(seen({.window = 2, .prefix = 1}), "1..... 11.... 111... 1.11.. 1..11. 1...11");
}

TEST(AttendMask, PrefixIsSeenThroughAChunk) {
  EXPECT_EQ(seen({.chunk = 4, .prefix = 2}), "11.... 11.... 111... 1111.. 11..1. 11..11");
}

TEST(AttendMask, WindowWithoutCausalHidesNoPrefix) {
  EXPECT_EQ(seen({.causal = false, .window = 2, .prefix = 1}),
            "11.... 111... 1111.. 1.111. 1..111 1...11");
}

TEST(AttendMask, MarkedPaddingIsOfNoTokensChunk) {
  const std::vector<std::uint8_t> tokens = {0, 0, 1, 1, 1, 1};
  EXPECT_EQ(seen({.causal = false, .chunk = 4}, *Positions::from_mask(tokens, 1, 0, -1)),
            "11.... 11.... ..1111 ..1111 ..1111 ..1111");
}

TEST(AttendMask, MarkedPaddingIsOfNoPrefix) {
  const std::vector<std::uint8_t> tokens = {0, 0, 1, 1, 1, 1};
  EXPECT_EQ(seen({.window = 1, .prefix = 1}, *Positions::from_mask(tokens, 1, 0, -1)),
            "111... 111... ..1... ..11.. ..1.1. ..1..1");
}

TEST(AttendMask, KeepHidesKeys) {
  const std::vector<std::uint8_t> keep = {0, 1, 1, 0, 1, 1};
  EXPECT_EQ(seen({.causal = false, .keep = keep.data()}),
            ".11.11 .11.11 .11.11 .11.11 .11.11 .11.11");
}

TEST(AttendMask, GoesByPositionNotByPlaceInMemory) {
  const std::vector<std::int64_t> backwards = {5, 4, 3, 2, 1, 0};
  EXPECT_EQ(seen({}, *Positions::ids(backwards)), "111111 .11111 ..1111 ...111 ....11 .....1");
}

TEST(AttendMask, PackedSequencesDoNotSeeEachOther) {
  const std::vector<std::int64_t> cu_seqlens = {0, 2, 6};
  EXPECT_EQ(seen(open, *Positions::packed(cu_seqlens)),
            "11.... 11.... ..1111 ..1111 ..1111 ..1111");
}

// A picture's patches all stand at one moment; causal attention still goes by the order of tokens.
TEST(AttendMask, WithSeveralAxesGoesByTheOrderOfTokens) {
  const std::vector<std::int64_t> ids = {0, 1, 1, 1, 1, 3, 0, 1, 1, 2, 2, 3, 0, 1, 2, 1, 2, 3};
  EXPECT_EQ(seen({}, *Positions::ids(ids, 3)), seen({}));
}

TEST(AttendMask, QueryThatSeesNothingGivesZeros) {
  const std::vector<std::uint8_t> keep = {0, 1, 1, 1, 1, 1};
  Attention a;
  a.run(rope(), {.keep = keep.data()});
  EXPECT_EQ(a.out_at(1, 0), std::vector<double>(4));
}

TEST(AttendMask, HiddenKeysMayHoldNaN) {
  Attention a;
  a.v[5 * 4] = a.k[5 * 4] = NAN;
  const std::vector<std::uint8_t> keep = {1, 1, 1, 1, 1, 0};
  a.run(rope(), {.keep = keep.data()});
  for (const double x : a.out) EXPECT_TRUE(std::isfinite(x));
}

TEST(AttendMask, LeftPaddingChangesNothing) {
  Plan plan = rope();
  plan.bias = alibi().bias;
  Attention padded, plain{.seq = 4};
  for (const auto& [to, from, heads] :
       {std::tuple{&plain.q, &padded.q, 2}, {&plain.k, &padded.k, 1}, {&plain.v, &padded.v, 1}}) {
    for (std::ptrdiff_t h = 0; h < heads; ++h) {
      std::copy_n(from->begin() + h * 24 + 8, 16, to->begin() + h * 16);
    }
  }
  const std::vector<std::uint8_t> keep = {0, 0, 1, 1, 1, 1};
  padded.run(plan, {.keep = keep.data()}, *Positions::from_mask(keep, 1));
  plain.run(plan);
  for (std::int64_t t = 0; t < 4; ++t) expect_near(padded.out_at(1, t + 2), plain.out_at(1, t));
}

TEST(AttendMask, PackedEqualsSeparate) {
  Attention packed, first{.seq = 2}, second{.seq = 4};
  for (auto& [part, start] : {std::pair<Attention&, std::ptrdiff_t>{first, 0}, {second, 8}}) {
    const std::ptrdiff_t length = part.seq * 4;
    for (const auto& [to, from, heads] :
         {std::tuple{&part.q, &packed.q, 2}, {&part.k, &packed.k, 1}, {&part.v, &packed.v, 1}}) {
      for (std::ptrdiff_t h = 0; h < heads; ++h) {
        std::copy_n(from->begin() + h * 24 + start, length, to->begin() + h * length);
      }
    }
    part.run(rope());
  }
  const std::vector<std::int64_t> cu_seqlens = {0, 2, 6};
  packed.run(rope(), {}, *Positions::packed(cu_seqlens));
  for (std::int64_t t = 0; t < 6; ++t) {
    expect_near(packed.out_at(1, t), t < 2 ? first.out_at(1, t) : second.out_at(1, t - 2));
  }
}

TEST(AttendMask, EverySequenceOfABatchHasItsPaddingAndPositions) {
  Attention both{.batch = 2};
  const std::vector<std::uint8_t> keep = {1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1};
  both.run(rope(), {.keep = keep.data()}, *Positions::from_mask(keep, 2));
  Attention second;
  std::copy_n(both.q.begin() + 48, 48, second.q.begin());
  std::copy_n(both.k.begin() + 24, 24, second.k.begin());
  std::copy_n(both.v.begin() + 24, 24, second.v.begin());
  const std::span alone(keep.data() + 6, 6);
  second.run(rope(), {.keep = alone.data()}, *Positions::from_mask(alone, 1));
  EXPECT_EQ(std::vector<double>(both.out.begin() + 48, both.out.end()), second.out);
}

// The last two queries over all six keys give what they give among all six.
TEST(AttendMask, DecodingEqualsTheWholeText) {
  Attention whole;
  whole.run(rope());
  std::vector<double> q = whole.q_at(0, 4), out(8);
  q.insert(q.end(), whole.q.begin() + 5 * 4, whole.q.begin() + 6 * 4);
  ASSERT_TRUE(attend_reference(
      {Tensor::dense(q.data(), {2, 4}), Tensor::dense(whole.k.data(), {6, 4}),
       Tensor::dense(whole.v.data(), {6, 4}), Positions::range(4, 2), Positions::range(0, 6)},
      rope(), Tensor::dense(out.data(), {2, 4})));
  EXPECT_EQ(out, std::vector<double>(whole.out.begin() + 16, whole.out.begin() + 24));
}

// --- errors and edges ---------------------------------------------------------------------------

TEST(AttendErrors, HeadsThatDoNotDivide) {
  Attention a{.heads = 3, .kv_heads = 2};
  const auto done = a.tried(Plan{}, {}, Positions::range(0, 6));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "heads must be a multiple of kv_heads");
}

TEST(AttendErrors, LearnedVectorsNotGiven) {
  Plan plan;
  plan.relative = Relative{.rows = {.row = {0}}, .row_count = 1};
  Attention a;
  const auto done = a.tried(plan, {}, Positions::range(0, 6));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().rule, "the learned table relative.key must be given");
}

TEST(AttendErrors, DistanceBeyondATableOnlyIfItIsSeen) {
  Plan plan;
  plan.bias = BiasTable{
      .rows = {.row = {0, 0}, .saturates = false}, .row_count = 1, .values = Table::own({1}, 1, 1)};
  Attention a;
  const Positions six = Positions::range(0, 6);
  EXPECT_TRUE(a.tried(plan, {.window = 2}, six));
  EXPECT_FALSE(a.tried(plan, {.window = 3}, six));
}

TEST(AttendErrors, PositionsThatDoNotMatch) {
  EXPECT_FALSE(Attention{}.tried(Plan{}, {}, Positions::range(0, 5)));
}

TEST(AttendEdges, NoTokensAndNoHeads) {
  Attention none{.seq = 0}, headless{.heads = 0, .kv_heads = 0};
  none.run(rope());
  headless.run(rope());
}

}  // namespace
}  // namespace posenc
