// Shapes are those of the published files.
#include "src/model/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "src/core/safetensors_front.h"
#include "tests/gguf_bytes.h"
#include "tests/paths.h"

namespace posenc::detail {
namespace {

using Shape = std::vector<std::int64_t>;

class Checkpoint {
 public:
  Checkpoint& with(std::string name, Shape shape = {1}) {
    tensors_.push_back({.name = std::move(name), .shape = std::move(shape)});
    return *this;
  }
  Checkpoint& blocks(const std::string& folder, int count) {
    for (int i = 0; i < count; ++i) with(folder + "." + std::to_string(i) + ".weight");
    return *this;
  }
  std::optional<Expected<Model>> read() const {
    return read_checkpoint(tensors_, "weights.safetensors", FileFormat::safetensors);
  }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

 private:
  std::vector<StoredTensor> tensors_;
};

Checkpoint flux() {
  return Checkpoint()
      .with("double_blocks.0.img_attn.norm.key_norm.scale", {128})
      .with("img_in.weight", {3072, 64})
      .with("txt_in.weight", {3072, 4096})
      .with("vector_in.in_layer.weight", {3072, 768})
      .blocks("double_blocks", 19)
      .blocks("single_blocks", 38);
}

// Rotates as a config.json of diffusers says it.
void expect_reads_as(const Checkpoint& checkpoint, const std::string& config) {
  SCOPED_TRACE(config);
  const auto told = checkpoint.read();
  ASSERT_TRUE(told);
  ASSERT_TRUE(*told) << told->error().message();
  const Expected<Model> meant = read_config(config);
  ASSERT_TRUE(meant);
  EXPECT_EQ((*told)->family, meant->family);
  ASSERT_EQ((*told)->groups.size(), 1u);
  EXPECT_EQ((*told)->groups[0].schemes, meant->groups.at(0).schemes);
  EXPECT_EQ((*told)->groups[0].layers, meant->groups.at(0).layers);
  EXPECT_EQ((*told)->groups[0].geometry, meant->groups.at(0).geometry);
  EXPECT_EQ((*told)->warnings.back().code, "told_by_tensors");
}

TEST(Checkpoints, FluxIsToldByItsBlocks) {
  expect_reads_as(flux(), R"({"_class_name": "FluxTransformer2DModel"})");
}

TEST(Checkpoints, KinOfFluxAreToldApart) {
  expect_reads_as(flux().with("distilled_guidance_layer.norms.0.scale", {5120}),
                  R"({"_class_name": "ChromaTransformer2DModel"})");
  expect_reads_as(Checkpoint()
                      .with("double_blocks.0.img_attn.norm.key_norm.scale", {128})
                      .with("double_stream_modulation_img.lin.weight", {36864, 6144})
                      .with("img_in.weight", {6144, 128})
                      .blocks("double_blocks", 8)
                      .blocks("single_blocks", 48),
                  R"({"_class_name": "Flux2Transformer2DModel"})");
}

TEST(Checkpoints, HunyuansAreToldByTheirPatches) {
  const auto hunyuan = [](Shape patches, int doubles, int singles) {
    return Checkpoint()
        .with("txt_in.individual_token_refiner.blocks.0.norm1.weight", {3072})
        .with("img_in.proj.weight", std::move(patches))
        .blocks("double_blocks", doubles)
        .blocks("single_blocks", singles);
  };
  expect_reads_as(hunyuan({3072, 16, 1, 2, 2}, 20, 40),
                  R"({"_class_name": "HunyuanVideoTransformer3DModel"})");
  expect_reads_as(hunyuan({2048, 65, 1, 1, 1}, 54, 0).with("vision_in.proj.0.weight", {1152}),
                  R"({"_class_name": "HunyuanVideo15Transformer3DModel"})");
  expect_reads_as(hunyuan({3584, 64, 1, 1}, 20, 40),
                  R"({"_class_name": "HunyuanImageTransformer2DModel"})");
}

TEST(Checkpoints, WansSizesAreThoseOfTheFile) {
  expect_reads_as(Checkpoint().with("head.modulation", {1, 2, 1536}).blocks("blocks", 30),
                  R"({"_class_name": "WanTransformer3DModel", "num_attention_heads": 12,
                      "num_layers": 30})");
  expect_reads_as(Checkpoint()
                      .with("head.modulation", {1, 2, 3072})
                      .with("patch_embedding.weight", {3072, 48, 1, 2, 2})
                      .blocks("blocks", 30),
                  R"({"_class_name": "WanTransformer3DModel", "num_attention_heads": 24,
                      "num_layers": 30, "in_channels": 48})");
}

TEST(Checkpoints, LuminaAndZImageAreToldByTheirWidth) {
  const auto lumina = [](std::int64_t width, int layers) {
    return Checkpoint()
        .with("noise_refiner.0.attention.k_norm.weight", {128})
        .with("cap_embedder.1.weight", {width, 2304})
        .blocks("layers", layers);
  };
  expect_reads_as(lumina(2304, 26), R"({"_class_name": "Lumina2Transformer2DModel"})");
  expect_reads_as(lumina(3840, 30), R"({"_class_name": "ZImageTransformer2DModel"})");
}

TEST(Checkpoints, QwenImageCosmosAndCogVideoX) {
  expect_reads_as(Checkpoint()
                      .with("transformer_blocks.0.attn.add_q_proj.weight", {3072, 3072})
                      .with("txt_norm.weight", {3584})
                      .with("img_in.weight", {3072, 64})
                      .blocks("transformer_blocks", 60),
                  R"({"_class_name": "QwenImageTransformer2DModel"})");
  expect_reads_as(
      Checkpoint().with("blocks.block0.blocks.0.block.attn.to_q.0.weight", {5120, 5120}),
      R"({"_class_name": "CosmosTransformer3DModel", "num_attention_heads": 40, "num_layers": 36,
          "rope_scale": [2, 2, 2]})");
  expect_reads_as(Checkpoint()
                      .with("transformer_blocks.0.norm1.linear.weight", {18432, 512})
                      .with("patch_embed.text_proj.weight", {3072, 4096})
                      .blocks("transformer_blocks", 42),
                  R"({"_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48,
                      "num_layers": 42, "use_rotary_positional_embeddings": true})");
  expect_reads_as(Checkpoint()
                      .with("transformer_blocks.0.norm1.linear.weight", {18432, 512})
                      .with("patch_embed.text_proj.weight", {3072, 4096})
                      .with("patch_embed.proj.weight", {3072, 128})
                      .blocks("transformer_blocks", 42),
                  R"({"_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 48,
                      "num_layers": 42, "patch_size_t": 2,
                      "use_rotary_positional_embeddings": true})");
}

TEST(Checkpoints, WhatNoSchemeSaysIsNamed) {
  const auto sd3 =
      Checkpoint().with("joint_blocks.0.context_block.attn.qkv.weight", {4608, 1536}).read();
  ASSERT_TRUE(sd3 && !*sd3);
  EXPECT_EQ(sd3->error().got, "'SD3Transformer2DModel'");
  const auto unet = Checkpoint().with("input_blocks.0.0.weight", {320, 4, 3, 3}).read();
  ASSERT_TRUE(unet && !*unet);
  EXPECT_TRUE(unet->error().rule.contains("U-Net"));
}

TEST(Checkpoints, WeightsOfATextModelAreNotTakenForOne) {
  EXPECT_FALSE(Checkpoint().with("model.layers.0.self_attn.q_proj.weight", {64, 64}).read());
}

TEST(Checkpoints, SizesThatNoClassHasAreAnError) {
  const auto none = Checkpoint().with("head.modulation", {1, 2, 100}).blocks("blocks", 2).read();
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(Checkpoints, AFileSavedWholeHasAPrefix) {
  // Sizes alone are read: each tensor is an empty row.
  const Checkpoint whole = flux();
  std::string header;
  for (const StoredTensor& tensor : whole.tensors())
    header += (header.empty() ? "{\"model.diffusion_model." : ",\"model.diffusion_model.") +
              tensor.name + R"(":{"dtype":"U8","shape":[)" + std::to_string(tensor.shape[0]) +
              R"(,0],"data_offsets":[0,0]})";
  const std::string path = test::temporary_path("flux.safetensors");
  std::ofstream(path, std::ios::binary) << safetensors_front(header + "}");
  const auto model = read_model(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->family, "FluxTransformer2DModel");
  EXPECT_EQ(model->groups.at(0).geometry.heads, 24);
}

// ComfyUI-GGUF keeps the tensors' names, and says the architecture alone.
TEST(Checkpoints, AGgufWithoutSizesIsToldByItsTensorsToo) {
  test::GgufBytes b;
  b.start(3, 1);
  b.key("general.architecture", test::GgufBytes::string).word("wan");
  b.tensor("head.modulation", {1536, 2, 1}, 0, 0);
  b.tensor("blocks.0.self_attn.q.bias", {1}, 0, 12288);
  b.tensor("blocks.1.self_attn.q.bias", {1}, 0, 12320);
  b.pad();
  b.text.resize(b.text.size() + 12352);
  const auto model = read_gguf(std::as_bytes(std::span(b.text)), "wan.gguf");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->family, "WanTransformer3DModel");
  EXPECT_EQ(model->name, "wan");
  EXPECT_EQ(model->groups.at(0).geometry.heads, 12);
}

}  // namespace
}  // namespace posenc::detail
