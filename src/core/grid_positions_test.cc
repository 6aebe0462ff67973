// Positions of patches on one axis, and windows.
#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <vector>

#include "posenc/positions.h"

namespace posenc {
namespace {

TEST(GridPositions, TellRowsAndColumnsByADistance) {
  for (const auto& [height, width] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 4}, {5, 2}}) {
    const GridPositions grid = *grid_positions(height, width);
    EXPECT_EQ(grid.queries, grid.keys);
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
    std::set<std::int64_t> distances;
    for (std::int64_t i = 0; i < height * width; ++i) {
      for (std::int64_t j = 0; j < height * width; ++j) {
        const std::int64_t distance = grid.queries.at(i) - grid.keys.at(j);
        distances.insert(distance);
        seen.insert({distance, i / width - j / width, i % width - j % width});
      }
    }
    EXPECT_EQ(seen.size(), distances.size());  // one Δ each
    EXPECT_EQ(std::ssize(distances), (2 * height - 1) * (2 * width - 1));
  }
}

TEST(GridPositions, PutAClassTokenFartherThanAnyPatch) {
  const GridPositions grid = *grid_positions(3, 4, true);
  ASSERT_EQ(grid.queries.size(), 13);
  std::set<std::int64_t> patches, as_query, as_key;
  for (std::int64_t i = 0; i < 13; ++i) {
    for (std::int64_t j = 0; j < 13; ++j) {
      const std::int64_t distance = grid.queries.at(i) - grid.keys.at(j);
      (i == 0 && j > 0 ? as_query : j == 0 && i > 0 ? as_key : patches).insert(distance);
    }
  }
  EXPECT_EQ(patches.size(), 5u * 7 + 1);
  EXPECT_EQ(as_query.size(), 12u);
  EXPECT_EQ(as_key.size(), 12u);
  EXPECT_LT(*std::next(patches.rbegin()), *as_query.begin());
  EXPECT_LT(*as_query.rbegin(), *as_key.begin());
  EXPECT_LT(*as_key.rbegin(), *patches.rbegin());
}

TEST(GridPositions, NeedSizes) {
  EXPECT_EQ(grid_positions(0, 3).error().message(),
            "grid_positions: a grid must have 1 to 2^28 patches, got 0 x 3; check the sizes");
  EXPECT_FALSE(grid_positions(1 << 20, 1 << 20));
}

TEST(WindowPartition, IsSwinsWithoutAShift) {
  const WindowPartition parts = *window_partition(4, 6, 2);
  EXPECT_EQ(parts.order,
            (std::vector<std::int64_t>{0,  1,  6,  7,  2,  3,  8,  9,  4,  5,  10, 11,
                                       12, 13, 18, 19, 14, 15, 20, 21, 16, 17, 22, 23}));
  for (std::int64_t t = 0; t < 24; ++t) {
    EXPECT_EQ(parts.positions.segment(t), t / 4);
    EXPECT_EQ(parts.positions.at(t), t % 2 + t / 2 % 2 * 3);
  }
}

// Two patches see each other where Swin's mask lets them: in one window of the moved grid, and of
// one region of it.
TEST(WindowPartition, SeesWhatSwinsMaskShows) {
  constexpr std::int64_t size = 6, window = 3, shift = 1;
  const WindowPartition parts = *window_partition(size, size, window, shift);
  std::vector<std::int64_t> place(size * size);
  for (std::size_t t = 0; t < parts.order.size(); ++t)
    place[static_cast<std::size_t>(parts.order[t])] = static_cast<std::int64_t>(t);
  const auto moved = [](std::int64_t x) { return (x - shift + size) % size; };
  const auto region = [](std::int64_t x) {
    return x < size - window ? 0 : x < size - shift ? 1 : 2;
  };
  for (std::int64_t a = 0; a < size * size; ++a) {
    for (std::int64_t b = 0; b < size * size; ++b) {
      bool sees = true;
      for (const auto& [x, y] : {std::pair{a / size, b / size}, {a % size, b % size}})
        sees =
            sees && moved(x) / window == moved(y) / window && region(moved(x)) == region(moved(y));
      const std::int64_t i = place[static_cast<std::size_t>(a)],
                         j = place[static_cast<std::size_t>(b)];
      EXPECT_EQ(parts.positions.segment(i) == parts.positions.segment(j), sees) << a << " " << b;
    }
  }
}

TEST(WindowPartition, RefusesWhatIsNoWholeNumberOfWindows) {
  EXPECT_FALSE(window_partition(7, 6, 3));
  EXPECT_FALSE(window_partition(6, 6, 3, 3));
  EXPECT_FALSE(window_partition(6, 6, 0));
}

// A picture of 5 × 4 patches, 3 × 3 of which each sees.
TEST(Neighbourhood, IsMovedInwardsAtTheBorders) {
  const Neighbourhood around = *neighbourhood(5, 4, 3);
  EXPECT_EQ(around.key_count, 9);
  const auto seen = [&](std::int64_t patch) {
    const auto from = around.keys.begin() + patch * 9;
    return std::vector<std::int32_t>(from, from + 9);
  };
  const std::vector<std::int32_t> corner = {0, 1, 2, 4, 5, 6, 8, 9, 10};
  EXPECT_EQ(seen(0), corner);
  EXPECT_EQ(seen(5), corner);  // whose middle it is
  EXPECT_EQ(seen(19), (std::vector<std::int32_t>{9, 10, 11, 13, 14, 15, 17, 18, 19}));
  EXPECT_EQ(around.positions, grid_positions(5, 4)->queries);
}

// With a dilation each patch sees nine others of its own kind alone, and stands among them as in a
// grid of those.
TEST(Neighbourhood, WithADilationIsAmongPatchesAsFarApart) {
  constexpr std::int64_t height = 8, width = 7, kernel = 3, dilation = 2;
  const Neighbourhood around = *neighbourhood(height, width, kernel, dilation);
  const Positions places = grid_positions(4, 4)->queries;
  for (std::int64_t patch = 0; patch < height * width; ++patch) {
    const std::int64_t y = patch / width, x = patch % width;
    EXPECT_EQ(around.positions.at(patch), places.at(y / dilation * 4 + x / dilation));
    std::set<std::int64_t> rows, columns;
    for (std::int64_t i = 0; i < 9; ++i) {
      const std::int64_t key = around.keys[static_cast<std::size_t>(patch * 9 + i)];
      rows.insert(key / width - y);
      columns.insert(key % width - x);
    }
    for (const auto& apart : {rows, columns}) {
      EXPECT_EQ(apart.size(), 3u);
      EXPECT_TRUE(apart.contains(0));
      EXPECT_EQ(*apart.rbegin() - *apart.begin(), 4);
    }
    if (y >= 2 && y < 6) {
      EXPECT_EQ(*rows.begin(), -2);
    }
  }
}

TEST(Neighbourhood, NeedsAPictureAsLargeAsItself) {
  EXPECT_TRUE(neighbourhood(6, 6, 3, 2));
  EXPECT_FALSE(neighbourhood(6, 5, 3, 2));
  EXPECT_FALSE(neighbourhood(6, 6, 2));
  EXPECT_FALSE(neighbourhood(6, 6, 3, 0));
  EXPECT_FALSE(neighbourhood(6, 6, -1));
  EXPECT_FALSE(neighbourhood(1 << 13, 1 << 13, 7));
  EXPECT_FALSE(neighbourhood(6, 6, 3, std::int64_t{1} << 62));
}

TEST(PackedIds, StandWhereTheyAreToldTo) {
  const Positions packed = *Positions::packed(std::vector<std::int64_t>{0, 2, 5},
                                              std::vector<std::int64_t>{7, -3, 0, 1, 2});
  EXPECT_EQ(packed.at(1), -3);
  EXPECT_EQ(packed.segment(1), 0);
  EXPECT_EQ(packed.segment(4), 1);
  const Positions counted =
      *Positions::packed(std::vector<std::int64_t>{0, 2, 3}, std::vector<std::int64_t>{4, 5, 6});
  EXPECT_EQ(counted.segment(2), 1);
  EXPECT_EQ(counted.at(2), 6);
  EXPECT_FALSE(Positions::packed(std::vector<std::int64_t>{0, 2}, std::vector<std::int64_t>{1}));
}

}  // namespace
}  // namespace posenc
