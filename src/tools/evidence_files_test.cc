// What files of tensors are to the doctor.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "posenc/doctor.h"
#include "src/core/safetensors_front.h"
#include "tests/paths.h"

namespace posenc {
namespace {

class FilesOfTensors : public testing::Test {
 protected:
  // A file of one tensor without numbers.
  std::string with(const std::string& tensor, const std::string& shape) const {
    std::ofstream(path_, std::ios::binary) << detail::safetensors_front(
        "{\"" + tensor + R"(":{"dtype":"F16","shape":[)" + shape + R"(,0],"data_offsets":[0,0]}})");
    return path_;
  }
  ~FilesOfTensors() override { std::filesystem::remove(path_); }

 private:
  std::string path_ = test::temporary_path("evidence.safetensors");
};

TEST_F(FilesOfTensors, ThoseOfPicturesAreModels) {
  const auto all =
      exhibits_of(with("diffusion_model.blocks.block0.blocks.0.block.attn.to_q.0.weight", "4096"));
  ASSERT_EQ(all.size(), 1u);
  ASSERT_TRUE(all[0].model) << all[0].as;
  EXPECT_EQ(all[0].model->family, "CosmosTransformer3DModel");
}

TEST_F(FilesOfTensors, AUNetIsNamed) {
  const auto all = exhibits_of(with("model.diffusion_model.input_blocks.0.0.weight", "320,4,3"));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].model);
  EXPECT_TRUE(all[0].as.contains("U-Net")) << all[0].as;
}

TEST_F(FilesOfTensors, ThoseOfTextsWantTheConfigurationBesideThem) {
  const auto all = exhibits_of(with("model.layers.0.self_attn.q_proj.weight", "64"));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].model);
  EXPECT_TRUE(all[0].as.contains("config.json beside it")) << all[0].as;
}

}  // namespace
}  // namespace posenc
