// A cache shared out among ranks against one on one process: append, attend, evict and shift, in
// any order.
#include "posenc/distributed_cache.h"

#include <array>

#include "backends/distributed/whole_text_test.h"
#include "posenc/schemes.h"

namespace posenc {
namespace {

constexpr std::int64_t cache_heads = 4, cache_kv_heads = 2, cache_dim = 16;

struct BothCaches {
  KvCache whole;
  DistributedKvCache parts;
  std::array<KvCache::Sequence, 2> sequences;
  Plan plan;
  unsigned seed = 1;

  static BothCaches made(CachedKeys keys, DType dtype, const Plan& plan, std::int64_t block) {
    const KvCacheOptions options{.kv_heads = cache_kv_heads,
                                 .head_dim = cache_dim,
                                 .dtype = dtype,
                                 .page_size = 4,
                                 .keys = keys};
    BothCaches both{*KvCache::make(options),
                    *DistributedKvCache::make(MPI_COMM_WORLD, options, block),
                    {},
                    plan};
    for (auto& sequence : both.sequences) {
      sequence = both.whole.add();
      EXPECT_EQ(both.parts.add(), sequence);
    }
    return both;
  }
  void append(DType dtype, std::int64_t tokens) {
    const Numbers k(dtype, 2, cache_kv_heads, tokens, cache_dim, ++seed),
        v(dtype, 2, cache_kv_heads, tokens, cache_dim, ++seed);
    ASSERT_TRUE(whole.append(sequences, k.view(), v.view(), plan));
    const auto done = parts.append(sequences, k.view(), v.view(), plan);
    ASSERT_TRUE(done) << done.error().message();
  }
  // How far the newest tokens' outputs are from those of the whole.
  double error(DType dtype, std::int64_t tokens, const Mask& mask = {}, Tensor sinks = {}) {
    const Numbers q(dtype, 2, cache_heads, tokens, cache_dim, ++seed);
    const Numbers expected(dtype, 2, cache_heads, tokens, cache_dim),
        found(dtype, 2, cache_heads, tokens, cache_dim);
    if (!whole.attend(sequences, q.view(), plan, mask, expected.view(), {}, sinks)) return 9;
    if (!parts.attend(sequences, q.view(), plan, mask, found.view(), {}, sinks)) return 9;
    std::vector<std::int64_t> all(static_cast<std::size_t>(tokens));
    for (std::size_t t = 0; t < all.size(); ++t) all[t] = static_cast<std::int64_t>(t);
    return largest_of_ranks(found.error(expected, all));
  }
};

Plan cache_plan() {
  return *compile(Rope{},
                  {.heads = cache_heads, .kv_heads = cache_kv_heads, .head_dim = cache_dim});
}

TEST(DistributedCache, DecodesAsOneCache) {
  for (const CachedKeys keys : {CachedKeys::rotated, CachedKeys::unrotated}) {
    BothCaches both = BothCaches::made(keys, DType::f32, cache_plan(), 3);
    both.append(DType::f32, 29);
    EXPECT_LT(both.error(DType::f32, 29), 2e-6);
    for (int step = 0; step < 7; ++step) {
      both.append(DType::f32, 1);
      EXPECT_LT(both.error(DType::f32, 1, {.window = step % 2 == 0 ? 0 : 9}), 2e-6);
    }
    EXPECT_EQ(*both.parts.tokens(0), 36);
    EXPECT_EQ(*both.parts.length(0), 36);
  }
}

TEST(DistributedCache, TokensAreSharedOut) {
  const int ranks = test_ranks();
  BothCaches both = BothCaches::made(CachedKeys::rotated, DType::f32, cache_plan(), 2);
  both.append(DType::f32, 4 * ranks);
  EXPECT_EQ(*both.parts.own().tokens(0), 4);
}

// The attention sinks of StreamingLLM: evicted from the middle, what is left closed up, on every
// rank at once.
TEST(DistributedCache, EvictsAndShiftsTheSameTokensOnEveryRank) {
  for (const CachedKeys keys : {CachedKeys::rotated, CachedKeys::unrotated}) {
    BothCaches both = BothCaches::made(keys, DType::f32, cache_plan(), 2);
    both.append(DType::f32, 31);
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(both.whole.evict(0, 4, 11, KvCache::Gap::close));
      ASSERT_TRUE(both.parts.evict(0, 4, 11, KvCache::Gap::close));
      ASSERT_TRUE(both.whole.evict(1, 2, 5, KvCache::Gap::keep));
      ASSERT_TRUE(both.parts.evict(1, 2, 5, KvCache::Gap::keep));
      ASSERT_TRUE(both.whole.shift(1, 3, 9, 2));
      ASSERT_TRUE(both.parts.shift(1, 3, 9, 2));
      EXPECT_EQ(*both.parts.tokens(0), *both.whole.tokens(0));
      EXPECT_EQ(*both.parts.length(1), *both.whole.length(1));
      both.append(DType::f32, 5);
      EXPECT_LT(both.error(DType::f32, 3), 5e-6);
    }
  }
}

TEST(DistributedCache, ASinkCountsOnce) {
  std::vector<float> sinks = {0.5, -1, 2, 0};
  BothCaches both = BothCaches::made(CachedKeys::rotated, DType::f32, cache_plan(), 1);
  both.append(DType::f32, 13);
  EXPECT_LT(both.error(DType::f32, 1, {}, Tensor::dense(sinks.data(), {4})), 2e-6);
}

TEST(DistributedCache, SixteenBitsAreRoundedOnce) {
  BothCaches both = BothCaches::made(CachedKeys::unrotated, DType::bf16, cache_plan(), 1);
  both.append(DType::bf16, 40);
  EXPECT_LT(both.error(DType::bf16, 1), 4e-3);
}

TEST(DistributedCache, ARankWithoutAPageIsAnErrorOnAllAndNobodyKeepsTheTokens) {
  const KvCacheOptions options{
      .kv_heads = 1, .head_dim = 4, .dtype = DType::f32, .page_size = 1, .max_pages = 4};
  auto parts = *DistributedKvCache::make(MPI_COMM_WORLD, options, 2);
  const std::array<KvCache::Sequence, 1> sequence = {parts.add()};
  const std::int64_t tokens = 4 * test_ranks() + 1;  // one too many for rank 0
  const Numbers k(DType::f32, 1, 1, tokens, 4, 1);
  const auto done = parts.append(sequence, k.view(), k.view(), {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().where.substr(0, 6), "rank 0");
  EXPECT_EQ(*parts.own().tokens(0), 0);
  EXPECT_EQ(*parts.tokens(0), 0);
}

TEST(DistributedCache, WhatNoRankKnowsIsRefusedByAll) {
  BothCaches both = BothCaches::made(CachedKeys::rotated, DType::f32, cache_plan(), 3);
  both.append(DType::f32, 7);
  Plan plan = cache_plan();
  plan.unknown = {"rotate.hologram"};
  const Numbers x(DType::f32, 2, cache_kv_heads, 1, cache_dim, 1),
      q(DType::f32, 2, cache_heads, 1, cache_dim, 2), out = q;
  const auto appended = both.parts.append(both.sequences, x.view(), x.view(), plan);
  ASSERT_FALSE(appended);
  EXPECT_NE(appended.error().message().find("rotate.hologram"), std::string::npos);
  EXPECT_EQ(*both.parts.tokens(0), 7);
  const auto attended = both.parts.attend(both.sequences, q.view(), plan, {}, out.view());
  ASSERT_FALSE(attended);
  EXPECT_NE(attended.error().message().find("rotate.hologram"), std::string::npos);
}

}  // namespace
}  // namespace posenc
