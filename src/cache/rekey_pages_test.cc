#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/rekey.h"
#include "posenc/schemes.h"

namespace posenc::rekey_pages {
namespace {

constexpr std::int64_t heads = 2, page_size = 4, dim = 8, pool_pages = 16, columns = 4;
constexpr std::int64_t size = pool_pages * heads * page_size * dim;

Plan plan_of(const Scheme& scheme) {
  return compile(scheme, {.heads = heads, .kv_heads = heads, .head_dim = dim}).value();
}

// A pool of numbers that all differ, HND or NHD.
struct Pool {
  std::vector<double> numbers = std::vector<double>(size);
  Tensor pages;
  explicit Pool(bool heads_first) {
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 97) - 40;
    pages = heads_first
                ? Tensor::dense(numbers.data(), {pool_pages, heads, page_size, dim})
                : Tensor::dense(numbers.data(), {pool_pages, page_size, heads, dim}).swapped(1, 2);
  }
  // The tokens of a sequence, [1, head, token, dim].
  std::vector<double> gathered(const std::vector<std::int32_t>& table, std::int64_t s,
                               std::int64_t tokens) const {
    std::vector<double> all;
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t d = 0; d < dim; ++d)
          all.push_back(pages.get(pages.offset(
              table[static_cast<std::size_t>(s * columns + t / page_size)], h, t % page_size, d)));
    return all;
  }
};

// Two sequences, whose pages are neighbours in part; the rest of the table is not read.
const std::vector<std::int32_t> table = {3, 4, 5, 9, 12, 2, -1, 99};
const std::vector<std::int64_t> tokens = {14, 6};

Positions ids_of(std::int64_t axes, std::int64_t step) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < axes * 2 * 14; ++i) ids.push_back(step * (i * i % 23) + i);
  return Positions::ids(ids, axes, 2).value();
}

void expect_pages_as_dense(const Plan& from, const Plan& to, const Positions& old_ids,
                           const Positions& new_ids) {
  for (const bool heads_first : {true, false})
    for (const int threads : {1, 2}) {
      Pool pool(heads_first);
      const Pool before(heads_first);
      const auto done = rekey({&from, old_ids}, {&to, new_ids}, {pool.pages, table, tokens},
                              Side::key, {threads});
      ASSERT_TRUE(done) << done.error().message();
      for (std::int64_t s = 0; s < 2; ++s) {
        const std::int64_t count = tokens[static_cast<std::size_t>(s)];
        std::vector<double> dense = before.gathered(table, s, count);
        const Tensor x = Tensor::dense(dense.data(), {1, heads, count, dim});
        ASSERT_TRUE(
            rekey({&from, old_ids.slice(s, 0, count)}, {&to, new_ids.slice(s, 0, count)}, x, x));
        EXPECT_EQ(pool.gathered(table, s, count), dense);
      }
    }
}

TEST(RekeyPages, AsDenseKeys) {
  const Plan plan = plan_of(Rope{});
  expect_pages_as_dense(plan, plan, ids_of(1, 3), ids_of(1, 5));
}

TEST(RekeyPages, OfSeveralAxesAndOtherBases) {
  const Plan axes = plan_of(Rope{.mrope_section = {1, 2, 1}}), plain = plan_of(Rope{}),
             other = plan_of(Rope{.rope_theta = 500}),
             neighbours = plan_of(Rope{.pairing = Pairing::interleaved});
  expect_pages_as_dense(axes, axes, ids_of(3, 3), ids_of(3, 5));
  expect_pages_as_dense(plain, other, ids_of(1, 3), ids_of(1, 5));
  expect_pages_as_dense(plain, neighbours, ids_of(1, 3), ids_of(1, 5));
}

TEST(RekeyPages, OneRowOfPositionsForAll) {
  const Plan plan = plan_of(Rope{});
  expect_pages_as_dense(plan, plan, Positions::range(100, 14), Positions::range(3, 14));
}

TEST(RekeyPages, WhatIsBehindTheLastTokenStays) {
  const Plan plan = plan_of(Rope{});
  Pool pool(true);
  const Pool before(true);
  ASSERT_TRUE(rekey({&plan, Positions::range(0, 14)}, {&plan, Positions::range(7, 14)},
                    {pool.pages, table, tokens}));
  for (const auto& [page, token] : {std::pair{9, 2}, std::pair{9, 3}, std::pair{2, 2},
                                    std::pair{0, 0}, std::pair{6, 0}, std::pair{13, 3}})
    for (std::int64_t d = 0; d < dim; ++d)
      EXPECT_EQ(pool.pages.get(pool.pages.offset(page, 1, token, d)),
                before.pages.get(before.pages.offset(page, 1, token, d)));
}

TEST(RekeyPages, BadTablesAreRefused) {
  const Plan plan = plan_of(Rope{});
  Pool pool(true);
  const std::vector<double> before = pool.numbers;
  const auto refused = [&](const std::vector<std::int32_t>& pages,
                           const std::vector<std::int64_t>& counts, std::int64_t positions,
                           std::string_view word) {
    const auto done = rekey({&plan, Positions::range(0, positions)},
                            {&plan, Positions::range(1, positions)}, {pool.pages, pages, counts});
    ASSERT_FALSE(done) << word;
    EXPECT_NE(done.error().message().find(word), std::string::npos) << done.error().message();
    EXPECT_EQ(pool.numbers, before);
  };
  refused({1, 16}, {8}, 8, "the pool must have");
  refused({1, -1}, {8}, 8, "the pool must have");
  refused({1, 2, 2, 3}, {8, 8}, 8, "of one sequence");
  refused({1, 2}, {9}, 9, "fit its pages");
  refused({1, 2}, {-1}, 0, "fit its pages");
  refused({1, 2}, {8}, 7, "a position for each token");
  ASSERT_TRUE(rekey({&plan, Positions::range(0, 0)}, {&plan, Positions::range(1, 0)},
                    {pool.pages, {}, {}}));
}

}  // namespace
}  // namespace posenc::rekey_pages
