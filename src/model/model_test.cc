// Where models come from, and what a read one answers.
#include "posenc/model.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/paths.h"

namespace posenc {
namespace {

const std::string zoo = test::data_path("zoo/");

std::string model_error(std::string_view path) {
  const auto model = read_model(path);
  return model ? "" : model.error().message();
}

class ModelFiles : public testing::Test {
 protected:
  ModelFiles() {
    std::string pattern = testing::TempDir() + "posenc_model_XXXXXX";
    folder = mkdtemp(pattern.data());
  }
  ~ModelFiles() override { std::filesystem::remove_all(folder); }
  std::string folder;
};

TEST(ReadModel, AFileIsNamedAfterItself) {
  const auto model = read_model(zoo + "gpt2.json");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->name, "gpt2");
  EXPECT_EQ(model->family, "gpt2");
}

TEST(ReadModel, ABundledNameIsEnough) {
  const auto model = read_model("llama-3.1-8b");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->name, "llama-3.1-8b");
  EXPECT_EQ(model->dtype, "bfloat16");
}

TEST(ReadModel, AMisspeltNameIsMended) {
  EXPECT_NE(model_error("lama-3.1-8b").find("did you mean 'llama-3.1-8b'"), std::string::npos);
}

TEST(ReadModel, AnEmptyNameIsRefused) { EXPECT_NE(model_error(""), ""); }

TEST(ReadModel, ADeviceIsRefused) {
  EXPECT_NE(model_error("/dev/zero").find("regular file"), std::string::npos);
}

TEST_F(ModelFiles, AFolderIsItsConfig) {
  const std::string model_folder = folder + "/my-model";
  std::filesystem::create_directory(model_folder);
  std::filesystem::copy(zoo + "gpt2.json", model_folder + "/config.json");
  for (const std::string_view slash : {"", "/"}) {
    const auto model = read_model(model_folder + std::string(slash));
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->name, "my-model");
  }
}

TEST_F(ModelFiles, AFolderWithoutConfigIsRefused) {
  EXPECT_NE(model_error(folder).find("no config.json"), std::string::npos);
}

TEST_F(ModelFiles, APipeDoesNotHang) {
  ASSERT_EQ(mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_NE(model_error(folder + "/pipe").find("regular file"), std::string::npos);
}

TEST_F(ModelFiles, WeightsAreNotRead) {
  const std::string path = folder + "/model.safetensors";
  std::ofstream(path) << 'x';
  std::filesystem::resize_file(path, 1ull << 40);  // sparse
  EXPECT_NE(model_error(path).find("16 MiB"), std::string::npos);
}

TEST_F(ModelFiles, AnEmptyFileIsRefused) {
  std::ofstream(folder + "/empty.json").close();
  EXPECT_NE(model_error(folder + "/empty.json").find("must be JSON"), std::string::npos);
}

TEST(BundledModels, AreSortedReadableAndExplained) {
  const auto models = bundled_models();
  EXPECT_GE(models.size(), 14u);
  EXPECT_TRUE(std::ranges::is_sorted(models, {}, &BundledModel::name));
  for (const BundledModel& bundled : models) {
    const auto model = read_model(bundled.name);
    EXPECT_TRUE(model) << bundled.name << ": " << model.error().message();
    EXPECT_FALSE(bundled.about.empty()) << bundled.name;
    EXPECT_TRUE(bundled.origin == "published" || bundled.origin == "reconstructed") << bundled.name;
    EXPECT_TRUE(model->origin.starts_with(bundled.origin)) << bundled.name;
  }
}

TEST(BundledModels, AnUnknownOneIsAnError) { EXPECT_FALSE(bundled_config("no such model")); }

TEST(FindGroup, FindsTheGroupThatHoldsALayer) {
  const auto model = read_model(zoo + "llama-4-scout.json");
  ASSERT_TRUE(model) << model.error().message();
  ASSERT_TRUE(find_group(*model, 3, Stack::text));
  EXPECT_EQ(find_group(*model, 3, Stack::text)->label, "full attention without position");
  EXPECT_EQ(find_group(*model, 4, Stack::text)->label, "chunked attention");
}

TEST(ModelChunks, OnlyTheLayersThatRotateAreChunked) {
  const auto model = read_model(zoo + "llama-4-scout.json");
  ASSERT_TRUE(model) << model.error().message();
  const LayerGroup &full = *find_group(*model, 3, Stack::text),
                   &chunked = *find_group(*model, 4, Stack::text);
  EXPECT_FALSE(full.chunked || full.window);
  EXPECT_TRUE(chunked.chunked);
  EXPECT_EQ(chunked.window, 8192);
}

TEST(FindGroup, HasNoneBeyondTheModel) {
  const auto model = read_model(zoo + "gpt2.json");
  ASSERT_TRUE(model);
  EXPECT_FALSE(find_group(*model, 12, Stack::text));
  EXPECT_FALSE(find_group(*model, -1, Stack::text));
  EXPECT_FALSE(find_group(*model, 0, Stack::vision));
}

TEST(CompileGroup, CarriesTheLogitsOfModelAndScaling) {
  LayerGroup group{.geometry = {.heads = 4, .head_dim = 64},
                   .schemes = {Rope{.scaling = Yarn{.factor = 40,
                                                    .original_max_position_embeddings = 4096,
                                                    .mscale_all_dim = 1,
                                                    .scale_logits = true}}},
                   .logits = {.multiplier = 2, .beta = 0.1, .floor = 8192}};
  const auto plan = compile(group);
  ASSERT_TRUE(plan) << plan.error().message();
  const double magnitude = 0.1 * std::log(40.0) + 1;
  EXPECT_NEAR(plan->logits.multiplier, 2 * magnitude * magnitude, 1e-15);
  EXPECT_EQ(plan->logits.beta, 0.1);
}

TEST(CompileGroup, MergesSchemesAtDifferentPlaces) {
  const LayerGroup group{.geometry = {.width = 256, .heads = 4, .head_dim = 64},
                         .schemes = {Axial{}, Learned{.rows = 16}}};
  const auto plan = compile(group);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(plan->rotate && plan->add);
}

TEST(CompileGroup, TwoAtOnePlaceAreRefused) {
  const LayerGroup group{.geometry = {.heads = 4, .head_dim = 64}, .schemes = {Rope{}, Rope{}}};
  EXPECT_FALSE(compile(group));
}

TEST(CompileGroup, LengthReachesTheScaling) {
  const auto model = read_model(zoo + "phi-3.5-mini.json");
  ASSERT_TRUE(model) << model.error().message();
  const auto near = compile(model->groups[0], 4096), far = compile(model->groups[0], 4097);
  ASSERT_TRUE(near && far);
  EXPECT_NE(near->rotate->frequencies.radians, far->rotate->frequencies.radians);
}

TEST(ModelContext, IsWhatTheFileSays) {
  const auto yarn = read_model(zoo + "qwen2.5-7b-yarn4.json"),
             llama = read_model(zoo + "llama-3.2-1b.json");
  ASSERT_TRUE(yarn && llama);
  EXPECT_EQ(yarn->context, 32768);  // as the file says, though 4 × 32768 is meant: a lint tells
  EXPECT_EQ(yarn->trained_context, 32768);
  EXPECT_EQ(llama->context, 131072);  // its factor of 32 is none of lengths
  EXPECT_EQ(llama->trained_context, 8192);
}

}  // namespace
}  // namespace posenc
