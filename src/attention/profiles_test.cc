// Profiles: small tensors beside q and k that a table by distance meets. Their formula written out,
// the paths of the fast loop against each other and the plain one, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "posenc/cache.h"
#include "src/attention/gradients_test.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {
namespace of_profiles {

class ProfilesIn : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, ProfilesIn, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

constexpr std::int64_t profiles = 3;

// A row for each distance from 0 to extent − 1, none elsewhere.
GradientProblem with_profiles(std::int64_t tokens, std::int64_t extent, bool query, bool key,
                              std::int64_t table_heads = 1) {
  GradientProblem p{.queries = Positions::range(0, tokens), .keys = Positions::range(0, tokens)};
  std::vector<std::int32_t> row = {no_row};
  for (std::int64_t n = 0; n < extent; ++n) row.push_back(static_cast<std::int32_t>(n));
  row.push_back(no_row);
  p.plan.relative = Relative{.rows = {.first = -1, .row = row},
                             .row_count = extent,
                             .uses_query = key,
                             .uses_key = query,
                             .profiles = profiles};
  const auto table = [&](std::vector<double>& numbers, unsigned seed) {
    numbers = random(table_heads * extent * profiles, seed);
    return Table::borrow(Tensor::dense(numbers.data(), {table_heads, extent, profiles}));
  };
  if (query) p.plan.relative->key = table(p.key, 21);
  if (key) p.plan.relative->query = table(p.query, 22);
  p.filled();
  return p;
}

std::vector<double> attended(GradientProblem& p) {
  std::vector<double> out(p.out.size(), NAN);
  const auto done = attend(p.inputs(), p.plan, p.tensor(out, p.heads, p.queries));
  EXPECT_TRUE(done) << done.error().message();
  return out;
}

void expect_reference(GradientProblem& p) {
  const std::vector<double> out = attended(p);
  p.loss();
  for (std::size_t e = 0; e < out.size(); ++e) ASSERT_NEAR(out[e], p.out[e], 1e-11) << e;
}

// logit = q·k·multiplier·τ/√d + τ Σ_u r_u P_u[i − j]
TEST(ProfilesByHand, AreAddedAfterTheScaleTimesTheTemperature) {
  std::vector<double> q = {1, 2}, k = {0.5, -1, 0.25, 3, 1, 1}, v(6), out(2), logits(3);
  std::vector<double> r = {2, -1}, table = {0.5, 0.25, 1, 3, -2, 0.75};  // [distance][profile]
  Plan plan;
  plan.relative = Relative{.rows = {.first = 0, .row = {0, 1, 2}},
                           .row_count = 3,
                           .key = Table::borrow(Tensor::dense(table.data(), {3, 2})),
                           .profiles = 2};
  plan.logits = {.multiplier = 1.5, .beta = 0.5, .floor = 1, .offset = 1};
  const Positions query = Positions::range(2, 1), keys = Positions::range(0, 3);
  const auto view = [](std::vector<double>& x, std::int64_t tokens) {
    return Tensor::dense(x.data(), {1, 1, tokens, 2});
  };
  const AttentionInputs in{view(q, 1), view(k, 3), view(v, 3),           query, keys, {},
                           {},         {},         {.query = view(r, 1)}};
  const auto done =
      attend_reference(in, plan, view(out, 1), Tensor::dense(logits.data(), {1, 1, 1, 3}));
  ASSERT_TRUE(done) << done.error().message();
  const double temperature = 1 + 0.5 * std::log(4.0);
  for (std::size_t j = 0; j < 3; ++j) {
    const double product = q[0] * k[2 * j] + q[1] * k[2 * j + 1];
    const std::size_t row = 2 - j;
    EXPECT_NEAR(
        logits[j],
        temperature * (product * 1.5 / std::sqrt(2.0) + 2 * table[2 * row] - table[2 * row + 1]),
        1e-14);
  }
}

// What a head of q' = (q, r), k' = (k, 0) with a Shaw table of (0, P·√d) does.
TEST_P(ProfilesIn, AreShawsVectorsOnChannelsBehindTheQuery) {
  GradientProblem p = with_profiles(40, 9, true, false);
  const std::vector<double> out = attended(p);
  constexpr std::int64_t wide = gradient_dim + profiles;
  const auto widened = [&](const std::vector<double>& x, const std::vector<double>* behind) {
    std::vector<double> y;
    for (std::size_t row = 0; row < x.size() / gradient_dim; ++row) {
      y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(row) * gradient_dim,
               x.begin() + static_cast<std::ptrdiff_t>(row + 1) * gradient_dim);
      for (std::size_t u = 0; u < profiles; ++u)
        y.push_back(behind ? (*behind)[row * profiles + u] : 0.0);
    }
    return y;
  };
  const double root = std::sqrt(static_cast<double>(wide));
  std::vector<double> q = widened(p.q, &p.query_profiles), k = widened(p.k, nullptr);
  for (std::size_t e = 0; e < q.size(); ++e)  // of wide channels the scale is another
    if (static_cast<std::int64_t>(e) % wide < gradient_dim)
      q[e] *= root / std::sqrt(static_cast<double>(gradient_dim));
  std::vector<double> table;
  for (std::int64_t r = 0; r <= 9; ++r)
    for (std::int64_t c = 0; c < wide; ++c)
      table.push_back(r == 9 || c < gradient_dim
                          ? 0
                          : root *
                                p.key[static_cast<std::size_t>(r * profiles + c - gradient_dim)]);
  Plan shaw;
  std::vector<std::int32_t> row = {9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  shaw.relative = Relative{.rows = {.first = -1, .row = row},
                           .row_count = 10,
                           .key = Table::borrow(Tensor::dense(table.data(), {10, wide}))};
  std::vector<double> shaws(out.size());
  const auto done = attend({Tensor::dense(q.data(), {p.batch, p.heads, 40, wide}),
                            Tensor::dense(k.data(), {p.batch, p.kv_heads, 40, wide}),
                            p.tensor(p.v, p.kv_heads, p.keys), p.queries, p.keys, p.mask},
                           shaw, p.tensor(shaws, p.heads, p.queries));
  ASSERT_TRUE(done) << done.error().message();
  for (std::size_t e = 0; e < out.size(); ++e) ASSERT_NEAR(out[e], shaws[e], 1e-12) << e;
}

// More keys than a block holds, an extent that ends within one, and blocks beyond it.
TEST_P(ProfilesIn, ReachTheirExtentAcrossBlocks) {
  for (const bool query : {true, false}) {
    for (const std::int64_t extent : {1, 70, 300, 900}) {
      GradientProblem p = with_profiles(700, extent, query, !query, query ? 1 : 4);
      p.batch = 1;
      p.filled();
      expect_reference(p);
      p.mask.window = 65;
      expect_reference(p);
    }
  }
}

TEST_P(ProfilesIn, MayBeOfQueriesAndKeysAtOnce) {
  GradientProblem p = with_profiles(90, 40, true, true, 4);
  p.plan.bias = Slopes{.slope = {0.5, 0.25, 0.1, 0.7}};
  p.plan.logits = {.multiplier = 0.4, .beta = 0.3, .floor = 2, .offset = 1, .softcap = 1.5};
  expect_reference(p);
  p.mask.causal = false;
  expect_reference(p);
}

TEST_P(ProfilesIn, HidePaddingWhateverItHolds) {
  GradientProblem p = with_profiles(60, 30, true, true);
  std::vector<std::uint8_t> keep(120);
  for (std::size_t j = 0; j < keep.size(); ++j) keep[j] = j % 7 != 3;
  p.mask.keep = keep.data();
  p.filled();
  expect_reference(p);
}

// Positions in any order leave no strip, and change no bit.
TEST_P(ProfilesIn, HaveTheSameBitsWithoutAStrip) {
  GradientProblem p = with_profiles(50, 20, true, true);
  const std::vector<double> strip = attended(p);
  std::vector<std::int64_t> places;  // the first token last
  for (std::int64_t t = 1; t <= 50; ++t) places.push_back(t % 50);
  GradientProblem moved = p;
  moved.queries = moved.keys = *p.queries.select(places);
  const auto move = [&](std::vector<double>& x, const std::vector<double>& from,
                        std::int64_t width) {
    for (std::size_t e = 0; e < x.size(); ++e) {
      const auto at = static_cast<std::int64_t>(e);
      const std::int64_t row = at / width, token = row % 50;
      x[e] = from[static_cast<std::size_t>(
          (row - token + places[static_cast<std::size_t>(token)]) * width + at % width)];
    }
  };
  move(moved.q, p.q, gradient_dim);
  move(moved.query_profiles, p.query_profiles, profiles);
  moved.keys = p.keys;
  const std::vector<double> out = attended(moved);
  std::vector<double> wanted(out.size());
  move(wanted, strip, gradient_dim);
  EXPECT_EQ(out, wanted);
}

TEST_P(ProfilesIn, DecodeThroughTheCacheAsInOneCall) {
  GradientProblem p = with_profiles(33, 12, true, true, 4);
  p.batch = 1;
  p.filled();
  p.plan.rotate = Rotate{.slice = {.rotary_dim = 6}, .frequencies = {.radians = {1, 0.4, 0.1}}};
  const std::vector<double> whole = attended(p);
  for (const CachedKeys keys : {CachedKeys::rotated, CachedKeys::unrotated}) {
    KvCache cache = *KvCache::make({.kv_heads = p.kv_heads,
                                    .head_dim = gradient_dim,
                                    .dtype = DType::f64,
                                    .page_size = 4,
                                    .keys = keys});
    const auto sequence = cache.add();
    const auto tokens = [](Tensor x, std::int64_t first, std::int64_t count) {
      x.data = static_cast<double*>(x.data) + first * x.stride[2];
      x.shape[2] = count;
      return x;
    };
    std::vector<double> out(whole.size(), NAN);
    const Tensor q = p.tensor(p.q, p.heads, p.queries), to = p.tensor(out, p.heads, p.queries);
    for (std::int64_t t = 0, count = 17; t < 33; t += count, count = 1) {
      ASSERT_TRUE(cache.append({{sequence}}, tokens(p.tensor(p.k, p.kv_heads, p.keys), t, count),
                               tokens(p.tensor(p.v, p.kv_heads, p.keys), t, count), p.plan));
      const auto done =
          cache.attend({{sequence}}, tokens(q, t, count), p.plan, {}, tokens(to, t, count), {}, {},
                       {.query = tokens(p.profile(p.query_profiles, p.queries), t, count),
                        .key = tokens(p.profile(p.key_profiles, p.keys), 0, t + count)});
      ASSERT_TRUE(done) << done.error().message();
    }
    for (std::size_t e = 0; e < out.size(); ++e) ASSERT_NEAR(out[e], whole[e], 1e-12) << e;
  }
}

TEST_P(ProfilesIn, HaveTheSameBitsForAnyNumberOfThreads) {
  GradientProblem p = with_profiles(400, 90, true, true);
  std::vector<double> one(p.out.size()), many = one;
  ASSERT_TRUE(attend(p.inputs({1}), p.plan, p.tensor(one, p.heads, p.queries)));
  ASSERT_TRUE(attend(p.inputs({3}), p.plan, p.tensor(many, p.heads, p.queries)));
  EXPECT_EQ(one, many);
}

std::string refused(GradientProblem& p, const AttentionInputs& in) {
  const auto done = attend(in, p.plan, p.tensor(p.out, p.heads, p.queries));
  return done ? "" : done.error().message();
}

TEST(ProfileErrors, NameWhatIsMissingOrTooMuch) {
  GradientProblem p = with_profiles(5, 3, true, false);
  AttentionInputs in = p.inputs();
  in.profiles.query = {};
  EXPECT_EQ(refused(p, in),
            "attend: profiles.query must be [2, 4, 5, 3], got none; the plan's "
            "tables by distance meet them");
  in = p.inputs();
  in.profiles.query.shape[3] = 2;
  EXPECT_NE(refused(p, in).find("profiles.query must be [2, 4, 5, 3], got [2, 4, 5, 2]"),
            std::string::npos);
  in = p.inputs();
  in.profiles.key = in.profiles.query;
  EXPECT_NE(refused(p, in).find("profiles.key must be absent"), std::string::npos);
  in = p.inputs();
  p.plan = {};
  EXPECT_NE(refused(p, in).find("profiles.query must be absent"), std::string::npos);
}

TEST(ProfileErrors, ALearnedTemperatureHasNoGradientBesideThem) {
  GradientProblem p = with_profiles(5, 3, true, false);
  p.plan.logits = {.temperature = Temperature::heads,
                   .offset = 1,
                   .head_scale = {1, 1, 1, 1},
                   .head_bias = {1, 1, 1, 1}};
  std::vector<double> scale(4);
  const auto done = attend_backward(p.inputs(), p.plan, p.tensor(p.loss_weight, p.heads, p.queries),
                                    {.head_scale = Tensor::dense(scale.data(), {4})});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("profiles"), std::string::npos);
}

}  // namespace of_profiles
}  // namespace
}  // namespace posenc
