// The profile of TensorRT-LLM, whose package is on no public index: each test is a line of
// RopeParams.from_config or of the table that it makes, worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "posenc/engines.h"
#include "tests/paths.h"

namespace posenc {
namespace {

Model llama_of(const std::string& scaling) {
  return *read_config(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8,
      "num_hidden_layers": 2, "vocab_size": 64, "max_position_embeddings": 16384, "rope_scaling": )" +
                      scaling + "}");
}

EngineReading read_by_tensorrt(const std::string& scaling) {
  return *read_as(llama_of(scaling), "tensorrt-llm");
}

double amplitude_by_tensorrt(const std::string& scaling) {
  return compile(read_by_tensorrt(scaling).model.groups.front())->rotate->amplitude;
}

TEST(TensorrtLlm, ReadsNoFactorOfDynamicScaling) {
  const EngineReading reading = read_by_tensorrt(R"({"rope_type": "dynamic", "factor": 2.0})");
  ASSERT_EQ(reading.notes.size(), 1u);
  EXPECT_EQ(reading.notes.front().kind, EngineNote::Kind::lost);
}

TEST(TensorrtLlm, MultipliesByYarnsOwnFactorAlone) {
  EXPECT_DOUBLE_EQ(amplitude_by_tensorrt(R"({"rope_type": "yarn", "factor": 4.0,
      "original_max_position_embeddings": 4096, "attention_factor": 1.0})"),
                   0.1 * std::log(4.0) + 1);
}

TEST(TensorrtLlm, TakesMscale1AndMscaleAllDim0WhereTheFileHasOneOfThem) {
  EXPECT_DOUBLE_EQ(amplitude_by_tensorrt(R"({"rope_type": "yarn", "factor": 4.0,
      "original_max_position_embeddings": 4096, "mscale_all_dim": 1.0})"),
                   1.0);
}

TEST(TensorrtLlm, RefusesTheOldNameOfLongRope) {
  const EngineReading reading =
      *read_as(*read_model(test::data_path("engines/cases/longrope-su.json")), "trtllm");
  EXPECT_TRUE(reading.refused.contains("su")) << reading.refused;
}

}  // namespace
}  // namespace posenc
