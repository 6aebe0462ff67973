// Settings of programs that posenc does not know, told by the words of their names.
#include "src/tools/roles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "posenc/doctor.h"

namespace posenc::detail {
namespace {

std::vector<Finding> judged(const char* name, std::string_view settings) {
  const auto model = read_model(name);
  EXPECT_TRUE(model);
  return judge_roles(&*model, roles_in(settings));
}

const Finding* told_by_roles_finding(const std::vector<Finding>& findings, std::string_view code) {
  const auto at = std::ranges::find(findings, code, &Finding::code);
  return at == findings.end() ? nullptr : &*at;
}

TEST(Roles, ALengthIsOneHoweverItIsSpelled) {
  for (const char* name : {"n_ctx", "num_ctx", "ctx_size", "ctx-size", "contextSize", "max_seq_len",
                           "MAX_MODEL_LEN", "model_max_length", "contextLength", "maxSeqLength",
                           "context_window", "max_position_embeddings", "ctxlen"})
    EXPECT_EQ(role_of(name), Role::length) << name;
}

TEST(Roles, LengthsOfOtherThingsAreNone) {
  for (const char* name : {"max_tokens", "max_new_tokens", "batch_size", "context_parallel_size",
                           "max_num_seqs", "chunk_size", "image_seq_len", "model_name", "sequence",
                           "max_output_len", "hidden_size", "position_ids", "model_size"})
    EXPECT_FALSE(role_of(name)) << name;
}

TEST(Roles, AScalingIsTold) {
  EXPECT_EQ(role_of("rope_theta"), Role::base);
  EXPECT_EQ(role_of("rotary_base"), Role::base);
  EXPECT_EQ(role_of("compress_pos_emb"), Role::factor);
  EXPECT_EQ(role_of("rope_scaling_factor"), Role::factor);
  EXPECT_EQ(role_of("ropeFreqScale"), Role::share);
  EXPECT_EQ(role_of("alpha_value"), Role::alpha);
  EXPECT_EQ(role_of("yarn_orig_ctx"), Role::original);
  EXPECT_EQ(role_of("rope-scaling-type"), Role::type);
  for (const char* name : {"lora_alpha", "yarn_ext_factor", "yarn_attn_factor", "frequency_penalty",
                           "partial_rotary_factor", "yarn_beta_fast", "rope_local_base_freq_dim"})
    EXPECT_NE(role_of(name), Role::factor) << name;
}

TEST(Roles, ValuesAreReadInAnyForm) {
  const auto told = roles_in(
      "--ctx-size=128k\nn_ctx: 4_096\n\"contextSize\": 8192,\nmax_seq_len 9000\n# n_ctx: 2048\n");
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].number, 131072);
  EXPECT_EQ(told[1].number, 4096);
  EXPECT_EQ(told[2].number, 8192);
}

TEST(Roles, MoreThanTheModelIsMadeForIsTold) {
  const auto found = judged("qwen3-8b", "python serve.py --context-size 131072");
  ASSERT_TRUE(told_by_roles_finding(found, "beyond_context"));
  EXPECT_EQ(told_by_roles_finding(found, "beyond_context")->expected, "40,960");
  EXPECT_TRUE(judged("qwen3-8b", "contextSize: 32768").empty());
}

TEST(Roles, AScalingThatReachesSoFarIsNoFault) {
  const auto found = judged("llama-2-7b", "python server.py --n_ctx 16384 --compress_pos_emb 4");
  EXPECT_FALSE(told_by_roles_finding(found, "beyond_context"));
  ASSERT_TRUE(told_by_roles_finding(found, "rope_scaling"));
  EXPECT_EQ(told_by_roles_finding(found, "rope_scaling")->severity, Severity::note);
}

TEST(Roles, AScalingThatNobodyNeedsIsAWarning) {
  const auto found = judged("llama-2-7b", "n_ctx: 4096\ncompress_pos_emb: 2");
  ASSERT_TRUE(told_by_roles_finding(found, "rope_scaling"));
  EXPECT_EQ(told_by_roles_finding(found, "rope_scaling")->severity, Severity::warning);
}

TEST(Roles, ASmallerBaseIsAnError) {
  const auto found = judged("llama-3.1-8b", "rope_freq_base: 10000");
  ASSERT_TRUE(told_by_roles_finding(found, "rope_theta"));
  EXPECT_EQ(told_by_roles_finding(found, "rope_theta")->severity, Severity::error);
  EXPECT_TRUE(judged("llama-3.1-8b", "rope_freq_base: 500000").empty());
}

TEST(Roles, TheTrainedLengthIsNotTheOneThatIsWanted) {
  const auto found = judged("qwen3-8b", "yarn_orig_ctx: 131072");
  ASSERT_TRUE(told_by_roles_finding(found, "original_beyond"));
  EXPECT_TRUE(judged("qwen3-8b", "yarn_orig_ctx: 32768").empty());
}

TEST(Roles, SettingsContradictEachOtherWithoutAModel) {
  const auto found =
      judge_roles(nullptr, roles_in("ctx_size=131072 rope_scale=2 yarn_orig_ctx=32768"));
  ASSERT_TRUE(told_by_roles_finding(found, "beyond_context"));
  EXPECT_EQ(told_by_roles_finding(found, "beyond_context")->expected, "65,536");
}

TEST(Roles, TheDoctorSaysHowItTookThem) {
  const Exhibit one =
      text_exhibit("values.yaml", "server:\n  contextSize: 131072\n  replicas: 2\n");
  EXPECT_EQ(one.kind, ExhibitKind::command);
  EXPECT_TRUE(one.as.ends_with("contextSize 131,072")) << one.as;
}

}  // namespace
}  // namespace posenc::detail
