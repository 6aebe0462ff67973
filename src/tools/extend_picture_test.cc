// Sizes of pictures, and what diffusion transformers meet beyond those of training.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "posenc/pictures.h"

namespace posenc {
namespace {

Expected<PicturePlan> planned(const std::string& type, const PictureOptions& options) {
  const Expected<Model> model = read_config(R"({"_class_name": ")" + type + "\"}");
  if (!model) return std::unexpected(model.error());
  return extend_picture(*model, options);
}

const PictureOption& option(const PicturePlan& plan, std::string_view name) {
  return *std::ranges::find(plan.options, name, &PictureOption::name);
}

TEST(PictureSize, IsHeightAndWidthBehindFrames) {
  EXPECT_EQ(picture_size("1080x1920").value(), (PictureSize{1, 1080, 1920}));
  EXPECT_EQ(picture_size("161X720×1280").value(), (PictureSize{161, 720, 1280}));
}

TEST(ExtendPicture, SaysTheFrequenciesOfEveryAxis) {
  const auto plan = planned("FluxTransformer2DModel", {.to = {1, 2048, 1024}});
  ASSERT_TRUE(plan);
  const auto &plain = option(*plan, "as_is").frequencies,
             &linear = option(*plan, "linear").frequencies;
  ASSERT_EQ(plain.size(), plan->axes.size());
  ASSERT_EQ(plain[0].size(), 28u);
  EXPECT_DOUBLE_EQ(plain[0][0], 1);
  EXPECT_DOUBLE_EQ(linear[0][5], plain[0][5] / 2);
  EXPECT_EQ(linear[1], plain[1]);
}

TEST(PictureSize, RefusesOtherForms) {
  for (const char* text : {"", "1024", "x", "1024x", "0x1024", "-1x2", "1x2x3x4", "1e3x1024",
                           "1024x99999999999999999999", "1048577x1", "1024 x 1024", "1024x1024k"}) {
    const auto read = picture_size(text);
    ASSERT_FALSE(read) << text;
    EXPECT_TRUE(read.error().message().contains("4096x4096")) << text;
  }
}

TEST(ExtendPicture, LeavesASizeWithinTrainingAlone) {
  const auto plan = planned("FluxTransformer2DModel", {.to = {1, 768, 1024}}).value();
  EXPECT_EQ(plan.recommended, "as_is");
  EXPECT_EQ(plan.rule, "within_training");
  EXPECT_EQ(plan.options.size(), 1u);
}

TEST(ExtendPicture, KeepsSlowPairsOfALargerPictureWithinTheAnglesOfTraining) {
  const auto plan = planned("FluxTransformer2DModel", {.to = {1, 4096, 2048}}).value();
  ASSERT_EQ(plan.axes.size(), 2u);
  EXPECT_EQ(plan.axes[0].trained, 64);
  EXPECT_EQ(plan.axes[0].wanted, 256);
  EXPECT_EQ(plan.axes[1].factor, 2);
  EXPECT_EQ(plan.recommended, "vision_yarn");
  EXPECT_FALSE(option(plan, "as_is").unseen[0].empty());
  for (const auto& unseen : option(plan, "linear").unseen) EXPECT_TRUE(unseen.empty());
  EXPECT_LT(option(plan, "vision_yarn").unseen[0].size(), option(plan, "as_is").unseen[0].size());
}

TEST(ExtendPicture, SaysTheNodesValues) {
  const auto plan = planned("QwenImageTransformer2DModel", {.to = {1, 2656, 2656}}).value();
  const auto at =
      std::ranges::find(plan.said, "ComfyUI-DyPE", [](const auto& line) { return line[0]; });
  ASSERT_NE(at, plan.said.end());
  EXPECT_TRUE((*at)[1].contains("width 2656, height 2656, model_type qwen, base_resolution 1328"));
}

// 2502.15894 and its code name k = 4 for HunyuanVideo; of Wan its users name 6.
TEST(ExtendPicture, SlowsThePairByWhichALongerVideoBeginsAnew) {
  for (const auto& [type, frames, pair, length] :
       {std::tuple{"HunyuanVideoTransformer3DModel", 257, 4, 65},
        {"WanTransformer3DModel", 161, 6, 41}}) {
    const auto plan = planned(type, {.to = {frames, 480, 832}}).value();
    EXPECT_EQ(plan.recommended, "riflex") << type;
    const auto& riflex = std::get<Riflex>(option(plan, "riflex").scaling);
    EXPECT_EQ(riflex.pair, pair);
    EXPECT_EQ(riflex.length, length);
  }
}

TEST(ExtendPicture, OfHunyuanTheFourthPairIsTheFirstThatComesRound) {
  const auto plan = planned("HunyuanVideoTransformer3DModel", {.to = {257, 720, 1280}}).value();
  EXPECT_EQ(plan.axes.front().turning, 3);
  EXPECT_EQ(plan.axes.front().repeats, (std::vector<std::int64_t>{3}));
}

TEST(ExtendPicture, OfCogVideoXTimeAloneGrows) {
  const std::string config =
      R"({"_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48,
          "attention_head_dim": 64, "num_layers": 42, "use_rotary_positional_embeddings": true)";
  const auto plan =
      extend_picture(read_config(config + "}").value(), {.to = {97, 960, 720}}).value();
  EXPECT_EQ(plan.axes[0].wanted, 25);
  EXPECT_EQ(plan.axes[0].repeats, (std::vector<std::int64_t>{1}));  // 19.9 positions a turn
  EXPECT_EQ(plan.axes[1].wanted, plan.axes[1].trained);
  EXPECT_EQ(plan.recommended, "riflex");
  EXPECT_EQ(std::get<Riflex>(option(plan, "riflex").scaling).pair, 2);
}

TEST(ExtendPicture, OfCogView4NothingGrows) {
  const auto model = read_config(R"({"_class_name": "CogView4Transformer2DModel",
      "num_attention_heads": 32, "attention_head_dim": 128, "num_layers": 28})");
  const auto plan = extend_picture(model.value(), {.to = {1, 2048, 2048}}).value();
  EXPECT_EQ(plan.axes[0].wanted, plan.axes[0].trained);
  EXPECT_EQ(plan.recommended, "as_is");
}

// 1.5: 41 frames of the latents in pairs, and rows and columns counted as they are.
TEST(ExtendPicture, OfCogVideoX15ATokenIsOfTwoFrames) {
  const auto model =
      read_config(R"({"_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48,
          "attention_head_dim": 64, "num_layers": 42, "use_rotary_positional_embeddings": true,
          "patch_size_t": 2})");
  const auto plan = extend_picture(model.value(), {.to = {161, 768, 2048}}).value();
  EXPECT_EQ(plan.axes[0].trained, 11);
  EXPECT_EQ(plan.axes[0].wanted, 21);
  EXPECT_EQ(plan.axes[2].wanted, 128);
}

TEST(ExtendPicture, OfWan22sSmallerModelATokenIs32PixelsWide) {
  for (const char* config : {R"({"_class_name": "WanTransformer3DModel", "in_channels": 48})",
                             R"({"_class_name": "WanModel", "in_dim": 48})"}) {
    const auto plan = extend_picture(read_config(config).value(), {.to = {161, 704, 1280}}).value();
    EXPECT_EQ(plan.trained, (PictureSize{121, 704, 1280})) << config;
    EXPECT_EQ(plan.axes[0].wanted, 41) << config;
    EXPECT_EQ(plan.axes[1].wanted, 22) << config;
    EXPECT_EQ(plan.axes[2].wanted, 40) << config;
  }
  EXPECT_EQ(planned("WanTransformer3DModel", {.to = {81, 480, 832}})->axes[1].wanted, 30);
}

TEST(ExtendPicture, AFileThatSaysOneFrameAPatchIsPlanned) {
  const auto model = read_config(
      R"({"_class_name": "HunyuanVideoTransformer3DModel", "patch_size": 2, "patch_size_t": 1})");
  const auto plan =
      extend_picture(model.value(), {.to = {253, 720, 1280}, .trained = {129, 720, 1280}}).value();
  EXPECT_EQ(plan.axes[0].wanted, 64);
  EXPECT_EQ(std::get<Riflex>(option(plan, "riflex").scaling).pair, 4);
}

// 32 frames of the latents behind the first, 8/25 s each; 21 rows and 37 columns of 32 pixels.
TEST(ExtendPicture, FractionsWithinTheirRangeMeetNothingNew) {
  const auto plan = extend_fractions("LTXVideoTransformer3DModel", {.to = {257, 704, 1216}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rule, "within_range");
  EXPECT_DOUBLE_EQ(plan->axes[0].coordinate, 10.24);
  EXPECT_EQ(plan->axes[0].range, 20);
  EXPECT_EQ(plan->axes[1].coordinate, 672);
  EXPECT_EQ(plan->axes[2].coordinate, 1184);
  EXPECT_FALSE(extend_fractions("WanTransformer3DModel", {.to = {257, 704, 1216}}));
}

TEST(ExtendPicture, FractionsBeyondTheirRangeAreNamed) {
  const auto plan = extend_fractions("LTXVideoTransformer3DModel", {.to = {601, 704, 1216}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rule, "beyond_range");
  EXPECT_TRUE(plan->reason.starts_with("time:")) << plan->reason;
  ASSERT_EQ(plan->said.size(), 1u);
  EXPECT_TRUE(plan->said.front()[1].starts_with("frame_rate 30")) << plan->said.front()[1];
}

TEST(ExtendPicture, RefusesWhatIsNoPicture) {
  const auto text = extend_picture(read_model("llama-2-7b").value(), {.to = {1, 1024, 1024}});
  ASSERT_FALSE(text);
  EXPECT_TRUE(text.error().message().contains("in tokens"));
  const auto frames = planned("FluxTransformer2DModel", {.to = {9, 1024, 1024}});
  ASSERT_FALSE(frames);
  EXPECT_TRUE(frames.error().message().contains("--to 1024x1024"));
}

TEST(ExtendPicture, TakesAnotherTrainedSize) {
  const auto plan =
      planned("WanTransformer3DModel", {.to = {81, 720, 1280}, .trained = {1, 720, 1280}}).value();
  EXPECT_EQ(plan.recommended, "as_is");
  EXPECT_EQ(plan.trained.frames, 81);
}

}  // namespace
}  // namespace posenc
