// Files with a slip each: what lint says of them, and how gravely.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "posenc/tools.h"

namespace posenc {
namespace {

// A Qwen3 of two layers with a scaling.
std::string qwen(const std::string& scaling) {
  return R"({"model_type": "qwen3", "hidden_size": 4096, "head_dim": 128, "num_hidden_layers": 2,
             "num_attention_heads": 32, "num_key_value_heads": 8, "rope_theta": 1000000.0,
             "max_position_embeddings": 131072, "rope_scaling": {)" +
         scaling + "}}";
}
const char* const yarn_by_4 = R"("rope_type": "yarn", "factor": 4.0,
                            "original_max_position_embeddings": 32768)";

std::vector<Finding> linted(const std::string& json, const LintOptions& options = {}) {
  const Expected<Model> model = read_config(json);
  EXPECT_TRUE(model) << model.error().message();
  const auto findings = lint(*model, options);
  EXPECT_TRUE(findings) << findings.error().message();
  return findings.value_or(std::vector<Finding>());
}

// The first finding of a code; one without a code where there is none.
Finding finding_of(const std::vector<Finding>& findings, const std::string& code) {
  const auto found = std::ranges::find(findings, code, &Finding::code);
  return found == findings.end() ? Finding{} : *found;
}

TEST(Lint, OfAPlainFileThereIsNothingToSay) {
  EXPECT_TRUE(linted(qwen(R"("rope_type": "default")")).empty());
}

TEST(Lint, AWarningKeepsItsCode) {
  const Finding found =
      finding_of(linted(qwen(R"("rope_type": "yarn", "factor": 4.0)")), "original_length_missing");
  EXPECT_EQ(found.severity, Severity::error);
  EXPECT_FALSE(found.cure.empty());
}

TEST(Lint, TheCureIsNoLongerPartOfTheMessage) {
  const Finding found =
      finding_of(linted(qwen(std::string(yarn_by_4) + R"(, "attn_factor": 0.878)")), "attn_factor");
  EXPECT_TRUE(found.cure.starts_with("write attention_factor")) << found.cure;
  EXPECT_FALSE(found.message.contains("write attention_factor")) << found.message;
}

TEST(Lint, WhatAnyEngineDoesOtherwiseIsAWarning) {
  const Finding found = finding_of(*lint(*read_model("internlm2.5-7b")), "engine_rope_scaling");
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_FALSE(found.engines.empty());
}

TEST(Lint, WhereAnyEngineStopsAtAFileThatIsANote) {
  const Finding found = finding_of(linted(qwen(yarn_by_4)), "engine_refused");
  EXPECT_EQ(found.severity, Severity::note);
  EXPECT_EQ(found.engines, std::vector<std::string>{"onnxruntime-genai"});
}

TEST(Lint, WhatTheEngineThatItIsForDoesOtherwiseIsAnError) {
  const auto findings = linted(qwen(yarn_by_4), {.engines = {"onnxruntime-genai"}});
  EXPECT_EQ(finding_of(findings, "engine_refused").severity, Severity::error);
}

TEST(Lint, OtherEnginesAreNotAskedThen) {
  EXPECT_TRUE(linted(qwen(yarn_by_4), {.engines = {"transformers"}}).empty());
}

TEST(Lint, EnginesAlikeStandInOneFinding) {
  const Finding found = finding_of(linted(qwen(std::string(yarn_by_4) + R"(, "truncate": false)")),
                                   "engine_rope_factors");
  EXPECT_EQ(found.engines, (std::vector<std::string>{"llama.cpp", "mlx-lm", "tensorrt-llm"}));
}

TEST(Lint, TheGravestComesFirst) {
  const auto findings =
      linted(qwen(R"("rope_type": "yarn", "factor": 4.0, "beta_fast": 0, "attn_factor": 1.0)"));
  EXPECT_TRUE(std::ranges::is_sorted(findings, {}, &Finding::severity));
  EXPECT_GE(findings.size(), 3U);
}

TEST(Lint, NoKeyGoesStaleInAnEngineThatFixesTheRotation) {
  const auto model = read_model("phi-3.5-mini");
  ASSERT_TRUE(model);
  const auto any = lint(*model, {.length = 8192}),
             fixed = lint(*model, {.length = 8192, .engines = {"vllm"}}),
             by_call = lint(*model, {.length = 8192, .engines = {"vllm", "sglang"}});
  ASSERT_TRUE(any && fixed && by_call);
  EXPECT_EQ(finding_of(*any, "stale_keys").code, "stale_keys");
  EXPECT_EQ(finding_of(*fixed, "stale_keys").code, "");
  EXPECT_EQ(finding_of(*by_call, "stale_keys").code, "stale_keys");
}

TEST(Lint, AnEngineThatNobodyKnowsIsRefused) {
  const Expected<Model> model = read_config(qwen(yarn_by_4));
  ASSERT_TRUE(model);
  const auto findings = lint(*model, {.engines = {"vlm"}});
  ASSERT_FALSE(findings);
  EXPECT_TRUE(findings.error().cure.contains("vllm")) << findings.error().cure;
}

TEST(Lint, AnEngineThatReadsNoSuchFileIsNotAskedUnlessItIsNamed) {
  const auto model = read_model("qwen3-8b");
  ASSERT_TRUE(model);
  Model gguf = *model;
  gguf.files = {{"x.gguf", FileFormat::gguf, FileRole::model}};
  const auto any = lint(gguf), named = lint(gguf, {.engines = {"mlx-lm"}});
  ASSERT_TRUE(any && named);
  EXPECT_EQ(finding_of(*any, "engine_refused").code, "");
  EXPECT_EQ(finding_of(*named, "engine_refused").code, "engine_refused");
}

TEST(Lint, Gemma3sLayersHaveBasesOfTheirOwn) {
  const auto of_local = [](const char* base) {
    return linted(std::string(R"({"model_type": "gemma3_text", "hidden_size": 1152,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
        "num_hidden_layers": 26, "sliding_window": 512, "max_position_embeddings": 32768,
        "rope_theta": 1000000, "rope_local_base_freq": )") +
                  base + "}");
  };
  EXPECT_EQ(finding_of(of_local("1000000"), "base_of_other_layers").severity, Severity::error);
  EXPECT_TRUE(finding_of(of_local("10000"), "base_of_other_layers").code.empty());
}

TEST(Lint, Llama3sScalingBesideTheDefaultBaseIsNamed) {
  const auto of_base = [](const char* base) {
    return linted(std::string(R"({"model_type": "llama", "hidden_size": 4096,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "max_position_embeddings": 131072, "rope_theta": )") +
                  base + R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})");
  };
  EXPECT_EQ(finding_of(of_base("10000.0"), "llama3_base").severity, Severity::warning);
  EXPECT_TRUE(finding_of(of_base("500000.0"), "llama3_base").code.empty());
}

TEST(Lint, AChangedCopyOfAKnownClassIsNamed) {
  const auto of_class = [](const char* path) {
    return linted(std::string(R"({"model_type": "llama", "hidden_size": 4096,
        "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 4096,
        "rope_theta": 10000.0, "auto_map": {"AutoModelForCausalLM": ")") +
                  path + R"("}})");
  };
  EXPECT_EQ(finding_of(of_class("modeling_llama_yarn.LlamaForCausalLM"), "own_code").severity,
            Severity::note);
  EXPECT_TRUE(finding_of(of_class("modeling_llama.LlamaForCausalLM"), "own_code").code.empty());
}

TEST(Lint, ARatioOfGlmsIsToldAsTheBaseThatItMeans) {
  const auto found = linted(R"({"model_type": "llama", "hidden_size": 4096,
      "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 8192,
      "rope_theta": 10000.0, "rope_ratio": 500})");
  EXPECT_TRUE(finding_of(found, "unread_key").cure.contains("rope_theta 5000000"));
}

TEST(Lint, KeysOfExllamaSayWhatTheyWouldMean) {
  const auto found = linted(R"({"model_type": "llama", "hidden_size": 4096,
      "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 8192,
      "rope_theta": 10000.0, "compress_pos_emb": 2, "alpha_value": 4})");
  const auto said = [&](std::string_view words) {
    return std::ranges::any_of(
        found, [&](const Finding& one) { return (one.message + one.cure).contains(words); });
  };
  EXPECT_TRUE(said(R"("rope_type": "linear", "factor": 2)"));
  EXPECT_TRUE(said("alpha_value is 4"));
}

TEST(Lint, AClassBesideTheWeightsIsNamedWhereTheFamilyHasNone) {
  const auto found = [](const std::string& type) {
    const auto all = linted(R"({"model_type": ")" + type + R"(", "hidden_size": 4096,
        "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 4096,
        "auto_map": {"AutoModelForCausalLM": "modelling_own.OwnForCausalLM"}})");
    return std::ranges::any_of(all, [](const Finding& one) {
      return one.message.contains("modelling_own.OwnForCausalLM");
    });
  };
  EXPECT_TRUE(found("llama"));
  EXPECT_FALSE(found("phi3"));  // whose published files have code beside them
}

TEST(Lint, AClaimThatNoBaseCarriesIsNamed) {
  const auto codes_of = [](std::string_view rotation) {
    const std::string config = R"({"model_type": "llama", "hidden_size": 4096,
        "num_attention_heads": 32, "num_hidden_layers": 2, "max_position_embeddings": 131072)" +
                               std::string(rotation) + "}";
    const auto model = read_model_bytes(std::as_bytes(std::span(config)), "config.json");
    EXPECT_TRUE(model);
    const auto found = lint(*model);
    EXPECT_TRUE(found);
    return std::ranges::count(*found, "claimed_context", &Finding::code);
  };
  EXPECT_EQ(codes_of(R"(, "rope_theta": 10000.0)"), 1);
  EXPECT_EQ(codes_of(R"(, "rope_theta": 1000000.0)"), 0);
  EXPECT_EQ(codes_of(R"(, "rope_theta": 10000.0, "partial_rotary_factor": 0.5)"), 0);
}

}  // namespace
}  // namespace posenc
