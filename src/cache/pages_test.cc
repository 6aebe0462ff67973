#include "src/cache/pages.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace posenc::detail {
namespace {

constexpr PageShape small{
    .kv_heads = 2, .head_dim = 4, .value_dim = 3, .page_size = 3, .dtype = DType::f32};

Pages made(std::int64_t max_pages, PageShape shape = small) {
  auto pages = Pages::make("pages", shape, max_pages);
  EXPECT_TRUE(pages) << pages.error().message();
  return *std::move(pages);
}

TEST(KvPages, GrowingKeepsWhatIsThere) {
  Pages pages = made(0);
  ASSERT_TRUE(pages.reserve("pages", 1));
  const std::int64_t page = pages.take(-1);
  const Tensor keys = pages.keys(3 * page, 3);
  for (std::int64_t t = 0; t < 3; ++t)
    keys.set(keys.offset(0, 1, t, 2), static_cast<double>(t) + 1);
  ASSERT_TRUE(pages.reserve("pages", 100));
  const Tensor moved = pages.keys(3 * page, 3);
  for (std::int64_t t = 0; t < 3; ++t)
    EXPECT_EQ(moved.get(moved.offset(0, 1, t, 2)), static_cast<double>(t) + 1);
  EXPECT_EQ(pages.free(), pages.count() - 1);
}

TEST(KvPages, NeighboursAreSeenAsOne) {
  const Pages pages = made(4);
  const Tensor both = pages.values(4, 5), second = pages.values(6, 3);
  EXPECT_EQ(static_cast<char*>(both.data) + 4 * both.offset(0, 0, 2), second.data);
}

TEST(KvPages, NoPageIsTakenTwiceAndNoneIsLost) {
  Pages pages = made(50);
  std::mt19937 engine(1);
  std::vector<std::int64_t> taken;
  std::vector<bool> used(50);
  for (int i = 0; i < 20000; ++i) {
    if (pages.free() > 0 && (taken.empty() || engine() % 2 == 0)) {
      const std::int64_t page = pages.take(taken.empty() ? -1 : taken[engine() % taken.size()]);
      ASSERT_GE(page, 0);
      ASSERT_LT(page, 50);
      ASSERT_FALSE(used[static_cast<std::size_t>(page)]);
      used[static_cast<std::size_t>(page)] = true;
      taken.push_back(page);
    } else {
      std::swap(taken[engine() % taken.size()], taken.back());
      used[static_cast<std::size_t>(taken.back())] = false;
      pages.release_page(taken.back());
      taken.pop_back();
    }
    ASSERT_EQ(pages.free(), 50 - static_cast<std::int64_t>(taken.size()));
  }
}

TEST(KvPages, MoreThanAMachineHasIsAnError) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(Pages::make("pages", small, huge));
  EXPECT_FALSE(
      Pages::make("pages", {.kv_heads = huge, .head_dim = 2, .value_dim = 2, .page_size = 1}, 0));
  EXPECT_FALSE(
      Pages::make("pages", {.kv_heads = 1, .head_dim = 1, .value_dim = 1, .page_size = huge}, 0));
  EXPECT_FALSE(
      Pages::make("pages", {.kv_heads = 1, .head_dim = 1, .value_dim = huge, .page_size = 1}, 0));
  EXPECT_FALSE(Pages::make("pages", {.kv_heads = 1, .head_dim = 1, .value_dim = 1, .page_size = 1},
                           huge / 8));
  EXPECT_FALSE(made(0).reserve("pages", huge));
  EXPECT_FALSE(made(2).reserve("pages", 3));
}

// What a table says of each token beside a plain list of them, through whatever is done to both.
TEST(BlockTable, IsThePlainListOfItsTokens) {
  for (const std::int64_t page_size : {1, 3, 16}) {
    PageShape shape = small;
    shape.page_size = page_size;
    Pages pages = made(0, shape);
    BlockTable table, neighbour;
    std::vector<float> list;
    std::mt19937 engine(static_cast<unsigned>(page_size));
    float next = 0;
    for (int i = 0; i < 500; ++i) {
      const std::int64_t count = static_cast<std::int64_t>(engine() % 9), before = table.tokens();
      if (engine() % 2 == 0) {
        const std::int64_t needed = table.pages_needed(count, page_size);
        ASSERT_TRUE(pages.reserve("pages", needed + 1));
        const std::int64_t free = pages.free();
        table.extend(pages, count);
        ASSERT_EQ(pages.free(), free - needed);
        if (neighbour.pages_needed(1, page_size) <= pages.free()) neighbour.extend(pages, 1);
        for (const auto& run : table.runs(before, table.tokens())) {
          const Tensor keys = pages.keys(run.place, run.size);
          const Tensor values = pages.values(run.place, run.size);
          for (std::int64_t t = 0; t < run.size; ++t, ++next) {
            keys.set(keys.offset(0, 1, t, 3), next);
            values.set(values.offset(0, 1, t, 2), -next);
            list.push_back(next);
          }
        }
      } else {
        const auto first = static_cast<std::int64_t>(engine() % (list.size() + 1));
        const std::int64_t last = std::min(first + count, table.tokens());
        table.drop(pages, first, last);
        list.erase(list.begin() + first, list.begin() + last);
      }
      std::vector<float> kept;
      for (const auto& run : table.runs(0, table.tokens())) {
        ASSERT_EQ(run.first, static_cast<std::int64_t>(kept.size()));
        const Tensor keys = pages.keys(run.place, run.size);
        const Tensor values = pages.values(run.place, run.size);
        for (std::int64_t t = 0; t < run.size; ++t) {
          kept.push_back(static_cast<float>(keys.get(keys.offset(0, 1, t, 3))));
          ASSERT_EQ(values.get(values.offset(0, 1, t, 2)), -kept.back());
        }
      }
      ASSERT_EQ(kept, list);
    }
    table.drop(pages, 0, table.tokens());
    neighbour.drop(pages, 0, neighbour.tokens());
    EXPECT_EQ(pages.free(), pages.count());
  }
}

}  // namespace
}  // namespace posenc::detail
