// The words of jobs, as their programs spell them.
#include <gtest/gtest.h>

#include <string>

#include "posenc/context_parallel.h"
#include "posenc/doctor.h"

namespace posenc::layout {
namespace {

std::string read(std::string_view text) {
  const auto sharding = read_sharding(text);
  return sharding ? sharding->text() : sharding.error().message();
}

TEST(ParallelWords, AreReadBackAsTheyAreWritten) {
  for (const std::string_view text :
       {"contiguous:16", "zigzag:8", "round_robin:4:block=64", "balanced:8", "ulysses:8",
        "ring+heads:8:heads=2", "decode:4:block=16", "zigzag:8:by=ring", "contiguous:8:by=gather",
        "ulysses:8:order=zigzag", "zigzag:8:by=ring:engine=megatron-core"})
    EXPECT_EQ(read(text), text);
  EXPECT_EQ(read("head-tail:8"), "zigzag:8");
  EXPECT_EQ(read("striped:8"), "round_robin:8");
  EXPECT_EQ(read("usp:8:heads=4"), "ring+heads:8:heads=4");
  EXPECT_EQ(read("megatron:8"), "zigzag:8:by=ring:engine=megatron-core");
  EXPECT_EQ(read("torchtitan:8"), "zigzag:8:by=gather:engine=torch");
  EXPECT_EQ(read("vllm:4"), "decode:4:engine=vllm");
}

TEST(ParallelWords, WhatCannotBeIsRefusedWithTheCure) {
  EXPECT_TRUE(read("zig-zag:8").contains("zigzag")) << read("zig-zag:8");
  EXPECT_TRUE(read("zigzag").contains("ranks must stand behind")) << read("zigzag");
  EXPECT_TRUE(read("zigzag:0").contains("1 to 65536"));
  EXPECT_TRUE(read("zigzag:many").contains("must be a number"));
  EXPECT_TRUE(read("ring+heads:8:heads=3").contains("must divide"));
  EXPECT_TRUE(read("round_robin:8:block=0").contains("1 token or more"));
  EXPECT_TRUE(read("zigzag:8:engine=spaceship").contains("engine must be one"));
  EXPECT_TRUE(read("zigzag:8:speed=9").contains("an option must be"));
  EXPECT_TRUE(read("zigzag:8:by=pigeon").contains("by must be"));
  EXPECT_TRUE(read("--tensor-parallel-size 8").contains("share a text out"));
  EXPECT_TRUE(read("--context-parallel-size eight").contains("must be a number"));
}

struct Job {
  std::string_view text, layout;
};
constexpr Job jobs[] = {
    // Megatron-LM.
    {"torchrun pretrain_gpt.py --context-parallel-size 8 --seq-length 131072",
     "zigzag:8:by=ring:engine=megatron-core"},
    {"--context-parallel-size 8 --cp-comm-type a2a", "ulysses:8:order=zigzag:engine=megatron-core"},
    {"--context-parallel-size 8 --cp-comm-type allgather",
     "zigzag:8:by=gather:engine=megatron-core"},
    {"--context-parallel-size 8 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 4",
     "ring+heads:8:heads=2:engine=megatron-core"},
    {"--context-parallel-size 16 --cp-partition-mode contiguous",
     "contiguous:16:by=ring:engine=megatron-core"},
    // slime and miles.
    {"python train.py --rollout-batch-size 32 --context-parallel-size 2",
     "zigzag:2:by=ring:engine=slime"},
    {"--context-parallel-size 2 --allgather-cp", "contiguous:2:by=gather:engine=slime"},
    // verl: FSDP's Ulysses, and Megatron's.
    {"python -m verl.trainer.main_ppo actor_rollout_ref.actor.ulysses_sequence_parallel_size=4",
     "ulysses:4:engine=verl"},
    {"python -m verl.trainer.main_ppo "
     "actor_rollout_ref.actor.megatron.context_parallel_size=4",
     "zigzag:4:by=ring:engine=verl"},
    // vLLM.
    {"vllm serve m --decode-context-parallel-size 4 --cp-kv-cache-interleave-size 64",
     "decode:4:block=64:engine=vllm"},
    {"vllm serve m --tensor-parallel-size 8 -dcp 8", "decode:8:engine=vllm"},
    {"vllm serve m --prefill-context-parallel-size 2", "zigzag:2:by=gather:engine=vllm"},
    // SGLang, before and since --cp-strategy.
    {"python -m sglang.launch_server --attn-cp-size 8 --enable-nsa-prefill-context-parallel "
     "--nsa-prefill-cp-mode round-robin-split",
     "round_robin:8:by=gather:engine=sglang"},
    {"python -m sglang.launch_server --attn-cp-size 8 --enable-prefill-cp --cp-strategy zigzag",
     "zigzag:8:by=gather:engine=sglang"},
    {"python -m sglang.launch_server --attn-cp-size 8 --dsa-prefill-cp-mode in-seq-split",
     "zigzag:8:by=gather:engine=sglang"},
    {"python -m sglang.launch_server --dcp-size 4", "decode:4:engine=sglang"},
    // torchtitan, by flags and TOML.
    {"torchrun -m torchtitan.train --parallelism.context_parallel_degree 8",
     "zigzag:8:by=gather:engine=torch"},
    {"[training]\nseq_len = 131072\n[parallelism]\ncontext_parallel_degree = 8\n"
     "context_parallel_load_balancer = \"ptrr\"\n",
     "balanced:8:by=gather:engine=torch"},
    {"[parallelism]\ncontext_parallel_degree = 8\ncontext_parallel_rotate_method = \"alltoall\"\n",
     "zigzag:8:by=ring:engine=torch"},
    // accelerate and TRL.
    {"parallelism_config:\n  parallelism_config_cp_size: 2  # ranks\n  parallelism_config_tp_size: "
     "1\n",
     "zigzag:2:by=gather:engine=accelerate"},
    {"accelerate launch --parallelism_config_sp_size 4 train.py", "ulysses:4:engine=deepspeed"},
    // DeepSpeed's JSON.
    {"{\n  \"train_batch_size\": 8,\n  \"sequence_parallel_size\": 4\n}\n",
     "ulysses:4:engine=deepspeed"},
    // axolotl, 360-LLaMA-Factory, OpenRLHF.
    {"base_model: x\nsequence_len: 8192\ncontext_parallel_size: 4\nring_attn_func: batch_zigzag\n",
     "zigzag:4:by=ring:engine=ring-flash-attention"},
    {"base_model: x\nsequence_len: 8192\ncontext_parallel_size: 4\n",
     "contiguous:4:by=gather:engine=ring-flash-attention"},
    {"cutoff_len: 131072\nsequence_parallel_size: 8\nsequence_parallel_mode: zigzag-ring\n",
     "zigzag:8:by=ring:engine=ring-flash-attention"},
    {"openrlhf.cli.train_sft --ring_attn_size 4 --ring_head_stride 2",
     "contiguous:4:by=gather:engine=ring-flash-attention"},
    // NeMo-RL.
    {"policy:\n  dtensor_cfg:\n    context_parallel_size: 4\n",
     "zigzag:4:by=gather:engine=nemo-rl"},
};

TEST(ParallelWords, OfJobsAreReadAsTheirProgramsMeanThem) {
  for (const Job& job : jobs) EXPECT_EQ(read(job.text), job.layout) << job.text;
}

TEST(ParallelWords, SayWhatTheyWereReadFrom) {
  const auto one = read_sharding("--context-parallel-size 8 --cp-comm-type a2a");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->said, (std::vector<std::string>{"context_parallel_size 8", "cp_comm_type a2a"}));
  EXPECT_TRUE(shardings_of("--context-parallel-size 1")->empty());
  EXPECT_TRUE(shardings_of("vllm serve m --dp-size 4")->empty());
  EXPECT_EQ(shardings_of("vllm serve m -dcp 2 --prefill-context-parallel-size 2")->size(), 2u);
}

// --- the doctor ----------------------------------------------------------------------------------

Diagnosis diagnosed(std::string_view model, std::string text) {
  const auto out = diagnose({model_exhibit(std::string(model), read_model(model).value()),
                             text_exhibit("job", std::move(text))});
  EXPECT_TRUE(out) << out.error().message();
  return *out;
}

const Diagnosed* find(const Diagnosis& said, std::string_view code) {
  const auto at =
      std::ranges::find(said.findings, code, [](const Diagnosed& one) { return one.finding.code; });
  return at == said.findings.end() ? nullptr : &*at;
}

TEST(ParallelWords, TheDoctorJudgesALinesLayout) {
  const Diagnosis refused = diagnosed("gemma-3-4b",
                                      "torchrun pretrain_gpt.py --context-parallel-size 8 "
                                      "--seq-length 32768 --rotary-base 1000000");
  ASSERT_TRUE(find(refused, "cp_window_refused"));
  EXPECT_EQ(find(refused, "cp_window_refused")->engine, "megatron-core");
  const Diagnosis titan = diagnosed("llama-3.1-8b",
                                    "[training]\nseq_len = 131072\n[parallelism]\n"
                                    "context_parallel_degree = 8\n");
  ASSERT_TRUE(find(titan, "cp_survives"));
  const Diagnosis uneven = diagnosed(
      "llama-3.1-8b", "torchrun --nproc_per_node 12 train.py --parallelism_config_sp_size 12");
  ASSERT_TRUE(find(uneven, "cp_heads"));
  EXPECT_EQ(find(uneven, "cp_heads")->finding.severity, Severity::error);
}

}  // namespace
}  // namespace posenc::layout
