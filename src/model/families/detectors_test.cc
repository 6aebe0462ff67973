// Detectors, whose layers add sinusoids of rows and columns to queries and keys.
#include <numbers>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "posenc/model.h"

namespace posenc {
namespace {

Model detector(std::string_view text) {
  auto model = read_config(text);
  if (!model) ADD_FAILURE() << text << ": " << model.error().message();
  return model ? *model : Model{};
}

// The first scheme of a group.
template <class S>
S part(const Model& model, std::size_t group) {
  const S* scheme =
      group < model.groups.size() ? std::get_if<S>(&model.groups[group].schemes.at(0)) : nullptr;
  if (!scheme) ADD_FAILURE() << "another scheme";
  return scheme ? *scheme : S{};
}

TEST(Detectors, AddSinusoidsOfSharesOfThePicture) {
  const Model model = detector(R"({"model_type": "detr", "d_model": 64, "num_queries": 7})");
  ASSERT_EQ(model.groups.size(), 2u);
  const auto waves = part<Sinusoidal>(model, 0);
  EXPECT_EQ(waves.axes_dim, (std::vector<std::int64_t>{32, 32}));
  EXPECT_EQ(waves.position_scale, (std::vector{2 * std::numbers::pi}));
  EXPECT_EQ(part<Learned>(model, 1).rows, 7);
}

TEST(Detectors, OfRtDetrAttendInTheEncoderAlone) {
  const Model model = detector(R"({"model_type": "rt_detr", "encoder_layers": 2,
      "encode_proj_layers": [1, 2], "positional_encoding_temperature": 5000})");
  ASSERT_EQ(model.groups.size(), 1u);
  EXPECT_EQ(model.groups[0].layers.size(), 4u);
  EXPECT_EQ(part<Sinusoidal>(model, 0).base, 5000);
  EXPECT_EQ(part<Sinusoidal>(model, 0).layout, WaveLayout::concatenated);
}

TEST(Detectors, WithLearnedRowsAndColumnsAreRefused) {
  EXPECT_FALSE(read_config(R"({"model_type": "detr", "position_embedding_type": "learned"})"));
}

TEST(Detectors, WithoutALevelAreRefused) {
  EXPECT_FALSE(read_config(R"({"model_type": "rt_detr", "encode_proj_layers": []})"));
}

TEST(Prompts, AreRandomFrequenciesOfTheirOwnDeviation) {
  const Model model =
      detector(R"({"model_type": "sam2_prompt_encoder", "hidden_size": 64, "scale": 3})");
  const auto clicks = part<FourierFeatures>(model, 0);
  EXPECT_EQ(clicks.sigma, 3);
  EXPECT_EQ(model.groups[0].geometry.width, 64);
}

TEST(Prompts, MeetEveryLayerOfTheMaskDecoder) {
  const Model model = detector(R"({"model_type": "sam_mask_decoder", "num_hidden_layers": 3,
      "num_attention_heads": 4})");
  part<FourierFeatures>(model, 0);
  EXPECT_EQ(model.groups[0].layers.size(), 3u);
  EXPECT_EQ(model.groups[0].geometry.head_dim, 64);
}

}  // namespace
}  // namespace posenc
