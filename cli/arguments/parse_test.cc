#include "cli/arguments/parse.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace posenc;
using namespace posenc::cli;

std::vector<std::int64_t> ids(const std::string& text) {
  const Expected<Positions> parsed = positions(text);
  std::vector<std::int64_t> out;
  if (parsed)
    for (std::int64_t t = 0; t < parsed->size(); t++) out.push_back(parsed->at(t));
  return out;
}

TEST(ParsePositions, ARangeLeavesItsEndOut) {
  EXPECT_EQ(ids("2:5"), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_TRUE(positions("0:4096")->contiguous());
}

TEST(ParsePositions, OneNumberIsOnePosition) { EXPECT_EQ(ids("5"), std::vector<std::int64_t>{5}); }

TEST(ParsePositions, AListIsItself) {
  EXPECT_EQ(ids("0,7,7,2"), (std::vector<std::int64_t>{0, 7, 7, 2}));
}

TEST(ParsePositions, ALongRangeTakesNoMemory) {
  EXPECT_EQ(positions("0:4611686018427387904")->size(), std::int64_t{1} << 62);
}

TEST(ParsePositions, WhatIsNoPositionIsAnError) {
  for (const char* text :
       {"", ":", "0:", ":5", "5:5", "5:2", "-1", "-1:3", "0:100:2", "0:100:?", "a", "1.5", "0x10",
        "1,,2", "1,-2", "99999999999999999999", "0:99999999999999999999"})
    EXPECT_FALSE(positions(text)) << text;
}

TEST(ParsePositions, TheErrorNamesTheFlagAndTheCure) {
  EXPECT_EQ(positions("0:100:?").error().message(),
            "--positions: must be FIRST:END, one position, a list or a .npy file, got 0:100:?; "
            "0:4096 stands for 0 to 4095");
}

TEST(ParseLists, BracketsAndSpacesAreAllowed) {
  EXPECT_EQ(integers(" [1, 2,3 ] ", "--x"), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(numbers("1e-3,0.5", "--x"), (std::vector<double>{1e-3, 0.5}));
  EXPECT_EQ(numbers("", "--x"), std::vector<double>{});
}

TEST(ParseLists, NumbersAreFiniteAndWhole) {
  for (const char* text : {"inf", "nan", "1e999", "1 2", "1;2", "12x"})
    EXPECT_FALSE(numbers(text, "--x")) << text;
}

TEST(ParseRows, RowsAreOfOneLength) {
  const Expected<IntegerRows> rows = integer_rows("0,0,1;1,1,1", "--mask");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->rows, 2);
  EXPECT_EQ(rows->values.size(), 6u);
  EXPECT_FALSE(integer_rows("0,0,1;1,1", "--mask"));
  EXPECT_FALSE(integer_rows("0;1,1", "--mask"));
  EXPECT_FALSE(integer_rows(";1", "--mask"));
}

TEST(ParseGrid, HeightComesFirst) {
  const Expected<Grid> parsed = grid("16x24", "--grid");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->height, 16);
  EXPECT_EQ(parsed->width, 24);
  for (const char* text : {"16", "16x", "x16", "0x4", "-1x4", "4x4x4", "4X4"})
    EXPECT_FALSE(grid(text, "--grid")) << text;
}

}  // namespace
