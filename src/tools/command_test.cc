// What command lines of engines make of a model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "posenc/tools.h"
#include "src/tools/command_line.h"

namespace posenc {
namespace {

Model bundled(const char* name) {
  const Expected<Model> model = read_model(name);
  EXPECT_TRUE(model);
  return model.value_or(Model{});
}

CommandReading by(const char* name, const std::string& command, std::string_view version = {}) {
  const auto read = read_command(bundled(name), command, version);
  EXPECT_TRUE(read) << read.error().message();
  return read.value_or(CommandReading{});
}

std::string refusal(const char* name, const std::string& command) {
  const auto read = read_command(bundled(name), command);
  return read ? "" : read.error().message();
}

const Rope& first_rope(const CommandReading& read) {
  return std::get<Rope>(read.reading.model.groups.at(0).schemes.at(0));
}

bool finds(const CommandReading& read, std::string_view code) {
  return std::ranges::find(read.findings, code, &Finding::code) != read.findings.end();
}

TEST(CommandLine, XinferenceHandsItsFlagsToItsEngine) {
  const auto line = detail::read_command_line(
      "xinference launch --model-engine vLLM --model-name qwen2.5-instruct --max_model_len 65536");
  ASSERT_TRUE(line) << line.error().message();
  EXPECT_EQ(line->engine, "vllm");
  ASSERT_TRUE(line->find("--max-model-len"));
  EXPECT_EQ(line->find("--max-model-len")->value, "65536");
  EXPECT_FALSE(detail::read_command_line("xinference launch --model-engine transformers -n m"));
}

TEST(CommandLine, ASwitchThatAVariableTurnsOffIsNone) {
  const auto unified = [](const char* value) {
    const auto line = detail::read_command_line("LLAMA_ARG_KV_UNIFIED=" + std::string(value) +
                                                " llama-server -m m.gguf -c 8192 -np 2");
    return line && line->find("--kv-unified") != nullptr;
  };
  EXPECT_TRUE(unified("1"));
  EXPECT_FALSE(unified("false"));
}

TEST(EngineCommand, YarnOfLlamaServer) {
  const auto read = by("llama-2-7b",
                       "llama-server -m x.gguf --rope-scaling yarn --rope-scale 4 "
                       "--yarn-orig-ctx 4096 -ngl 99 -c 16384");
  EXPECT_EQ(first_rope(read).scaling,
            Scaling(Yarn{.factor = 4, .original_max_position_embeddings = 4096}));
  EXPECT_EQ(read.length, 16384);
  EXPECT_EQ(read.reading.engine.name, "llama.cpp");
  EXPECT_EQ(read.findings.size(), 1);
  EXPECT_TRUE(finds(read, "version_needed"));
}

TEST(EngineCommand, OverridesReachALanguagePartByEitherName) {
  const Expected<Model> internvl = read_config(
      R"({"model_type": "internvl_chat", "llm_config": {"model_type": "qwen2", "hidden_size": 3584,
          "num_hidden_layers": 2, "num_attention_heads": 28, "num_key_value_heads": 4,
          "max_position_embeddings": 32768, "rope_theta": 1000000.0}})");
  ASSERT_TRUE(internvl) << internvl.error().message();
  for (const char* part : {"llm_config", "text_config"}) {
    const auto read =
        read_command(*internvl,
                     "vllm serve M --hf-overrides '{\"" + std::string(part) +
                         "\":{\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1000000.0,"
                         "\"factor\":4.0,\"original_max_position_embeddings\":32768}}}'",
                     "");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_FALSE(finds(*read, "override_unread")) << part;
    EXPECT_TRUE(std::holds_alternative<Yarn>(first_rope(*read).scaling)) << part;
  }
}

TEST(EngineCommand, ABaseThatStandsInTheFilesWayIsLeftOut) {
  const auto found = command_differences(bundled("mistral-7b-v0.3"),
                                         "koboldcpp --model m.gguf --ropeconfig 1.0 10000", 0, "");
  ASSERT_TRUE(found);
  const auto base = std::ranges::find(*found, "rope_theta", &Finding::code);
  ASSERT_NE(base, found->end());
  EXPECT_TRUE(base->cure.starts_with("leave --ropeconfig out")) << base->cure;
}

TEST(EngineCommand, AFrequencyScaleIsOneOverTheFactor) {
  const auto read = by("llama-2-7b", "llama-cli --rope-freq-scale 0.25");
  EXPECT_EQ(first_rope(read).scaling, Scaling(Linear{.factor = 4}));
}

TEST(EngineCommand, ScalingNoneDropsTheFilesFactor) {
  const auto read = by("qwen2.5-7b-yarn4", "llama-cli --rope-scaling none");
  EXPECT_EQ(first_rope(read).scaling, Scaling(Unscaled{}));
}

TEST(EngineCommand, FlagsOfLlamaCppMayHaveUnderscores) {
  EXPECT_EQ(first_rope(by("llama-2-7b", "llama-cli --rope_freq_base 1e6")).rope_theta, 1e6);
}

TEST(EngineCommand, AZeroStandsForTheFilesOwn) {
  const auto read = by("llama-3.1-8b", "llama-server --rope-freq-base 0 --rope-freq-scale 0 -c 0");
  EXPECT_EQ(first_rope(read), std::get<Rope>(bundled("llama-3.1-8b").groups[0].schemes[0]));
}

TEST(EngineCommand, ARopeFreqsTensorStaysUnderAnotherBase) {
  const auto read = by("llama-3.1-8b", "llama-server --rope-freq-base 1000000");
  const Expected<Plan> file = compile(bundled("llama-3.1-8b").groups[0]),
                       run = compile(read.reading.model.groups[0]);
  ASSERT_TRUE(file && run);
  const double slowest_divisor = 8;
  EXPECT_NEAR(run->rotate->at(0, 0, 63) * slowest_divisor, std::pow(1e6, -126.0 / 128), 1e-18);
  EXPECT_EQ(run->rotate->at(0, 0, 0), file->rotate->at(0, 0, 0));
}

TEST(EngineCommand, FlagsDoNotReachLayersWithAWindow) {
  const Model model = bundled("gpt-oss-20b");
  const auto read = by("gpt-oss-20b", "llama-server --rope-freq-base 500000");
  for (std::size_t g = 0; g < model.groups.size(); ++g) {
    const Rope& rope = std::get<Rope>(read.reading.model.groups[g].schemes[0]);
    EXPECT_EQ(rope.rope_theta, model.groups[g].window ? 150000 : 500000);
  }
  EXPECT_TRUE(finds(read, "window_untouched"));
}

TEST(EngineCommand, OverriddenKeysCountBelowFlags) {
  const auto read =
      by("llama-2-7b",
         "llama-server --override-kv llama.rope.scaling.type=str:linear,"
         "llama.rope.scaling.factor=float:8,llama.rope.freq_base=float:20000 --rope-scale 2");
  EXPECT_EQ(first_rope(read).scaling, Scaling(Linear{.factor = 2}));
  EXPECT_EQ(first_rope(read).rope_theta, 20000);
}

TEST(EngineCommand, AnOverriddenAttnFactorMultipliesYarnsOwn) {
  const auto read =
      by("qwen2.5-7b-yarn4", "llama-cli --override-kv qwen2.rope.scaling.attn_factor=float:0.5");
  const Expected<Plan> plan = compile(read.reading.model.groups[0]);
  ASSERT_TRUE(plan);
  EXPECT_NEAR(plan->rotate->amplitude, 0.5 * (0.1 * std::log(4.0) + 1), 1e-12);
}

TEST(EngineCommand, AnAttnFactorUnderYarnIsToldToBeComputedAnew) {
  EXPECT_TRUE(finds(by("qwen2.5-7b-yarn4", "llama-cli --yarn-attn-factor 0.9"), "flag_unread"));
}

TEST(EngineCommand, AnOverrideOfVllmReplacesTheBaseToo) {
  const auto read = by("qwen2.5-7b-yarn4",
                       "vllm serve M --hf-overrides '{\"rope_parameters\": {\"rope_type\": "
                       "\"linear\", \"factor\": 4.0}}' --max-model-len=64K");
  EXPECT_EQ(first_rope(read).rope_theta, 10000);
  EXPECT_EQ(read.length, 65536);
  EXPECT_TRUE(finds(read, "theta_missing"));
}

constexpr const char* sglang_without_a_base =
    "python -m sglang.launch_server --json-model-override-args "
    "'{\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4.0}}'";

TEST(EngineCommand, SglangMergesAScalingWithTheFiles) {
  const auto read = by("qwen2.5-7b-yarn4", sglang_without_a_base);
  EXPECT_FALSE(finds(read, "theta_missing"));
  EXPECT_EQ(first_rope(read).rope_theta, 1e6);
}

TEST(EngineCommand, OlderSglangEndsWithoutABase) {
  const auto read = by("qwen2.5-7b-yarn4", sglang_without_a_base, "0.5.10");
  const auto at = std::ranges::find(read.findings, "theta_missing", &Finding::code);
  ASSERT_NE(at, read.findings.end());
  EXPECT_TRUE(at->message.contains("has no rope_theta")) << at->message;
}

TEST(EngineCommand, VllmTakesAWholePromptInOneStepWithoutChunks) {
  EXPECT_TRUE(finds(by("llama-3.1-8b",
                       "vllm serve M --max-model-len 8192 --max-num-batched-tokens 4096 "
                       "--no-enable-chunked-prefill"),
                    "context_refused"));
  EXPECT_FALSE(
      finds(by("llama-3.1-8b", "vllm serve M --max-model-len 8192 --max-num-batched-tokens 4096"),
            "context_refused"));
}

TEST(EngineCommand, FlagsThatVllmNoLongerHasAreFindings) {
  const auto read = by("llama-2-7b",
                       "python -m vllm.entrypoints.openai.api_server --model M --rope-scaling "
                       "'{\"type\": \"linear\", \"factor\": 2.0}' --rope-theta 50000");
  EXPECT_TRUE(finds(read, "flag_removed"));
  EXPECT_EQ(first_rope(read).scaling, Scaling(Linear{.factor = 2}));
  EXPECT_EQ(first_rope(read).rope_theta, 50000);
}

TEST(EngineCommand, AnOverrideBesideTextConfigIsNotRead) {
  const auto read = by("gemma-3-4b",
                       "vllm serve M --hf-overrides '{\"rope_parameters\": {\"rope_type\": "
                       "\"linear\", \"factor\": 4.0, \"rope_theta\": 1e6}}'");
  EXPECT_TRUE(finds(read, "override_unread"));
}

TEST(EngineCommand, QuotesBackslashesCommentsAndTheNextCommandAreTheShells) {
  const auto read = by("llama-2-7b",
                       "# the server\nexport X=1\n./llama-server -m \"a b.gguf\" \\\n "
                       "--rope-scale 2 && llama-server --rope-scale 3\n");
  EXPECT_EQ(first_rope(read).scaling, Scaling(Linear{.factor = 2}));
}

TEST(EngineCommand, AMisspeltFlagNamesTheNearest) {
  EXPECT_TRUE(refusal("llama-2-7b", "llama-server --rope-scal 4").contains("--rope-scale'?"));
  EXPECT_TRUE(refusal("llama-2-7b", "llama-server --yarn-original-context 4").contains("--yarn"));
  EXPECT_TRUE(refusal("llama-2-7b", "vllm serve M --hf-override '{}'").contains("--hf-overrides"));
  EXPECT_TRUE(refusal("llama-2-7b", "vllm serve M --rope-freq-base 4")
                  .contains("must be one that vllm has"));
}

TEST(EngineCommand, ValuesAreToldWithTheirFlag) {
  EXPECT_TRUE(refusal("llama-2-7b", "llama-cli --rope-scaling dynamic").contains("linear or yarn"));
  EXPECT_TRUE(refusal("llama-2-7b", "llama-cli --rope-scale four").contains("got four"));
  EXPECT_TRUE(refusal("llama-2-7b", "llama-cli -c 16k").contains("must be a number"));
  EXPECT_TRUE(refusal("llama-2-7b", "llama-cli --rope-scale=4").contains("behind a blank"));
  EXPECT_TRUE(refusal("llama-2-7b", "llama-cli --rope-scale").contains("must have a value"));
  EXPECT_TRUE(refusal("llama-2-7b", "vllm serve M --hf-overrides {a:1}").contains("single quotes"));
  EXPECT_TRUE(refusal("llama-2-7b", "llama-cli --override-kv llama.rope.freq_base=int:4")
                  .contains("the type float"));
  EXPECT_TRUE(refusal("llama-2-7b", "llama-cli --override-kv llama.context_length=16384")
                  .contains("llama.context_length=int:16384"));
  EXPECT_TRUE(refusal("llama-2-7b", "vllm serve 'M").contains("a quote must end"));
  EXPECT_TRUE(refusal("llama-2-7b", "cp m.gguf n.gguf").contains("name an engine"));
}

TEST(EngineCommand, KeysOfAnOverrideThatAreNearlyKnownAreRefused) {
  EXPECT_TRUE(refusal("llama-2-7b",
                      "vllm serve M --hf-overrides '{\"rope_parameter\": {\"rope_type\": \"x\"}}'")
                  .contains("did you mean 'rope_parameters'?"));
  EXPECT_TRUE(
      refusal("llama-2-7b",
              "vllm serve M --hf-overrides '{\"rope_parameters\": {\"rope_type\": \"yarn\", "
              "\"original_max_position_embedding\": 4096}}'")
          .contains("original_max_position_embeddings"));
}

TEST(EngineCommand, MegatronHasDefaultsOfItsOwnAndReadsNoFile) {
  const auto read = by("llama-3.1-8b", "torchrun pretrain_gpt.py --position-embedding-type rope");
  EXPECT_EQ(first_rope(read).rope_theta, 10000);
  EXPECT_EQ(first_rope(read).scaling, Scaling(Unscaled{}));
}

TEST(EngineCommand, SwitchesOfMegatronTakeNoValue) {
  const auto read = by("llama-3.1-8b",
                       "pretrain_gpt.py --use-rope-scaling --rotary-interleaved "
                       "--position-embedding-type rope --rotary-base 500000");
  EXPECT_EQ(first_rope(read).pairing, Pairing::interleaved);
  EXPECT_EQ(first_rope(read).scaling,
            Scaling(Llama3{.factor = 8, .original_max_position_embeddings = 8192}));
}

TEST(EngineCommand, MegatronAddsLearnedVectorsUnlessItIsTold) {
  EXPECT_TRUE(
      finds(by("llama-3.1-8b", "pretrain_gpt.py --rotary-base 500000"), "position_embedding_type"));
}

TEST(EngineCommand, ArgumentsOfMegatronMustBeNumbersThatMakeSense) {
  EXPECT_TRUE(
      refusal("llama-2-7b", "pretrain_gpt.py --position-embedding-type rope --rotary-percent 1.5")
          .contains("--rotary-percent must be at most 1"));
  EXPECT_TRUE(
      refusal("llama-2-7b", "pretrain_gpt.py --position-embedding-type rope --rotary-base 0")
          .contains("--rotary-base must be above 1"));
}

TEST(EngineCommand, LengthsOfTensorRtLlmAndLmdeploy) {
  EXPECT_EQ(by("llama-2-7b", "trtllm-serve m --max_seq_len 8192").length, 8192);
  EXPECT_EQ(by("llama-2-7b", "lmdeploy serve api_server m --session-len 8192").length, 8192);
}

TEST(EngineCommand, TrtllmBuildAddsPromptAndAnswer) {
  const char* line = "trtllm-build --checkpoint_dir c --max_input_len 4096 --max_output_len 2048";
  EXPECT_EQ(by("llama-2-7b", line).length, 6144);
}

TEST(EngineCommand, ACommaBehindANumberIsOfTheSentence) {
  EXPECT_EQ(by("llama-2-7b", "koboldcpp.py --contextsize 4096, works fine").length, 4096);
}

TEST(EngineCommand, DifferencesAreThoseOfTheRotation) {
  const auto findings =
      command_differences(bundled("llama-2-7b"), "llama-server --rope-freq-base 1000000 -c 4096");
  ASSERT_TRUE(findings) << findings.error().message();
  EXPECT_EQ(findings->at(0).code, "rope_theta");
  EXPECT_EQ(findings->at(0).found, "1000000");
}

TEST(EngineCommand, NestedOverridesOfVllmMerge) {
  const auto read = by("gemma-3-4b",
                       "vllm serve M --hf-overrides '{\"text_config\": {\"rope_parameters\": "
                       "{\"rope_type\": \"linear\", \"factor\": 4.0}}}'");
  EXPECT_FALSE(finds(read, "theta_missing"));
}

TEST(EngineCommand, SlotsShareTheContext) {
  const auto read = by("llama-2-7b", "llama-server -m m.gguf -c 16384 -np 4");
  EXPECT_EQ(read.length, 4096);
  EXPECT_TRUE(finds(read, "slots"));
  EXPECT_FALSE(finds(read, "beyond_context"));
  EXPECT_EQ(by("llama-2-7b", "llama-server -c 4096 -np 4 --kv-unified").length, 4096);
}

TEST(EngineCommand, ASlotOfSharedCellsEndsWhereTheModelDoes) {
  const auto read = by("llama-2-7b", "llama-server -c 8192 -np 2 --kv-unified");
  EXPECT_EQ(read.length, 4096);
  EXPECT_TRUE(finds(read, "slots"));
  EXPECT_FALSE(finds(read, "beyond_context"));
}

constexpr const char* sglang_within_the_text =
    "python -m sglang.launch_server --model-path M --json-model-override-args "
    "'{\"text_config\": {\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 2.0, "
    "\"original_max_position_embeddings\": 262144}}}'";

TEST(EngineCommand, SglangReplacesAScalingWithinTheText) {
  const auto read = by("qwen3-vl-8b-instruct", sglang_within_the_text);
  EXPECT_FALSE(finds(read, "override_refused"));
  EXPECT_TRUE(finds(read, "theta_missing"));
  EXPECT_TRUE(finds(read, "mrope_lost"));
}

TEST(EngineCommand, OlderSglangReplacesTheWholeText) {
  const auto read = by("qwen3-vl-8b-instruct", sglang_within_the_text, "0.5.10");
  EXPECT_TRUE(finds(read, "override_refused"));
  EXPECT_FALSE(finds(read, "rope_scaling"));
}

TEST(EngineCommand, SelfExtendReachesFurther) {
  const auto read = by("llama-2-7b", "llama-cli -c 16384 --grp-attn-n 4 --grp-attn-w 1024");
  const auto at = std::ranges::find(read.findings, "beyond_context", &Finding::code);
  ASSERT_NE(at, read.findings.end());
  EXPECT_EQ(at->expected, "13,312");  // (4096 − 1024)·4 + 1024
  EXPECT_FALSE(finds(by("llama-2-7b", "llama-cli -c 13312 -gan 4 -gaw 1024"), "beyond_context"));
  EXPECT_TRUE(refusal("llama-2-7b", "llama-cli -gan 3 -gaw 1024").contains("a multiple"));
}

TEST(EngineCommand, ALinearScalingOfLlamaServerIsCapped) {
  EXPECT_TRUE(finds(by("llama-2-7b", "llama-server -c 16384 --rope-scale 4"), "context_capped"));
  EXPECT_FALSE(finds(by("llama-2-7b", "llama-cli -c 16384 --rope-scale 4"), "context_capped"));
}

TEST(EngineCommand, DottedOverridesMakeOneObject) {
  const auto read = by("qwen3-8b",
                       "vllm serve M --hf-overrides.rope_parameters.rope_type yarn "
                       "--hf-overrides.rope_parameters.factor=4.0 "
                       "--hf-overrides '{\"rope_parameters\": {\"rope_theta\": 1e6, "
                       "\"original_max_position_embeddings\": 32768}}'");
  const auto& rope = std::get<Rope>(read.reading.model.groups.front().schemes.front());
  EXPECT_EQ(std::get<Yarn>(rope.scaling).factor, 4);
  EXPECT_EQ(rope.rope_theta, 1e6);
}

TEST(EngineCommand, ADottedOverrideWithoutAValueIsRefused) {
  EXPECT_TRUE(refusal("qwen3-8b", "vllm serve M --hf-overrides.rope_parameters.factor")
                  .contains("must have a value"));
}

TEST(EngineCommand, ADraftThatIsShorterIsTold) {
  EXPECT_TRUE(finds(by("llama-2-7b", "llama-server -c 4096 -md d.gguf -cd 2048"), "draft_length"));
  EXPECT_TRUE(finds(by("qwen3-8b",
                       "vllm serve M --speculative-config '{\"method\": \"mtp\"}' --hf-overrides "
                       "'{\"max_position_embeddings\": 131072}'"),
                    "draft_overrides"));
  EXPECT_FALSE(finds(by("qwen3-8b",
                        "vllm serve M --speculative-config '{\"method\": \"ngram\"}' "
                        "--hf-overrides '{\"max_position_embeddings\": 131072}'"),
                     "draft_overrides"));
}

TEST(EngineCommand, MegatronsYarnRotatesWholeHeads) {
  const auto read = read_command(
      *read_config(R"({"model_type": "glm4", "hidden_size": 4096, "num_attention_heads": 32,
          "num_key_value_heads": 2, "head_dim": 128, "num_hidden_layers": 2,
          "partial_rotary_factor": 0.5, "rope_theta": 10000.0, "max_position_embeddings": 32768})"),
      "pretrain_gpt.py --position-embedding-type yarn --rotary-percent 0.5 --rotary-base 10000 "
      "--yarn-rotary-scaling-factor 4 --yarn-original-max-position-embeddings 32768");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(std::ranges::count(read->findings, "flag_unread", &Finding::code), 1);
  const auto plan = compile(read->reading.model.groups.front());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rotate->slice.rotary_dim, 128);
}

TEST(EngineCommand, MegatronDropsItsScalingFactor) {
  const auto read = by("llama-3.2-3b",
                       "pretrain_gpt.py --position-embedding-type rope --rotary-base 500000 "
                       "--use-rope-scaling --rope-scaling-factor 32");
  EXPECT_TRUE(finds(read, "flag_dropped"));
  EXPECT_EQ(first_rope(read).scaling,
            Scaling(Llama3{.factor = 8, .original_max_position_embeddings = 8192}));
}

TEST(EngineCommand, TgiReadsDynamicAndPassesLinearOver) {
  EXPECT_FALSE(
      finds(by("llama-2-7b", "text-generation-launcher --rope-scaling dynamic --rope-factor 2.0"),
            "flag_unread"));
  EXPECT_TRUE(
      finds(by("llama-2-7b", "text-generation-launcher --rope-scaling linear --rope-factor 2.0"),
            "flag_unread"));
}

TEST(EngineCommand, AScalingThatIsAskedForHasNoCureThatUndoesIt) {
  const auto findings = command_differences(
      bundled("llama-2-7b"),
      "llama-cli --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096 -c 16384");
  ASSERT_TRUE(findings);
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ(findings->at(0).code, "rope_scaling");
  EXPECT_EQ(findings->at(0).severity, Severity::note);
  EXPECT_EQ(findings->at(0).cure, "");
  EXPECT_TRUE(findings->at(0).message.contains("1.13863")) << findings->at(0).message;
}

const Finding* found_by(const char* model, const std::string& command, std::string_view code,
                        std::string_view version = {}) {
  static std::vector<Finding> kept;
  auto found = command_differences(bundled(model), command, 0, version);
  EXPECT_TRUE(found) << found.error().message();
  kept = found.value_or(std::vector<Finding>{});
  const auto at = std::ranges::find(kept, code, &Finding::code);
  return at == kept.end() ? nullptr : &*at;
}

TEST(EngineCommand, AnOverrideThatLosesTheAxesOfPicturesIsTold) {
  const std::string yarn = "\"type\":\"yarn\",\"factor\":2.0";
  const auto line = [&](const std::string& more) {
    return "vllm serve Q --hf-overrides '{\"rope_scaling\":{" + yarn + more + "}}'";
  };
  EXPECT_NE(found_by("qwen2.5-vl-7b", line(""), "mrope_lost"), nullptr);
  EXPECT_EQ(found_by("qwen2.5-vl-7b", line(",\"mrope_section\":[16,24,24]"), "mrope_lost"),
            nullptr);
}

TEST(EngineCommand, UnderTransformers4AnOverrideOfTheScalingKeepsTheBase) {
  const auto model = read_model("qwen3-8b");
  ASSERT_TRUE(model);
  const std::string line =
      "vllm serve Q --hf-overrides '{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,"
      "\"original_max_position_embeddings\":32768}}'";
  const auto loses = [&](std::string_view version) {
    const auto found = command_differences(*model, line, 0, version);
    return found && std::ranges::find(*found, "theta_missing", &Finding::code) != found->end();
  };
  EXPECT_FALSE(loses("0.8.5"));
  EXPECT_TRUE(loses("0.24.0"));
}

TEST(EngineCommand, NoneMakesAFactorBesideItVoid) {
  EXPECT_NE(found_by("qwen2.5-7b-instruct",
                     "llama-server -c 131072 --rope-scaling none --rope-scale 4", "flag_unread"),
            nullptr);
}

TEST(EngineCommand, AFactorForItsInverseIsAnError) {
  const Finding* found = found_by("qwen2.5-7b-instruct",
                                  "llama-server -c 131072 --rope-scaling yarn --rope-freq-scale 4",
                                  "factor_below_one");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::error);
  EXPECT_TRUE(found->cure.starts_with("--rope-freq-scale 0.25")) << found->cure;
}

TEST(EngineCommand, ADynamicScalingReachesAsFarAsItGrows) {
  const char* line = "lmdeploy serve api_server m --rope-scaling-factor 2.5 --session-len 80000";
  EXPECT_EQ(found_by("internlm2.5-7b", line, "beyond_context", "0.13.0"), nullptr);
}

TEST(EngineCommand, TgiKeepsTheBaseBesideItsScaling) {
  EXPECT_EQ(found_by("mistral-7b-instruct-v0.2",
                     "text-generation-launcher --model-id M --rope-scaling dynamic --rope-factor 2",
                     "rope_theta"),
            nullptr);
}

TEST(EngineCommand, LmdeploysPytorchBackendScalesNothing) {
  const char* line = "lmdeploy serve api_server M --backend pytorch --rope-scaling-factor 4.0";
  EXPECT_NE(found_by("qwen3-8b", line, "flag_unread", "0.10.2"), nullptr);
  EXPECT_EQ(found_by("qwen3-8b", line, "rope_scaling", "0.10.2"), nullptr);
}

TEST(EngineCommand, LmdeployReadsItsFactorNoMore) {
  const char* line = "lmdeploy serve api_server M --rope-scaling-factor 2.0";
  EXPECT_NE(found_by("qwen3-8b", line, "flag_unread"), nullptr);
  EXPECT_NE(found_by("qwen3-8b", line, "flag_unread", "0.14.0"), nullptr);
  EXPECT_EQ(found_by("qwen3-8b", line, "flag_unread", "0.13.0"), nullptr);
}

TEST(EngineCommand, OldLlamaServersCapYarnToo) {
  EXPECT_TRUE(finds(by("qwen3-8b",
                       "llama-server -c 131072 --rope-scaling yarn --rope-scale 4 "
                       "--yarn-orig-ctx 32768"),
                    "version_needed"));
  EXPECT_FALSE(finds(by("qwen3-8b",
                        "llama-cli -c 131072 --rope-scaling yarn --rope-scale 4 "
                        "--yarn-orig-ctx 32768"),
                     "version_needed"));
}

constexpr const char* megatron_llama =
    "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--position-embedding-type rope --rotary-base 500000 --kv-channels 128 ";

TEST(EngineCommand, MegatronLosesAScalingThatNoArgumentSays) {
  const Finding* found = found_by("llama-3.1-8b", megatron_llama, "rope_scaling");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::error);
  EXPECT_TRUE(found->cure.contains("translate")) << found->cure;
}

// DeepSeek's training examples write these; without them both factors are Megatron's own.
TEST(EngineCommand, MegatronsLatentAttentionHasArgumentsOfItsOwn) {
  const std::string line =
      "pretrain_gpt.py --multi-latent-attention --rotary-base 10000 --rotary-scaling-factor 40 ";
  EXPECT_EQ(found_by("deepseek-v3", line + "--mscale 1.0 --mscale-all-dim 1.0", "rope_scaling"),
            nullptr);
  const Finding* lost = found_by("deepseek-v3", line, "logits");
  ASSERT_NE(lost, nullptr);
  EXPECT_EQ(lost->severity, Severity::error);
  const Finding* none = found_by(
      "deepseek-v3", "pretrain_gpt.py --multi-latent-attention --rope-type rope", "rope_scaling");
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(none->found, "none");
}

TEST(EngineCommand, AFlagOfAnotherScalingHasOneCure) {
  const char* const line =
      "pretrain_gpt.py --max-position-embeddings 131072 --use-rotary-position-embeddings "
      "--rotary-base 500000 --use-rope-scaling --rotary-scaling-factor 32.0 --seq-length 8192";
  ASSERT_NE(found_by("llama-3.2-3b", line, "flag_unread"), nullptr);
  const Finding* scaling = found_by("llama-3.2-3b", line, "rope_scaling");
  ASSERT_NE(scaling, nullptr);
  EXPECT_EQ(scaling->cure, "");
}

TEST(EngineCommand, ALengthThatNothingReachesIsNoContext) {
  const Finding* beyond =
      found_by("llama-2-7b", "llama-server -c 65536 --override-kv llama.context_length=int:65536",
               "beyond_context");
  ASSERT_NE(beyond, nullptr);
  EXPECT_EQ(beyond->expected, "4,096");
  EXPECT_EQ(found_by("llama-2-7b",
                     "llama-server -c 16384 --override-kv llama.context_length=int:16384 "
                     "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096",
                     "beyond_context"),
            nullptr);
}

TEST(EngineCommand, LatentAttentionWithoutItsYarnNamesTheFlag) {
  const char* const line =
      "pretrain_gpt.py --multi-latent-attention --rope-type rope --rotary-base 10000 "
      "--rotary-scaling-factor 40 --mscale 1.0 --mscale-all-dim 1.0";
  const Finding* dropped = found_by("deepseek-v3", line, "flag_dropped");
  ASSERT_NE(dropped, nullptr);
  EXPECT_TRUE(dropped->cure.starts_with("--rope-type yarn"));
  EXPECT_EQ(found_by("deepseek-v3", line, "logits"), nullptr);
}

TEST(EngineCommand, ARaisedPromiseStretchesNothing) {
  const Finding* beyond = found_by("llama-2-7b",
                                   "vllm serve L --max-model-len 32768 --hf-overrides "
                                   "'{\"max_position_embeddings\":32768}'",
                                   "beyond_context");
  ASSERT_NE(beyond, nullptr);
  EXPECT_EQ(beyond->expected, "4,096");
}

TEST(EngineCommand, ALoweredContextCapsTheServer) {
  const Finding* capped =
      found_by("llama-2-7b", "llama-server -c 4096 --override-kv llama.context_length=int:2048",
               "context_capped");
  ASSERT_NE(capped, nullptr);
  EXPECT_EQ(capped->found, "2,048");
}

TEST(EngineCommand, AnOverriddenContextIsNoTrainedLength) {
  const Finding* trained =
      found_by("llama-2-7b",
               "llama-server -c 16384 --rope-scaling yarn --rope-scale 4 --override-kv "
               "llama.context_length=int:16384",
               "original_defaulted");
  ASSERT_NE(trained, nullptr);
  EXPECT_EQ(trained->severity, Severity::warning);
  EXPECT_EQ(trained->cure, "--yarn-orig-ctx 4096");
}

TEST(EngineCommand, WhatAClassDoesNotReadNoKeyCures) {
  const Model glm = *read_config(R"({"model_type": "glm", "hidden_size": 4096,
      "num_attention_heads": 32, "num_key_value_heads": 2, "num_hidden_layers": 2,
      "head_dim": 128, "partial_rotary_factor": 0.5, "max_position_embeddings": 131072})");
  const auto found = command_differences(glm, "mlx_lm.server --model glm", 0);
  ASSERT_TRUE(found);
  const auto part = std::ranges::find(*found, "rotary_dim", &Finding::code);
  ASSERT_NE(part, found->end());
  EXPECT_TRUE(part->cure.starts_with("no key of the file changes it"));
}

TEST(EngineCommand, OllamaHasNoFlagOfTheContext) {
  for (const char* flag : {"--num-ctx 8192", "--num_ctx=8192", "--ctx-size 8192", "-c 8192"}) {
    const Finding* refused =
        found_by("qwen3-8b", "ollama run qwen3:8b " + std::string(flag), "flag_refused");
    ASSERT_NE(refused, nullptr) << flag;
    EXPECT_TRUE(refused->cure.contains("/set parameter num_ctx 8192")) << refused->cure;
  }
  EXPECT_EQ(found_by("qwen3-8b", "OLLAMA_CONTEXT_LENGTH=8192 ollama serve", "flag_refused"),
            nullptr);
}

TEST(EngineCommand, OneLineOfMegatronMayHaveTwoFaults) {
  const std::string line =
      "pretrain_gpt.py --position-embedding-type rope --rotary-percent 0.5 --rotary-base 10000 "
      "--use-rope-scaling";
  EXPECT_NE(found_by("llama-3.1-8b", line, "rotary_dim"), nullptr);
  const Finding* base = found_by("llama-3.1-8b", line, "rope_theta");
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->found, "10000");
  EXPECT_EQ(found_by("llama-3.1-8b", line, "rope_scaling"), nullptr);
}

TEST(EngineCommand, MegatronDividesBesideLlama3) {
  EXPECT_TRUE(finds(by("llama-3.1-8b",
                       "--position-embedding-type rope --rotary-base 500000 --use-rope-scaling "
                       "--rotary-seq-len-interpolation-factor 4"),
                    "scaled_twice"));
}

// vLLM's _update_nested goes into every dict on the way.
TEST(EngineCommand, AnOverrideWithinTextConfigKeepsWhatItDoesNotName) {
  const char* line =
      "vllm serve M --hf-overrides '{\"text_config\": {\"rope_parameters\": "
      "{\"full_attention\": {\"factor\": 16.0}}}}'";
  EXPECT_FALSE(finds(by("gemma-3-4b", line), "type_missing"));
  const Finding* scaled = found_by("gemma-3-4b", line, "rope_scaling");
  ASSERT_NE(scaled, nullptr);
  EXPECT_EQ(scaled->found, "linear factor 16");
}

TEST(EngineCommand, TheServersImageIsTheServerAndItsTagTheBuild) {
  const auto line = detail::read_command_line(
      "docker run -p 8080:8080 ghcr.io/ggml-org/llama.cpp:server-cuda-b6200 -c 65536 "
      "--rope-scaling linear --rope-scale 2");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->program, "llama-server");
  EXPECT_EQ(line->version, "b6200");
}

TEST(EngineCommand, MegatronsOldScriptKeepsTheDivisorForItself) {
  constexpr const char* line =
      "torchrun pretrain_gpt.py --position-embedding-type rope --seq-length 16384 "
      "--max-position-embeddings 16384 --rotary-seq-len-interpolation-factor 4";
  const auto of_version = [&](const char* version) {
    return *command_differences(*read_model("llama-2-7b"), line, 0, version);
  };
  const auto has = [](const std::vector<Finding>& found, std::string_view code) {
    return std::ranges::find(found, code, &Finding::code) != found.end();
  };
  EXPECT_TRUE(has(of_version("0.16.1"), "flag_dropped"));
  EXPECT_FALSE(has(of_version("0.16.1"), "rope_scaling"));
  EXPECT_FALSE(has(of_version("0.19.0"), "flag_dropped"));
  EXPECT_TRUE(has(of_version("0.19.0"), "rope_scaling"));
  EXPECT_TRUE(has(of_version(""), "version_needed"));
}

TEST(EngineCommand, MegatronStopsWhereTextsAreLongerThanTheModel) {
  EXPECT_TRUE(finds(by("llama-3.1-8b", std::string(megatron_llama) +
                                           "--max-position-embeddings 8192 --seq-length 16384"),
                    "lengths_contradict"));
}

TEST(EngineCommand, MoreProgramsAreRefusedByName) {
  for (const char* line :
       {"mistralrs-server -i plain -m M --max-seq-len 8192",
        "docker run ghcr.io/huggingface/text-embeddings-inference:1.8 --model-id M",
        "python server.py --model M --loader Transformers --max_seq_len 8192"})
    EXPECT_TRUE(refusal("llama-2-7b", line).contains("no profile of")) << line;
}

TEST(EngineCommand, ALargerBaseForALongerTextIsAScalingThatWasAskedFor) {
  const std::string line = "llama-cli -c 8192 --rope-freq-base 26000";
  const Finding* found = found_by("llama-2-7b", line, "rope_theta");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::note);
  EXPECT_TRUE(found->message.contains("NTK-aware scaling by 2.56")) << found->message;
  EXPECT_EQ(found_by("llama-2-7b", line, "beyond_context"), nullptr);
}

TEST(EngineCommand, ALargerBaseReachesAsFarAsItStretches) {
  const Finding* found =
      found_by("llama-2-7b", "llama-cli -c 16384 --rope-freq-base 26000", "beyond_context");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->expected, "10,491");
}

TEST(EngineCommand, LlamaServerCapsALargerBaseToo) {
  EXPECT_TRUE(
      finds(by("llama-2-7b", "llama-server -c 8192 --rope-freq-base 26000"), "context_capped"));
}

TEST(EngineCommand, AValueThatNamesAnEngineIsNoProgram) {
  EXPECT_TRUE(
      refusal("qwen3-8b", "uv run --extra vllm -m trainer.main a=b").contains("name an eng"));
  EXPECT_TRUE(refusal("qwen3-8b", "pip install vllm").contains("name an engine"));
}

TEST(EngineCommand, ACommonFlagOfAnUnknownProgramNamesNoEngine) {
  EXPECT_TRUE(refusal("qwen3-8b", "mytool --rope-scaling yarn").contains("name an engine"));
}

TEST(EngineCommand, AProgramWithoutAProfileIsRefusedByName) {
  EXPECT_TRUE(refusal("deepseek-v3", "ktransformers --cache_lens 1536").contains("KTransformers"));
}

TEST(EngineCommand, LmStudioIsLlamaCppWithItsOwnWords) {
  const auto read = by("qwen3-8b", "lms load qwen3 --context-length 32768");
  EXPECT_EQ(read.reading.engine.name, "llama.cpp");
  EXPECT_EQ(read.length, 32768);
}

TEST(EngineCommand, KoboldcppStretchesTheBaseByItself) {
  EXPECT_NE(found_by("llama-2-7b", "koboldcpp --contextsize 16384", "stretched_by_engine"),
            nullptr);
  const auto read = by("llama-2-7b", "koboldcpp --contextsize 8192 --ropeconfig 0.5 20000");
  const Rope& rope = std::get<Rope>(read.reading.model.groups.front().schemes.front());
  EXPECT_EQ(rope.rope_theta, 20000);
  EXPECT_EQ(std::get<Linear>(rope.scaling).factor, 2);
}

TEST(EngineCommand, OllamaCapsTheContextAtTheFiles) {
  const Finding* capped =
      found_by("qwen3-8b", "OLLAMA_CONTEXT_LENGTH=131072 ollama serve", "context_capped");
  ASSERT_NE(capped, nullptr);
  EXPECT_EQ(capped->found, "40,960");
  EXPECT_NE(found_by("qwen3-8b", "ollama run qwen3:8b", "context_defaulted"), nullptr);
}

TEST(EngineCommand, TabbysAlphaRaisesTheBaseAsNtkDoes) {
  const auto read =
      by("llama-2-7b", "tabbyapi --max-seq-len 8192 --rope-alpha 2 --backend exllamav2");
  const Rope& rope = std::get<Rope>(read.reading.model.groups.front().schemes.front());
  EXPECT_NEAR(rope.rope_theta, 10000 * std::pow(2.0, 128.0 / 126), 1e-6);
}

TEST(EngineCommand, TextGenerationWebuisLoaderIsTheEngine) {
  const auto read =
      by("llama-2-7b", "python server.py --loader ExLlamav2_HF --alpha_value 2 --max_seq_len 8192");
  EXPECT_EQ(read.reading.engine.name, "exllamav2");
  EXPECT_EQ(read.length, 8192);
  EXPECT_NEAR(first_rope(read).rope_theta, 10000 * std::pow(2.0, 128.0 / 126), 1e-6);
}

TEST(EngineCommand, ABaseReachesAsFarAsNoPairMeetsAnUnseenAngle) {
  const auto said = [](const char* line) {
    const Finding* base = found_by("llama-2-7b", line, "rope_theta");
    return base ? *base : Finding{};
  };
  const Finding twice = said("llama-cli --rope-freq-base 26000 -c 8192");
  EXPECT_EQ(twice.severity, Severity::note);
  EXPECT_TRUE(twice.message.contains("up to 8,140 no pair meets")) << twice.message;
  EXPECT_EQ(said("llama-cli --rope-freq-base 20000 -c 8192").severity, Severity::warning);
}

TEST(EngineCommand, TheLengthOfVllmIsNoKeyOfAConfiguration) {
  const Finding* unread = found_by(
      "qwen3-8b", R"(vllm serve Q --hf-overrides '{"max_model_len":131072}')", "override_unread");
  ASSERT_NE(unread, nullptr);
  EXPECT_TRUE(unread->cure.starts_with("--max-model-len")) << unread->cure;
}

TEST(EngineCommand, ARemovedFlagIsWrittenAsTheOneThatHasReplacedIt) {
  const Finding* removed = found_by(
      "qwen3-8b",
      R"(vllm serve Q --rope-scaling '{"type":"yarn","factor":4.0,"original_max_position_embeddings":32768}')",
      "flag_removed");
  ASSERT_NE(removed, nullptr);
  EXPECT_EQ(removed->cure,
            R"(--hf-overrides '{"rope_parameters":{"rope_theta":1000000,"rope_type":"yarn",)"
            R"("factor":4.0,"original_max_position_embeddings":32768}}')");
}

TEST(EngineCommand, SlotsAreCuredToWhatTheModelReaches) {
  const Finding* slots = found_by("llama-2-7b", "llama-server -c 16384 -np 8", "slots");
  ASSERT_NE(slots, nullptr);
  EXPECT_TRUE(slots->cure.starts_with("-c 32768 gives each slot 4,096")) << slots->cure;
}

TEST(EngineCommand, TabbysExllamav3ReadsNoRotation) {
  const auto read =
      by("llama-2-7b", "tabbyapi --max-seq-len 8192 --rope-alpha 2 --backend exllamav3");
  const Rope& rope = std::get<Rope>(read.reading.model.groups.front().schemes.front());
  EXPECT_EQ(rope.rope_theta, 10000);
  EXPECT_TRUE(finds(read, "flag_unread"));
  const auto older =
      by("llama-2-7b", "tabbyapi --max-seq-len 8192 --rope-alpha 2 --backend exllamav2");
  EXPECT_FALSE(finds(older, "flag_unread"));
  EXPECT_EQ(older.reading.engine.name, "exllamav2");
}

TEST(EngineCommand, AScaleWithATrainedLengthAndNoTypeIsLinear) {
  const auto read = by("qwen3-8b",
                       "llama-server -m m.gguf -c 131072 --rope-scale 4 "
                       "--yarn-orig-ctx 32768");
  const auto at = std::ranges::find(read.findings, "flag_unread", &Finding::code);
  ASSERT_NE(at, read.findings.end());
  EXPECT_EQ(at->severity, Severity::error);
  EXPECT_EQ(at->cure, "--rope-scaling yarn beside it");
  EXPECT_FALSE(finds(read, "context_capped"));
}

TEST(EngineCommand, SglangRefusesMoreThanItDerivesFromAnOverride) {
  const std::string yarn = R"('{"rope_scaling":{"rope_type":"yarn","factor":4.0,)"
                           R"("original_max_position_embeddings":32768}MORE}')";
  const auto with = [&](const char* longer, const char* variable) {
    std::string line = std::string(variable) +
                       "python -m sglang.launch_server --context-length 131072 "
                       "--json-model-override-args " +
                       yarn;
    line.replace(line.find("MORE"), 4, longer);
    return by("qwen3-8b", line);
  };
  EXPECT_TRUE(finds(with("", ""), "context_refused"));
  EXPECT_FALSE(finds(with("", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 "), "context_refused"));
  EXPECT_FALSE(finds(with(R"(,"max_position_embeddings":131072)", ""), "context_refused"));
}

const char* const yarn_for_vllm =
    R"('{"rope_parameters":{"rope_type":"yarn","factor":4.0,"rope_theta":1000000,)"
    R"("original_max_position_embeddings":32768}MORE}')";

CommandReading served_by_vllm(std::string line, const char* more = "") {
  line += std::string(" --hf-overrides ") + yarn_for_vllm;
  line.replace(line.find("MORE"), 4, more);
  return by("qwen3-8b", line);
}

TEST(EngineCommand, VllmFromThirtyOnRefusesMoreThanTheFileSaysBesideYarn) {
  const std::string image = "docker run vllm/vllm-openai:v";
  const auto of = [&](const char* version) {
    return served_by_vllm(image + version + " --model Qwen/Qwen3-8B --max-model-len 131072");
  };
  EXPECT_TRUE(finds(of("0.30.0"), "context_refused"));
  EXPECT_FALSE(finds(of("0.29.1"), "context_refused"));
}

TEST(EngineCommand, VllmOfAnyVersionMayRefuseALengthBesideYarn) {
  const auto read = served_by_vllm("vllm serve Qwen/Qwen3-8B --max-model-len 131072");
  const auto at = std::ranges::find(read.findings, "context_refused", &Finding::code);
  ASSERT_NE(at, read.findings.end());
  EXPECT_EQ(at->severity, Severity::note);
}

TEST(EngineCommand, VllmServesTheLengthThatAnOverrideSaysBesideYarn) {
  const auto read = served_by_vllm("vllm serve Qwen/Qwen3-8B --max-model-len 131072",
                                   R"(,"max_position_embeddings":131072)");
  EXPECT_FALSE(finds(read, "context_refused"));
}

TEST(EngineCommand, VllmServesAnyLengthWhereAVariableAllowsIt) {
  EXPECT_FALSE(finds(served_by_vllm("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve Qwen/Qwen3-8B "
                                    "--max-model-len 131072"),
                     "context_refused"));
}

TEST(EngineCommand, YarnAloneDoesNotLiftTheLengthOfVllm) {
  EXPECT_TRUE(finds(served_by_vllm("vllm serve Qwen/Qwen3-8B"), "context_not_lifted"));
}

TEST(EngineCommand, VllmMultipliesNoLengthOfGemma3ByItsFactor) {
  const Finding* refused =
      found_by("gemma-3-27b-it",
               R"(vllm serve G --max-model-len 262144 --hf-overrides '{"text_config":)"
               R"({"rope_parameters":{"full_attention":{"factor":16.0}}}}')",
               "context_refused");
  ASSERT_NE(refused, nullptr);
  EXPECT_TRUE(refused->cure.starts_with("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1")) << refused->cure;
}

TEST(EngineCommand, WhatExtendPrintsForVllmIsAccepted) {
  for (const char* name : {"qwen3-8b", "llama-3.1-8b", "llama-2-7b"}) {
    const Expected<Model> model = read_model(name);
    ASSERT_TRUE(model);
    const std::int64_t longer = 4 * model->context;
    const auto plan = extend(*model, {.to = longer, .engine = "vllm"});
    ASSERT_TRUE(plan && plan->said) << name;
    const auto read = read_command(*model, "vllm serve M " + plan->said->target);
    ASSERT_TRUE(read) << name;
    EXPECT_FALSE(finds(*read, "context_refused")) << name << ' ' << plan->said->target;
    EXPECT_FALSE(finds(*read, "beyond_context")) << name << ' ' << plan->said->target;
  }
}

TEST(EngineCommand, ALargerBaseForALongerTextIsAsAsked) {
  const Finding* base =
      found_by("llama-2-7b", "llama-cli --rope-freq-base 40000 -c 16384", "rope_theta");
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->severity, Severity::warning);
  EXPECT_FALSE(base->cure.contains("10000"));
}

TEST(EngineCommand, APromptMayBeBoundedBelowTheModel) {
  EXPECT_NE(found_by("qwen3-8b", "trtllm-serve Q --max_num_tokens 8192", "prompt_limit"), nullptr);
  EXPECT_EQ(found_by("qwen3-8b", "trtllm-serve Q --max_num_tokens 8192 --enable_chunked_prefill",
                     "prompt_limit"),
            nullptr);
}

TEST(EngineCommand, SglangRefusesMoreThanItDerives) {
  const char* line = "python -m sglang.launch_server --context-length 128000";
  EXPECT_NE(found_by("qwen2.5-7b-yarn4", line, "context_refused"), nullptr);
  EXPECT_EQ(found_by("qwen2.5-7b-yarn4",
                     "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 " + std::string(line),
                     "context_refused"),
            nullptr);
}

TEST(EngineCommand, ADraftWithoutItsFileIsAskedFor) {
  EXPECT_NE(found_by("llama-3.1-8b",
                     "python -m sglang.launch_server --speculative-algo EAGLE --speculative-draft "
                     "./eagle --context-length 8192",
                     "draft_unseen"),
            nullptr);
}

// What posenc translate writes is read again: every engine with a command line runs every bundled
// model as the translation says.
TEST(EngineCommand, TranslationsAreReadBack) {
  const std::pair<std::string, int> least[] = {
      {"llama.cpp", 20}, {"vllm", 20}, {"sglang", 20}, {"megatron-core", 15}};
  for (const auto& [engine, count] : least) {
    int compared = 0;
    for (const BundledModel& one : bundled_models()) {
      const Expected<Model> model = read_model(std::string(one.name));
      ASSERT_TRUE(model);
      const auto made = translate(*model, engine);
      // Does not rotate, or the engine refuses it.
      if (!made || !made->largest_angle_difference) continue;
      const auto read = read_command(*model, made->target);
      ASSERT_TRUE(read) << one.name << ": " << made->target << "\n" << read.error().message();
      ASSERT_EQ(read->reading.refused, "") << one.name;
      for (std::size_t g = 0; g < model->groups.size(); ++g) {
        if (model->groups[g].stack != Stack::text) continue;
        const auto plan = compile(model->groups[g], made->length),
                   theirs = compile(read->reading.model.groups[g], made->length);
        ASSERT_TRUE(plan && theirs) << one.name;
        if (!plan->rotate || plan->rotate->pairs() != theirs->rotate->pairs()) continue;
        double angle = 0;
        for (std::int64_t r = 0; r < plan->rotate->pairs(); ++r)
          angle =
              std::max(angle, std::abs(plan->rotate->at(0, 0, r) - theirs->rotate->at(0, 0, r)));
        EXPECT_LE(angle * static_cast<double>(made->length - 1),
                  *made->largest_angle_difference + 1e-6)
            << one.name << " " << engine << " " << made->target;
      }
      ++compared;
    }
    EXPECT_GE(compared, count) << engine;
    RecordProperty(engine, compared);
  }
}

TEST(EngineCommand, AVariablesDefaultIsItsValue) {
  const auto read = by("qwen3-8b",
                       "MODEL_ARGS=(\n  --num-layers 36\n  # base\n"
                       "  --position-embedding-type rope\n  --rotary-base \"${BASE:-1000000}\"\n)");
  EXPECT_FALSE(finds(read, "rope_theta"));
  EXPECT_EQ(read.reading.engine.name, "megatron-core");
}

TEST(EngineCommand, LightLlmReadsTheFileAndALength) {
  const auto read =
      by("qwen3-8b", "python -m lightllm.server.api_server --model_dir M --max_req_total_len 8192");
  EXPECT_EQ(read.reading.engine.name, "lightllm");
  EXPECT_EQ(read.length, 8192);
}

TEST(EngineCommand, WhatAnImagesVersionStillHasIsNoError) {
  const std::string flags =
      " --model Q --rope-scaling '{\"rope_type\":\"yarn\",\"factor\":4.0,"
      "\"original_max_position_embeddings\":32768}' --max-model-len 131072";
  const auto severity = [&](const std::string& image) {
    const Finding* found = found_by("qwen3-8b", "docker run " + image + flags, "flag_removed");
    return found ? std::optional(found->severity) : std::nullopt;
  };
  EXPECT_EQ(severity("vllm/vllm-openai:v0.9.1"), Severity::note);
  EXPECT_EQ(severity("vllm/vllm-openai:v0.11.1"), Severity::error);
  EXPECT_EQ(severity("vllm/vllm-openai:latest"), Severity::error);
}

TEST(EngineCommand, TurboMindsFactorIsDynamic) {
  const auto* found = found_by("llama-2-7b",
                               "lmdeploy serve api_server M --session-len 8192 "
                               "--rope-scaling-factor 2.0",
                               "rope_scaling", "0.13.0");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->found, "dynamic factor 2");
}

TEST(EngineCommand, SlotsThatHaveTheWholeContextNeedNoCure) {
  const auto* found = found_by("llama-2-7b", "llama-server -c 16384 -np 4", "slots");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->message.contains("all that the model is made for")) << found->message;
  EXPECT_TRUE(found->cure.empty());
}

TEST(EngineCommand, WhatNoFlagAsksForIsTheEnginesReadingOfTheFile) {
  const auto model = read_model("gpt-oss-20b");
  ASSERT_TRUE(model);
  const auto found = command_differences(*model, "llama-server -m m.gguf --ctx-size 131072");
  ASSERT_TRUE(found);
  const auto at = std::ranges::find(*found, "rope_factors", &Finding::code);
  ASSERT_NE(at, found->end());
  EXPECT_TRUE(at->message.starts_with("no flag asks for it")) << at->message;
  EXPECT_FALSE(at->message.contains("lose by it"));
}

TEST(EngineCommand, ALlamafileIsLlamaServerWithItsModel) {
  EXPECT_EQ(by("llama-3-8b", "./Meta-Llama-3-8B.llamafile --server -c 32768").length, 32768);
  EXPECT_FALSE(detail::read_command_line("chmod +x Meta-Llama-3-8B.llamafile"));
}

TEST(EngineCommand, NPredictIsNoMisspelledFlag) {
  EXPECT_EQ(by("qwen3-8b", "llama-server -m m --n-predict 512 --ctx-size 8192").length, 8192);
}

// Whose every layer sees 32,768 tokens back.
TEST(EngineCommand, WhereEveryLayerHasAWindowNoScalingIsWanted) {
  const auto cure = [](const std::string& line, const char* window) {
    const auto model = read_config(R"({"model_type": "mistral", "hidden_size": 4096,
        "num_attention_heads": 32, "num_hidden_layers": 4, "max_position_embeddings": 32768,
        "rope_theta": 100000000.0, "sliding_window": )" +
                                   std::string(window) + "}");
    const auto read = read_command(model.value_or(Model{}), line);
    EXPECT_TRUE(read);
    if (!read) return std::string();
    const auto at = std::ranges::find(read->findings, "beyond_context", &Finding::code);
    return at == read->findings.end() ? std::string() : at->cure;
  };
  const std::string vllm = "vllm serve M --max-model-len 65536",
                    sglang = "python -m sglang.launch_server --model-path M --context-length 65536";
  EXPECT_TRUE(cure(vllm, "32768").starts_with("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1"));
  EXPECT_TRUE(cure(sglang, "32768").starts_with("SGLANG_ALLOW_OVERWRITE"));
  EXPECT_TRUE(cure("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 " + vllm, "32768").starts_with("--hf-over"));
  EXPECT_TRUE(cure(vllm, "null").starts_with("posenc extend"));
  EXPECT_TRUE(cure(vllm, "65536").starts_with("posenc extend"));
}

}  // namespace
}  // namespace posenc
