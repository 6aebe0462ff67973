// The profile of LightLLM, whose tables need a GPU: each test is a branch of
// LlamaTpPartModel._init_custom, worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "posenc/engines.h"

namespace posenc {
namespace {

EngineReading read_by_lightllm(const std::string& type, const std::string& scaling) {
  return *read_as(*read_config(R"({"model_type": ")" + type + R"(", "hidden_size": 512,
      "num_attention_heads": 8, "num_hidden_layers": 2, "vocab_size": 64,
      "max_position_embeddings": 16384, "rope_theta": 1000000.0, "rope_scaling": )" +
                               scaling + "}"),
                  "lightllm");
}

const std::string yarn_with_betas = R"({"rope_type": "yarn", "factor": 4.0,
    "original_max_position_embeddings": 4096, "attention_factor": 1.0, "beta_fast": 64})";

TEST(LightLlm, YarnsBetasAndAmplitudeAreItsOwn) {
  const EngineReading reading = read_by_lightllm("llama", yarn_with_betas);
  ASSERT_TRUE(reading.refused.empty()) << reading.refused;
  const auto plan = compile(reading.model.groups.front());
  EXPECT_DOUBLE_EQ(plan->rotate->amplitude, 0.1 * std::log(4.0) + 1);
  EXPECT_EQ(reading.notes.size(), 2u);
}

TEST(LightLlm, MistralsClassReadsTheFactorAndNoType) {
  const EngineReading reading = read_by_lightllm("mistral", yarn_with_betas);
  const Rope& rope = std::get<Rope>(reading.model.groups.front().schemes.front());
  EXPECT_EQ(rope.scaling, Scaling(Linear{4}));
}

TEST(LightLlm, StopsAtLinearScalingAndAtLongRopesNewName) {
  EXPECT_TRUE(read_by_lightllm("llama", R"({"rope_type": "linear", "factor": 2.0})")
                  .refused.contains("linear"));
  EXPECT_TRUE(read_by_lightllm("llama", R"({"rope_type": "llama3", "factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})")
                  .refused.empty());
}

TEST(LightLlm, ReadsNothingOfRopeParameters) {
  const EngineReading reading =
      *read_as(*read_config(R"({"model_type": "qwen3", "hidden_size": 512, "num_attention_heads": 8,
      "num_key_value_heads": 8, "head_dim": 64, "num_hidden_layers": 2, "max_position_embeddings": 4096,
      "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}})"),
               "lightllm");
  EXPECT_EQ(std::get<Rope>(reading.model.groups.front().schemes.front()).rope_theta, 10000);
}

TEST(DeepSpeed, RotatesByTheBaseAlone) {
  const EngineReading reading = *read_as(*read_model("llama-3.1-8b"), "deepspeed");
  const Rope& rope = std::get<Rope>(reading.model.groups.front().schemes.front());
  EXPECT_EQ(rope.rope_theta, 500000);
  EXPECT_EQ(rope.scaling, Scaling(Unscaled{}));
}

}  // namespace
}  // namespace posenc
