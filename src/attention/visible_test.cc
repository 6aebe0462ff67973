// The rule of what a query sees, and what kernels make of it a block at a time, against one line
// per pair.
#include "src/attention/visible.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace posenc::detail {
namespace {

struct Case {
  const char* name;
  Positions queries, keys;
};

std::vector<Case> cases() {
  const std::vector<std::uint8_t> left = {0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  const std::vector<std::int64_t> packs = {0, 3, 10}, mixed = {7, 2, 2, 9, 0, 1, 5, 4, 3, 8};
  std::vector<std::int64_t> grid = mixed;
  grid.insert(grid.end(), mixed.rbegin(), mixed.rend());
  const std::vector<std::int64_t> farthest_first = {9, 1, 2, 3},
                                  striped = {-7, -4, -1, 0, 2, 3, 6, 9, 12, 15};
  const Positions all = Positions::range(0, 10);
  return {{"a text", all, all},
          {"its last queries", Positions::range(6, 4), all},
          {"queries before some keys", Positions::range(2, 4), all},
          {"far along", Positions::range(1001, 10), Positions::range(1001, 10)},
          {"below zero", Positions::range(-5, 10), Positions::range(-5, 10)},
          {"marked padding", *Positions::from_mask(left, 1, 0, -1),
           *Positions::from_mask(left, 1, 0, -1)},
          {"padding at zero", *Positions::from_mask(left, 1), *Positions::from_mask(left, 1)},
          {"packed", *Positions::packed(packs), *Positions::packed(packs)},
          {"one of a few", *Positions::signed_ids(striped), *Positions::signed_ids(striped)},
          {"before one of a few", Positions::range(-2, 10), *Positions::signed_ids(striped)},
          {"in no order", *Positions::ids(mixed), *Positions::ids(mixed)},
          {"two axes", *Positions::ids(grid, 2), *Positions::ids(grid, 2)},
          {"the last of two axes", Positions::range(50, 3), *Positions::ids(grid, 2)},
          {"the farthest first", *Positions::ids(farthest_first), *Positions::ids(mixed)},
          {"some of two axes", *Positions::ids(grid, 2)->select(farthest_first),
           *Positions::ids(grid, 2)->select(mixed)}};
}

bool definition(const Mask& m, const Positions& queries, const Positions& keys, std::int64_t i,
                std::int64_t j) {
  const bool one_axis = queries.axes() == 1 && keys.axes() == 1;
  const std::int64_t before = queries.selected() ? 0 : keys.size() - queries.size();
  const std::int64_t q = one_axis ? queries.at(i) : before + queries.order(i),
                     k = one_axis ? keys.at(j) : keys.order(j);
  const auto chunk = [&](std::int64_t p) {
    return std::floor(static_cast<double>(p) / static_cast<double>(m.chunk));
  };
  const std::int32_t* const own =
      m.blocks == nullptr ? nullptr : m.blocks + keys.size() - queries.size() + i;
  return (m.keep == nullptr || m.keep[j] != 0) && queries.segment(i) == keys.segment(j) &&
         ((k >= 0 && k < m.prefix) || (own != nullptr && *own >= 0 && *own == m.blocks[j]) ||
          ((!m.causal || k <= q) && (m.window == 0 || std::abs(q - k) < m.window) &&
           (m.chunk == 0 || chunk(q) == chunk(k))));
}

// Every pair of a mask's fields, and all of them together.
template <class Act>
void for_each_mask(const Act& act) {
  static const std::vector<std::uint8_t> keep = {1, 0, 1, 1, 0, 1, 1, 1, 1, 0};
  static const std::vector<std::int32_t> blocks = {-1, 0, 0, 0, -1, 7, 7, -1, 2, 2};
  for (const bool causal : {true, false}) {
    for (const std::int64_t window : {0, 1, 3}) {
      for (const std::int64_t chunk : {0, 1, 4}) {
        for (const std::int64_t prefix : {0, 2}) {
          for (const std::uint8_t* keeps : {static_cast<const std::uint8_t*>(nullptr), keep.data()})
            for (const std::int32_t* of :
                 {static_cast<const std::int32_t*>(nullptr), blocks.data()})
              act(Mask{causal, window, chunk, prefix, keeps, of});
        }
      }
    }
  }
}

std::string words(const Case& c, const Mask& m) {
  return std::string(c.name) + (m.causal ? ", causal" : "") + ", window " +
         std::to_string(m.window) + ", chunk " + std::to_string(m.chunk) + ", prefix " +
         std::to_string(m.prefix) + (m.keep ? ", some kept" : "") + (m.blocks ? ", blocks" : "");
}

TEST(Visible, IsWhatOneLineSays) {
  for (const Case& c : cases()) {
    for_each_mask([&](const Mask& mask) {
      for (std::int64_t i = 0; i < c.queries.size(); ++i) {
        for (std::int64_t j = 0; j < c.keys.size(); ++j)
          ASSERT_EQ(visible(mask, c.queries, c.keys, 0, i, j),
                    definition(mask, c.queries, c.keys, i, j))
              << words(c, mask) << ": query " << i << ", key " << j;
      }
    });
  }
}

TEST(Visible, IsTheSameInBlocks) {
  for (const Case& c : cases()) {
    for_each_mask([&](const Mask& mask) {
      const Visibility visibility(mask, c.queries, c.keys);
      const PositionBlock queries = visibility.query_block(0, 0, c.queries.size());
      for (const std::int64_t step : {1, 3, 10}) {
        for (std::int64_t first = 0; first < c.keys.size(); first += step) {
          const std::int64_t count = std::min(step, c.keys.size() - first);
          const PositionBlock keys = visibility.key_block(0, first, count);
          for (std::int64_t i = 0; i < c.queries.size(); ++i) {
            std::string wanted, got(static_cast<std::size_t>(count), '.');
            for (std::int64_t j = 0; j < count; ++j)
              wanted += definition(mask, c.queries, c.keys, i, first + j) ? '#' : '.';
            const VisibleRange seen = visibility.range(queries, i, keys, count, 0);
            for (std::int64_t j = seen.begin; j < seen.end; ++j)
              got[static_cast<std::size_t>(j)] = '#';
            if (seen.holes)
              visibility.for_holes(queries, i, keys, seen, 0,
                                   [&](std::int64_t j) { got[static_cast<std::size_t>(j)] = '.'; });
            ASSERT_EQ(got, wanted) << words(c, mask) << ": query " << i << ", keys from " << first;
            ASSERT_TRUE(visibility.some(queries, keys) || !wanted.contains('#')) << words(c, mask);
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace posenc::detail
