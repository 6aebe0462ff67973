// Lists of keys by query (Mask::keys): each list is the attention of all keys with the others
// hidden, whatever its order, and a list that cannot be is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "posenc/cache.h"
#include "posenc/content.h"
#include "posenc/gradients.h"
#include "posenc/layout.h"
#include "posenc/schemes.h"
#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {

using Ids = std::vector<std::int32_t>;

std::vector<double> listed_values(const Tensor& x) {
  std::vector<double> all;
  for_each_index(x, [&](auto... at) { all.push_back(x.get(x.offset(at...))); });
  return all;
}

// Two sequences of four query heads over two key heads.
struct ListedText {
  std::int64_t queries = 20, keys = 300, dim = 16;
  DType dtype = DType::f64;
  Memory q = made(4, queries, 1), k = made(2, keys, 2), v = made(2, keys, 3);

  Memory made(std::int64_t heads, std::int64_t tokens, unsigned seed) const {
    return memory(dtype, MemoryLayout::heads_first, 2, heads, tokens, dim, seed);
  }
  Plan plan() const { return *compile(Scheme{Rope{}}, {.heads = 4, .head_dim = dim}); }
  AttentionInputs inputs(const Mask& mask) {
    return {q.view(),
            k.view(),
            v.view(),
            Positions::range(keys - queries, queries),
            Positions::range(0, keys),
            mask};
  }
  std::vector<double> attended(const Mask& mask) {
    Memory out = made(4, queries, 4);
    const auto done = attend(inputs(mask), plan(), out.view());
    EXPECT_TRUE(done) << done.error().message();
    return listed_values(out.view());
  }
  std::string refused(const Mask& mask) {
    Memory out = made(4, queries, 4);
    const auto done = attend(inputs(mask), plan(), out.view());
    return done ? "" : done.error().message();
  }
};

// Every query the same list.
Ids repeated(const Ids& list, std::int64_t rows) {
  Ids all;
  for (std::int64_t row = 0; row < rows; ++row) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Mask masked(const Ids& lists, std::int64_t rows, bool causal = true) {
  return {.causal = causal,
          .keys = lists.data(),
          .key_count = static_cast<std::int64_t>(lists.size()) / rows};
}

TEST(MaskKeys, AListOfAllKeysIsTheWholeAttention) {
  for (const DType dtype : all_dtypes) {
    ListedText text{.dtype = dtype};
    Ids all(static_cast<std::size_t>(text.keys));
    std::iota(all.begin(), all.end(), 0);
    std::ranges::reverse(all);
    const Ids lists = repeated(all, 2 * text.queries);
    EXPECT_EQ(text.attended(masked(lists, 2 * text.queries)), text.attended({}));
  }
}

TEST(MaskKeys, AListIsTheAttentionWithTheOthersHidden) {
  for (const DType dtype : all_dtypes)
    for (const std::int64_t queries : {std::int64_t{1}, std::int64_t{20}}) {
      ListedText text{.queries = queries, .dtype = dtype};
      for (const std::int32_t step : {1, 3, 40, 299}) {
        Ids list;
        std::vector<std::uint8_t> keep(static_cast<std::size_t>(2 * text.keys));
        for (std::int32_t id = step / 2; id < text.keys; id += step) {
          list.insert(list.begin() + std::ssize(list) / 2, id);
          keep[static_cast<std::size_t>(id)] = keep[static_cast<std::size_t>(id + text.keys)] = 1;
        }
        const Ids lists = repeated(list, 2 * queries);
        const auto got = text.attended(masked(lists, 2 * queries)),
                   wanted = text.attended({.keep = keep.data()});
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], wanted[i], dtype == DType::f64 ? 1e-14 : 2 * posenc::step(dtype))
              << step;
      }
    }
}

TEST(MaskKeys, AnEmptyListGivesZeros) {
  ListedText text;
  const Ids none(static_cast<std::size_t>(2 * text.queries), -1);
  for (const Mask& mask : {masked(none, 2 * text.queries), Mask{.keys = none.data()}})
    for (const double x : text.attended(mask)) EXPECT_EQ(x, 0);
}

// The memory of what nobody lists is not looked at.
TEST(MaskKeys, WhatIsNotListedMayHoldNaN) {
  ListedText text;
  const Ids lists = repeated({7, 250}, 2 * text.queries);
  const auto wanted = text.attended(masked(lists, 2 * text.queries));
  for (std::int64_t j = 0; j < text.keys; ++j)
    for (std::int64_t h = 0; h < 2 && j != 7 && j != 250; ++h)
      for (Memory* each : {&text.k, &text.v})
        each->view().set(each->view().offset(1, h, j), std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(text.attended(masked(lists, 2 * text.queries)), wanted);
}

TEST(MaskKeys, WhatCannotBeIsRefused) {
  ListedText text;
  const std::int64_t rows = 2 * text.queries;
  Ids lists = repeated({1, 2, -1}, rows);
  lists[4] = 300;
  EXPECT_TRUE(text.refused(masked(lists, rows)).contains("below the 300 keys, got 300 of query 1"));
  lists[4] = 1;
  EXPECT_TRUE(text.refused(masked(lists, rows)).contains("a key once"));
  Ids many(256 * static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = 255 - static_cast<std::int32_t>(i % 256);
  many[255] = 9;
  EXPECT_TRUE(text.refused(masked(many, rows)).contains("9 of query 0"));
  EXPECT_TRUE(text.refused({.keys = lists.data(), .key_count = -1}).contains("0 or more"));
}

// What reads the content counts keys between others, and a layout knows no lists.
TEST(MaskKeys, ContentAndLayoutsRefuseThem) {
  ListedText text{.queries = 300};
  const Ids lists = repeated({0}, 2 * text.queries);
  const Mask mask = masked(lists, 2 * text.queries);
  Memory out = text.made(4, text.queries, 4);
  for (const ContentScheme& scheme : {ContentScheme{Forgetting{}}, ContentScheme{Path{}}}) {
    const auto done = attend(text.inputs(mask), scheme, {}, out.view());
    ASSERT_FALSE(done);
    EXPECT_TRUE(done.error().message().contains("must see all keys")) << done.error().message();
  }
  const auto counted =
      pairs_per_rank(*Layout::contiguous(text.keys, 2), mask, Positions::range(0, text.keys));
  ASSERT_FALSE(counted);
  EXPECT_TRUE(counted.error().message().contains("mask.keys"));
}

TEST(MaskKeys, ACacheCountsItsOwnTokens) {
  for (const CachedKeys held : {CachedKeys::rotated, CachedKeys::unrotated}) {
    ListedText text{.queries = 1};
    auto cache = KvCache::make(
        {.kv_heads = 2, .head_dim = text.dim, .dtype = DType::f64, .page_size = 16, .keys = held});
    ASSERT_TRUE(cache);
    const std::vector<KvCache::Sequence> both = {cache->add(), cache->add()};
    ASSERT_TRUE(cache->append(both, text.k.view(), text.v.view(), text.plan()));
    const Ids lists = {250, 3, 299, 17, 16, -1};
    const Mask mask{.window = 290, .keys = lists.data(), .key_count = 3};
    Memory out = text.made(4, 1, 4);
    const auto done = cache->attend(both, text.q.view(), text.plan(), mask, out.view());
    ASSERT_TRUE(done) << done.error().message();
    const auto got = listed_values(out.view()), wanted = text.attended(mask);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-13);
    const Ids far = {300, -1, -1, 0, 1, 2};
    const auto beyond = cache->attend(both, text.q.view(), text.plan(),
                                      {.keys = far.data(), .key_count = 3}, out.view());
    ASSERT_FALSE(beyond);
    EXPECT_TRUE(beyond.error().message().contains("below the 300 keys"));
  }
}

}  // namespace
}  // namespace posenc
