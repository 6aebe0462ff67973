// Ids with a slip each that engines have made, and the name that it is given.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "posenc/tools.h"

namespace posenc {
namespace {

using Ids = std::vector<std::int64_t>;

PositionIds one_row(Ids ids) {
  const std::int64_t seq = std::ssize(ids);
  return {.ids = std::move(ids), .seq = seq};
}

std::vector<Finding> checked(const PositionIds& found, const Expected<Positions>& expected,
                             const std::vector<std::uint8_t>& keep = {}) {
  EXPECT_TRUE(expected) << expected.error().message();
  const auto findings = check_positions(found, *expected, keep);
  EXPECT_TRUE(findings) << findings.error().message();
  return findings.value_or(std::vector<Finding>());
}

// The code of the only finding and its token: "offset at 3"; "" where there is none.
std::string slip(const PositionIds& found, const Expected<Positions>& expected,
                 const std::vector<std::uint8_t>& keep = {}) {
  const auto findings = checked(found, expected, keep);
  EXPECT_LE(findings.size(), 1U);
  return findings.empty()
             ? ""
             : findings[0].code + " at " + std::to_string(findings[0].position.value_or(-1));
}

const std::vector<std::uint8_t> left_padded = {0, 0, 1, 1, 1};

TEST(CheckPositions, IdsOfTheRuleAreRight) {
  EXPECT_EQ(slip(one_row({5, 6, 7}), Positions::range(5, 3)), "");
}

TEST(CheckPositions, PaddingMayHaveAnyId) {
  EXPECT_EQ(slip(one_row({77, -1, 0, 1, 2}), Positions::from_mask(left_padded, 1), left_padded),
            "");
}

TEST(CheckPositions, PaddingThatIsCounted) {
  EXPECT_EQ(slip(one_row({0, 1, 2, 3, 4}), Positions::from_mask(left_padded, 1), left_padded),
            "padding_counted at 2");
}

TEST(CheckPositions, OneRowForTheWholeBatch) {
  const std::vector<std::uint8_t> keep = {1, 1, 1, 0, 1, 1};
  const PositionIds found{.ids = {0, 1, 2, 0, 1, 2}, .batch = 2, .seq = 3};
  EXPECT_EQ(slip(found, Positions::from_mask(keep, 2), keep), "row_shared at 1");
}

TEST(CheckPositions, PackingThatIsIgnored) {
  EXPECT_EQ(slip(one_row({0, 1, 2, 3, 4}), Positions::packed(Ids{0, 3, 5})),
            "packing_ignored at 3");
}

TEST(CheckPositions, OffsetLostBehindACache) {
  EXPECT_EQ(slip(one_row({0, 1, 2}), Positions::range(4096, 3)), "offset_lost at 0");
}

TEST(CheckPositions, EveryIdOneTooFar) {
  const auto findings = checked(one_row({1, 2, 3}), Positions::range(0, 3));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "offset");
  EXPECT_TRUE(findings[0].message.contains("off by 1")) << findings[0].message;
}

TEST(CheckPositions, AnIdThatStandsStill) {
  EXPECT_EQ(slip(one_row({7, 7, 7}), Positions::range(7, 3)), "frozen at 1");
}

// The first of two ranks of a zigzag has the first and the last piece of four.
TEST(CheckPositions, PiecesOfATextTakenAsOne) {
  EXPECT_EQ(slip(one_row({0, 1, 2, 3}), Positions::ids(Ids{0, 1, 6, 7})), "sharding_ignored at 2");
}

TEST(CheckPositions, IdsOfTextWherePicturesStand) {
  EXPECT_EQ(slip(one_row({0, 1, 2}), Positions::ids(Ids{0, 0, 0, 0, 1, 1, 0, 1, 2}, 3)),
            "flat at 1");
}

TEST(CheckPositions, IdsOfTextOnEveryAxisOfAPicture) {
  const PositionIds found{.ids = {0, 1, 2, 0, 1, 2, 0, 1, 2}, .axes = 3, .seq = 3};
  const auto findings = checked(found, Positions::ids(Ids{0, 0, 0, 0, 1, 1, 0, 1, 2}, 3));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "flat");
  EXPECT_TRUE(findings[0].message.contains("alike on all axes")) << findings[0].message;
}

TEST(CheckPositions, AxesInAnotherOrder) {
  const PositionIds found{.ids = {0, 1, 2, 0, 0, 1}, .axes = 2, .seq = 3};
  const auto findings = checked(found, Positions::ids(Ids{0, 0, 1, 0, 1, 2}, 2));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "axes_exchanged");
}

TEST(CheckPositions, TextThatGoesOnElsewhereBehindAPicture) {
  const PositionIds found{.ids = {0, 0, 4, 5, 0, 1, 4, 5}, .axes = 2, .seq = 4};
  EXPECT_EQ(slip(found, Positions::ids(Ids{0, 0, 2, 3, 0, 1, 2, 3}, 2)), "grid_advance at 2");
}

TEST(CheckPositions, ACountThatWasChangedOnTheWay) {
  EXPECT_EQ(slip(one_row({0, 1, 2, 9, 10}), Positions::range(0, 5)), "offset_from at 3");
}

TEST(CheckPositions, WhatNoSlipExplains) {
  EXPECT_EQ(slip(one_row({0, 3, 1, 2}), Positions::range(0, 4)), "differs at 1");
}

TEST(CheckPositions, ZerosInARowAreFiller) {
  EXPECT_EQ(slip(one_row({0, 1, 2, 0, 0}), Positions::range(0, 5)), "frozen at 3");
  EXPECT_EQ(slip(one_row({0, 1, 0, 3, 4}), Positions::range(0, 5)), "differs at 2");
}

TEST(CheckPositions, NoTokensAreNoFinding) {
  EXPECT_EQ(slip(one_row({}), Positions::range(0, 0)), "");
}

TEST(CheckPositions, SizesThatDoNotMatchAreRefused) {
  EXPECT_FALSE(check_positions(one_row({0, 1}), Positions::range(0, 3)));
  EXPECT_FALSE(check_positions({.ids = {0, 1, 2}, .batch = 2, .seq = 2}, Positions::range(0, 2)));
  EXPECT_FALSE(check_positions({.ids = {}, .axes = 0}, Positions::range(0, 0)));
  const std::vector<std::uint8_t> short_keep = {1};
  EXPECT_FALSE(check_positions(one_row({0, 1}), Positions::range(0, 2), short_keep));
}

TEST(CheckPositions, IdsBeyondAnyPositionAreRefused) {
  EXPECT_FALSE(check_positions(one_row({INT64_MIN}), Positions::range(0, 1)));
}

}  // namespace
}  // namespace posenc
