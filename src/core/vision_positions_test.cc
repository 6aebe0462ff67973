#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "posenc/positions.h"

namespace posenc::vision_positions_test {
namespace {

using Ids = std::vector<std::int64_t>;
constexpr VisionTokens tokens{
    .image_token_id = 101, .video_token_id = 102, .spatial_merge_size = 2};
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

Ids row(const Positions& positions, std::int64_t axis) {
  Ids ids;
  for (std::int64_t t = 0; t < positions.size(); ++t) ids.push_back(positions.at(t, 0, axis));
  return ids;
}

// A video of 3 x 4 x 4 patches merged by 2, four tokens a frame, between two words.
const Ids video = {1, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 2};

TEST(VisionPositions, GridStandsAtFrameRowAndColumn) {
  const auto result = vision_positions(video, {}, Ids{3, 4, 4}, tokens, {});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(row(result->positions, 0), (Ids{0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3}));
  EXPECT_EQ(row(result->positions, 1), (Ids{0, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2, 3}));
  EXPECT_EQ(row(result->positions, 2), (Ids{0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3}));
}

// After three frames of 2 x 2 the two published rules differ: 1 + max(3, 2, 2) and 1 + max(2, 2).
TEST(VisionPositions, TextGoesOnBehindTheGridByEitherRule) {
  const auto after = [](GridAdvance advance) {
    return vision_positions(video, {}, Ids{3, 4, 4}, tokens, {.advance = advance})
        ->positions.at(13);
  };
  EXPECT_EQ(after(GridAdvance::past_largest), 4);
  EXPECT_EQ(after(GridAdvance::past_height_width), 3);
}

TEST(VisionPositions, DeltaLeadsToTheNextTextToken) {
  const auto result = vision_positions(video, {}, Ids{3, 4, 4}, tokens, {});
  EXPECT_EQ(14 + result->delta, 4);
}

TEST(VisionPositions, TextAloneCountsOnAllAxes) {
  const auto result = vision_positions(Ids{1, 2, 3}, {}, {}, tokens, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(row(result->positions, 2), (Ids{0, 1, 2}));
  EXPECT_EQ(result->delta, 0);
}

TEST(VisionPositions, NoTokensAreNoPositions) {
  EXPECT_EQ(vision_positions({}, {}, {}, tokens, {})->positions.size(), 0);
}

// Two frames of one merged row of two, with a time-stamp token before each.
TEST(VisionPositions, QwenThreeFramesAreImagesAmongText) {
  const auto result = vision_positions(Ids{9, 102, 102, 9, 102, 102, 9}, {}, Ids{2, 2, 4}, tokens,
                                       {.step = FrameStep::per_frame});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(row(result->positions, 0), (Ids{0, 1, 1, 3, 4, 4, 6}));
  EXPECT_EQ(row(result->positions, 2), (Ids{0, 1, 2, 3, 4, 5, 6}));
}

TEST(VisionPositions, FractionsOfASecondAreRoundedDown) {
  const auto result = vision_positions(Ids{102, 102, 102, 102}, {}, Ids{4, 2, 2}, tokens,
                                       {.step = FrameStep::seconds, .tokens_per_second = 25},
                                       std::vector<double>{0.5});
  ASSERT_TRUE(result);
  EXPECT_EQ(row(result->positions, 0), (Ids{0, 12, 25, 37}));
}

TEST(VisionPositions, TwoPicturesSideBySideKeepTheirGrids) {
  const auto result = vision_positions(Ids{101, 101, 101}, Ids{1, 2, 2, 1, 2, 4}, {}, tokens, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(row(result->positions, 2), (Ids{0, 1, 2}));
  EXPECT_EQ(row(result->positions, 1), (Ids{0, 1, 1}));
}

std::string error_of(const Ids& ids, const Ids& images, const Ids& videos,
                     const VisionRule& rule = {}, const std::vector<double>& seconds = {}) {
  const auto result = vision_positions(ids, images, videos, tokens, rule, seconds);
  return result ? "no error" : result.error().message();
}

TEST(VisionPositionsErrors, TokensWithoutAGrid) {
  EXPECT_NE(error_of({1, 101}, {}, {}).find("image tokens must not outnumber"), std::string::npos);
}

TEST(VisionPositionsErrors, GridWithoutTokens) {
  EXPECT_NE(error_of({1, 2}, {1, 2, 2}, {}).find("every grid must have its tokens"),
            std::string::npos);
}

TEST(VisionPositionsErrors, GridLargerThanItsRunOfTokens) {
  EXPECT_NE(error_of({101, 101, 1, 101}, {1, 2, 6}, {}).find("3, got 2 from token 0"),
            std::string::npos);
}

TEST(VisionPositionsErrors, GridThatTheMergeDoesNotDivide) {
  EXPECT_NE(error_of({101}, {1, 3, 2}, {}).find("divisible by spatial_merge_size 2"),
            std::string::npos);
}

TEST(VisionPositionsErrors, GridsThatAreNotTriples) {
  EXPECT_NE(error_of({101}, {1, 2}, {}).find("three numbers a grid"), std::string::npos);
}

TEST(VisionPositionsErrors, HostileGridsNeitherWrapNorAllocate) {
  const std::int64_t even = largest - 1;
  EXPECT_NE(error_of({101}, {even, even, even}, {}).find("fewer than 2^63"), std::string::npos);
  EXPECT_NE(
      error_of({102}, {}, {even, 2, 2}, {.step = FrameStep::per_frame}).find("more grids than"),
      std::string::npos);
  EXPECT_NE(error_of({101}, {1, -2, -2}, {}).find("at least one patch"), std::string::npos);
}

TEST(VisionPositionsErrors, SecondsThatAreNoNumber) {
  const VisionRule rule{.step = FrameStep::seconds};
  for (const double bad : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_NE(error_of({102, 102}, {}, {2, 2, 2}, rule, {bad}).find("usable number"),
              std::string::npos);
  }
  EXPECT_NE(error_of({102}, {}, {1, 2, 2}, rule, {1, 1}).find("a number for each of 1 videos"),
            std::string::npos);
}

// A video of two frames of one patch, 25 positions apart, with three sounds among them.
const Ids with_sound = {1, 8, 9, 102, 103, 103, 102, 103, 10, 11, 2};
constexpr VisionTokens of_sound{
    .image_token_id = 101, .video_token_id = 102, .audio_token_id = 103, .spatial_merge_size = 2};

TEST(VisionPositions, SoundsAndFramesCountFromTheSameStart) {
  const auto result =
      vision_positions(with_sound, {}, Ids{2, 2, 2}, of_sound, *vision_rule("qwen3_omni"));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(row(result->positions, 0), (Ids{0, 1, 2, 3, 3, 4, 16, 5, 6, 7, 8}));
}

TEST(VisionPositions, BoundsOfAVideoWithSoundShareAPositionInQwen25Omni) {
  const auto result =
      vision_positions(with_sound, {}, Ids{2, 2, 2}, of_sound, *vision_rule("qwen2_5_omni"));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(row(result->positions, 0), (Ids{0, 1, 1, 2, 2, 3, 27, 4, 5, 5, 6}));
}

TEST(VisionPositions, SoundAloneCountsAsText) {
  const auto result =
      vision_positions(Ids{1, 8, 103, 103, 9}, {}, {}, of_sound, *vision_rule("qwen2_5_omni"));
  ASSERT_TRUE(result);
  EXPECT_EQ(row(result->positions, 0), (Ids{0, 1, 2, 3, 4}));
}

TEST(VisionPositions, FramesBetweenWholePositionsAreAnError) {
  const std::vector<double> seconds = {0.5};
  const auto result = vision_positions(Ids{1, 102, 102, 2}, {}, Ids{2, 2, 2}, of_sound,
                                       *vision_rule("qwen3_omni"), seconds);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message().find("frame 1 at 6.5"), std::string::npos);
}

TEST(VisionPositions, AVideoWithSoundHasTokensThatOpenAndCloseIt) {
  for (const Ids& cut : {Ids{8, 102, 103, 10, 11}, Ids{1, 8, 102, 103, 10}}) {
    EXPECT_FALSE(vision_positions(cut, {}, Ids{1, 2, 2}, of_sound, *vision_rule("qwen3_omni")));
  }
}

TEST(VisionPositions, ErnieMergesPairsOfFrames) {
  const auto result =
      vision_positions(Ids{102, 102}, {}, Ids{4, 2, 2}, tokens, *vision_rule("ernie4_5_vl"));
  ASSERT_TRUE(result);
  EXPECT_EQ(row(result->positions, 0), (Ids{0, 1}));
  EXPECT_FALSE(vision_positions(Ids{102}, {}, Ids{3, 2, 2}, tokens, *vision_rule("ernie4_5_vl")));
}

TEST(VisionPositions, AnUnknownRuleIsToldTheNames) {
  const auto rule = vision_rule("qwen9");
  ASSERT_FALSE(rule);
  EXPECT_NE(rule.error().message().find("qwen2_5_omni"), std::string::npos);
}

}  // namespace
}  // namespace posenc::vision_positions_test
