// Plans that change with the length, and arguments from outside: nothing is mixed, nothing crashes.
#include <limits>
#include <string>
#include <vector>

#include "posenc/cache.h"
#include "tests/kv_text.h"
#include "tests/random.h"

namespace posenc {
using namespace kv;

namespace {

// 24 tokens with a scaling that changes at 8 of them; the plan that a length of the text asks for.
struct Growing {
  Text text{.tokens = 24, .dim = 16};
  Scheme scheme = Rope{.scaling = DynamicNtk{.factor = 4, .max_position_embeddings = 8}};

  Plan plan(std::int64_t length) const { return compiled(scheme, text.geometry(length)); }
  auto by_length() const {
    return [this](std::int64_t length) { return plan(length); };
  }
  // The truth for one token: the plan of its time for all keys.
  Numbers truth(std::int64_t token) {
    const Numbers all = text.at_once(plan_of_any_length(token + 1));
    return of(all, token);
  }
  Plan plan_of_any_length(std::int64_t length) const {
    Plan any = plan(length);
    any.valid.reset();
    return any;
  }
  Numbers of(const Numbers& all, std::int64_t token) const {
    Numbers one;
    for (std::int64_t h = 0; h < text.heads; ++h) {
      const auto at = all.begin() + (h * text.tokens + token) * text.dim;
      one.insert(one.end(), at, at + text.dim);
    }
    return one;
  }
  // The largest difference from the truth over all tokens.
  double error(const KvCacheOptions& options) {
    const Numbers out = through_cache(options, text, {1}, by_length());
    double most = 0;
    for (std::int64_t t = 0; t < text.tokens; ++t)
      most = std::max(most, largest_difference(of(out, t), truth(t)));
    return most;
  }
};

const Rope long_rope{.scaling = LongRope{.short_factor = {1, 1, 1.1, 1.2, 1.3, 1.5, 2, 2},
                                         .long_factor = {1, 1.5, 2, 4, 8, 16, 20, 24},
                                         .original_max_position_embeddings = 8,
                                         .short_mscale = 1.0,
                                         .long_mscale = 1.2}};
const Rope dynamic_yarn{.rotate_values = true,
                        .scaling = Yarn{.original_max_position_embeddings = 8, .dynamic = true}};

TEST(CachePlan, KeysFollowDynamicNtkExactly) {
  Growing growing;
  for (const CachedKeys keys : {CachedKeys::unrotated, CachedKeys::rotated})
    EXPECT_LE(growing.error(growing.text.options(keys)), growing.text.rounding());
}

TEST(CachePlan, KeysFollowLongRopesSwitchAndYarnsDynamicForm) {
  for (const Rope& rope : {long_rope, dynamic_yarn}) {
    Growing growing{.scheme = rope};
    for (const CachedKeys keys : {CachedKeys::unrotated, CachedKeys::rotated})
      EXPECT_LE(growing.error(growing.text.options(keys)), growing.text.rounding(1.2));
  }
}

// PoPE's keys are wide once rotated: a cache holds them as they came.
TEST(CachePlan, PolarKeysAreCachedAsTheyCame) {
  Text text;
  Pope pope{.phases = random(text.kv_heads * text.dim, 3)};
  const Plan plan = compiled(pope, text.geometry());
  const KvCacheOptions options = text.options(CachedKeys::unrotated);
  const Numbers out = through_cache(options, text, {1}, [&](std::int64_t) { return plan; });
  EXPECT_LE(largest_difference(out, text.at_once(plan)), 4 * text.rounding());
  KvCache cache = made(text.options(CachedKeys::rotated));
  EXPECT_NE(message(cache.append({{cache.add()}}, text.k.view(), text.v.view(), plan))
                .find("must not have polar pairs"),
            std::string::npos);
}

// A mixture of cosines cannot be taken back: rotated keys stay where they are and as they are.
TEST(CachePlan, MixturesRotateKeysForGood) {
  Text text;
  Fope fope{.num_inv_freq = 3, .cos_coef = random(text.kv_heads * 9, 3)};
  const Plan plan = compiled(fope, text.geometry());
  for (const CachedKeys keys : {CachedKeys::unrotated, CachedKeys::rotated}) {
    const Numbers out =
        through_cache(text.options(keys), text, {1}, [&](std::int64_t) { return plan; });
    EXPECT_LE(largest_difference(out, text.at_once(plan)), 4 * text.rounding());
  }
  KvCache cache = made(text.options(CachedKeys::rotated));
  const auto sequence = cache.add();
  ASSERT_EQ(message(cache.append({{sequence}}, text.k.view(), text.v.view(), plan)), "");
  EXPECT_NE(message(cache.shift(sequence, 1, 3, 5)).find("must not have mixtures of cosines"),
            std::string::npos);
  Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 21, 8);
  const Plan other = compiled(Rope{}, text.geometry());
  EXPECT_NE(message(cache.attend({{sequence}}, text.q.view(), other, {}, out.view()))
                .find("must not have mixtures of cosines"),
            std::string::npos);
}

// A key has a rotation for each region: a cache holds it as it came, and decoding gives what
// prefilling does.
TEST(CachePlan, RegionsAttendToKeysAsTheyCame) {
  Text text;
  for (const Rope& rope : {Rope{.distance_map = ReRope{.window = 5}},
                           Rope{.distance_map = SelfExtend{.window = 6, .group = 3}},
                           Rope{.distance_map = DualChunk{.chunk_size = 7, .local_size = 2}}}) {
    const Plan plan = compiled(rope, text.geometry());
    const Numbers out = through_cache(text.options(CachedKeys::unrotated), text, {1},
                                      [&](std::int64_t) { return plan; });
    EXPECT_LE(largest_difference(out, text.at_once(plan)), 4 * text.rounding());
    KvCache cache = made(text.options(CachedKeys::rotated));
    EXPECT_NE(message(cache.append({{cache.add()}}, text.k.view(), text.v.view(), plan))
                  .find("must not have rotations that depend on"),
              std::string::npos);
  }
}

// Only the phases differ: keys are rotated back by the old ones, and anew.
TEST(CachePlan, KeysFollowOtherPhases) {
  Text text;
  Plan before = compiled(Rope{}, text.geometry()), after = before;
  for (Plan* plan : {&before, &after})
    plan->rotate->kind =
        Plain{.phase = Phase{.side = Side::key,
                             .radians = random(plan->rotate->pairs(), plan == &after ? 8 : 7)}};
  KvCache cache = made(text.options(CachedKeys::rotated));
  const auto sequence = cache.add();
  Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 21, 8);
  ASSERT_EQ(message(cache.append({{sequence}}, text.k.view(), text.v.view(), before)), "");
  ASSERT_EQ(message(cache.attend({{sequence}}, text.q.view(), after, {}, out.view())), "");
  EXPECT_LE(largest_difference(numbers(out.view()), text.at_once(after)), text.rounding());
}

// A growth centred at the middle of the current length, as public xPos programs have it.
TEST(CachePlan, KeysFollowAMovingCentreOfGrowth) {
  Growing growing{.scheme = XPos{}};
  EXPECT_NE(growing.plan(8), growing.plan(24));
  EXPECT_LE(growing.error(growing.text.options(CachedKeys::rotated)), growing.text.rounding());
}

// An engine's float angles are no product that a difference could be taken of: near position
// 1,000,000 they are off by hundredths of a radian, and by others after the change.
TEST(CachePlan, KeysFollowAnEnginesFloatAngles) {
  Text text;
  Plan before = compiled(Rope{.rotate_values = true}, text.geometry());
  before.rotate->kind = HfFloat{};
  for (double& f : before.rotate->frequencies.radians) f = static_cast<float>(f);
  Plan after = before;
  for (double& f : after.rotate->frequencies.radians) f = static_cast<float>(f / 3);
  const Positions at = Positions::range(1000000, text.tokens);
  KvCache cache = made(text.options(CachedKeys::rotated));
  const auto sequence = cache.add();
  Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 21, 8);
  ASSERT_TRUE(cache.append({{sequence}}, text.k.view(), text.v.view(), before, at));
  ASSERT_EQ(message(cache.attend({{sequence}}, text.q.view(), after, {}, out.view())), "");
  // cos and sin are floats: there and back leaves the rounding of their squares' sum.
  EXPECT_LE(largest_difference(numbers(out.view()), text.at_once(after, at)), 1e-5);
}

// Engines that keep each key as it was turned at its time score old keys by one base and new ones
// by another. This is that error, and beside it ours.
TEST(CachePlan, MixedRotationsAreAsWrongAsIsSaidAndOursAreNot) {
  Growing growing{
      .text = {.tokens = 96, .dim = 64},
      .scheme = Rope{.scaling = DynamicNtk{.factor = 4, .max_position_embeddings = 16}}};
  Text& text = growing.text;
  const std::int64_t last = text.tokens - 1;
  Numbers k = numbers(text.k.view()), v = numbers(text.v.view()), q = numbers(text.q.view());
  const auto view = [&](Numbers& x, std::int64_t heads) {
    return Tensor::dense(x.data(), {1, heads, text.tokens, text.dim});
  };
  for (std::int64_t t = 0; t < text.tokens; ++t) {
    const Tensor key = tokens_of(view(k, text.kv_heads), t, 1);
    ASSERT_TRUE(rotate(growing.plan(t + 1), key, Positions::range(t, 1), Side::key, key));
  }
  const Tensor query = tokens_of(view(q, text.heads), last, 1);
  const Positions at = Positions::range(last, 1);
  ASSERT_TRUE(rotate(growing.plan(text.tokens), query, at, Side::query, query));
  Numbers mixed(static_cast<std::size_t>(text.heads * text.dim));
  ASSERT_TRUE(attend(
      {query, view(k, text.kv_heads), view(v, text.kv_heads), at, Positions::range(0, text.tokens)},
      Plan{}, Tensor::dense(mixed.data(), {1, text.heads, 1, text.dim})));

  const Numbers truth = growing.truth(last);
  const double size = rms_difference(truth, Numbers(truth.size()));
  const double wrong = rms_difference(mixed, truth) / size;
  RecordProperty("mixed", std::to_string(wrong));
  EXPECT_GT(wrong, 0.25);  // of the output's own size
  const Numbers out =
      through_cache(text.options(CachedKeys::rotated), text, {1}, growing.by_length());
  EXPECT_LT(rms_difference(growing.of(out, last), truth) / size, 1e-12);
}

TEST(CachePlan, RefusedKeysAreNeverMixed) {
  Growing growing;
  Text& text = growing.text;
  KvCacheOptions options = text.options(CachedKeys::rotated);
  options.new_plan = NewPlan::refuse;
  KvCache cache = made(options);
  const auto sequence = cache.add();
  Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 24, 16);
  fed(cache, sequence, text, 0, 8, {8}, growing.by_length(), out.view());
  const Tensor k = tokens_of(text.k.view(), 8, 1), v = tokens_of(text.v.view(), 8, 1),
               q = tokens_of(text.q.view(), 7, 1), o = tokens_of(out.view(), 7, 1);
  EXPECT_EQ(
      message(cache.append({{sequence}}, k, v, growing.plan(9))),
      "cache append: the plan must rotate as the 8 keys of sequence 0 were rotated, got another "
      "rotation, for which they are stale; cache keys unrotated, or rotate them anew with "
      "NewPlan::rerotate");
  EXPECT_NE(message(cache.attend({{sequence}}, q, growing.plan_of_any_length(9), {}, o)), "");
  EXPECT_EQ(*cache.tokens(sequence), 8);
  EXPECT_TRUE(cache.attend({{sequence}}, q, growing.plan(8), {}, o));
  // Without a key there is nothing to be stale.
  ASSERT_TRUE(cache.evict(sequence, 0, 8, KvCache::Gap::keep));
  EXPECT_TRUE(cache.append({{sequence}}, k, v, growing.plan_of_any_length(9)));
}

TEST(CachePlan, APlanThatDoesNotHoldForTheLengthIsRefusedByName) {
  Growing growing;
  Text& text = growing.text;
  for (const CachedKeys keys : {CachedKeys::unrotated, CachedKeys::rotated}) {
    KvCache cache = made(text.options(keys));
    const auto sequence = cache.add();
    const auto piece = [&](Memory& x) { return tokens_of(x.view(), 0, 9); };
    EXPECT_EQ(
        message(cache.append({{sequence}}, piece(text.k), piece(text.v), growing.plan(8))),
        "cache append: the plan must hold for length 9, that of sequence 0, got one for lengths 0 "
        "to 8; compile the scheme for this length");
    ASSERT_TRUE(cache.append({{sequence}}, piece(text.k), piece(text.v), growing.plan(9)));
    const std::string told =
        message(cache.attend({{sequence}}, piece(text.q), growing.plan(10), {}, piece(text.q)));
    EXPECT_NE(told.find("must hold for length 9"), std::string::npos) << told;
    EXPECT_NE(told.find("10 to 10"), std::string::npos) << told;
  }
}

TEST(CachePlan, VectorsByDistanceMeetUnrotatedKeys) {
  Text text;
  Plan plan = compiled(Rope{}, text.geometry());
  Numbers rows(3 * 8, 0.5);
  plan.relative = Relative{.rows = {.first = -1, .row = {0, 1, 2}},
                           .row_count = 3,
                           .key = Table::borrow(Tensor::dense(rows.data(), {3, 8}))};
  const Numbers out =
      through_cache(text.options(CachedKeys::unrotated), text, {2}, [&](auto) { return plan; });
  EXPECT_LE(largest_difference(out, text.at_once(plan)), text.rounding());
  KvCache cache = made(text.options(CachedKeys::rotated));
  const std::string told =
      message(cache.append({{cache.add()}}, text.k.view(), text.v.view(), plan));
  EXPECT_NE(told.find("must not have vectors by distance"), std::string::npos) << told;
}

// --- bytes from outside --------------------------------------------------------------------------

TEST(CacheArguments, SizesThatCannotBeAreErrors) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  for (const KvCacheOptions& options :
       {KvCacheOptions{}, KvCacheOptions{.kv_heads = 2},
        KvCacheOptions{.kv_heads = -1, .head_dim = 4},
        KvCacheOptions{.kv_heads = 2, .head_dim = 4, .value_dim = -1},
        KvCacheOptions{.kv_heads = 2, .head_dim = 4, .page_size = 0},
        KvCacheOptions{.kv_heads = 2, .head_dim = 4, .max_pages = -1},
        KvCacheOptions{.kv_heads = huge, .head_dim = huge},
        KvCacheOptions{.kv_heads = 2, .head_dim = 4, .page_size = huge},
        KvCacheOptions{.kv_heads = 2, .head_dim = 4, .max_pages = huge}}) {
    EXPECT_FALSE(KvCache::make(options));
  }
}

TEST(CacheArguments, UnknownSequencesAreErrorsEverywhere) {
  Text text;
  KvCache cache = made(text.options(CachedKeys::rotated));
  const auto removed = cache.add();
  ASSERT_TRUE(cache.remove(removed));
  for (const KvCache::Sequence sequence :
       {removed, KvCache::Sequence{-1}, std::numeric_limits<KvCache::Sequence>::max()}) {
    EXPECT_FALSE(cache.remove(sequence));
    EXPECT_FALSE(cache.append({{sequence}}, text.k.view(), text.v.view(), Plan{}));
    EXPECT_FALSE(cache.attend({{sequence}}, text.q.view(), Plan{}, {}, text.q.view()));
    EXPECT_FALSE(cache.shift(sequence, 0, 0, 1));
    EXPECT_FALSE(cache.evict(sequence, 0, 0, KvCache::Gap::close));
    EXPECT_FALSE(cache.tokens(sequence));
    EXPECT_FALSE(cache.length(sequence));
    EXPECT_FALSE(cache.positions(sequence));
  }
}

TEST(CacheArguments, ASequenceTwiceInACallIsAnError) {
  Text text{.tokens = 1};
  KvCache cache = made(text.options(CachedKeys::rotated));
  const auto sequence = cache.add();
  Memory k = memory(DType::f64, MemoryLayout::heads_first, 2, 2, 1, 8);
  EXPECT_FALSE(cache.append({{sequence, sequence}}, k.view(), k.view(), Plan{}));
  EXPECT_EQ(*cache.tokens(sequence), 0);
}

TEST(CacheArguments, ShapesAndDtypesThatDoNotFitAreErrors) {
  Text text;
  KvCache cache = made(text.options(CachedKeys::rotated));
  const auto sequence = cache.add();
  const Tensor k = text.k.view(), q = text.q.view();
  const auto other = [](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d,
                        DType dtype = DType::f64) {
    return memory(dtype, MemoryLayout::heads_first, b, h, t, d);
  };
  for (Memory bad : {other(1, 1, 21, 8), other(1, 2, 21, 6), other(2, 2, 21, 8), other(1, 2, 0, 8),
                     other(1, 2, 21, 8, DType::f32)}) {
    EXPECT_FALSE(cache.append({{sequence}}, bad.view(), k, Plan{}));
    EXPECT_FALSE(cache.append({{sequence}}, k, bad.view(), Plan{}));
    EXPECT_FALSE(cache.append({{sequence}}, bad.view(), bad.view(), Plan{}));
  }
  EXPECT_FALSE(cache.append({{sequence}}, k, other(1, 2, 20, 8).view(), Plan{}));
  EXPECT_FALSE(cache.append({{sequence}}, Tensor{}, Tensor{}, Plan{}));
  EXPECT_EQ(*cache.tokens(sequence), 0);
  EXPECT_EQ(cache.pages(), 0);

  ASSERT_TRUE(cache.append({{sequence}}, k, k, Plan{}));
  for (Memory bad : {other(1, 3, 21, 8), other(1, 0, 21, 8), other(1, 8, 22, 8), other(1, 8, 0, 8),
                     other(1, 8, 21, 7), other(2, 8, 21, 8), other(1, 8, 21, 8, DType::bf16)}) {
    EXPECT_FALSE(cache.attend({{sequence}}, bad.view(), Plan{}, {}, bad.view()));
    EXPECT_FALSE(cache.attend({{sequence}}, q, Plan{}, {}, bad.view()));
  }
  EXPECT_FALSE(cache.attend({{sequence}}, Tensor{}, Plan{}, {}, q));
  EXPECT_TRUE(cache.attend({}, Tensor{}, Plan{}, {}, Tensor{}));  // nobody asks
}

TEST(CacheArguments, AskingBeforeAnythingIsKeptIsAnError) {
  Text text;
  KvCache cache = made(text.options(CachedKeys::unrotated));
  const auto sequence = cache.add();
  EXPECT_EQ(
      message(cache.attend({{sequence}}, tokens_of(text.q.view(), 0, 1), Plan{}, {},
                           tokens_of(text.q.view(), 0, 1))),
      "cache attend: sequence 0 must hold the 1 tokens that ask, got 0; append their keys and "
      "values first");
}

TEST(CacheArguments, AMaskOfPaddingIsRefused) {
  Text text;
  KvCache cache = made(text.options(CachedKeys::unrotated));
  const auto sequence = cache.add();
  ASSERT_TRUE(cache.append({{sequence}}, text.k.view(), text.v.view(), Plan{}));
  const std::vector<std::uint8_t> keep(21, 1);
  EXPECT_FALSE(
      cache.attend({{sequence}}, text.q.view(), Plan{}, {.keep = keep.data()}, text.q.view()));
}

TEST(CacheArguments, PositionsOfNoRealTextAreErrors) {
  Text text{.tokens = 4};
  const Plan plan = compiled(Rope{}, text.geometry());
  for (const CachedKeys keys : {CachedKeys::unrotated, CachedKeys::rotated}) {
    KvCache cache = made(text.options(keys));
    const auto sequence = cache.add();
    const auto at = [&](const Positions& positions) {
      return message(cache.append({{sequence}}, text.k.view(), text.v.view(), plan, positions));
    };
    constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
    const std::vector<std::uint8_t> padded = {0, 1, 1, 1};
    EXPECT_NE(at(Positions::range(-1, 4)), "");
    EXPECT_NE(at(Positions::range(huge - 1, 4)), "");
    EXPECT_NE(at(Positions::range((std::int64_t{1} << 62) - 2, 4)), "");
    EXPECT_NE(at(*Positions::from_mask(padded, 1, 0, -1)), "");
    EXPECT_NE(at(*Positions::packed(std::vector<std::int64_t>{0, 2, 4})), "");
    EXPECT_NE(at(Positions::range(0, 3)), "");
    EXPECT_NE(at(*Positions::ids(std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3}, 2)), "");
    EXPECT_EQ(*cache.tokens(sequence), 0);
    EXPECT_EQ(at(Positions::range((std::int64_t{1} << 62) - 4, 4)), "");
    EXPECT_NE(message(cache.append({{sequence}}, text.k.view(), text.v.view(), plan)), "");
    EXPECT_EQ(*cache.tokens(sequence), 4);
  }
}

// Exact angles go on beyond 2^24, an engine's float angles may not.
TEST(CacheArguments, PositionsNearTwoToThe24) {
  Text text{.tokens = 4};
  Plan plan = compiled(Rope{}, text.geometry());
  Plan engine = plan;
  engine.rotate->kind = HfFloat{};
  for (double& f : engine.rotate->frequencies.radians) f = static_cast<float>(f);
  for (const CachedKeys keys : {CachedKeys::unrotated, CachedKeys::rotated}) {
    KvCache cache = made(text.options(keys));
    const auto sequence = cache.add();
    const Tensor k = text.k.view(), v = text.v.view(), q = text.q.view();
    Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 4, 8);
    EXPECT_NE(
        message(cache.append({{sequence}}, k, v, engine, Positions::range(float_positions - 3, 4))),
        "");
    ASSERT_EQ(
        message(cache.append({{sequence}}, k, v, engine, Positions::range(float_positions - 4, 4))),
        "");
    ASSERT_EQ(message(cache.attend({{sequence}}, q, engine, {}, out.view())), "");
    EXPECT_NE(message(cache.append({{sequence}}, k, v, engine)), "");
    ASSERT_EQ(message(cache.append({{sequence}}, k, v, plan)), "");
    ASSERT_EQ(message(cache.attend({{sequence}}, q, plan, {}, out.view())), "");
    const std::string told = message(cache.attend({{sequence}}, q, engine, {}, out.view()));
    EXPECT_NE(told, "");
    EXPECT_EQ(*cache.tokens(sequence), 8);
  }
}

TEST(CacheArguments, RotationsThatDoNotFitTheKeysAreErrors) {
  Text text;
  for (const CachedKeys keys : {CachedKeys::unrotated, CachedKeys::rotated}) {
    KvCache cache = made(text.options(keys));
    const auto sequence = cache.add();
    const auto with = [&](std::int64_t rotary_dim, const Frequencies& frequencies,
                          double amplitude = 1) {
      Plan plan;
      plan.rotate = Rotate{
          .slice = {.rotary_dim = rotary_dim}, .frequencies = frequencies, .amplitude = amplitude};
      return message(cache.append({{sequence}}, text.k.view(), text.v.view(), plan));
    };
    EXPECT_NE(with(10, {.radians = {1, 1, 1, 1, 1}}), "");
    EXPECT_NE(with(4, {.radians = {1}}), "");
    EXPECT_NE(with(2, {.heads = 8, .radians = Numbers(8, 1.0)}), "");
    EXPECT_NE(with(2, {.radians = {1}}, 0), "");
    EXPECT_NE(with(2, {.radians = {NAN}}), "");
    EXPECT_EQ(*cache.tokens(sequence), 0);
  }
}

}  // namespace
}  // namespace posenc
