// ChatGLM2's and ChatGLM3's rope_ratio, which engines read in one way.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <variant>

#include "posenc/engines.h"

namespace posenc {
namespace {

TEST(ChatGlm, EnginesMultiplyTheBaseByTheRatioOfEither) {
  const auto served = [](const char* name, const char* engine) {
    const std::string text = R"({"model_type": "chatglm", "hidden_size": 512, "num_layers": 2,
        "num_attention_heads": 4, "kv_channels": 128, "multi_query_group_num": 2,
        "seq_length": 32768, "rope_ratio": 16, "_name_or_path": ")" +
                             std::string(name) + "\"}";
    const auto model = read_model_bytes(std::as_bytes(std::span(text)), "config.json");
    EXPECT_TRUE(model) << model.error().message();
    const auto reading = read_as(*model, engine);
    EXPECT_TRUE(reading) << engine;
    return std::get<Rope>(reading->model.groups.front().schemes.front());
  };
  for (const char* engine : {"vllm", "sglang", "lmdeploy", "llama.cpp"})
    for (const char* name : {"THUDM/chatglm2-6b-32k", "THUDM/chatglm3-6b-32k"}) {
      EXPECT_EQ(served(name, engine).rope_theta, 160000) << engine << " " << name;
      EXPECT_EQ(served(name, engine).scaling, Scaling(Unscaled{})) << engine << " " << name;
    }
  // The code beside the weights, which transformers runs.
  EXPECT_EQ(served("THUDM/chatglm2-6b-32k", "transformers@4").scaling, Scaling(Linear{16}));
  EXPECT_EQ(served("THUDM/chatglm3-6b-32k", "transformers@4").rope_theta, 160000);
}

}  // namespace
}  // namespace posenc
