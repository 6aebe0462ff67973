#include "posenc/positions.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace posenc {
namespace {

using Ids = std::vector<std::int64_t>;
using Bytes = std::vector<std::uint8_t>;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

Ids row(const Positions& positions, std::int64_t b = 0, std::int64_t axis = 0) {
  Ids ids;
  for (std::int64_t t = 0; t < positions.size(); ++t) ids.push_back(positions.at(t, b, axis));
  return ids;
}

TEST(Positions, RangeCountsFromFirst) {
  const Positions positions = Positions::range(7, 3);
  EXPECT_EQ(row(positions), (Ids{7, 8, 9}));
  EXPECT_EQ(positions.length(), 10);
}

TEST(Positions, RangeOfHugeTextCostsNoMemory) {
  EXPECT_EQ(Positions::range(0, std::int64_t{1} << 40).at(std::int64_t{1} << 39),
            std::int64_t{1} << 39);
}

TEST(Positions, LengthDoesNotWrapAtTheEndOfInt64) {
  EXPECT_EQ(Positions::range(largest - 1, 5).length(), largest);
}

TEST(Positions, IdsReachNoFurtherThanSumsOfTwoFit) {
  EXPECT_EQ(Positions::ids(Ids{furthest_position, 0})->length(), furthest_position + 1);
  EXPECT_FALSE(Positions::ids(Ids{furthest_position + 1, 0}));
  EXPECT_FALSE(Positions::ids(Ids{largest, 0}));
  EXPECT_FALSE(Positions::from_mask(Bytes{0, 1}, 1, 0, furthest_position + 1));
}

TEST(Positions, NoTokensHaveLengthZero) { EXPECT_EQ(Positions::range(5, 0).length(), 0); }

TEST(Positions, IdsAreRowMajorAxisBatchSeq) {
  const auto positions = Positions::ids(Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 2, 3);
  ASSERT_TRUE(positions);
  EXPECT_EQ(positions->size(), 2);
  EXPECT_EQ(positions->at(1, 2, 1), 11);
  EXPECT_EQ(positions->at(0, 1, 0), 2);
}

TEST(Positions, ConsecutiveIdsAreARange) {
  EXPECT_EQ(*Positions::ids(Ids{4, 5, 6}), Positions::range(4, 3));
}

TEST(Positions, NegativeIdIsAnErrorNotAnIndexFromTheEnd) {
  const auto positions = Positions::ids(Ids{0, -1, 2});
  ASSERT_FALSE(positions);
  EXPECT_EQ(positions.error().got, "-1 at index 1");
}

TEST(Positions, IdsThatDoNotFillTheShapeAreAnError) {
  EXPECT_FALSE(Positions::ids(Ids{0, 1, 2, 3, 4}, 3));
  EXPECT_FALSE(Positions::ids(Ids{0, 1}, 0));
  EXPECT_FALSE(Positions::ids(Ids{0, 1}, largest, 2));
}

TEST(Positions, TextAnswersForEveryAxis) {
  const Positions text = Positions::range(3, 2);
  EXPECT_EQ(row(text, 0, 2), (Ids{3, 4}));
  EXPECT_EQ(row(*Positions::ids(Ids{9, 3}), 0, 1), (Ids{9, 3}));
}

TEST(Positions, OneSequenceAnswersForTheBatch) {
  EXPECT_EQ(row(*Positions::ids(Ids{9, 3}), 5), (Ids{9, 3}));
}

TEST(PositionsFromMask, LeftPaddingShiftsNothing) {
  const auto positions = Positions::from_mask(Bytes{1, 1, 1, 1, 0, 0, 1, 1}, 2);
  ASSERT_TRUE(positions);
  EXPECT_EQ(row(*positions, 0), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(row(*positions, 1), (Ids{0, 0, 0, 1}));
}

// With two tokens cached for each sequence, one of them padding in the second.
TEST(PositionsFromMask, CachedTokensAreCountedEachSequenceByItsOwn) {
  const auto positions = Positions::from_mask(Bytes{1, 1, 1, 1, 0, 1, 1, 1}, 2, 2);
  ASSERT_TRUE(positions);
  EXPECT_EQ(row(*positions, 0), (Ids{2, 3}));
  EXPECT_EQ(row(*positions, 1), (Ids{1, 2}));
}

TEST(PositionsFromMask, PaddingCanBeMarked) {
  EXPECT_EQ(row(*Positions::from_mask(Bytes{0, 1, 0}, 1, 0, -1)), (Ids{-1, 0, -1}));
}

TEST(PositionsFromMask, PaddingBelowTheMarkerIsAnError) {
  EXPECT_FALSE(Positions::from_mask(Bytes{0, 1}, 1, 0, -2));
}

TEST(PositionsFromMask, MoreCachedThanTheMaskCoversIsAnError) {
  EXPECT_FALSE(Positions::from_mask(Bytes{1, 1}, 1, 3));
  EXPECT_FALSE(Positions::from_mask(Bytes{1, 1}, 1, -1));
}

TEST(PositionsFromMask, MaskWithoutPaddingIsARange) {
  EXPECT_EQ(*Positions::from_mask(Bytes{1, 1, 1}, 1, 1), Positions::range(1, 2));
}

TEST(PositionsPacked, RestartAtEveryBoundary) {
  const auto positions = Positions::packed(Ids{0, 3, 3, 5});
  ASSERT_TRUE(positions);
  EXPECT_EQ(row(*positions), (Ids{0, 1, 2, 0, 1}));
}

TEST(PositionsPacked, SegmentsTellSequencesApart) {
  const auto positions = Positions::packed(Ids{0, 3, 3, 5});
  EXPECT_EQ(positions->segment(2), 0);
  EXPECT_EQ(positions->segment(3), 2);
  EXPECT_EQ(Positions::range(0, 5).segment(3), 0);
}

TEST(PositionsPacked, LengthIsThatOfTheLongestNotOfThePack) {
  EXPECT_EQ(Positions::packed(Ids{0, 3, 5})->length(), 3);
}

TEST(PositionsPacked, LengthsInsteadOfRunningSumsAreAnError) {
  EXPECT_FALSE(Positions::packed(Ids{3, 2}));
  EXPECT_FALSE(Positions::packed(Ids{0, 3, 2}));
  EXPECT_FALSE(Positions::packed(Ids{0}));
}

TEST(PositionsPacked, HostileTotalIsAnErrorNotAnAllocation) {
  EXPECT_FALSE(Positions::packed(Ids{0, largest}));
}

TEST(PositionsShifted, MovesRangesAndIds) {
  EXPECT_EQ(*Positions::range(3, 4).shifted(-3), Positions::range(0, 4));
  EXPECT_EQ(row(*Positions::ids(Ids{5, 2})->shifted(10)), (Ids{15, 12}));
}

TEST(PositionsShifted, BelowZeroIsAnErrorNotAWrappedIndex) {
  EXPECT_FALSE(Positions::range(3, 4).shifted(-4));
  EXPECT_FALSE(Positions::ids(Ids{5, 2})->shifted(-3));
  EXPECT_FALSE(Positions::ids(Ids{5, 2})->shifted(largest));
}

TEST(PositionsShifted, MarkedPaddingStaysMarked) {
  const auto positions = Positions::from_mask(Bytes{0, 1, 1}, 1, 0, -1);
  EXPECT_EQ(row(*positions->shifted(10)), (Ids{-1, 10, 11}));
}

TEST(PositionsShifted, PaddingAtZeroMovesWithTheText) {
  const auto positions = Positions::from_mask(Bytes{0, 1, 1}, 1);
  EXPECT_EQ(row(*positions->shifted(10)), (Ids{10, 10, 11}));
}

TEST(PositionsPatches, WithoutMergeGoRowByRow) {
  const auto patches = patch_positions(2, 3);
  ASSERT_TRUE(patches);
  EXPECT_EQ(row(*patches, 0, 0), (Ids{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(row(*patches, 0, 1), (Ids{0, 1, 2, 0, 1, 2}));
}

TEST(PositionsPatches, WithMergeGoBlockByBlock) {
  const auto patches = patch_positions(4, 4, 2);
  ASSERT_TRUE(patches);
  EXPECT_EQ(row(*patches, 0, 0), (Ids{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}));
  EXPECT_EQ(row(*patches, 0, 1), (Ids{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3}));
}

TEST(PositionsPatches, EveryFrameRepeatsTheGrid) {
  const auto patches = patch_positions(1, 2, 1, 2);
  EXPECT_EQ(row(*patches, 0, 1), (Ids{0, 1, 0, 1}));
}

TEST(PositionsPatches, OddGridOrHostileSizeIsAnError) {
  EXPECT_FALSE(patch_positions(3, 4, 2));
  EXPECT_FALSE(patch_positions(-2, 4));
  EXPECT_FALSE(patch_positions(2, 2, 0));
  EXPECT_FALSE(patch_positions(largest, largest));
  EXPECT_FALSE(patch_positions(std::int64_t{1} << 20, std::int64_t{1} << 20));
}

TEST(Positions, NoTokensOfTooManyAxesIsAnError) {
  EXPECT_FALSE(Positions::ids({}, std::int64_t{1} << 40));
  EXPECT_FALSE(Positions::from_mask({}, std::int64_t{1} << 40));
  EXPECT_TRUE(Positions::ids({}, 3, 8));
}

TEST(PositionsShifted, BeyondTheFurthestPositionIsAnError) {
  EXPECT_TRUE(Positions::range(0, 5).shifted(furthest_position - 4));
  EXPECT_FALSE(Positions::range(0, 5).shifted(furthest_position - 3));
  EXPECT_FALSE(Positions::range(0, 5).shifted(largest));
  EXPECT_TRUE(Positions::ids(Ids{5, 2})->shifted(furthest_position - 5));
  EXPECT_FALSE(Positions::ids(Ids{5, 2})->shifted(furthest_position - 4));
}

TEST(PositionsPacked, OneSequenceIsARange) {
  EXPECT_EQ(*Positions::packed(Ids{0, 3}), Positions::range(0, 3));
  EXPECT_EQ(*Positions::packed(Ids{0, 3, 3}), Positions::range(0, 3));
  EXPECT_NE(*Positions::packed(Ids{0, 0, 3}), Positions::range(0, 3));  // the second sequence's
}

TEST(PositionsSlice, SeesTheSameTokensOnEveryAxis) {
  const auto all = Positions::ids(Ids{0, 1, 5, 3, 9, 4, 6, 6, 8, 0, 2, 7}, 2, 2);
  const Positions part = all->slice(1, 1, 2);
  EXPECT_EQ(part.batch(), 1);
  EXPECT_EQ(row(part, 0, 0), (Ids{9, 4}));
  EXPECT_EQ(row(part, 0, 1), (Ids{2, 7}));
  EXPECT_EQ(row(part.slice(0, 1, 1), 7, 1), Ids{7});
  EXPECT_EQ(part, *Positions::ids(Ids{9, 4, 2, 7}, 2));
  EXPECT_EQ(part.length(), 10);
  EXPECT_EQ(row(*part.shifted(1), 0, 1), (Ids{3, 8}));
}

TEST(PositionsSlice, KeepsSegments) {
  const Positions part = Positions::packed(Ids{0, 3, 5})->slice(0, 2, 2);
  EXPECT_EQ(row(part), (Ids{2, 0}));
  EXPECT_EQ(part.segment(0), 0);
  EXPECT_EQ(part.segment(1), 1);
}

TEST(PositionsSlice, OfThePacksFirstSequenceIsPlainText) {
  Positions part = Positions::packed(Ids{0, 3, 5})->slice(0, 0, 3);
  ASSERT_TRUE(part.append(Positions::range(3, 1)));
  EXPECT_EQ(row(part), (Ids{0, 1, 2, 3}));
}

TEST(PositionsSlice, NoTokensAreThere) {
  EXPECT_EQ(Positions::ids(Ids{4, 2})->slice(0, 1, 0).size(), 0);
  EXPECT_EQ(Positions::ids(Ids{4, 2})->slice(0, 1, 0).length(), 0);
}

TEST(PositionsAppend, ARangeGoesOn) {
  Positions positions;
  ASSERT_TRUE(positions.append(Positions::range(3, 2)));
  ASSERT_TRUE(positions.append(Positions::range(5, 4)));
  ASSERT_TRUE(positions.append(Positions::range(0, 0)));
  EXPECT_EQ(positions, Positions::range(3, 6));
}

TEST(PositionsAppend, AHoleMakesIds) {
  Positions positions = Positions::range(3, 2);
  ASSERT_TRUE(positions.append(Positions::range(9, 2)));
  ASSERT_TRUE(positions.append(*Positions::ids(Ids{2, 7})));
  EXPECT_EQ(row(positions), (Ids{3, 4, 9, 10, 2, 7}));
  EXPECT_EQ(positions, *Positions::ids(Ids{3, 4, 9, 10, 2, 7}));
}

TEST(PositionsAppend, CopiesAndSlicesKeepTheirTokens) {
  Positions positions = *Positions::ids(Ids{3, 9});
  for (std::int64_t t = 0; t < 100; ++t) {
    const Positions copy = positions, last = positions.slice(0, t, 2);
    Positions other = copy;
    ASSERT_TRUE(positions.append(Positions::range(t, 1)));
    ASSERT_TRUE(other.append(Positions::range(1000, 1)));
    ASSERT_EQ(copy.size(), t + 2);
    ASSERT_EQ(positions.at(t + 2), t);
    ASSERT_EQ(other.at(t + 2), 1000);
    ASSERT_EQ(last.at(1), copy.at(t + 1));
  }
}

// What a cache does: it alone has the ids, and gives views of them away for a moment.
TEST(PositionsAppend, StaysWhereItIsWhileThereIsRoom) {
  Positions positions = *Positions::ids(Ids{3, 9, 0, 1, 5, 5}, 3);
  for (std::int64_t t = 2; t < 1000; ++t) {
    ASSERT_TRUE(positions.append(*Positions::ids(Ids{t, t + 1, t + 2}, 3)));
    ASSERT_EQ(positions.slice(0, t, 1).at(0, 0, 2), t + 2);
  }
  EXPECT_EQ(positions.at(1, 0, 2), 5);
  EXPECT_EQ(positions.at(500, 0, 1), 501);
  EXPECT_EQ(positions.length(), 1002);
}

TEST(PositionsAppend, TextAmongPicturesStandsOnEveryAxis) {
  Positions positions = Positions::range(0, 2);
  ASSERT_TRUE(positions.append(*Positions::ids(Ids{2, 2, 2, 3}, 2)));
  ASSERT_TRUE(positions.append(Positions::range(4, 1)));
  EXPECT_EQ(positions.axes(), 2);
  EXPECT_EQ(row(positions, 0, 0), (Ids{0, 1, 2, 2, 4}));
  EXPECT_EQ(row(positions, 0, 1), (Ids{0, 1, 2, 3, 4}));
}

TEST(PositionsAppend, OneSequenceGoesOnAsMany) {
  Positions positions = Positions::range(0, 1);
  ASSERT_TRUE(positions.append(*Positions::ids(Ids{5, 6}, 1, 2)));
  EXPECT_EQ(row(positions, 0), (Ids{0, 5}));
  EXPECT_EQ(row(positions, 1), (Ids{0, 6}));
}

TEST(PositionsAppend, ItselfIsRepeated) {
  Positions positions = *Positions::ids(Ids{3, 9});
  ASSERT_TRUE(positions.append(positions));
  ASSERT_TRUE(positions.append(positions));
  EXPECT_EQ(row(positions), (Ids{3, 9, 3, 9, 3, 9, 3, 9}));
}

TEST(PositionsAppend, WhatDoesNotMatchIsAnErrorThatChangesNothing) {
  const Positions before = *Positions::ids(Ids{3, 9, 4, 4}, 2);
  Positions positions = before;
  EXPECT_FALSE(positions.append(*Positions::ids(Ids{3, 9, 4}, 3)));
  EXPECT_FALSE(positions.append(*Positions::packed(Ids{0, 1, 2})));
  EXPECT_FALSE(positions.append(Positions::range(0, std::int64_t{1} << 40)));
  EXPECT_EQ(positions, before);
}

TEST(Positions, GridsAreCountedRowByRowFromWhereTheyStart) {
  const std::vector<std::int64_t> sizes = {2, 1, 3}, first = {5, 0, -1};
  const Positions grid = *Positions::grid(sizes, first);
  ASSERT_EQ(grid.axes(), 3);
  ASSERT_EQ(grid.size(), 6);
  for (std::int64_t t = 0; t < 6; ++t) {
    EXPECT_EQ(grid.at(t, 0, 0), 5 + t / 3);
    EXPECT_EQ(grid.at(t, 0, 1), 0);
    EXPECT_EQ(grid.at(t, 0, 2), t % 3 - 1);
  }
}

TEST(Positions, TextStandsBehindAGrid) {
  const std::vector<std::int64_t> sizes = {1, 2, 2};
  Positions all = *Positions::grid(sizes);
  ASSERT_TRUE(all.append(Positions::range(4, 2)));
  EXPECT_EQ(all.size(), 6);
  EXPECT_EQ(all.at(5, 0, 2), 5);
}

TEST(Positions, GridsRefuseSizesThatNoMemoryHolds) {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{}, {-1, 2}, {std::int64_t{1} << 40, 2}, {1 << 15, 1 << 15}})
    EXPECT_FALSE(Positions::grid(sizes));
  const std::vector<std::int64_t> sizes = {2, 2}, first = {0};
  EXPECT_FALSE(Positions::grid(sizes, first));
}

TEST(Positions, AnEmptyGridHasNoTokens) {
  const std::vector<std::int64_t> sizes = {3, 0, 2};
  EXPECT_EQ(Positions::grid(sizes)->size(), 0);
}

TEST(Positions, SignedIdsMayBeNegative) {
  const std::vector<std::int64_t> ids = {-3, -1, 0, 2};
  EXPECT_EQ(Positions::signed_ids(ids)->at(0), -3);
  EXPECT_FALSE(Positions::ids(ids));
  const std::vector<std::int64_t> far = {-furthest_position - 1, 0};
  EXPECT_FALSE(Positions::signed_ids(far));
}

TEST(PositionsSelect, KeepsPositionsAndTextsOfAPack) {
  const auto whole = Positions::packed(std::vector<std::int64_t>{0, 3, 8});
  const auto some = whole->select(std::vector<std::int64_t>{7, 0, 3});
  ASSERT_TRUE(some);
  EXPECT_EQ(some->at(0), 4);
  EXPECT_EQ(some->segment(0), 1);
  EXPECT_EQ(some->segment(1), 0);
  EXPECT_EQ(some->slice(0, 0, 2).segment(0), 1);
}

TEST(PositionsSelect, OfARangeIsARangeWherePlacesFollowEachOther) {
  const Positions whole = Positions::range(100, 10);
  EXPECT_EQ(*whole.select(std::vector<std::int64_t>{3, 4, 5}), Positions::range(103, 3));
  EXPECT_FALSE(whole.select(std::vector<std::int64_t>{3, 5})->contiguous());
}

TEST(PositionsSelect, KeepsTheOrderWhereThereAreSeveralAxes) {
  const auto whole = Positions::ids(std::vector<std::int64_t>{0, 0, 0, 5, 6, 7}, 2);
  const auto some = whole->select(std::vector<std::int64_t>{2, 1});
  EXPECT_TRUE(some->selected());
  EXPECT_EQ(some->order(0), 2);
  EXPECT_EQ(some->at(0, 0, 1), 7);
  EXPECT_EQ(some->slice(0, 1, 1).order(0), 1);
}

TEST(PositionsSelect, RefusesPlacesThatAreNotThere) {
  const auto some = Positions::range(0, 4).select(std::vector<std::int64_t>{4});
  ASSERT_FALSE(some);
  EXPECT_EQ(some.error().message(), "select positions: places must lie in [0, 4), got 4");
}

}  // namespace
}  // namespace posenc
