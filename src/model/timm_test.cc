// timm's names against what timm 1.0.31 builds by them (tests/peers/timm_names.py).
#include "src/model/timm.h"

#include <gtest/gtest.h>

#include <string>

#include "posenc/files.h"
#include "posenc/model.h"
#include "tests/paths.h"

namespace posenc::detail {
namespace {
namespace timm {

std::string config(const std::string& name, const std::string& more = "") {
  return R"({"architecture": ")" + name + R"(", "num_classes": 1000, "num_features": 768)" + more +
         "}";
}

Json golden() {
  const auto file = MappedFile::open(test::data_path("golden/timm.json")).value();
  const auto bytes = file.bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "timm.json")
      .value();
}

TEST(Timm, WhatIsReadByItsNameIsWhatTimmBuilds) {
  const Json whole = golden();
  int read = 0;
  for (const Json& row : *whole.find("models")->get<Json::Array>()) {
    const auto& of = *row.get<Json::Array>();
    const std::string& name = *of[0].get<std::string>();
    const Expected<Model> model = read_config(config(name));
    if (!model) {
      EXPECT_TRUE(model.error().rule.contains("timm")) << model.error().message();
      continue;
    }
    ++read;
    const auto number = [&](std::size_t i) {
      const auto* value = of[i].get<std::int64_t>();
      return value ? *value : -1;
    };
    ASSERT_EQ(model->groups.size(), 1u) << name;
    const LayerGroup& group = model->groups[0];
    EXPECT_EQ(std::ssize(group.layers), number(2)) << name;
    EXPECT_EQ(group.geometry.heads, number(3)) << name;
    EXPECT_EQ(group.geometry.width, number(1)) << name;
    const auto* table = std::get_if<Learned>(&group.schemes.front());
    ASSERT_NE(table, nullptr) << name;
    EXPECT_EQ(table->rows + table->row_offset, number(6)) << name;
  }
  EXPECT_GE(read, 120);
}

TEST(Timm, ThePictureIsThatOfTheWeights) {
  const Expected<Model> model = read_config(
      config("vit_base_patch16_224.orig", R"(, "pretrained_cfg": {"input_size": [3, 384, 384]})"));
  ASSERT_TRUE(model);
  EXPECT_EQ(std::get<Learned>(model->groups[0].schemes.front()).rows, 577);
}

TEST(Timm, ArgumentsStandAboveTheName) {
  const Expected<Model> model = read_config(
      config("vit_tiny_patch16_224", R"(, "model_args": {"img_size": 64, "depth": 3})"));
  ASSERT_TRUE(model);
  EXPECT_EQ(std::ssize(model->groups[0].layers), 3);
  EXPECT_EQ(std::get<Learned>(model->groups[0].schemes.front()).rows, 17);
}

TEST(Timm, OtherArchitecturesAreRefusedByName) {
  for (const char* name :
       {"eva02_base_patch14_448", "vit_relpos_base_patch16_224", "convnext_base"})
    EXPECT_TRUE(read_config(config(name)).error().got.contains(name));
  EXPECT_FALSE(
      read_config(config("vit_base_patch16_224", R"(, "model_args": {"pos_embed": "none"})")));
}

}  // namespace timm
}  // namespace
}  // namespace posenc::detail
