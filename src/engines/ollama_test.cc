// The profile of Ollama, which is on no package index: each test is a line of its converter or of a
// class, worked out by hand.
#include <gtest/gtest.h>

#include <string>

#include "posenc/engines.h"

namespace posenc {
namespace {

EngineReading read_by_ollama(const std::string& family, const std::string& rope) {
  const Model model = *read_config(R"({"model_type": ")" + family + R"(", "hidden_size": 512,
      "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 2, "vocab_size": 64,
      "max_position_embeddings": 16384, )" +
                                   rope + "}");
  return *read_as(model, "ollama");
}

std::string_view scaling_by_ollama(const std::string& family, const std::string& rope) {
  const EngineReading reading = read_by_ollama(family, rope);
  return info(std::get<Rope>(reading.model.groups.front().schemes.front()).scaling).name;
}

double amplitude_by_ollama(const std::string& family, const std::string& rope) {
  return compile(read_by_ollama(family, rope).model.groups.front())->rotate->amplitude;
}

TEST(Ollama, KnowsLinearScalingByTypeAlone) {
  EXPECT_EQ(scaling_by_ollama("llama", R"("rope_scaling": {"type": "linear", "factor": 4.0})"),
            "linear");
  EXPECT_EQ(scaling_by_ollama("llama", R"("rope_scaling": {"rope_type": "linear", "factor": 4.0})"),
            "default");
}

TEST(Ollama, KnowsLlama3ByRopeTypeAlone) {
  const std::string rest = R"(": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})";
  EXPECT_EQ(scaling_by_ollama("llama", R"("rope_scaling": {"rope_type)" + rest), "llama3");
  EXPECT_EQ(scaling_by_ollama("llama", R"("rope_scaling": {"type)" + rest), "default");
}

TEST(Ollama, LosesYarnOfALlama) {
  const EngineReading reading = read_by_ollama(
      "llama",
      R"("rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096})");
  ASSERT_FALSE(reading.notes.empty());
  EXPECT_EQ(reading.notes.front().kind, EngineNote::Kind::lost);
}

TEST(Ollama, ReadsTheFactorOfQwen2AsAList) {
  const EngineReading reading = read_by_ollama("qwen2", R"("rope_theta": 1000000.0, "rope_scaling":
      {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096})");
  EXPECT_TRUE(reading.refused.contains("list")) << reading.refused;
}

TEST(Ollama, LooksForTheBaseOutsideOfRopeParameters) {
  const EngineReading reading = read_by_ollama(
      "qwen2", R"("rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0})");
  EXPECT_TRUE(reading.refused.contains("rope_theta")) << reading.refused;
}

TEST(Ollama, RunsWhatLlamaCppConvertsWhereItsOwnConverterKnowsNoFamily) {
  EXPECT_EQ(scaling_by_ollama("qwen3", R"("head_dim": 64, "rope_theta": 1000000.0, "rope_scaling":
      {"rope_type": "dynamic", "factor": 4.0})"),
            "default");
}

TEST(Ollama, DividesTheMagnitudeAwayInAGgufOfQwen3) {
  Model model = *read_model("qwen3-8b");
  std::get<Rope>(model.groups.front().schemes.front()).scaling =
      Yarn{.factor = 4, .original_max_position_embeddings = 40960};
  model.files = {{"qwen3.gguf", FileFormat::gguf, FileRole::model}};
  const EngineReading reading = *read_as(model, "ollama");
  EXPECT_EQ(compile(reading.model.groups.front())->rotate->amplitude, 1);
}

TEST(Ollama, HasNoMagnitudeOfPhi3WithoutTheKeyType) {
  const std::string lists = []() {
    std::string list = "1.0";
    for (int i = 1; i < 32; ++i) list += ", 1.0";
    return R"("short_factor": [)" + list + R"(], "long_factor": [)" + list + "]}";
  }();
  const std::string outside = R"("original_max_position_embeddings": 4096, "rope_scaling": )";
  EXPECT_GT(amplitude_by_ollama("phi3", outside + R"({"type": "longrope", )" + lists), 1);
  EXPECT_EQ(amplitude_by_ollama("phi3", outside + R"({"rope_type": "longrope", )" + lists), 1);
}

}  // namespace
}  // namespace posenc
