// attend_part: caches that hold some of the tokens each, merged by log_sums, are one cache.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "posenc/cache.h"
#include "posenc/schemes.h"
#include "tests/random.h"

namespace posenc {
namespace {

TEST(CachePart, PartsMergeIntoOneCache) {
  constexpr std::int64_t heads = 4, kv_heads = 2, dim = 8, tokens = 21;
  for (const CachedKeys keys : {CachedKeys::rotated, CachedKeys::unrotated}) {
    const KvCacheOptions options{
        .kv_heads = kv_heads, .head_dim = dim, .dtype = DType::f64, .keys = keys};
    std::array<KvCache, 3> caches = {*KvCache::make(options), *KvCache::make(options),
                                     *KvCache::make(options)};
    for (KvCache& each : caches) each.add();
    const std::array<KvCache::Sequence, 1> sequence = {0};
    const Plan plan = *compile(Rope{}, {.heads = heads, .kv_heads = kv_heads, .head_dim = dim});
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<double> k = random(kv_heads * dim, static_cast<unsigned>(t + 1)),
                          v = random(kv_heads * dim, static_cast<unsigned>(t + 100));
      const auto view = [&](std::vector<double>& x) {
        return Tensor::dense(x.data(), {1, kv_heads, 1, dim});
      };
      for (const std::size_t cache : {std::size_t{0}, 1 + static_cast<std::size_t>(t / 4 % 2)})
        ASSERT_TRUE(caches[cache].append(sequence, view(k), view(v), plan, Positions::range(t, 1)));
    }
    std::vector<double> q = random(heads * dim, 7);
    const Tensor query = Tensor::dense(q.data(), {1, heads, 1, dim});
    std::array<std::vector<double>, 3> out, sums;
    const Mask mask{.window = 15};
    for (std::size_t n = 0; n < 3; ++n) {
      out[n].resize(q.size()), sums[n].resize(heads);
      ASSERT_TRUE(caches[n].attend_part(sequence, query, Positions::range(tokens - 1, 1), plan,
                                        mask, Tensor::dense(out[n].data(), {1, heads, 1, dim}),
                                        Tensor::dense(sums[n].data(), {1, heads, 1})));
    }
    std::vector<double> newest(q.size());
    ASSERT_TRUE(caches[0].attend(sequence, query, plan, mask,
                                 Tensor::dense(newest.data(), {1, heads, 1, dim})));
    for (std::size_t n = 0; n < q.size(); ++n) {
      const auto share = [&](std::size_t part) {
        return out[part][n] * std::exp(sums[part][n / dim] - sums[0][n / dim]);
      };
      EXPECT_NEAR(share(1) + share(2), out[0][n], 1e-14);
      EXPECT_NEAR(newest[n], out[0][n], 1e-14);
    }
  }
}

TEST(CachePart, OfASequenceWithoutTokensIsNothing) {
  KvCache cache = *KvCache::make({.kv_heads = 1, .head_dim = 4, .dtype = DType::f64});
  const std::array<KvCache::Sequence, 1> sequence = {cache.add()};
  std::vector<double> q(4, 1), out(4, 9), sums(1);
  const Plan plan = *compile(Rope{}, {.heads = 1, .head_dim = 4});
  const auto done = cache.attend_part(
      sequence, Tensor::dense(q.data(), {1, 1, 1, 4}), Positions::range(5, 1), plan, {},
      Tensor::dense(out.data(), {1, 1, 1, 4}), Tensor::dense(sums.data(), {1, 1, 1}));
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(sums[0], -INFINITY);
  EXPECT_EQ(out[0], 0);
}

TEST(CachePart, APlanMustHoldForTheQueriesToo) {
  KvCache cache = *KvCache::make({.kv_heads = 1, .head_dim = 4, .dtype = DType::f64});
  const std::array<KvCache::Sequence, 1> sequence = {cache.add()};
  std::vector<double> q(4, 1), out(4), sums(1);
  Plan plan;
  plan.valid = Lengths{.to = 100};
  const auto done = cache.attend_part(
      sequence, Tensor::dense(q.data(), {1, 1, 1, 4}), Positions::range(100, 1), plan, {},
      Tensor::dense(out.data(), {1, 1, 1, 4}), Tensor::dense(sums.data(), {1, 1, 1}));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message().find("hold for length 101"), std::string::npos);
}

}  // namespace
}  // namespace posenc
