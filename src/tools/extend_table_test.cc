// Learned tables of encoders of pictures, stretched over the grid of another size.
#include <gtest/gtest.h>

#include <string>

#include "posenc/pictures.h"
#include "posenc/tools.h"

namespace posenc {
namespace {

Expected<PicturePlan> stretched(const std::string& type, const PictureSize& to,
                                std::int64_t image = 224, std::int64_t patch = 16) {
  const Expected<Model> model =
      read_config(R"({"model_type": ")" + type + R"(", "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "image_size": )" +
                  std::to_string(image) + R"(, "patch_size": )" + std::to_string(patch) + "}");
  if (!model) return std::unexpected(model.error());
  return extend_picture(*model, {.to = to});
}

TEST(ExtendTable, SaysTheLineThatStretchesIt) {
  const auto plan = stretched("vit", {1, 384, 512});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->recommended, "resample");
  ASSERT_FALSE(plan->said.empty());
  EXPECT_EQ(plan->said.front()[1],
            "posenc resample pos.npy out.npy --from 14x14 --to 24x32 --interpolation bicubic "
            "--kept_rows 1");
}

TEST(ExtendTable, StaysWhereEveryPatchHasARow) {
  const auto plan = stretched("vit", {1, 224, 224});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->recommended, "as_is");
  EXPECT_TRUE(plan->said.empty());
}

TEST(ExtendTable, TellsOfPixelsThatMakeNoPatch) {
  const auto plan = stretched("vit", {1, 390, 384});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->axes.front().wanted, 24);
  EXPECT_EQ(plan->unknown.size(), 2u);
}

TEST(ExtendTable, RefusesLessThanAPatchAndVideos) {
  EXPECT_FALSE(stretched("vit", {1, 15, 384}));
  EXPECT_FALSE(stretched("vit", {8, 384, 384}));
}

TEST(ExtendTable, OfTokensEndsWithItsRows) {
  const auto model = read_model("vit-base-patch16-224");
  ASSERT_TRUE(model);
  const auto plan = extend(*model, {.to = 1024});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->recommended, "longer_table");
}

}  // namespace
}  // namespace posenc
