// What somebody saw, as people wrote it in reports: where it begins, how, and with what.
#include "src/tools/symptom.h"

#include <gtest/gtest.h>

#include <string>

#include "posenc/doctor.h"

namespace posenc::detail {
namespace {
namespace seen {

Symptom symptom(const char* words) {
  const auto found = symptom_of(words);
  EXPECT_TRUE(found) << words;
  return found.value_or(Symptom{});
}

TEST(Symptom, BeginsWhereTheNumberBehindItsWordSays) {
  EXPECT_EQ(symptom("garbage past 4096 tokens").from, 4096);
  EXPECT_EQ(symptom("it breaks beyond 32k").from, 32768);
  EXPECT_EQ(symptom("nonsense when the prompt exceeds 8,192 tokens").from, 8192);
  EXPECT_EQ(symptom("gibberish > 2048").from, 2048);
  EXPECT_EQ(symptom("unrelated text with prompts longer than ~2000 tokens").from, 2000);
  EXPECT_EQ(symptom("only works up to about 8k context, after that gibberish").from, 8192);
  EXPECT_EQ(symptom("输入长度超过4k后输出乱码").from, 4096);
}

TEST(Symptom, ANumberOfAnotherThingIsNoLength) {
  EXPECT_EQ(symptom("gibberish after 20 minutes with 8 GB and 3000 requests").from, 0);
  EXPECT_EQ(symptom("garbage from a 7b model on 4 GPUs, version 0.6.1").from, 0);
  EXPECT_EQ(symptom("nonsense even if the context is less than 2048 tokens").from, 0);
  EXPECT_EQ(symptom("garbled above 1600 characters").from, 0);
  EXPECT_EQ(symptom("garbled, and then over HTTP 500").from, 0);
  EXPECT_EQ(symptom("stripes above 2K resolution").length, 0);
  EXPECT_EQ(symptom("stripes above 2K resolution").height, 2048);
}

TEST(Symptom, TheLengthOfATextIsNotWhereItBegins) {
  const Symptom found = symptom("it forgets the start of a text of 45000 tokens");
  EXPECT_EQ(found.from, 0);
  EXPECT_EQ(found.length, 45000);
}

TEST(Symptom, FramesAndSizesAreOfVideosAndPictures) {
  EXPECT_EQ(symptom("the video repeats itself at 201 frames").frames, 201);
  EXPECT_EQ(symptom("Wan 2.2 pingponging beyond 120 frames").frames_of_model, 81);
  const Symptom picture = symptom("broken image in blocks at 2048x6144");
  EXPECT_EQ(picture.width, 2048);
  EXPECT_EQ(picture.height, 6144);
}

TEST(Symptom, ATextIsTheSameFromTheFirstWordsOnOrOnlyWhereItIsLong) {
  EXPECT_TRUE(symptom("garbage immediately, even for short prompts").is(When::at_once));
  EXPECT_TRUE(symptom("short prompts work fine, others are garbage").is(When::long_texts));
  EXPECT_FALSE(symptom("short prompts work fine, others are garbage").is(When::at_once));
  EXPECT_TRUE(symptom("right alone, wrong in a batch").is(When::in_batch));
  EXPECT_TRUE(symptom("the second message gets nonsense").is(When::in_turns));
  EXPECT_TRUE(symptom("gibberish after context shift").is(When::shifted));
  EXPECT_FALSE(symptom("garbage, please increase the physical batch size").is(When::in_batch));
}

TEST(Symptom, EnginesHaveTheVersionsBehindThem) {
  const auto engine = [](const char* words) {
    const Symptom found = symptom(words);
    return found.engines.empty() ? "" : found.engines.front();
  };
  EXPECT_EQ(engine("gibberish in vllm 0.6.1"), "vllm@0.6.1");
  EXPECT_EQ(engine("gibberish with llama.cpp (build 3015)"), "llama.cpp@b3015");
  EXPECT_EQ(engine("gibberish with llama-server b3015"), "llama.cpp@b3015");
  EXPECT_EQ(engine("gibberish in LM Studio"), "lmstudio");
  EXPECT_EQ(engine("works in transformers, nonsense in sglang"), "sglang");
  EXPECT_EQ(engine("nonsense of a file from huggingface"), "");
}

TEST(Symptom, OfWhatIsNoComplaintIsNothing) {
  for (const char* text :
       {"", "hello", "how long may a prompt be", "print_info: n_ctx_train = 4096",
        "rope_theta: 500000\nfailed: 1\nstuck: 0", "repetition_penalty=1.2, n=1, m=2"})
    EXPECT_FALSE(symptom_alone(text)) << text;
}

TEST(Symptom, APersonMayNameFlagsAndNumbersAndAProgramIsNone) {
  for (const char* text :
       {"Misc. bug: llama-server --ctx-size is divided by --parallel and cannot be increased?",
        "Default is 8192 if I don't do anything, but the model card says 128k",
        "my results are full of blanks with input around 3000 and 8000"})
    EXPECT_TRUE(is_of_a_person(text)) << text;
  for (const char* text :
       {"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "0%| | 0/187 [00:00<?, ?it/s] Input prompt (48173 tokens) is too long and exceeds limit",
        "ValueError: The length of `decoder_input_ids` is 4, and the `max_new_tokens` is 2048",
        "llama-cli -m x.gguf -c 512 -p \"I believe that the meaning of my life is to be\"",
        "vllm serve M --max-model-len 4096"})
    EXPECT_FALSE(is_of_a_person(text)) << text;
}

TEST(Symptom, WhoAsksNamesAnEngineOrALength) {
  EXPECT_EQ(symptom("How does qwq32b support 64k of context, is it in the readme?").length, 65536);
  EXPECT_EQ(symptom("Is YaRN supported in sglang? I would like to know").engines.at(0), "sglang");
  EXPECT_FALSE(
      symptom("It turns out that vllm gives a worse answer, as I see it").is(When::in_turns));
}

TEST(Symptom, QuantizedIsWhatIsRightWithSixteenBits) {
  EXPECT_TRUE(symptom("the 4-bit GGUF writes nonsense, the f16 is fine").is(When::quantized));
  EXPECT_FALSE(symptom("the 4-bit GGUF writes nonsense past 8k tokens").is(When::quantized));
}

TEST(Symptom, ADraftIsNamedByWhatIsAcceptedOfIt) {
  const Symptom found = symptom("Accepted throughput: 12 tokens/s, draft acceptance rate: 9.1%");
  EXPECT_TRUE(found.is(When::of_draft));
  EXPECT_EQ(found.other, "");
  EXPECT_FALSE(symptom("gibberish when I ask it to draft a long letter").is(When::of_draft));
}

TEST(Symptom, WhoAsksForLongerTextsHasSeenNothingWrong) {
  EXPECT_TRUE(symptom("Does qwen3 extrapolate, or do I need rope_scaling?").asks_longer);
  EXPECT_FALSE(symptom("I get gibberish although I set rope_scaling").asks_longer);
}

TEST(Symptom, APriceOrAQuotaIsNoFaultOfPosition) {
  EXPECT_EQ(symptom("How much does it cost to run 1M tokens a day of Qwen3-8B?").other,
            "the price or a quota");
  EXPECT_EQ(symptom("rate limit: 1,000,000 tokens per minute exceeded (429)").other,
            "the price or a quota");
}

TEST(Symptom, ATableOfRobertaBeginsBehindItsPadding) {
  EXPECT_TRUE(symptom("roberta: index out of range at 512 tokens").is(When::of_offset));
}

TEST(Symptom, AnEngineWithItsVersionIsToldAlone) {
  const auto found = symptom_alone("with the latest mlx-lm v0.22.1");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->engines.at(0).starts_with("mlx-lm"));
}

TEST(Symptom, AnAddressOrANumberOfAnotherThingIsNoVersion) {
  const auto engine = [](const char* words) { return symptom(words).engines.at(0); };
  EXPECT_EQ(engine("vllm on 192.168.0.1 gives garbage"), "vllm");
  EXPECT_EQ(engine("ollama 127.0.0.1:11434 is garbage"), "ollama");
  EXPECT_EQ(engine("llama.cpp b99999999999999999999 garbage"), "llama.cpp");
  EXPECT_EQ(engine("gibberish in vllm temperature 0.6"), "vllm");
  EXPECT_EQ(engine("vllm with Llama 3.1 8B gives gibberish"), "vllm");
  EXPECT_EQ(engine("vllm at 4.5k tokens gives garbage"), "vllm");
}

TEST(Symptom, OfSeveralEnginesTheOneThatFailsCounts) {
  const auto engines = [](const char* words) { return symptom(words).engines; };
  using Names = std::vector<std::string>;
  EXPECT_EQ(engines("garbage in transformers, right in vllm"), Names{"transformers"});
  EXPECT_EQ(engines("it works in ollama, and is garbage in vllm"), Names{"vllm"});
  EXPECT_EQ(engines("it does not work in vllm past 40960 tokens, garbage; I compare with sglang"),
            (Names{"vllm", "sglang"}));
}

TEST(Symptom, AWordThatOthersUseIsAProgramBehindWithOrIn) {
  EXPECT_TRUE(symptom("Since Jan my model gives garbage in long texts").engines.empty());
  EXPECT_EQ(symptom("gibberish in Jan after some messages").engines.at(0), "jan");
}

TEST(Symptom, GroupedDigitsAreOneNumber) {
  EXPECT_EQ(symptom("garbage after 1,000,000 tokens").from, 1'000'000);
  EXPECT_EQ(symptom("garbage with batch 8, 512 tokens").length, 512);
}

TEST(Symptom, ABareNumberIsNoLengthBehindOtherThings) {
  for (const char* words :
       {"gibberish after build 3015 of llama.cpp", "gibberish since the 2024 update of ollama",
        "gibberish after upgrading from 3090 to 4090 in ollama", "garbage after pull request 8192",
        "garbage over port 8192", "garbage after step 4000"})
    EXPECT_EQ(symptom(words).from, 0) << words;
}

TEST(Symptom, MemoryAndSpeedAreNoFaultOfPositions) {
  EXPECT_EQ(symptom("qwen3-8b OOM crash beyond 32k tokens").other, "memory");
  EXPECT_EQ(symptom("llama-2-7b: speed drops after 4096 tokens").other, "speed");
  EXPECT_EQ(symptom("training of llama-2-7b diverges after step 4000").other, "training");
  EXPECT_FALSE(symptom("I cannot download a model in ollama, disk full").other.empty());
  EXPECT_EQ(symptom("it is slow, and it is wrong after 32768 tokens").other, "");
  EXPECT_EQ(symptom("outputs of sglang and vllm diverge past 32768 tokens").from, 32768);
  EXPECT_EQ(symptom("out of memory, and gibberish text after 4k tokens").from, 4096);
}

TEST(Symptom, ASettingAmongTheWordsIsTheLengthThatIsAllowed) {
  EXPECT_EQ(symptom("I set num_ctx=32768 in ollama, but it forgets the text").set_to, 32768);
  EXPECT_EQ(symptom("num_ctx 8192 in ollama, it forgets").set_to, 8192);
}

TEST(Symptom, CommentsOfASettingsFileAreNotTold) {
  EXPECT_FALSE(
      is_of_a_person("# my server, I use this to run it with a long context, as it is\n"
                     "vllm serve M --max-model-len 200000"));
}

TEST(Symptom, SentencesStandAmongTheLinesOfALog) {
  const auto found = symptom_in_log(
      "llama_context: n_ctx = 4096\nthe answer turns into gibberish after 2000 tokens or so\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->from, 2000);
  EXPECT_FALSE(symptom_in_log("INFO repeat_penalty = 1.1 garbage collection of 4096 blocks\n"));
}

Diagnosis told(const char* model, const char* words) {
  std::vector<Exhibit> evidence;
  if (model) evidence.push_back(model_exhibit(model, *read_model(model)));
  evidence.push_back(text_exhibit("command", words));
  EXPECT_EQ(evidence.back().kind, ExhibitKind::symptom) << words;
  return diagnose(std::move(evidence)).value_or(Diagnosis{});
}

bool finds(const Diagnosis& found, std::string_view code) {
  return std::ranges::any_of(found.findings,
                             [&](const Diagnosed& one) { return one.finding.code == code; });
}

TEST(SymptomJudged, AFindingThatBeginsThereComesFirstAndIsSaidToExplain) {
  const Diagnosis found = told("llama-2-7b", "gibberish after 4k tokens in transformers");
  EXPECT_EQ(found.findings.front().finding.code, "beyond_context");
  EXPECT_TRUE(found.verdict.ends_with("It begins where you saw it.")) << found.verdict;
}

TEST(SymptomJudged, NumbersOfAMessageAreNoPlacesWhereItBegins) {
  for (const char* words : {"Phi-3.5-mini-instruct in vllm 0.9.1 is garbage beyond 20k tokens",
                            "llama-3.1-8b gpt-fast garbage after 10k tokens"}) {
    const auto found = diagnose({text_exhibit("command", words)});
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->verdict.contains("where you saw it")) << found->verdict;
  }
}

TEST(SymptomJudged, ADefaultContextIsNotNamedOfWhatIsSetOrIsNoText) {
  for (const char* words : {"I set num_ctx=32768 in ollama, but it forgets the text",
                            "ollama ignores my GPU", "I do not see the model in ollama list"}) {
    const auto found = diagnose({text_exhibit("command", words)});
    ASSERT_TRUE(found);
    EXPECT_FALSE(finds(*found, "context_defaulted")) << words;
  }
}

TEST(SymptomJudged, WhatIsPackedExplainsIdsThatBeginAnew) {
  const auto found = diagnose({text_exhibit("command", "packing: garbage beyond 100 tokens"),
                               text_exhibit("ids", "position_ids: [0, 1, 2, 3, 4, 0, 1, 2]")});
  ASSERT_TRUE(found);
  EXPECT_TRUE(finds(*found, "seen_packed"));
}

TEST(SymptomJudged, WordsBesideACommandInOneTextAreRead) {
  const auto found = diagnose({text_exhibit(
      "report",
      "I start my server with\nvllm serve Qwen/Qwen3-8B --max-model-len 32768\nand the output of "
      "my long prompts is garbage. It doesn't happen with short ones.")});
  ASSERT_TRUE(found);
  EXPECT_FALSE(finds(*found, "flag_refused"));
  EXPECT_TRUE(std::ranges::any_of(
      found->evidence, [](const Exhibit& one) { return one.kind == ExhibitKind::symptom; }));
}

TEST(SymptomJudged, AModelfilesSystemPromptComplainsOfNothing) {
  const auto found = diagnose({text_exhibit(
      "Modelfile",
      "FROM llama3.1\nPARAMETER num_ctx 8192\nSYSTEM You are my assistant for the long documents "
      "that I give to you, and you never repeat yourself.\n")});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->verdict.contains("By your words")) << found->verdict;
}

TEST(SymptomJudged, TheLengthThatItIsJudgedForExplainsNothing) {
  const Diagnosis found = told("llama-3.1-8b", "gibberish beyond 200k tokens");
  EXPECT_TRUE(finds(found, "beyond_context"));
  EXPECT_FALSE(found.verdict.contains("where you saw it")) << found.verdict;
}

TEST(SymptomJudged, AWindowOrATrainedLengthOfTheFileIsNamedWhereItBegins) {
  EXPECT_TRUE(
      finds(told("phi-3-mini-4k-instruct", "word salad past 2047 tokens"), "seen_at_window"));
  EXPECT_TRUE(finds(told("llama-3.1-8b", "nonsense beyond 8k tokens"), "seen_at_scaling"));
  EXPECT_FALSE(finds(told("llama-3.1-8b", "nonsense beyond 60k tokens"), "seen_at_scaling"));
}

TEST(SymptomJudged, AnEnginesOwnDefaultIsNamedWhereTextIsForgotten) {
  const Diagnosis found =
      told("llama-3.1-8b", "ollama forgets what stands before the latest message");
  EXPECT_TRUE(finds(found, "context_defaulted"));
  EXPECT_TRUE(found.verdict.starts_with("Look at this: Ollama runs 4,096")) << found.verdict;
}

TEST(SymptomJudged, ADefaultIsNotNamedOfWhateverFails) {
  EXPECT_FALSE(finds(told(nullptr, "chat template is wrong in ollama"), "context_defaulted"));
  EXPECT_TRUE(finds(told(nullptr, "ollama loops without an end"), "context_defaulted"));
}

TEST(SymptomJudged, AVersionThatTheWordsNameIsJudged) {
  EXPECT_TRUE(finds(told("phi-3-mini-4k-instruct", "breaks after 2048 tokens in llama.cpp b3015"),
                    "version_fault"));
}

TEST(SymptomJudged, AModelThatTheWordsNameIsRead) {
  const Diagnosis found = told(nullptr, "Llama 3.1 8B is garbage beyond 200k tokens");
  EXPECT_EQ(found.evidence.front().kind, ExhibitKind::model);
  EXPECT_TRUE(finds(found, "beyond_context"));
}

TEST(SymptomJudged, WordsAloneConvictNothing) {
  const Diagnosis found = told("llama-3.1-8b", "right alone and wrong in a batch");
  EXPECT_TRUE(std::ranges::all_of(
      found.findings, [](const Diagnosed& one) { return one.finding.severity == Severity::note; }));
  EXPECT_TRUE(found.verdict.contains("By your words: padding moves")) << found.verdict;
}

TEST(SymptomJudged, NumbersOfAPersonAreNoLimits) {
  const Diagnosis found = told("phi-3.5-mini-instruct",
                               "garbage with input around 3000 and 8000, as I see it in my tests");
  EXPECT_FALSE(finds(found, "request_too_long"));
  EXPECT_TRUE(finds(found, "seen_across_lists"));
}

TEST(SymptomJudged, TheCureIsInTheWordsOfTheEngine) {
  const auto cure = [](const char* words, std::string_view code) {
    for (const Diagnosed& one : told(nullptr, words).findings)
      if (one.finding.code == code) return one.finding.cure;
    return std::string();
  };
  EXPECT_TRUE(
      cure("padding breaks answers in vllm 0.4.2", "seen_in_batch").contains("without padding"));
  EXPECT_TRUE(
      cure("padding breaks answers in transformers", "seen_in_batch").contains("padding_side"));
  EXPECT_TRUE(
      cure("koboldcpp is garbage after context shift", "seen_after_shift").contains("--noshift"));
}

TEST(SymptomJudged, ModelsOfThreeAxesAreAskedForTheirRows) {
  EXPECT_TRUE(
      finds(told("qwen2-vl-2b-instruct", "my training uses 1D-ROPE for images, is it right?"),
            "seen_on_axes"));
}

TEST(SymptomJudged, ARoundNumberThatIsNoneOfTheFilesIsAnEdgeAndNoBase) {
  const Diagnosis found = told("qwen3-8b", "garbage beyond 4096 tokens");
  EXPECT_TRUE(finds(found, "seen_at_edge"));
  EXPECT_FALSE(finds(found, "seen_at_base"));
  EXPECT_TRUE(finds(told("qwen3-8b", "garbage beyond 1500 tokens"), "seen_at_base"));
}

TEST(SymptomJudged, PackedTextsAreNotPadded) {
  const Diagnosis found = told("llama-3.1-8b", "packing in one row with batch size 1 is wrong");
  EXPECT_TRUE(finds(found, "seen_packed"));
  EXPECT_FALSE(finds(found, "seen_in_batch"));
}

TEST(SymptomJudged, AScalingThatIsNotReadIsTheFiles) {
  EXPECT_TRUE(finds(
      told("deepseek-coder-1.3b-instruct", "rope_scaling not implemented, as I get blanks of it"),
      "seen_unscaled"));
  EXPECT_FALSE(finds(told("qwen3-8b", "rope_scaling not implemented, as I get blanks of it"),
                     "seen_unscaled"));
}

TEST(SymptomJudged, WhatWasGivenMayNotShowWhy) {
  const Diagnosis found = told("llama-3.1-8b", "I get gibberish of it in vllm");
  EXPECT_TRUE(found.verdict.starts_with("What was given does not show why")) << found.verdict;
}

TEST(SymptomJudged, CausesThatWordsNameAreToldFirst) {
  const auto first = [](const char* words) {
    const Diagnosis found = told(nullptr, words);
    return found.findings.empty() ? std::string() : found.findings.front().finding.code;
  };
  EXPECT_EQ(first("Cline overrides num_ctx of my Modelfile in ollama, it loads with 128k"),
            "num_ctx_ignored");
  EXPECT_EQ(first("Claude Code assumes 200k for my llama-server model of 32k"),
            "seen_by_front_end");
  EXPECT_EQ(first("WhisperX transcription stops after 224 tokens, as I see it"), "seen_at_table");
  EXPECT_EQ(first("Gemma 3n with mlx_lm batch_generate repeats words"), "positions_shifted");
  EXPECT_EQ(first("RIFLEx in ComfyUI: how do I get a longer video?"), "asks_longer");
  EXPECT_EQ(first("llama-server -np 4 says 32768 a slot and my client says 131072, why is it"),
            "slots");
}

TEST(SymptomJudged, AFileMayPromiseWhatWasNotTrained) {
  const char* words = "gibberish over 8k in koboldcpp";
  EXPECT_TRUE(finds(told("mistral-7b-v0.1", words), "seen_at_window"));
  EXPECT_FALSE(finds(told("mistral-7b-v0.3", words), "seen_at_window"));
}

TEST(SymptomJudged, CausesAreOfTheirProgramsAlone) {
  EXPECT_FALSE(
      finds(told(nullptr, "my Modelfile has num_ctx 8192 and ollama forgets"), "num_ctx_ignored"));
  EXPECT_FALSE(
      finds(told(nullptr, "Claude Code shows 200k and not 1M, why is it"), "seen_by_front_end"));
  EXPECT_FALSE(
      finds(told("qwen3-vl-8b-instruct", "wrong bounding boxes in transformers"), "seen_on_sides"));
  EXPECT_FALSE(finds(told(nullptr, "HunyuanVideo with RIFLEx repeats itself after 201 frames"),
                     "asks_longer"));
  EXPECT_FALSE(
      finds(told("llama-3.1-8b", "I merged my LoRA into it, the output is garbage"), "two_models"));
  EXPECT_FALSE(finds(told(nullptr, "Whisper fine-tuned on 224 hours: the loss explodes at the end"),
                     "seen_at_table"));
  EXPECT_EQ(
      symptom("koboldcpp gives gibberish over 8k, LM Studio reaches 11k without the same issue")
          .engines.size(),
      1u);
  // What its own cure says to type.
  EXPECT_TRUE(finds(told("llama-3.1-8b", "can the two be merged?"), "two_models"));
}

TEST(Symptom, SettingsMayStandAmongWhatIsTold) {
  EXPECT_TRUE(narrates("OLLAMA_CONTEXT_LENGTH=65536 is set but ollama ps shows CONTEXT 32768"));
  EXPECT_TRUE(narrates("it reports a length of 524288 with --parallel 2 and --no-kv-unified"));
  EXPECT_FALSE(narrates("OLLAMA_CONTEXT_LENGTH=65536 ollama serve"));
  EXPECT_FALSE(narrates("llama-server -m qwen3-8b.gguf --alias 'what is the best of all'"));
  EXPECT_FALSE(narrates("ollama run llama3.1:8b what is the capital of France"));
}

TEST(SymptomJudged, FramesBeyondTheTrainingAreNamedWithoutAFile) {
  EXPECT_TRUE(
      finds(told(nullptr, "Wan 2.2 goes back to the first frame beyond 120 frames, it repeats"),
            "frames_beyond"));
}

}  // namespace seen
}  // namespace
}  // namespace posenc::detail
