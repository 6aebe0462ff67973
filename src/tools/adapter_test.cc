// What a trainer's settings tell of an adapter beside its base.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "posenc/tools.h"
#include "src/tools/training.h"

namespace posenc {
namespace {

std::vector<Finding> under(const std::string& settings) {
  const auto found = adapter_differences(*read_model("llama-2-7b"), settings);  // a context of 4096
  EXPECT_TRUE(found) << found.error().message();
  return found.value_or(std::vector<Finding>());
}

TEST(Adapter, WithinTheBasesContextNothingDiffers) {
  EXPECT_TRUE(under("cutoff_len: 4096\nlora_rank: 8\n").empty());
}

TEST(Adapter, LongerTextsWithoutAScalingAreAnError) {
  const auto found = under("sequence_len: 16384\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, "adapter_base_context");
  EXPECT_EQ(found[0].found, "16,384");
}

TEST(Adapter, AScalingOfTheTrainingIsComparedWithTheBase) {
  const auto found = under("rope_scaling: yarn\ncutoff_len: 12000  # three contexts\n");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].code, "rope_scaling");
  EXPECT_EQ(found[0].expected, "yarn factor 3 original_max_position_embeddings 4096");
  EXPECT_TRUE(found[0].cure.contains("factor 2")) << found[0].cure;
}

TEST(Adapter, EveryScalingOfLlamaFactoryIsRead) {
  for (const std::string type : {"linear", "dynamic", "yarn", "llama3"}) {
    const auto found = under("rope_scaling: " + type + "\ncutoff_len: 16384\n");
    ASSERT_FALSE(found.empty()) << type;
    EXPECT_EQ(found[0].code, "rope_scaling") << type;
  }
}

TEST(Adapter, AKeyInsideAnotherIsNotRead) {
  const auto found = under("data:\n  cutoff_len: 16384\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, "adapter_length");
}

TEST(Adapter, ALengthMustBeANumberOfTokens) {
  const auto found = adapter_differences(*read_model("llama-2-7b"), "cutoff_len: -1\n");
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().message().contains("cutoff_len must be a number of tokens"));
}

TEST(Training, OfAllWeightsIsNoAdapter) {
  const auto longer = under("finetuning_type: full\ncutoff_len: 16384\n");
  ASSERT_EQ(longer.size(), 1u);
  EXPECT_EQ(longer[0].code, "training_beyond_context");
  const auto scaled = under("finetuning_type: full\nrope_scaling: yarn\ncutoff_len: 16384\n");
  ASSERT_FALSE(scaled.empty());
  EXPECT_EQ(scaled[0].severity, Severity::note);
}

TEST(Training, AnOverrideWithoutTheBaseLosesIt) {
  const auto found = adapter_differences(*read_model("qwen3-8b"),
                                         "policy:\n  max_total_sequence_length: 131072\n"
                                         "  hf_config_overrides:\n    rope_scaling:\n"
                                         "      rope_type: yarn\n      factor: 4.0\n"
                                         "      original_max_position_embeddings: 32768\n");
  ASSERT_TRUE(found);
  ASSERT_GE(found->size(), 2u);
  EXPECT_EQ(found->at(0).code, "theta_missing");
  EXPECT_TRUE(found->at(0).message.contains("policy.hf_config_overrides")) << found->at(0).message;
}

TEST(Training, AnOverrideInBracesIsRead) {
  const auto found = under("rope_scaling: {type: linear, factor: 4.0}\nsequence_len: 16384\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].found, "linear factor 4");
}

TEST(Training, LengthsThatContradictEachOtherNeedNoModel) {
  const auto told = detail::read_training(
      "max_req_tokens: 512\nmax_res_tokens: 16384\ntrainer:\n  seq_len: 2048\n");
  ASSERT_TRUE(told);
  const auto found = detail::contradictions(*told);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, "lengths_contradict");
  EXPECT_EQ(found[0].expected, "16,896");
}

TEST(Training, ARingThatKnowsNoBoundsIsToldOfPackedTexts) {
  const auto told = detail::read_training(
      "sequence_len: 1024\nsample_packing: true\nring_attn_func: batch_ring\n");
  ASSERT_TRUE(told);
  EXPECT_EQ(detail::contradictions(*told).at(0).code, "packing_ignored");
}

TEST(Training, AFlashAttentionThatOldTrlHandsNoPositionsToIsToldWithItsVersion) {
  const auto cure = [](const std::string& attention) {
    const auto told =
        detail::read_training("packing: true\nattn_implementation: " + attention + "\n");
    const auto found = told ? detail::contradictions(*told) : std::vector<Finding>{};
    return found.empty() ? "" : found.front().cure;
  };
  EXPECT_TRUE(cure("flash_attention_3").starts_with("TRL 0.22 or later"));
  EXPECT_TRUE(cure("kernels-community/vllm-flash-attn3").starts_with("TRL 0.21 or later"));
  EXPECT_TRUE(cure("kernels-community/flash-attn").starts_with("TRL 0.24 or later"));
  EXPECT_EQ(cure("flash_attention_2"), "");
}

TEST(Training, ArgumentsOfPythonEndAtACommaAndNamesAreNoNumbers) {
  const auto told = detail::read_training(
      "max_seq_length = 65536\nmodel = load(\n    max_seq_length = max_seq_length,\n"
      "    fast_inference = True,\n    rope_scaling = {\n        \"rope_type\": \"yarn\",\n"
      "        \"factor\": 4.0,\n    },\n)\n");
  ASSERT_TRUE(told) << told.error().message();
  EXPECT_EQ(told->length, 65536);
  ASSERT_TRUE(told->override_dict);
  EXPECT_EQ(detail::contradictions(*told).at(0).code, "wrapper_scaling");
}

TEST(Training, AScalingByFlagDoesNotReachTheEngineOfARollout) {
  const auto line = [](const char* words) {
    const auto settings = detail::training_of_line(words);
    EXPECT_TRUE(settings) << words;
    return detail::contradictions(*detail::read_training(settings->settings));
  };
  const auto rollout = line("swift rlhf --model Q --rope_scaling yarn --use_vllm true");
  ASSERT_EQ(rollout.size(), 1u);
  EXPECT_EQ(rollout.front().code, "wrapper_scaling");
  EXPECT_TRUE(line("swift sft --model Q --rope_scaling yarn --max_length 60000").empty());
  const auto api = line("llamafactory-cli webchat --cutoff_len 4096 --template llama3");
  ASSERT_EQ(api.size(), 1u);
  EXPECT_EQ(api.front().code, "flag_unread");
  EXPECT_TRUE(line("llamafactory-cli train --cutoff_len 4096 --template llama3").empty());
}

TEST(Training, WithoutATrainedLengthItIsTheFilesContext) {
  const auto found = adapter_differences(
      *read_model("qwen3-8b"), "rope_scaling: {type: yarn, factor: 3.0}\nmax_length: 120000\n");
  ASSERT_TRUE(found);
  const auto scaling = std::ranges::find(*found, "rope_scaling", &Finding::code);
  ASSERT_NE(scaling, found->end());
  EXPECT_TRUE(scaling->found.ends_with("40960")) << scaling->found;
}

TEST(Training, UnslothDividesPositionsWhereMoreIsAskedFor) {
  const auto of = [](const char* model, const char* length) {
    return *adapter_differences(
        *read_model(model),
        "from unsloth import FastLanguageModel\nmax_seq_length = " + std::string(length) + ",\n");
  };
  const auto scaled = of("llama-3.1-8b", "262144");
  ASSERT_EQ(scaled.size(), 1u);
  EXPECT_EQ(scaled.front().code, "scaling_by_length");
  EXPECT_TRUE(scaled.front().message.contains("in place of the file's own llama3"));
  EXPECT_FALSE(of("llama-2-7b", "8192").front().message.contains("in place of"));
  EXPECT_TRUE(of("llama-2-7b", "4096").empty());
}

TEST(Training, AFusedRotationOnPartsOfATextIsNamed) {
  const auto told = detail::read_training(
      "model:\n  backend:\n    rope_fusion: true\ndistributed:\n  cp_size: 2\n");
  ASSERT_TRUE(told);
  EXPECT_EQ(detail::contradictions(*told).at(0).code, "rope_fusion_parts");
}

TEST(Trainer, AModelIsReadAsItIsTrained) {
  const Model base = *read_model("qwen3-8b");
  const auto read = [&](const std::string& settings) {
    const auto made = read_trainer(base, settings);
    EXPECT_TRUE(made) << made.error().message();
    return *made;
  };
  const auto scaling = [&](const TrainerReading& made) {
    const auto found = *differences(base, made.model);
    const auto scaled = std::ranges::find(found, "rope_scaling", &Finding::code);
    return scaled == found.end() ? "" : scaled->found;
  };
  const TrainerReading over = read(
      "policy:\n  max_total_sequence_length: 65536\n  hf_config_overrides:\n    rope_scaling:\n"
      "      rope_type: yarn\n      factor: 2.0\n      rope_theta: 1000000\n");
  EXPECT_EQ(over.length, 65536);
  EXPECT_TRUE(over.findings.empty());
  EXPECT_TRUE(scaling(over).starts_with("yarn factor 2")) << scaling(over);
  const TrainerReading line = read(
      "python3 -m verl.trainer.main_ppo data.max_prompt_length=1024 data.max_response_length=8192 "
      "actor_rollout_ref.model.override_config.rope_scaling.rope_type=linear "
      "actor_rollout_ref.model.override_config.rope_scaling.factor=2.0");
  EXPECT_EQ(line.length, 9216);
  EXPECT_EQ(scaling(line), "linear factor 2");
  EXPECT_EQ(line.findings.at(0).code, "theta_missing");
  EXPECT_EQ(scaling(read("rope_scaling: yarn\ncutoff_len: 65536\n")).substr(0, 4), "yarn");
  EXPECT_EQ(scaling(read("max_length: 8192\n")), "");
  EXPECT_EQ(
      read("from unsloth import FastLanguageModel\nmax_seq_length = 65536,\n").findings.at(0).code,
      "scaling_by_length");
}

}  // namespace
}  // namespace posenc
