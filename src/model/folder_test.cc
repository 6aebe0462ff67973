// Folders: which file counts, what is compared, and names that are no plain files.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "posenc/explain.h"
#include "posenc/model.h"
#include "src/model/compare.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

// Made up; the two say the same.
const std::string config = R"({"model_type": "mistral", "hidden_size": 512, "num_hidden_layers": 4,
  "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "rope_theta": 1000000.0,
  "max_position_embeddings": 32768, "sliding_window": null})";
const std::string params = R"({"dim": 512, "n_layers": 4, "n_heads": 8, "n_kv_heads": 2,
  "head_dim": 64, "rope_theta": 1000000.0})";

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string pattern = testing::TempDir() + "posenc_folder_XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~Folder() override { fs::remove_all(path); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name) << text;
  }
  Model read() const {
    auto model = read_model(path);
    EXPECT_TRUE(model) << model.error().message();
    return model ? std::move(*model) : Model{};
  }
  std::string error_of(const std::string& name = "") const {
    const auto model = read_model(name.empty() ? path : path + "/" + name);
    return model ? "" : model.error().message();
  }
  // The one disagreement when params.json says this.
  std::string disagreement(const std::string& other) const {
    write("config.json", config);
    write("params.json", other);
    const Model model = read();
    EXPECT_EQ(model.warnings.size(), 1u);
    if (model.warnings.empty()) return "";
    EXPECT_EQ(model.warnings[0].code, "files_disagree");
    return model.warnings[0].message;
  }
  static std::string replaced(std::string text, const std::string& what, const std::string& by) {
    return text.replace(text.find(what), what.size(), by);
  }

  std::string path;
};

TEST_F(Folder, ADistanceMapThatOneFileLacksIsADisagreement) {
  const std::string qwen = R"({"model_type": "qwen2", "hidden_size": 512, "num_hidden_layers": 4,
      "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "rope_theta": 1000000.0,
      "max_position_embeddings": 32768)";
  Model mapped = *read_config(qwen + R"(, "dual_chunk_attention_config": {"chunk_size": 8192,
      "local_size": 1024}})");
  const Model plain = *read_config(qwen + "}");
  mapped.warnings.clear();
  detail::compare(mapped, plain, "config.json", "model.gguf");
  ASSERT_EQ(mapped.warnings.size(), 1u);
  EXPECT_TRUE(mapped.warnings[0].message.starts_with("rotation's kind is regions"))
      << mapped.warnings[0].message;
}

TEST_F(Folder, ParamsAloneAreEnough) {
  write("params.json", params);
  const Model model = read();
  EXPECT_EQ(model.name, fs::path(path).filename());
  EXPECT_EQ(model.files,
            (std::vector<ModelFile>{{path + "/params.json", FileFormat::params, FileRole::model}}));
}

TEST_F(Folder, ConfigCountsBeforeParamsAndWeightsAreListed) {
  write("params.json", params);
  write("config.json", config);
  write("consolidated.safetensors", "");
  write("model.safetensors.index.json", "{}");
  const Model model = read();
  EXPECT_TRUE(model.warnings.empty());
  EXPECT_EQ(model.files,
            (std::vector<ModelFile>{
                {path + "/config.json", FileFormat::config, FileRole::model},
                {path + "/params.json", FileFormat::params, FileRole::compared},
                {path + "/model.safetensors.index.json", FileFormat::safetensors_index,
                 FileRole::weights},
                {path + "/consolidated.safetensors", FileFormat::safetensors, FileRole::weights}}));
}

TEST_F(Folder, PairingsOfTheTwoFormatsAreNoDisagreement) {
  write("config.json", config);
  write("params.json", params);
  const Model model = read();
  EXPECT_TRUE(model.warnings.empty());
  const auto explanation = explain(model);
  ASSERT_TRUE(explanation);
  bool said = false;
  for (const std::string& sentence : explanation->words)
    said = said || sentence.contains("no contradiction");
  EXPECT_TRUE(said);
}

TEST_F(Folder, ADisagreementNamesBothValuesAndTheOneUsed) {
  EXPECT_EQ(disagreement(replaced(params, "1000000.0", "10000")),
            "rope_theta is 1000000 in config.json and 10000 in params.json; that of config.json is "
            "used");
}

TEST_F(Folder, SizesAreCompared) {
  EXPECT_TRUE(disagreement(replaced(params, R"("n_layers": 4)", R"("n_layers": 5)"))
                  .starts_with("layers is 4 in config.json and 5"));
  EXPECT_TRUE(disagreement(replaced(params, R"("n_heads": 8)", R"("n_heads": 4)"))
                  .starts_with("heads is 8"));
  EXPECT_TRUE(disagreement(replaced(params, R"("n_kv_heads": 2)", R"("n_kv_heads": 4)"))
                  .starts_with("kv_heads is 2"));
}

TEST_F(Folder, WindowsAreComparedLayerByLayer) {
  EXPECT_TRUE(disagreement(replaced(params, "}", R"(, "sliding_window": [null, 512]})"))
                  .starts_with("window (first in layer 1) is none in config.json and 512"));
}

TEST_F(Folder, AStatedContextIsCompared) {
  EXPECT_TRUE(disagreement(replaced(params, "}", R"(, "max_position_embeddings": 65536})"))
                  .starts_with("context is 32768 in config.json and 65536"));
}

TEST_F(Folder, ScalingsAreComparedByWhatTheyDo) {
  const std::string yarn = R"(, "max_position_embeddings": 32768, "yarn": {"factor": 4,
      "original_max_position_embeddings": 8192, "apply_scale": false}})";
  EXPECT_NE(disagreement(replaced(params, "}", yarn))
                .find("rope_scaling is default in config.json and yarn factor 4"),
            std::string::npos);
  // Hugging Face spells the switch as a pair of mscales.
  write("config.json", replaced(config, "}", R"(, "rope_scaling": {"rope_type": "yarn",
      "factor": 4, "original_max_position_embeddings": 8192, "mscale": 1, "mscale_all_dim": 1}})"));
  EXPECT_TRUE(read().warnings.empty());
}

TEST_F(Folder, HeadDimIsCompared) {
  write("config.json", config);
  write("params.json", replaced(params, R"("head_dim": 64)", R"("head_dim": 32)"));
  const Model model = read();
  ASSERT_FALSE(model.warnings.empty());
  EXPECT_TRUE(model.warnings[0].message.starts_with("head_dim is 64"));
}

TEST_F(Folder, ASecondFileThatCannotBeReadIsAWarning) {
  write("config.json", config);
  write("params.json", "not JSON");
  const Model model = read();
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_EQ(model.warnings[0].code, "file_not_read");
  EXPECT_EQ(model.files.at(1).role, FileRole::unread);
}

TEST_F(Folder, TheFirstFileMustBeReadable) {
  write("config.json", "not JSON");
  write("params.json", params);
  EXPECT_NE(error_of().find("config.json"), std::string::npos);
}

TEST_F(Folder, WithoutADescriptionTheErrorSaysWhatWasLookedFor) {
  const std::string nothing = error_of();
  EXPECT_NE(nothing.find("no config.json, params.json or .gguf file"), std::string::npos)
      << nothing;
  write("model.safetensors", "");
  EXPECT_NE(error_of().find("with model.safetensors"), std::string::npos);
}

TEST_F(Folder, AFileIsKnownByItsContentWhateverItsName) {
  write("mine.json", params);
  const auto model = read_model(path + "/mine.json");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->files.at(0).format, FileFormat::params);
  EXPECT_EQ(model->name, "mine");
}

TEST_F(Folder, ALinkToAPlainFileIsFollowed) {
  write("blob", config);
  fs::create_directory(path + "/snapshot");
  fs::create_symlink("../blob", path + "/snapshot/config.json");
  EXPECT_TRUE(read_model(path + "/snapshot"));
  EXPECT_TRUE(read_model(path + "/snapshot/config.json"));
}

TEST_F(Folder, ALinkToNothingSaysSo) {
  fs::create_symlink("nowhere", path + "/config.json");
  EXPECT_NE(error_of().find("link to what is not there"), std::string::npos);
  EXPECT_NE(error_of("config.json").find("link to what is not there"), std::string::npos);
}

TEST_F(Folder, ALinkInACircleSaysSo) {
  fs::create_symlink("config.json", path + "/config.json");
  EXPECT_NE(error_of().find("leads in a circle"), std::string::npos);
}

TEST_F(Folder, AFolderNamedLikeAFileIsRefused) {
  fs::create_directory(path + "/config.json");
  EXPECT_NE(error_of().find("must be a regular file, got a folder"), std::string::npos);
}

TEST_F(Folder, APipeDoesNotHangAndADeviceIsNotRead) {
  ASSERT_EQ(mkfifo((path + "/config.json").c_str(), 0600), 0);
  EXPECT_NE(error_of().find("must be a regular file, got a pipe"), std::string::npos);
  fs::remove(path + "/config.json");
  fs::create_symlink("/dev/zero", path + "/config.json");
  EXPECT_NE(error_of().find("must be a regular file"), std::string::npos);
}

TEST_F(Folder, TheJsonListsTheFiles) {
  write("params.json", params);
  const auto explanation = explain(read());
  ASSERT_TRUE(explanation);
  EXPECT_NE(to_json(*explanation).find(R"("format":"params.json","role":"model")"),
            std::string::npos);
}

}  // namespace
}  // namespace posenc
