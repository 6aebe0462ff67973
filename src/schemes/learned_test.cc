#include <gtest/gtest.h>

#include <array>

#include "posenc/schemes.h"

namespace posenc {
namespace {

TEST(LearnedScheme, CompilesToItsRows) {
  const auto plan = Learned{.rows = 514, .row_offset = 2}.compiled({.width = 768});
  ASSERT_TRUE(plan);
  EXPECT_EQ(std::get<Rows>(plan->add->kind),
            (Rows{.rows = 514, .width = 768, .row_offset = 2, .table = {}}));
}

TEST(LearnedScheme, ReachesAsFarAsItsRows) {
  const auto plan = Learned{.rows = 514, .row_offset = 2}.compiled({.width = 768});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->valid->to, 512);
}

TEST(LearnedScheme, CompilesForItsLastLengthAndNoLonger) {
  const Learned opt{.rows = 2050, .row_offset = 2};
  EXPECT_TRUE(opt.compiled({.width = 768, .length = 2048}));
  EXPECT_EQ(
      opt.compiled({.width = 768, .length = 2049}).error().message(),
      "learned: length must be at most rows − row_offset = 2048, got 2049; shorten the text or "
      "extend the table");
}

TEST(LearnedScheme, BorrowsTheTable) {
  std::array<float, 12> numbers{};
  Learned scheme{.rows = 3};
  scheme.table = Table::borrow(Tensor::dense(numbers.data(), {3, 4}));
  const auto plan = scheme.compiled({.width = 4});
  ASSERT_TRUE(plan);
  EXPECT_EQ(std::get<Rows>(plan->add->kind).table.values.data, numbers.data());
}

TEST(LearnedScheme, RefusesATableOfAnotherShape) {
  std::array<float, 12> numbers{};
  Learned scheme{.rows = 4};
  scheme.table = Table::borrow(Tensor::dense(numbers.data(), {3, 4}));
  EXPECT_EQ(scheme.compiled({.width = 4}).error().message(),
            "learned: table: must have shape [4, 4], got [3, 4]; check the rows and the geometry");
}

TEST(LearnedScheme, RefusesAnOffsetThatLeavesNoRow) {
  EXPECT_FALSE((Learned{.rows = 2, .row_offset = 2}.compiled({.width = 4})));
  EXPECT_FALSE((Learned{.rows = 2, .row_offset = -1}.compiled({.width = 4})));
}

TEST(LearnedScheme, OfSeveralAxesReachesAsFarAsTheLongest) {
  const auto plan = Learned{.rows = 7, .axis_rows = {2, 5}}.compiled({.width = 4});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(std::get<Rows>(plan->add->kind).axis_rows, (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(plan->valid->to, 5);
}

TEST(LearnedScheme, RefusesRowsOfAxesThatAreNotAll) {
  for (const std::vector<std::int64_t>& of_axes :
       {std::vector<std::int64_t>{2, 4}, {2, 6}, {7, 0}, {8, -1}})
    EXPECT_FALSE((Learned{.rows = 7, .axis_rows = of_axes}.compiled({.width = 4})));
}

TEST(LearnedScheme, NeedsAWidthAndRows) {
  EXPECT_EQ(Learned{.rows = 2}.compiled({}).error().rule, "width must be known");
  EXPECT_EQ(Learned{}.compiled({.width = 4}).error().rule, "rows must be known");
}

TEST(LearnedScheme, ScalesTheEmbeddingWhenAsked) {
  const auto plan = Learned{.rows = 2, .scale_embedding = true}.compiled({.width = 16});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->add->embedding_scale, 4);
}

}  // namespace
}  // namespace posenc
