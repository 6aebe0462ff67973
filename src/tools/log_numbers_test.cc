// Numbers of lines that posenc does not know, beside the model's own.
#include "src/tools/log_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "posenc/tools.h"

namespace posenc::detail {
namespace {

std::vector<Finding> beside_log(const char* name, const std::string& log) {
  const auto model = read_model(name);
  EXPECT_TRUE(model);
  return log_differences(*model, log).value_or(std::vector<Finding>{});
}

const Finding* told_by_numbers_finding(const std::vector<Finding>& findings,
                                       std::string_view code) {
  const auto at = std::ranges::find(findings, code, &Finding::code);
  return at == findings.end() ? nullptr : &*at;
}

TEST(LogNumbers, ALengthBeyondALimitIsToldInAnyWords) {
  for (const char* line :
       {"Prompt length 70000 exceeds max_seq_len 65536", "prompt of 70,000 tokens > limit 65536",
        "[ERROR] seq_len (70000) must be <= the context (65536)",
        "The context of 65536 is full; truncating the prompt from 70000 to 65530 tokens"}) {
    const auto told = compared_lengths(line);
    ASSERT_TRUE(told) << line;
    EXPECT_EQ(told->expected + " " + told->found, "65,536 70,000") << line;
  }
}

TEST(LogNumbers, OtherNumbersAreNone) {
  for (const char* line :
       {"context length 4096 is smaller than 131072", "KV cache memory 65536 exceeds 4096 MiB",
        "Context length exceeded, stepping down: 1,000,000 -> 256,000 tokens",
        "2025-10-01 12:00:01 context too long", "main.py:1234: prompt exceeds 4096"})
    EXPECT_FALSE(compared_lengths(line)) << line;
}

TEST(LogNumbers, AnIndexBehindTheModelsLengthIsItsTablesEnd) {
  for (const char* line :
       {"IndexError: index 40960 is out of bounds for dimension 0 with size 40960",
        "thread 'main' panicked: index out of bounds: the len is 40960 but the index is 40961"}) {
    const auto found = beside_log("qwen3-8b", line);
    ASSERT_TRUE(told_by_numbers_finding(found, "table_end")) << line;
    EXPECT_TRUE(
        told_by_numbers_finding(found, "table_end")->message.contains("max_position_embeddings"))
        << line;
  }
}

TEST(LogNumbers, AnIndexOfSomethingElseIsNotTheModelsLength) {
  const auto found =
      beside_log("qwen3-8b", "index 50257 is out of bounds for axis 0 with size 50257");
  ASSERT_TRUE(told_by_numbers_finding(found, "table_end"));
  EXPECT_TRUE(told_by_numbers_finding(found, "table_end")
                  ->message.contains("none of this model's lengths"));
}

TEST(LogNumbers, TheModelsLengthIsNamedInSizesThatDiffer) {
  const auto found = beside_log(
      "qwen3-8b",
      "RuntimeError: The size of tensor a (41000) must match the size of tensor b (40960)");
  ASSERT_TRUE(told_by_numbers_finding(found, "table_end"));
  EXPECT_EQ(told_by_numbers_finding(found, "table_end")->severity, Severity::error);
}

TEST(LogNumbers, HeadsOfAnotherWidthAreNamed) {
  const auto found = beside_log(
      "qwen3-8b", "RuntimeError: shape '[1, 1, 32, 64]' is invalid for input of size 4096");
  ASSERT_TRUE(told_by_numbers_finding(found, "heads"));
  EXPECT_EQ(told_by_numbers_finding(found, "heads")->expected, "128");
}

TEST(LogNumbers, KeysWithTheQueriesHeadsAreNamed) {
  const auto found = beside_log(
      "qwen3-8b", "RuntimeError: shape '[1, 7, 32, 128]' is invalid for input of size 7168");
  ASSERT_TRUE(told_by_numbers_finding(found, "kv_heads"));
  EXPECT_EQ(told_by_numbers_finding(found, "kv_heads")->expected, "8");
}

TEST(LogNumbers, AScalingThatTheProgramLacksIsNamed) {
  EXPECT_TRUE(
      told_by_numbers_finding(beside_log("llama-3.1-8b", "KeyError: 'llama3'"), "engine_too_old"));
  EXPECT_TRUE(told_by_numbers_finding(
      beside_log("phi-3.5-mini", "NotImplementedError: rope_type longrope is not supported"),
      "engine_too_old"));
}

TEST(LogNumbers, KeysThatAreNotRecognizedAreNoMissingScaling) {
  const auto found = beside_log("qwen2.5-7b-yarn4",
                                "Unrecognized keys in `rope_scaling` for 'rope_type'='yarn': "
                                "{'original_max_position_embeddings'}");
  EXPECT_FALSE(told_by_numbers_finding(found, "engine_too_old"));
  ASSERT_TRUE(told_by_numbers_finding(found, "unknown_key"));
  EXPECT_EQ(told_by_numbers_finding(found, "unknown_key")->severity, Severity::note);
}

TEST(LogNumbers, AWindowsSlotsAndAFewTokensAreARingBuffer) {
  const auto found = beside_log("gemma-3-4b",
                                "ValueError: [broadcast_shapes] Shapes (1,8,4,256) and "
                                "(1,8,1029,256) cannot be broadcast");
  ASSERT_TRUE(told_by_numbers_finding(found, "lengths_differ"));
  EXPECT_TRUE(told_by_numbers_finding(found, "lengths_differ")->message.contains("sliding window"));
}

TEST(LogNumbers, LatentsOfAVideoAreToldInFrames) {
  const auto found = beside_log(
      "qwen3-8b",
      "  File \"ComfyUI-WanVideoWrapper/nodes_sampler.py\", line 1430\n"
      "RuntimeError: Sizes of tensors must match except in dimension 0. Expected size 21 but got "
      "size 22 for tensor number 1 in the list.");
  ASSERT_TRUE(told_by_numbers_finding(found, "grid_rounded"));
  EXPECT_TRUE(told_by_numbers_finding(found, "grid_rounded")->message.contains("81 frames"));
}

TEST(LogNumbers, AnAxisTooManyIsNoShortTable) {
  const auto found = beside_log(
      "qwen3-8b",
      "    q_embed = (q * cos) + (rotate_half(q) * sin)\n"
      "RuntimeError: The size of tensor a (128) must match the size of tensor b (1698) at "
      "non-singleton dimension 4");
  EXPECT_TRUE(told_by_numbers_finding(found, "position_rows"));
}

}  // namespace
}  // namespace posenc::detail
