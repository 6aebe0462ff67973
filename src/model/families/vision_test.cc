// Vision towers beside a text model.
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "posenc/model.h"

namespace posenc {
namespace {

Model tower_model(std::string_view text) {
  auto model = read_config(text);
  if (!model) ADD_FAILURE() << text << ": " << model.error().message();
  return model ? *model : Model{.groups = {LayerGroup{.schemes = {NoPe{}}}}};
}

// A small text model with some keys more.
Model beside(std::string_view type, std::string_view more) {
  return tower_model(R"({"model_type": ")" + std::string(type) +
                     R"(", "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
                        "num_hidden_layers": 2, "max_position_embeddings": 4096, )" +
                     std::string(more) + "}");
}

template <class S>
S part(const Model& model, std::size_t index = 0) {
  const LayerGroup* group = find_group(model, 0, Stack::vision);
  const S* scheme =
      group && index < group->schemes.size() ? std::get_if<S>(&group->schemes[index]) : nullptr;
  if (!scheme) ADD_FAILURE() << "another scheme";
  return scheme ? *scheme : S{};
}

TEST(Towers, SizesMayBePairs) {
  const Model model = beside("internvl", R"("vision_config": {"model_type": "internvl_vision",
      "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2, "image_size": [448, 448],
      "patch_size": [14, 14]})");
  EXPECT_EQ(part<Learned>(model).rows, 1025);
}

TEST(Towers, Qwen25VlHasWindowsAndTwoAxes) {
  const Model model =
      beside("qwen2_5_vl", R"("rope_scaling": {"type": "mrope", "mrope_section": [16, 8, 8]},
      "vision_config": {"hidden_size": 320, "num_heads": 4, "depth": 4, "window_size": 112,
      "fullatt_block_indexes": [3]})");
  EXPECT_EQ(find_group(model, 0, Stack::vision)->window, 64);
  EXPECT_FALSE(find_group(model, 3, Stack::vision)->window);
  const Axial axial = part<Axial>(model);
  EXPECT_EQ(axial.order, AxisOrder::height_width);
  EXPECT_EQ(axial.pairing, Pairing::halves);
}

TEST(Towers, Qwen2VlNamesItsWidthEmbedDim) {
  const Model model =
      beside("qwen2_vl", R"("rope_scaling": {"type": "mrope", "mrope_section": [16, 8, 8]},
      "vision_config": {"hidden_size": 256, "embed_dim": 1280, "num_heads": 16, "depth": 2})");
  EXPECT_EQ(find_group(model, 0, Stack::vision)->geometry.width, 1280);
}

TEST(Towers, Qwen3VlAddsATableToo) {
  const Model model =
      tower_model(R"({"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text",
      "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128, "num_hidden_layers": 2,
      "rope_parameters": {"rope_theta": 5e6, "mrope_section": [24, 20, 20]}}, "vision_config": {"hidden_size": 256,
      "num_heads": 4, "depth": 2, "num_position_embeddings": 2304}})");
  EXPECT_TRUE(std::get<Rope>(model.groups.at(0).schemes.at(0)).mrope_interleaved);
  EXPECT_EQ(part<Learned>(model, 1).rows, 2304);
}

TEST(Towers, Gemma4PairsEachAxisInItsOwnHalf) {
  const Model model = beside("llama", R"("vision_config": {"model_type": "gemma4_vision"})");
  const Axial axial = part<Axial>(model);
  EXPECT_TRUE(axial.blocks);
  EXPECT_EQ(axial.order, AxisOrder::width_height);
  EXPECT_EQ(find_group(model, 0, Stack::vision)->logits.multiplier, 8);
}

TEST(Towers, Gemma4AddsARowOfEachAxis) {
  const Model model = beside("llama", R"("vision_config": {"model_type": "gemma4_vision",
      "position_embedding_size": 100})");
  const auto& schemes = find_group(model, 0, Stack::vision)->schemes;
  EXPECT_EQ(std::get<Learned>(schemes.at(1)).axis_rows, (std::vector<std::int64_t>{100, 100}));
  EXPECT_TRUE(compile(*find_group(model, 0, Stack::vision)));
}

TEST(Towers, MaeAddsSinusoidsOfTheColumnFirst) {
  const Model model = tower_model(R"({"model_type": "vit_mae"})");
  const auto waves = part<Sinusoidal>(model);
  EXPECT_EQ(waves.axes_dim, (std::vector<std::int64_t>{384, 384}));
  EXPECT_EQ(waves.axis_order, (std::vector<std::int64_t>{1, 0}));
}

TEST(Towers, Pix2StructAddsARowOfEachAxis) {
  const Model model = tower_model(R"({"model_type": "pix2struct_vision_model", "seq_len": 50})");
  EXPECT_EQ(part<Learned>(model).rows, 100);
  EXPECT_EQ(model.warnings.at(0).code, "tower_remark");
}

TEST(Towers, PixtralAlternatesItsFrequencies) {
  const Model model = beside("llama", R"("vision_config": {"model_type": "pixtral"})");
  EXPECT_EQ(part<Axial>(model).frequencies, AxisFrequencies::alternating);
}

TEST(Towers, ClipCountsPatchesAndTheClassToken) {
  const Model model = tower_model(R"({"model_type": "llava", "text_config": {"model_type": "llama"},
      "vision_config": {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14, "hidden_size": 1024,
      "num_attention_heads": 16, "num_hidden_layers": 24}})");
  EXPECT_EQ(part<Learned>(model).rows, 577);
}

// SAM 3's tower beside its text model.
TEST(Towers, MayStandInABackbone) {
  const Model model = beside("llama", R"("vision_config": {"model_type": "sam3_vision_model",
      "backbone_config": {"model_type": "sam3_vit_model", "num_hidden_layers": 9}})");
  EXPECT_EQ(part<Learned>(model).rows, 576);
}

TEST(Towers, AnUnknownTowerIsAWarning) {
  const Model model = beside("llama", R"("vision_config": {"model_type": "zork_vision"})");
  EXPECT_EQ(model.warnings.at(0).code, "vision_not_explained");
}

TEST(Towers, APatchLargerThanThePictureIsRefused) {
  EXPECT_FALSE(read_config(R"({"model_type": "vit", "image_size": 8, "patch_size": 16})"));
}

}  // namespace
}  // namespace posenc
