// Token ids with pictures and videos to three rows of positions, by the published rules.
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

std::vector<std::int64_t> grids(const Json& list) {
  std::vector<std::int64_t> flat;
  for (const Json& grid : list) {
    for (const Json& x : grid) flat.push_back(x);
  }
  return flat;
}

std::vector<std::int64_t> row_of(const Positions& positions, std::int64_t axis) {
  std::vector<std::int64_t> row;
  for (std::int64_t t = 0; t < positions.size(); ++t) row.push_back(positions.at(t, 0, axis));
  return row;
}

void replay(const std::string& version, VisionRule rule) {
  int replayed = 0;
  for (const Json& record : records("mrope_index")) {
    if (!record.contains(version)) continue;  // Qwen3-VL's videos need time stamps in the text
    ++replayed;
    SCOPED_TRACE(version + ", record " + std::to_string(replayed));
    const Json& want = record.at(version);
    const VisionTokens tokens{.image_token_id = record.at("image_token_id"),
                              .video_token_id = record.at("video_token_id"),
                              .spatial_merge_size = record.at("spatial_merge_size")};
    std::vector<double> seconds;
    if (want.contains("tokens_per_second")) {
      rule.tokens_per_second = want.at("tokens_per_second");
      if (!want.at("second_per_grid_ts").is_null()) {
        seconds = numbers<double>(want.at("second_per_grid_ts"));
      }
    }
    const auto got = vision_positions(numbers<std::int64_t>(record.at("input_ids")),
                                      grids(record.at("image_grid_thw")),
                                      grids(record.at("video_grid_thw")), tokens, rule, seconds);
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(got->positions.axes(), 3);
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      const Json& want_row = want.at("position_ids")[static_cast<std::size_t>(axis)];
      EXPECT_EQ(row_of(got->positions, axis), numbers<std::int64_t>(want_row)) << "axis " << axis;
    }
    EXPECT_EQ(got->delta, want.at("delta"));
  }
  EXPECT_GT(replayed, 0);
}

TEST(MropeIndex, Qwen2VlOf2025GoesOnPastTheLargest) {
  replay("qwen2_vl_def9a7ef", {.advance = GridAdvance::past_largest, .step = FrameStep::one});
}

TEST(MropeIndex, Qwen2VlOf2026GoesOnPastHeightAndWidth) {
  replay("qwen2_vl_c49429ed", {.advance = GridAdvance::past_height_width, .step = FrameStep::one});
}

TEST(MropeIndex, Qwen25VlCountsSeconds) {
  replay("qwen2_5_vl_c49429ed",
         {.advance = GridAdvance::past_height_width, .step = FrameStep::seconds});
}

TEST(MropeIndex, Qwen3VlTreatsEveryFrameAsAnImage) {
  replay("qwen3_vl_c49429ed",
         {.advance = GridAdvance::past_height_width, .step = FrameStep::per_frame});
}

// Ernie 4.5 VL and the omni models, by their processors' and models' own code
// (tests/peers/vision_positions.py).
TEST(VisionIndex, NamedRulesNumberTokensAsTheirModelsDo) {
  int replayed = 0;
  for (const Json& record : records("vision_index")) {
    const std::string name = record.at("rule");
    SCOPED_TRACE(name + ", record " + std::to_string(replayed++));
    VisionRule rule = *vision_rule(name);
    rule.tokens_per_second = record.at("tokens_per_second");
    const Json& ids = record.at("tokens");
    const VisionTokens tokens{.image_token_id = ids[0],
                              .video_token_id = ids[1],
                              .audio_token_id = ids[2],
                              .spatial_merge_size = record.at("spatial_merge_size")};
    const auto got =
        vision_positions(numbers<std::int64_t>(record.at("input_ids")),
                         grids(record.at("image_grid_thw")), grids(record.at("video_grid_thw")),
                         tokens, rule, numbers<double>(record.at("seconds_per_grid")));
    ASSERT_TRUE(got) << got.error().message();
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      const Json& want = record.at("position_ids")[static_cast<std::size_t>(axis)];
      EXPECT_EQ(row_of(got->positions, axis), numbers<std::int64_t>(want)) << "axis " << axis;
    }
    EXPECT_EQ(got->delta, record.at("delta"));
  }
  EXPECT_EQ(replayed, 38);
}

}  // namespace
}  // namespace posenc::golden
