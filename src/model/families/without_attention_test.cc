// Models without attention are explained, too: what carries the order, and that nothing else does.
#include <gtest/gtest.h>

#include <string>

#include "posenc/model.h"

namespace posenc {
namespace {
namespace without_attention {

Model read(std::string_view text) {
  auto model = read_config(text, "config.json");
  EXPECT_TRUE(model) << model.error().message();
  return model ? *std::move(model) : Model{};
}

std::string remark(const Model& model) {
  return model.warnings.empty() ? "" : model.warnings.front().message;
}

TEST(WithoutAttention, ARecurrenceIsAllThatMambaHas) {
  const Model model = read(R"({"model_type": "mamba2", "num_hidden_layers": 64})");
  ASSERT_EQ(model.groups.size(), 1U);
  EXPECT_EQ(model.groups[0].mixer, Mixer::recurrence);
  EXPECT_EQ(model.groups[0].layers.size(), 64U);
  EXPECT_TRUE(model.groups[0].causal);
  EXPECT_TRUE(remark(model).contains("recurrence carries the order")) << remark(model);
}

TEST(WithoutAttention, StagesOfConvolutionsAreCountedTogether) {
  const Model model = read(R"({"model_type": "convnext", "depths": [3, 3, 9, 3]})");
  ASSERT_EQ(model.groups.size(), 1U);
  EXPECT_EQ(model.groups[0].mixer, Mixer::convolution);
  EXPECT_EQ(model.groups[0].layers.size(), 18U);
  EXPECT_EQ(model.groups[0].cache_elements, 0);
}

TEST(WithoutAttention, AFileThatCountsNoLayersHasOneStack) {
  EXPECT_EQ(read(R"({"model_type": "dac"})").groups.at(0).layers.size(), 1U);
}

TEST(WithoutAttention, CountsThatNoModelHasAreRefused) {
  for (const char* depth : {"-1", "0", "10001", "[9000, 9000]"}) {
    const auto model = read_config(
        R"({"model_type": "rwkv", "num_hidden_layers": )" + std::string(depth) + "}", "c.json");
    EXPECT_FALSE(model) << depth;
  }
}

TEST(Narrowing, StagesOfSegFormerAttendWithoutPositions) {
  const Model model = read(R"({"model_type": "segformer", "depths": [3, 4, 6, 3],
                               "hidden_sizes": [64, 128, 320, 512],
                               "num_attention_heads": [1, 2, 5, 8]})");
  ASSERT_EQ(model.groups.size(), 4U);
  EXPECT_EQ(model.groups[2].layers.front(), 7);
  EXPECT_EQ(model.groups[2].geometry.heads, 5);
  EXPECT_EQ(model.groups[2].geometry.head_dim, 64);
  EXPECT_EQ(model.groups[2].mixer, Mixer::attention);
  EXPECT_EQ(model.groups[2].schemes, std::vector<Scheme>{NoPe{}});
  EXPECT_TRUE(model.groups[2].carried.starts_with("convolutions over neighbours"));
}

TEST(Narrowing, EachStageOfPvtHasATableOfItsOwn) {
  const Model model = read(R"({"model_type": "pvt", "image_size": 224})");
  ASSERT_EQ(model.groups.size(), 4U);
  EXPECT_EQ(model.groups[0].schemes, std::vector<Scheme>{Learned{.rows = 56 * 56}});
  EXPECT_EQ(model.groups[3].schemes, std::vector<Scheme>{Learned{.rows = 7 * 7 + 1}});
}

TEST(Narrowing, OneNumberOfHeadsStandsForAllStages) {
  const Model model = read(R"({"model_type": "mobilevit", "num_attention_heads": 4})");
  ASSERT_EQ(model.groups.size(), 3U);
  EXPECT_EQ(model.groups[1].geometry.head_dim, 48);
}

TEST(Narrowing, AStageWithoutAWidthIsRefused) {
  EXPECT_FALSE(read_config(R"({"model_type": "cvt", "depth": [1, 2, 10], "embed_dim": [64, 192]})",
                           "config.json"));
}

}  // namespace without_attention
}  // namespace
}  // namespace posenc
