// open_clip's own description beside that of its copy in transformers.
#include "src/model/open_clip.h"

#include <gtest/gtest.h>

#include <string>

#include "posenc/model.h"

namespace posenc::detail {
namespace {

const std::string text = R"("text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 512,
    "heads": 8, "layers": 12})";
const std::string vision = R"("vision_cfg": {"image_size": 224, "layers": 12, "width": 768,
    "patch_size": 32})";

Model read(const std::string& config) {
  const Expected<Model> model = read_config(config);
  if (!model) ADD_FAILURE() << model.error().message();
  return model ? *model : Model();
}

TEST(OpenClip, ReadsAsItsCopyInTransformers) {
  const Model copy = read(R"({"model_type": "clip", "text_config": {"hidden_size": 512,
      "num_attention_heads": 8, "num_hidden_layers": 12, "max_position_embeddings": 77},
      "vision_config": {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12,
      "image_size": 224, "patch_size": 32}})");
  for (const std::string& own : {"{\"embed_dim\": 512, " + vision + ", " + text + "}",
                                 "{\"model_cfg\": {" + vision + ", " + text + "}}"}) {
    const Model model = read(own);
    ASSERT_EQ(model.groups.size(), copy.groups.size());
    for (std::size_t i = 0; i < copy.groups.size(); ++i) {
      EXPECT_EQ(model.groups[i].schemes, copy.groups[i].schemes);
      EXPECT_EQ(model.groups[i].geometry, copy.groups[i].geometry);
      EXPECT_EQ(model.groups[i].layers, copy.groups[i].layers);
    }
  }
}

// ViT-g-14: heads of 88 channels.
TEST(OpenClip, HeadsOfATowerAreAsWideAsItSays) {
  const Model model = read(R"({"vision_cfg": {"image_size": 224, "layers": 40, "width": 1408,
      "head_width": 88, "patch_size": 14}, )" +
                           text + "}");
  EXPECT_EQ(find_group(model, 0, Stack::vision)->geometry.heads, 16);
}

TEST(OpenClip, ATowerOfOtherLibrariesIsRefusedByName) {
  for (const char* tower : {R"("vision_cfg": {"timm_model_name": "vit_base_patch16_siglip_224"})",
                            R"("vision_cfg": {"layers": [3, 4, 6, 3], "width": 64})"}) {
    const auto model = read_config(std::string("{") + tower + ", " + text + "}");
    ASSERT_FALSE(model);
    EXPECT_TRUE(model.error().rule.contains("open_clip")) << model.error().message();
  }
}

}  // namespace
}  // namespace posenc::detail
