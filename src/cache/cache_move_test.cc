// Surviving keys at new positions are what they would be had they been appended there.
#include <limits>
#include <string>
#include <vector>

#include "posenc/cache.h"
#include "tests/kv_text.h"
#include "tests/random.h"

namespace posenc {
using namespace kv;

namespace {

using Gap = KvCache::Gap;
constexpr CachedKeys all_kinds[] = {CachedKeys::unrotated, CachedKeys::rotated};

// Every kind of rotation that moves in a way of its own, and places without one.
std::vector<Plan> plans(const Text& text) {
  std::vector<Plan> all;
  for (const Scheme& scheme :
       {Scheme{NoPe{}}, Scheme{Rope{}},
        Scheme{Rope{.pairing = Pairing::interleaved, .rotary_dim = 4}},
        Scheme{Rope{.rotate_values = true}}, Scheme{XPos{.centre = 7}}, Scheme{Alibi{}},
        Scheme{Rope{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 8}}}}) {
    all.push_back(compiled(scheme, text.geometry()));
  }
  for (const Side side : {Side::query, Side::key}) {
    all.push_back(compiled(Rope{}, text.geometry()));
    Rotate& rotate = *all.back().rotate;
    const std::int64_t heads = side == Side::key ? text.kv_heads : text.heads;
    rotate.kind = Plain{.phase = Phase{side, heads, random(heads * rotate.pairs(), 5)}};
  }
  for (const std::size_t rope : {1, 3}) {
    all.push_back(all[rope]);
    all.back().rotate->kind = HfFloat{};
    for (double& f : all.back().rotate->frequencies.radians) f = static_cast<float>(f);
  }
  return all;
}

// The text's tokens of these indices, by a new cache fed at these positions, and then the last
// token asking: what it gives.
Numbers fresh(Text& text, const KvCacheOptions& options, const Plan& plan,
              const std::vector<std::int64_t>& survivors,
              const std::vector<std::int64_t>& positions) {
  KvCache cache = made(options);
  const auto sequence = cache.add();
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    const auto piece = [&](Memory& x) { return tokens_of(x.view(), survivors[i], 1); };
    EXPECT_EQ(message(cache.append({{sequence}}, piece(text.k), piece(text.v), plan,
                                   Positions::range(positions[i], 1))),
              "");
  }
  Memory out = memory(text.dtype, MemoryLayout::heads_first, 1, text.heads, 1, text.dim);
  EXPECT_EQ(message(cache.attend({{sequence}}, tokens_of(text.q.view(), survivors.back(), 1), plan,
                                 {}, out.view())),
            "");
  return numbers(out.view());
}

// The whole text in a cache, then whatever `act` does to it, then its last token asking.
template <class Act>
Numbers after(Text& text, const KvCacheOptions& options, const Plan& plan, const Act& act) {
  KvCache cache = made(options);
  const auto sequence = cache.add();
  EXPECT_EQ(message(cache.append({{sequence}}, text.k.view(), text.v.view(), plan)), "");
  act(cache, sequence);
  Memory out = memory(text.dtype, MemoryLayout::heads_first, 1, text.heads, 1, text.dim);
  EXPECT_EQ(message(cache.attend({{sequence}}, tokens_of(text.q.view(), text.tokens - 1, 1), plan,
                                 {}, out.view())),
            "");
  return numbers(out.view());
}

void counted(std::vector<std::int64_t>& to, std::int64_t first, std::int64_t last) {
  for (; first < last; ++first) to.push_back(first);
}

// An engine's float angles are off by 2^-24 of themselves, at 20 radians; turned back and anew, the
// errors of all_kinds cancel but for the rounding of cos and sin to float.
double allowed(Text& text, const Plan& plan) {
  return plan.rotate && plan.rotate->angles() != Angles::exact ? 1e-5 : text.rounding(1.2);
}

TEST(CacheMove, EvictedAndRenumberedIsAFreshCacheOfTheSurvivors) {
  Text text;
  for (const Plan& plan : plans(text)) {
    for (const CachedKeys keys : all_kinds) {
      for (const std::int64_t page_size : {1, 3, 16}) {
        for (const auto& [first, last] : std::vector<std::pair<std::int64_t, std::int64_t>>{
                 {4, 11}, {0, 20}, {1, 2}, {2, 16}, {0, 1}}) {
          std::vector<std::int64_t> survivors, positions;
          counted(survivors, 0, first);
          counted(survivors, last, text.tokens);
          counted(positions, 0, text.tokens - (last - first));
          const KvCacheOptions options = text.options(keys, page_size);
          const Numbers got = after(text, options, plan, [&](KvCache& cache, auto sequence) {
            ASSERT_EQ(message(cache.evict(sequence, first, last, Gap::close)), "");
            EXPECT_EQ(*cache.length(sequence), text.tokens - (last - first));
          });
          EXPECT_LE(largest_difference(got, fresh(text, options, plan, survivors, positions)),
                    allowed(text, plan))
              << first << " " << last << " " << page_size;
        }
      }
    }
  }
}

TEST(CacheMove, EvictedAndKeptInPlaceIsAFreshCacheWithAHole) {
  Text text;
  for (const Plan& plan : plans(text)) {
    for (const CachedKeys keys : all_kinds) {
      std::vector<std::int64_t> survivors;
      counted(survivors, 0, 4);
      counted(survivors, 13, 21);
      const Numbers got = after(text, text.options(keys), plan, [&](KvCache& cache, auto sequence) {
        ASSERT_EQ(message(cache.evict(sequence, 4, 13, Gap::keep)), "");
        EXPECT_EQ(*cache.length(sequence), 21);
        EXPECT_EQ(*cache.tokens(sequence), 12);
      });
      EXPECT_LE(
          largest_difference(got, fresh(text, text.options(keys), plan, survivors, survivors)),
          allowed(text, plan));
    }
  }
}

TEST(CacheMove, ShiftedIsAFreshCacheAtTheNewPositions) {
  Text text;
  for (const Plan& plan : plans(text)) {
    for (const CachedKeys keys : all_kinds) {
      for (const std::int64_t offset : {1, 7, 1000}) {
        std::vector<std::int64_t> tokens, positions;
        counted(tokens, 0, 21);
        for (const std::int64_t t : tokens) positions.push_back(t < 5 ? t : t + offset);
        const Numbers moved = fresh(text, text.options(keys), plan, tokens, positions);
        const auto there = [&](KvCache& cache, auto sequence) {
          ASSERT_EQ(message(cache.shift(sequence, 5, 21, offset)), "");
        };
        EXPECT_LE(largest_difference(after(text, text.options(keys), plan, there), moved),
                  (1 + static_cast<double>(offset) * 0x1p-4) * allowed(text, plan));
        const auto and_back = [&](KvCache& cache, auto sequence) {
          there(cache, sequence);
          ASSERT_EQ(message(cache.shift(sequence, 5, 21, -offset)), "");
        };
        EXPECT_LE(largest_difference(after(text, text.options(keys), plan, and_back),
                                     fresh(text, text.options(keys), plan, tokens, tokens)),
                  (1 + static_cast<double>(offset) * 0x1p-4) * allowed(text, plan));
      }
    }
  }
}

// StreamingLLM: four sinks and a window that moves on, for far longer than the pages would hold.
TEST(CacheMove, AStreamWithSinksGoesOnForEverInTheSamePages) {
  Text text{.tokens = 200};
  const Plan plan = compiled(Rope{}, text.geometry());
  for (const CachedKeys keys : all_kinds) {
    KvCacheOptions options = text.options(keys);
    options.max_pages = 7;
    KvCache cache = made(options);
    const auto sequence = cache.add();
    std::vector<std::int64_t> survivors, positions;
    counted(positions, 0, 16);
    for (std::int64_t t = 0; t < text.tokens; ++t) {
      const auto piece = [&](Memory& x) { return tokens_of(x.view(), t, 1); };
      ASSERT_EQ(message(cache.append({{sequence}}, piece(text.k), piece(text.v), plan)), "") << t;
      survivors.push_back(t);
      if (survivors.size() <= 16) continue;
      ASSERT_EQ(message(cache.evict(sequence, 4, 5, Gap::close)), "");
      survivors.erase(survivors.begin() + 4);
    }
    Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 1, 8);
    ASSERT_TRUE(cache.attend({{sequence}}, tokens_of(text.q.view(), 199, 1), plan, {}, out.view()));
    EXPECT_LE(
        largest_difference(numbers(out.view()), fresh(text, options, plan, survivors, positions)),
        text.rounding());
  }
}

// A turn that moves a 16-bit number by less than half its step is rounded away: slow pairs of keys
// that are turned on by a little at a time stay where they are, and the error grows with every
// turn. One large turn costs one rounding; keys kept unrotated never move.
TEST(CacheMove, SixteenBitKeysLoseManySmallTurnsAndNoneThatIsLarge) {
  Text text{.tokens = 32, .dim = 64, .dtype = DType::bf16};
  const Plan plan = compiled(Rope{}, text.geometry());
  std::vector<std::int64_t> tokens;
  counted(tokens, 0, 32);
  const Numbers truth = fresh(text, text.options(CachedKeys::unrotated), plan, tokens, tokens);
  const double size = rms_difference(truth, Numbers(truth.size()));
  // From position 400 back to 0: what it costs, of the outputs' own size.
  const auto drift = [&](CachedKeys keys, std::int64_t by) {
    KvCache cache = made(text.options(keys));
    const auto sequence = cache.add();
    EXPECT_TRUE(
        cache.append({{sequence}}, text.k.view(), text.v.view(), plan, Positions::range(400, 32)));
    for (std::int64_t at = 400; at > 0; at -= by) EXPECT_TRUE(cache.shift(sequence, 0, 32, -by));
    Memory out = memory(text.dtype, MemoryLayout::heads_first, 1, text.heads, 1, text.dim);
    EXPECT_TRUE(cache.attend({{sequence}}, tokens_of(text.q.view(), 31, 1), plan, {}, out.view()));
    return rms_difference(truth, numbers(out.view())) / size;
  };
  EXPECT_EQ(drift(CachedKeys::unrotated, 1), 0);
  const double once = drift(CachedKeys::rotated, 400), often = drift(CachedKeys::rotated, 1);
  RecordProperty("once", std::to_string(once));
  RecordProperty("often", std::to_string(often));
  EXPECT_LT(once, step(DType::bf16));
  EXPECT_GT(often, 10 * once);
}

TEST(CacheMove, WholePagesOfAHoleBecomeFree) {
  Text text;
  const Plan plan = compiled(Rope{}, text.geometry());
  KvCacheOptions options = text.options(CachedKeys::rotated);
  options.max_pages = 7;
  KvCache cache = made(options);
  const auto sequence = cache.add();
  ASSERT_TRUE(cache.append({{sequence}}, text.k.view(), text.v.view(), plan));
  EXPECT_EQ(cache.free_pages(), 0);
  ASSERT_TRUE(cache.evict(sequence, 4, 13, Gap::keep));  // [3, 6) keeps one of three, [12, 15) two
  EXPECT_EQ(cache.free_pages(), 2);
  ASSERT_TRUE(cache.evict(sequence, 0, 12, Gap::keep));
  EXPECT_EQ(cache.free_pages(), 7);
  EXPECT_EQ(*cache.length(sequence), 0);
}

TEST(CacheMove, TheNextTokenStandsBehindTheLastSurvivor) {
  Text text;
  const Plan plan = compiled(Rope{}, text.geometry());
  KvCache cache = made(text.options(CachedKeys::rotated));
  const auto sequence = cache.add();
  const auto one = [&](Memory& x) { return tokens_of(x.view(), 0, 1); };
  ASSERT_TRUE(cache.append({{sequence}}, text.k.view(), text.v.view(), plan));
  ASSERT_TRUE(cache.evict(sequence, 15, 21, Gap::close));
  ASSERT_TRUE(cache.append({{sequence}}, one(text.k), one(text.v), plan));
  EXPECT_EQ(*cache.positions(sequence), Positions::range(0, 16));
}

TEST(CacheMove, ImpossibleMovesAreErrorsAndMoveNothing) {
  Text text{.tokens = 4};
  Plan plan = compiled(Rope{}, text.geometry());
  plan.rotate->kind = HfFloat{};
  for (double& f : plan.rotate->frequencies.radians) f = static_cast<float>(f);
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  for (const CachedKeys keys : all_kinds) {
    KvCache cache = made(text.options(keys));
    const auto sequence = cache.add();
    ASSERT_TRUE(cache.append({{sequence}}, text.k.view(), text.v.view(), plan));
    for (const auto& [first, last] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {-1, 2}, {2, 1}, {0, 5}, {5, 5}, {-huge, huge}}) {
      EXPECT_FALSE(cache.shift(sequence, first, last, 1)) << first;
      EXPECT_FALSE(cache.evict(sequence, first, last, Gap::close)) << first;
    }
    EXPECT_EQ(
        message(cache.shift(sequence, 0, 4, -1)),
        "cache shift: positions must stay within 0 and 2^62, got 0 to 3 with an offset of -1; "
        "shift by less");
    EXPECT_FALSE(cache.shift(sequence, 0, 4, huge));
    EXPECT_FALSE(cache.shift(sequence, 0, 4, -huge - 1));
    EXPECT_FALSE(cache.shift(sequence, 0, 4, std::int64_t{1} << 62));
    EXPECT_EQ(cache.shift(sequence, 0, 4, float_positions - 3).has_value(),
              keys == CachedKeys::unrotated);
    EXPECT_EQ(*cache.tokens(sequence), 4);
    EXPECT_TRUE(cache.evict(sequence, 2, 2, Gap::close));
    EXPECT_EQ(*cache.tokens(sequence), 4);
  }
}

TEST(CacheMove, AGapOfSeveralAxesIsForTheCallerToClose) {
  Text text{.tokens = 3};
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.rotary_dim = 4}, .frequencies = {.axes = 2, .radians = {1, 0, 0, 1}}};
  const std::vector<std::int64_t> ids = {0, 1, 2, 0, 2, 3};
  for (const CachedKeys keys : all_kinds) {
    KvCache cache = made(text.options(keys));
    const auto sequence = cache.add();
    ASSERT_TRUE(
        cache.append({{sequence}}, text.k.view(), text.v.view(), plan, *Positions::ids(ids, 2)));
    EXPECT_FALSE(cache.evict(sequence, 1, 2, Gap::close));
    EXPECT_EQ(*cache.tokens(sequence), 3);
    ASSERT_TRUE(cache.evict(sequence, 1, 2, Gap::keep));
    ASSERT_TRUE(cache.shift(sequence, 1, 2, -1));
    EXPECT_EQ(*cache.positions(sequence),
              *Positions::ids(std::vector<std::int64_t>{0, 1, 0, 2}, 2));
    Memory out = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 1, 8);
    ASSERT_TRUE(cache.attend({{sequence}}, tokens_of(text.q.view(), 2, 1), plan, {}, out.view()));
    // The same two tokens appended there.
    KvCache other = made(text.options(keys));
    const auto same = other.add();
    for (const auto& [token, row, column] :
         std::vector<std::array<std::int64_t, 3>>{{0, 0, 0}, {2, 1, 2}}) {
      const auto piece = [&, t = token](Memory& x) { return tokens_of(x.view(), t, 1); };
      ASSERT_TRUE(other.append({{same}}, piece(text.k), piece(text.v), plan,
                               *Positions::ids(std::vector<std::int64_t>{row, column}, 2)));
    }
    Memory wanted = memory(DType::f64, MemoryLayout::heads_first, 1, 8, 1, 8);
    ASSERT_TRUE(other.attend({{same}}, tokens_of(text.q.view(), 2, 1), plan, {}, wanted.view()));
    EXPECT_LE(largest_difference(numbers(out.view()), numbers(wanted.view())), text.rounding());
  }
}

}  // namespace
}  // namespace posenc
