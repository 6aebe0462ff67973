#include <gtest/gtest.h>

#include <string>

#include "posenc/engines.h"

namespace posenc {
namespace {

Model ling2(const std::string& more) {
  return *read_config(R"({"model_type": "bailing_moe_v2", "hidden_size": 512,
      "num_attention_heads": 8, "head_dim": 64, "num_hidden_layers": 2,
      "max_position_embeddings": 32768, )" +
                      more + "}");
}

TEST(VersionFaults, HoldWithinTheirRangeAlone) {
  const Model model = ling2(R"("rope_theta": 600000, "partial_rotary_factor": 0.5)");
  EXPECT_TRUE(version_faults(model, "vllm@0.10.2").empty());
  ASSERT_EQ(version_faults(model, "vllm@0.19.1").size(), 1u);
  EXPECT_EQ(version_faults(model, "vllm@0.19.1").front().report, "vllm-project/vllm#43770");
  EXPECT_TRUE(version_faults(model, "vllm@0.22.0").empty());
  EXPECT_EQ(version_faults(model, "vllm@0.27.1").front().report, "vllm-project/vllm#56066");
  EXPECT_TRUE(version_faults(model, "vllm").empty());
  EXPECT_TRUE(version_faults(model, "sglang@0.19.1").empty());
}

// A newer version mends one of them and has the other: the cure is of the file, and of both.
TEST(VersionFaults, OfLing2AreCuredTogether) {
  const auto cured = [](const char* version, const char* file) {
    const Model model = ling2(file);
    const auto found = version_faults(model, version);
    return found.empty() ? std::string("none") : std::string(found.front().cure);
  };
  constexpr const char* file = R"("rope_theta": 600000, "partial_rotary_factor": 0.5)";
  const std::string cure = cured("vllm@0.20.0", file);
  EXPECT_FALSE(cure.contains("pip install")) << cure;
  EXPECT_TRUE(cure.contains("rotary_dim") && cure.contains("rope_parameters")) << cure;
  constexpr const char* mended = R"("rope_parameters": {"rope_theta": 600000},
      "rotary_dim": 32, "partial_rotary_factor": 0.5)";
  EXPECT_EQ(cured("vllm@0.20.0", mended), "none");
  EXPECT_EQ(cured("vllm@0.27.1", mended), "none");
}

// In the published code of 5.0.0 to 5.17.0, and no more in that of 5.18.0.
TEST(VersionFaults, OfJapaneseGptNeoxConcernAPartOfAHead) {
  const auto model = [](const char* part) {
    const std::string text = R"({"model_type": "gpt_neox_japanese", "hidden_size": 2560,
        "num_attention_heads": 32, "num_hidden_layers": 2, "rotary_pct": )" +
                             std::string(part) + "}";
    return *read_model_bytes(std::as_bytes(std::span(text)), "c.json");
  };
  EXPECT_EQ(version_faults(model("0.5"), "transformers@5.14").size(), 1u);
  EXPECT_EQ(version_faults(model("0.5"), "transformers@5.17.0").size(), 1u);
  EXPECT_TRUE(version_faults(model("0.5"), "transformers@5.18.0").empty());
  EXPECT_TRUE(version_faults(model("0.5"), "transformers@4.57.6").empty());
  EXPECT_TRUE(version_faults(model("1.0"), "transformers@5.14").empty());
}

// In the published code of 4.54.0 to 4.56.2, and no more in that of 4.57.0.
TEST(VersionFaults, OfQwenVlEndWithTransformers457) {
  const Model model = *read_model("qwen2.5-vl-7b");
  EXPECT_TRUE(version_faults(model, "transformers@4.53.3").empty());
  EXPECT_EQ(version_faults(model, "transformers@4.54.0").size(), 1u);
  EXPECT_EQ(version_faults(model, "transformers@4.56.2").size(), 1u);
  EXPECT_TRUE(version_faults(model, "transformers@4.57.6").empty());
}

TEST(VersionFaults, OfDeepSeeksIndexerEndWithSglang056) {
  const Model model = *read_config(R"({"model_type": "deepseek_v32", "hidden_size": 7168,
      "num_attention_heads": 128, "num_hidden_layers": 2, "max_position_embeddings": 163840,
      "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
      "v_head_dim": 128, "index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048})");
  EXPECT_EQ(version_faults(model, "sglang@0.5.5").front().report, "sgl-project/sglang#13495");
  EXPECT_TRUE(version_faults(model, "sglang@0.5.6").empty());
  EXPECT_TRUE(version_faults(*read_model("deepseek-v3"), "sglang@0.5.5").empty());
}

TEST(VersionFaults, OfLongRopesListsEndWithVllm0111) {
  const Model model = *read_model("phi-3.5-mini");
  EXPECT_EQ(version_faults(model, "vllm@0.9.1").front().report, "vllm-project/vllm#19489");
  EXPECT_TRUE(version_faults(model, "vllm@0.11.1").empty());
  EXPECT_TRUE(version_faults(*read_model("llama-3.1-8b"), "vllm@0.9.1").empty());
}

TEST(VersionFaults, OfMscalesConcernThoseWithoutALatent) {
  const Model model = *read_config(R"({"model_type": "mistral3", "text_config": {
      "model_type": "ministral3", "hidden_size": 512, "num_attention_heads": 8, "head_dim": 64,
      "num_hidden_layers": 2, "max_position_embeddings": 262144, "rope_parameters": {
      "rope_type": "yarn", "factor": 16, "mscale": 1, "mscale_all_dim": 1, "rope_theta": 1000000,
      "original_max_position_embeddings": 16384}}})");
  EXPECT_EQ(version_faults(model, "sglang@0.5.10").front().report, "sgl-project/sglang#22711");
  // rotary_embedding/yarn.py of 0.5.13 reads neither, that of 0.5.16 both.
  EXPECT_EQ(version_faults(model, "sglang@0.5.13").size(), 1u);
  EXPECT_TRUE(version_faults(model, "sglang@0.5.16").empty());
}

TEST(VersionFaults, OfOlmo3ConcernAScalingAlone) {
  const auto olmo3 = [](const char* scaling) {
    const std::string text = R"({"model_type": "olmo3", "hidden_size": 64, "num_attention_heads": 2,
        "num_hidden_layers": 4, "rope_theta": 500000)" +
                             std::string(scaling) + "}";
    return *read_model_bytes(std::as_bytes(std::span(text)), "c.json");
  };
  const Model scaled = olmo3(R"(, "rope_scaling": {"rope_type": "yarn", "factor": 8.0,
      "original_max_position_embeddings": 8192})");
  EXPECT_EQ(version_faults(scaled, "transformers@5.2.0").size(), 1u);
  EXPECT_TRUE(version_faults(scaled, "transformers@4.57.6").empty());
  EXPECT_TRUE(version_faults(scaled, "transformers@5.24.0").empty());
  EXPECT_TRUE(version_faults(olmo3(""), "transformers@5.2.0").empty());
}

// In the published code of 4.45.2, 4.50.3, 4.51.0, 4.55.4 and 4.56.0.
TEST(VersionFaults, OfYarnsLengthsInTransformers) {
  const auto qwen = [](const char* context) {
    return *read_config(R"({"model_type": "qwen2", "hidden_size": 512, "num_attention_heads": 8,
        "num_key_value_heads": 8, "num_hidden_layers": 2, "rope_theta": 1000000.0,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
        "max_position_embeddings": )" +
                        std::string(context) + "}");
  };
  const Model kept = qwen("32768"), raised = qwen("131072");
  EXPECT_TRUE(version_faults(kept, "transformers@4.45").empty());
  EXPECT_EQ(version_faults(raised, "transformers@4.45").size(), 1u);
  EXPECT_EQ(version_faults(kept, "transformers@4.51.3").size(), 1u);
  EXPECT_TRUE(version_faults(raised, "transformers@4.51.3").empty());
  EXPECT_TRUE(version_faults(kept, "transformers@4.56.0").empty());
}

// In the published code of 0.5.12 to 0.5.17; 0.5.11 has no such class, and 0.5.18 divides first.
TEST(VersionFaults, OfLagunaSquareYarnsFactorInSglang) {
  const auto laguna = [](const char* factor) {
    return *read_config(R"({"model_type": "laguna", "hidden_size": 512, "num_attention_heads": 8,
        "num_key_value_heads": 8, "head_dim": 64, "num_hidden_layers": 2,
        "layer_types": ["full_attention", "sliding_attention"], "rope_parameters":
        {"full_attention": {"rope_type": "yarn", "rope_theta": 500000, "factor": 128,
        "original_max_position_embeddings": 8192)" +
                        std::string(factor) +
                        R"(}, "sliding_attention": {"rope_type": "default",
        "rope_theta": 10000}}})");
  };
  const Model told = laguna(R"(, "attention_factor": 1.4852)");
  EXPECT_EQ(version_faults(told, "sglang@0.5.16").size(), 1u);
  EXPECT_TRUE(version_faults(told, "sglang@0.5.11").empty());
  EXPECT_TRUE(version_faults(told, "sglang@0.5.18").empty());
  EXPECT_TRUE(version_faults(laguna(""), "sglang@0.5.16").empty());
}

TEST(VersionFaults, ConcernFilesThatSayIt) {
  const Model told =
      ling2(R"("rope_theta": 600000, "partial_rotary_factor": 0.5, "rotary_dim": 32)");
  EXPECT_TRUE(version_faults(told, "vllm@0.19.1").empty());
  EXPECT_TRUE(version_faults(*read_model("llama-3.1-8b"), "vllm@0.27.1").empty());
}

TEST(VersionFaults, VersionsAreComparedByNumber) {
  EXPECT_TRUE(is_before("0.9.1", "0.11.0"));
  EXPECT_FALSE(is_before("0.11.0", "0.9.1"));
  EXPECT_FALSE(is_before("", "0.9.1"));
  EXPECT_TRUE(is_before("0.4.4.post2", "0.4.5"));
  EXPECT_FALSE(is_before("0.4.5rc1", "0.4.5"));
}

TEST(VersionFaults, APostReleaseHasTheFaultsOfItsRelease) {
  const Model model = read_model("gemma-3-4b").value();
  EXPECT_EQ(version_faults(model, "sglang@0.4.4.post2").size(), 1u);
  EXPECT_TRUE(version_faults(model, "sglang@0.4.5").empty());
}

TEST(VersionFaults, HalfOfLingsLatentChannelsStoodStillInVllm) {
  Model model;
  model.family = "bailing_hybrid";
  EXPECT_EQ(version_faults(model, "vllm@0.19.0").size(), 1u);
  EXPECT_TRUE(version_faults(model, "vllm@0.20.1").empty());
}

TEST(VersionFaults, LlamaCppOfJuly2024KnowsNoFactorsOfLlama31) {
  const Model model = *read_model("llama-3.1-8b");
  EXPECT_EQ(version_faults(model, "llama.cpp@b3440").size(), 1u);
  EXPECT_TRUE(version_faults(model, "llama.cpp@b4000").empty());
}

// A version that has it, the one that mends it, and a file that it concerns.
TEST(VersionFaults, BeginAndEndWhereTheEnginesCodeDoes) {
  constexpr const char* rest = R"("hidden_size": 512, "num_attention_heads": 8,
      "num_key_value_heads": 8, "head_dim": 64,
      "num_hidden_layers": 2, "max_position_embeddings": 32768, )";
  constexpr const char* of_5 = R"("rope_parameters": {"rope_type": "default", "rope_theta": 5e6})";
  struct Case {
    const char *type, *keys, *has, *mended;
  };
  for (const Case& one :
       {Case{"qwen3", of_5, "exllamav3@0.0.16", "exllamav3@0.0.17"},
        {"qwen3", of_5, "lmdeploy@0.12.0", "lmdeploy@0.12.2"},
        {"internlm3", R"("rope_theta": 5e7)", "mlx-lm@0.31.3", "mlx-lm@0.32.0"}}) {
    const auto model =
        read_config("{\"model_type\": \"" + std::string(one.type) + "\", " + rest + one.keys + "}");
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(version_faults(*model, one.has).size(), 1u) << one.has;
    EXPECT_TRUE(version_faults(*model, one.mended).empty()) << one.mended;
  }
  const auto at_the_top =
      read_config("{\"model_type\": \"qwen3\", " + std::string(rest) + "\"rope_theta\": 5e6}");
  ASSERT_TRUE(at_the_top);
  EXPECT_TRUE(version_faults(*at_the_top, "exllamav3@0.0.16").empty());
}

}  // namespace
}  // namespace posenc
