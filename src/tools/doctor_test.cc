// The doctor: what evidence is taken for, what the verdict says, in which order findings stand.
#include "posenc/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace posenc {
namespace {

Exhibit evidence_of(const char* name) {
  Expected<Model> model = read_model(name);
  EXPECT_TRUE(model) << name;
  return model_exhibit(name, model.value_or(Model{}));
}

Diagnosis diagnosed(std::vector<Exhibit> evidence, const DoctorOptions& options = {}) {
  Expected<Diagnosis> found = diagnose(std::move(evidence), options);
  EXPECT_TRUE(found) << found.error().message();
  return found.value_or(Diagnosis{});
}

const Finding* found_of(const Diagnosis& found, std::string_view code) {
  const auto at = std::ranges::find_if(
      found.findings, [&](const Diagnosed& one) { return one.finding.code == code; });
  return at == found.findings.end() ? nullptr : &at->finding;
}

TEST(Exhibit, OfTextIsToldByItsContent) {
  const auto kind = [](const char* text) { return text_exhibit("x", text).kind; };
  EXPECT_EQ(kind(R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2,
                     "num_hidden_layers": 1})"),
            ExhibitKind::model);
  EXPECT_EQ(kind("vllm serve M --max-model-len 4096"), ExhibitKind::command);
  EXPECT_EQ(kind("FROM ./x.gguf\nPARAMETER num_ctx 8192\n"), ExhibitKind::modelfile);
  EXPECT_EQ(kind("base_model: x\nsequence_len: 8192\n"), ExhibitKind::training);
  EXPECT_EQ(kind("tensor([1.0000e+00, 8.6596e-01, 7.4989e-01, 6.4938e-01], device='cuda:0')"),
            ExhibitKind::inv_freq);
  EXPECT_EQ(kind("print_info: n_ctx_train = 4096\nprint_info: freq_base_train = 10000.0\n"),
            ExhibitKind::log);
  EXPECT_EQ(kind("hello"), ExhibitKind::unusable);
  EXPECT_EQ(kind(""), ExhibitKind::unusable);
}

TEST(Exhibit, OfATrainersLineIsASettingOfItsTraining) {
  const Exhibit line = text_exhibit("x", "swift pt --model Q --train_type full --max_length 64000");
  EXPECT_EQ(line.kind, ExhibitKind::training);
  EXPECT_TRUE(line.as.contains("ms-swift")) << line.as;
  EXPECT_EQ(text_exhibit("x", "python -m verl.trainer.main_ppo data.max_prompt_length=4096").kind,
            ExhibitKind::training);
}

TEST(Exhibit, OfAFormOrASettingsFileIsTheLineThatSaysTheSame) {
  for (const char* text :
       {"LM Studio 0.4.18: context length 400000, RoPE Frequency Scale 0.65",
        R"({"load":{"fields":[{"key":"llm.load.contextLength","value":400000}]}})",
        R"({"model_param":"x.gguf","contextsize":16384,"ropeconfig":[0.0,10000.0]})",
        "model:\n  max_seq_len: 65536\n  rope_alpha: 2.5\n"})
    EXPECT_EQ(text_exhibit("x", text).kind, ExhibitKind::command) << text;
}

TEST(Exhibit, OfAContainersFileIsTheLineThatItStarts) {
  const auto line = [](const char* text) {
    const Exhibit one = text_exhibit("x", text);
    EXPECT_EQ(one.kind, ExhibitKind::command) << text << one.as;
    return one.text;
  };
  EXPECT_TRUE(line("services:\n  ui:\n    image: open-webui\n    environment:\n      - A=b\n"
                   "  model:\n    image: vllm/vllm-openai:v0.11.0\n    # comment\n"
                   "    command: >\n      --model Q\n      --max-model-len 131072\n"
                   "    ports:\n      - \"80:80\"\n")
                  .contains("vllm/vllm-openai:v0.11.0  --model Q --max-model-len 131072"));
  // A list of Kubernetes, with JSON in it, and a variable.
  const std::string pod = line(
      "spec:\n  containers:\n  - name: server\n    image: vllm/vllm-openai:latest\n"
      "    env:\n    - name: VLLM_ALLOW_LONG_MAX_MODEL_LEN\n      value: \"1\"\n"
      "    args:\n    - --model=Q\n    - --hf-overrides\n"
      "    - '{\"rope_parameters\": {\"rope_type\": \"yarn\"}}'\n");
  EXPECT_TRUE(pod.contains("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1")) << pod;
  EXPECT_TRUE(pod.contains("'{\"rope_parameters\": {\"rope_type\": \"yarn\"}}'")) << pod;
  EXPECT_TRUE(line("services:\n  s:\n    image: x\n    command: [\"sh\", \"-c\", \"vllm serve Q "
                   "--max-model-len 4096\"]\n")
                  .contains("vllm serve Q --max-model-len 4096"));
  EXPECT_TRUE(
      line("models:\n  q:\n    cmd: |\n      llama-server --port 1\n      -m q.gguf -c 65536\n")
          .contains("llama-server"));
  EXPECT_TRUE(
      line("name: q\ncontext_size: 65536\nrope_scaling: yarn\nparameters:\n  model: q.gguf\n")
          .contains("--rope-scaling yarn"));
  EXPECT_EQ(line("version = 1\n[*]\nnp = 2\n[q]\nctx-size = 8192\n"),
            "llama-server -np 2 --ctx-size 8192");
}

TEST(Exhibit, OfPrintedSettingsIsAModel) {
  for (const char* text :
       {"Model config LlamaConfig {\n  \"model_type\": \"llama\",\n  \"hidden_size\": 64,\n"
        "  \"num_attention_heads\": 2,\n  \"num_hidden_layers\": 1,\n  \"rope_theta\": 500000.0\n}",
        "INFO args: ModelArgs(model_type='llama', hidden_size=64, num_attention_heads=2, "
        "num_hidden_layers=1, rope_theta=500000, rope_scaling=None, tie=True)",
        "INFO Config { architectures: Some([\"LlamaForCausalLM\"]), hidden_size: 64, "
        "num_attention_heads: 2, num_hidden_layers: 1, rope_theta: 500000.0, rope_scaling: None }",
        "{'model_type': 'llama', 'hidden_size': 64, 'num_attention_heads': 2, "
        "'num_hidden_layers': 1, 'rope_theta': 5e5, 'x': None}"}) {
    const Exhibit one = text_exhibit("x", text);
    ASSERT_TRUE(one.model) << text << "\n" << one.as;
    const Rope* rope = std::get_if<Rope>(&one.model->groups[0].schemes[0]);
    ASSERT_TRUE(rope);
    EXPECT_EQ(rope->rope_theta, 500000);
  }
  EXPECT_FALSE(text_exhibit("x", "rope_theta=10000 (hidden_size").model);
}

TEST(Exhibit, OfAScalingAloneIsComparedWithTheModel) {
  for (const char* text : {"\"rope_scaling\": {\n  \"type\": \"yarn\",\n  \"factor\": 4.0,\n"
                           "  \"original_max_position_embeddings\": 32768\n}\n",
                           ">>> print(config.rope_scaling)\n{'rope_type': 'yarn', 'factor': 4.0, "
                           "'original_max_position_embeddings': 32768}"}) {
    const Exhibit one = text_exhibit("x", text);
    EXPECT_EQ(one.kind, ExhibitKind::log) << one.as;
    const Diagnosis found = diagnosed({evidence_of("qwen3-8b"), one});
    EXPECT_EQ(found_of(found, "theta_missing"), nullptr) << text;
    ASSERT_NE(found_of(found, "rope_scaling"), nullptr) << text;
    EXPECT_TRUE(found_of(found, "rope_scaling")->found.starts_with("yarn factor 4"));
    EXPECT_EQ(found_of(found, "rope_scaling")->severity, Severity::note);
  }
}

TEST(Exhibit, OfAChartOfHelmIsALine) {
  const Exhibit one = text_exhibit(
      "x",
      "modelSpec:\n- name: q\n  repository: vllm/vllm-openai\n  tag: v0.10.2\n  vllmConfig:\n"
      "    maxModelLen: 131072\n    extraArgs: [\"--rope-scaling\", "
      "'{\"rope_type\":\"yarn\",\"factor\":4.0}']\n");
  EXPECT_EQ(one.kind, ExhibitKind::command) << one.as;
  EXPECT_TRUE(one.text.contains("vllm/vllm-openai:v0.10.2")) << one.text;
  EXPECT_TRUE(one.text.contains("--max-model-len 131072")) << one.text;
}

TEST(Exhibit, OfAConfigurationOfMlcIsTheModelWithin) {
  const Exhibit one = text_exhibit(
      "x", R"({"model_type":"llama","quantization":"q4f16_1","model_config":{"hidden_size":64,
      "num_attention_heads":2,"num_hidden_layers":1,"position_embedding_base":500000.0,
      "context_window_size":8192},"context_window_size":4096})");
  ASSERT_TRUE(one.model) << one.as;
  EXPECT_EQ(one.model->context, 8192);
}

TEST(Doctor, TheFirstFrequenciesAreComparedAlone) {
  const auto code_of = [](const char* numbers) {
    const Diagnosis found =
        diagnosed({evidence_of("llama-3.1-8b"), text_exhibit("inv_freq", numbers)});
    return found.findings.empty() ? "" : found.findings.front().finding.code;
  };
  EXPECT_EQ(code_of("inv_freq[:4]: tensor([1.0000, 0.8146, 0.6636, 0.5406])"), "inv_freq_agrees");
  EXPECT_EQ(code_of("inv_freq[:4]: tensor([1.0000, 0.8660, 0.7499, 0.6494])"), "inv_freq");
}

TEST(Doctor, WhatPosencDoesNotReadIsNoFaultOfALine) {
  const Diagnosis found =
      diagnosed({evidence_of("deepseek-v3"),
                 text_exhibit("line",
                              "pretrain_gpt.py --multi-latent-attention --position-embedding-type "
                              "rope --num-layers 61 --rotary-base 10000")});
  EXPECT_EQ(found_of(found, "flag_refused"), nullptr);
}

TEST(Doctor, ADraftIsToldByItsLayersWhereNoLineNamesIt) {
  const Diagnosis found =
      diagnosed({evidence_of("llama-3.1-8b"), text_exhibit("draft", R"({"model_type":"llama",
      "hidden_size":4096,"num_attention_heads":32,"num_hidden_layers":1,
      "max_position_embeddings":2048})")});
  ASSERT_TRUE(found_of(found, "draft_length"));
  ASSERT_TRUE(found_of(found, "rope_theta"));
  EXPECT_EQ(found_of(found, "rope_theta")->severity, Severity::warning);
}

TEST(Exhibit, OfPipsListIsVersions) {
  const Exhibit list = text_exhibit("x", "torch==2.8.0\nvllm==0.19.1\ntransformers 4.57.6\n");
  EXPECT_EQ(list.kind, ExhibitKind::versions);
  EXPECT_EQ(list.text, "vllm@0.19.1, transformers@4.57.6");
}

TEST(Exhibit, OfVersionsIsNoListOfFrequencies) {
  EXPECT_EQ(text_exhibit("x", "mlx==0.32.2\nmlx-lm==0.28.0\nmlx-vlm==0.3.3\n").kind,
            ExhibitKind::versions);
  EXPECT_EQ(text_exhibit("x", "vllm==0.8.5.post1\nsglang==0.10.1.1\n").text,
            "vllm@0.8.5, sglang@0.10.1");
}

TEST(Exhibit, OfAnUnknownProgramHasTheLengthThatItAsksFor) {
  const Exhibit line = text_exhibit(
      "x", "ARGS=\"pretrained=M,max_model_length=32768\"\nlighteval vllm $ARGS \"aime24|0|0\"\n");
  EXPECT_EQ(line.kind, ExhibitKind::training);
  EXPECT_TRUE(line.as.contains("32,768")) << line.as;
}

TEST(Exhibit, OfAFileThatIsNotMeantSaysWhichIs) {
  const auto as = [](const char* text) { return text_exhibit("x", text).as; };
  EXPECT_TRUE(as(R"({"added_tokens": [], "model": {}})").contains("tokenizer"));
  EXPECT_TRUE(as(R"({"bos_token_id": 1, "do_sample": true})").contains("generation_config"));
  EXPECT_TRUE(as(R"({"weight_map": {}})").contains("index of weights"));
}

TEST(Doctor, AGoodFileHasNothingWrong) {
  const Diagnosis found = diagnosed({evidence_of("llama-3.1-8b")});
  EXPECT_EQ(found.verdict, "Nothing wrong with position up to 131,072.");
  EXPECT_TRUE(found.findings.empty());
}

TEST(Doctor, ALostScalingIsInTheVerdict) {
  const Diagnosis found = diagnosed({evidence_of("broken-llama-3.1-8b")});
  EXPECT_TRUE(found.verdict.starts_with("Text may change beyond 113")) << found.verdict;
}

TEST(Doctor, ALimitThatTheModelDoesNotHaveIsOfItsProgram) {
  const Diagnosis found = diagnosed(
      {text_exhibit("command", "is qwen3-8b limited to 32768 tokens?"), evidence_of("qwen3-8b")});
  EXPECT_EQ(found.verdict,
            "By its file the model is made for 40,960 tokens; a limit of 32,768 is one of the "
            "program that runs it.");
}

TEST(Doctor, ALengthThatALogRefusesIsCuredByTheLineThatAsksForIt) {
  const Diagnosis found = diagnosed(
      {evidence_of("qwen3-8b"),
       text_exhibit("log",
                    "ValueError: User-specified max_model_len (131072) is greater than the derived "
                    "max_model_len (max_position_embeddings=40960 or model_max_length=None in "
                    "model's config.json)."),
       text_exhibit("command",
                    "vllm serve Q --max-model-len 131072 --hf-overrides "
                    "'{\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1000000,"
                    "\"factor\":4.0,\"original_max_position_embeddings\":32768}}'")});
  const auto refused = [](const Diagnosed& one) { return one.finding.code == "context_refused"; };
  EXPECT_EQ(std::ranges::count_if(found.findings, refused), 1);
  EXPECT_TRUE(found.findings.front().finding.cure.starts_with(
      "\"max_position_embeddings\":131072 beside rope_parameters"))
      << found.findings.front().finding.cure;
}

TEST(Doctor, APublishedRecipeIsNothingWrong) {
  const Diagnosis found = diagnosed(
      {evidence_of("qwen3-8b"),
       text_exhibit("command",
                    "vllm serve Q --max-model-len 131072 --hf-overrides "
                    "'{\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1000000,"
                    "\"factor\":4.0,\"original_max_position_embeddings\":32768}}'")});
  EXPECT_EQ(found.verdict,
            "Nothing wrong with position up to 131,072; from 0.30 on vLLM starts only if "
            "max_position_embeddings is told too.");
  const Finding* scaling = found_of(found, "rope_scaling");
  ASSERT_NE(scaling, nullptr);
  EXPECT_TRUE(scaling->message.contains("the model cards of Qwen 3 publish")) << scaling->message;
  EXPECT_TRUE(scaling->cure.starts_with("leave it out where no text is longer than"))
      << scaling->cure;
  EXPECT_EQ(found_of(found, "amplitude"), nullptr);  // part of the scaling
}

TEST(Doctor, ErrorsStandBeforeWarningsAndThoseBeforeNotes) {
  const Diagnosis found = diagnosed(
      {evidence_of("llama-3.1-8b"),
       text_exhibit("command", "vllm serve M --rope-theta 10000 --max-model-len 262144")});
  ASSERT_GE(found.findings.size(), 2u);
  EXPECT_TRUE(std::ranges::is_sorted(found.findings, {},
                                     [](const Diagnosed& one) { return one.finding.severity; }));
  EXPECT_EQ(found.findings.front().engine, "vllm");
  EXPECT_NE(found.findings.front().version, "");
}

TEST(Doctor, AModelfileBeyondTheContextIsFound) {
  const Diagnosis found = diagnosed(
      {evidence_of("qwen3-8b"), text_exhibit("Modelfile", "FROM x\nPARAMETER num_ctx 131072\n")});
  EXPECT_NE(found_of(found, "context_capped"), nullptr);
}

TEST(Doctor, ALogWithoutAModelIsReadForWhatItSaysByItself) {
  const Diagnosis found = diagnosed({text_exhibit(
      "log", "ValueError: `rope_scaling` must be a dictionary with two fields, got {…}")});
  EXPECT_NE(found_of(found, "transformers_too_old"), nullptr);
}

std::string printed_frequencies(double base, std::int64_t pairs) {
  std::string text = "tensor([";
  for (std::int64_t r = 0; r < pairs; ++r) {
    char number[32];
    std::snprintf(number, sizeof number, "%.4e",
                  std::pow(base, -static_cast<double>(r) / static_cast<double>(pairs)));
    text += (r == 0 ? "" : ", ") + std::string(number);
  }
  return text + "])";
}

TEST(Doctor, PrintedFrequenciesAreComparedAsFarAsTheirDigitsGo) {
  const Diagnosis good =
      diagnosed({evidence_of("qwen3-8b"), text_exhibit("inv_freq", printed_frequencies(1e6, 64))});
  EXPECT_NE(found_of(good, "inv_freq_agrees"), nullptr);
  const Diagnosis off =
      diagnosed({evidence_of("qwen3-8b"), text_exhibit("inv_freq", printed_frequencies(1e4, 64))});
  EXPECT_NE(found_of(off, "inv_freq"), nullptr);
}

// model.to(torch.bfloat16) casts buffers too.
TEST(Doctor, FrequenciesThatWereCastAreNamed) {
  const auto cast = [](const char* name, double (*kept)(double)) {
    std::string text = "inv_freq = [";
    for (int r = 0; r < 64; ++r)
      text += (r == 0 ? "" : ", ") + number_text(kept(std::pow(1e6, -r / 64.0)));
    const Diagnosis found = diagnosed({evidence_of("qwen3-8b"), text_exhibit("f", text + "]")});
    const Finding* rounded = found_of(found, "frequencies_rounded");
    ASSERT_NE(rounded, nullptr) << name;
    EXPECT_EQ(rounded->found, name);
    EXPECT_GT(rounded->position.value_or(0), 0);
    EXPECT_EQ(found_of(found, "inv_freq"), nullptr) << name;
  };
  cast("bfloat16", [](double f) -> double {
    return bfloat16_to_float(float_to_bfloat16(static_cast<float>(f)));
  });
  cast("float16",
       [](double f) -> double { return half_to_float(float_to_half(static_cast<float>(f))); });
}

TEST(Doctor, TheBaseAloneIsNamedWhereTheScalingIsMissing) {
  const Diagnosis found = diagnosed(
      {evidence_of("llama-3.1-8b"), text_exhibit("inv_freq", printed_frequencies(5e5, 64))});
  const Finding* off = found_of(found, "inv_freq");
  ASSERT_NE(off, nullptr);
  EXPECT_TRUE(off->message.contains("base 500000 without the llama3 scaling")) << off->message;
}

// Prompts are numbered, and so are layers.
TEST(Doctor, TheNumbersOfPromptsAreNoFrequencies) {
  const std::string numbers = printed_frequencies(1e6, 64);
  for (const std::string& pasted :
       {"In [3]: m.rotary_emb.inv_freq\nOut[3]: " + numbers,
        ">>> m.layers[0].rotary_emb.inv_freq\n" + numbers, "[12]:\n" + numbers}) {
    const Diagnosis found = diagnosed({evidence_of("qwen3-8b"), text_exhibit("pasted", pasted)});
    EXPECT_NE(found_of(found, "inv_freq_agrees"), nullptr) << pasted;
  }
}

TEST(Doctor, ANumberUnderItsOwnNameIsNoFrequency) {
  const Diagnosis found = diagnosed(
      {evidence_of("qwen3-8b"),
       text_exhibit("printed", "rope_type: default\ninv_freq: " + printed_frequencies(1e6, 64) +
                                   "\nattention_factor: 1.0\n")});
  EXPECT_NE(found_of(found, "inv_freq_agrees"), nullptr);
}

// Its layers with a window and those without are scaled alike.
TEST(Doctor, FrequenciesThatDifferNameTheLayersOfAllKinds) {
  const Diagnosis found = diagnosed(
      {evidence_of("gpt-oss-20b"), text_exhibit("inv_freq", printed_frequencies(150000, 32))});
  const Finding* off = found_of(found, "inv_freq");
  ASSERT_NE(off, nullptr);
  EXPECT_EQ(off->layers.size(), 24u);
}

TEST(Doctor, FrequenciesThatNobodyFilledAreTold) {
  const Diagnosis found =
      diagnosed({evidence_of("qwen3-8b"),
                 text_exhibit("inv_freq", "[0.1, 0.9, 0.2, 0.7, 0.05, 0.8, 0.3, 0.4]")});
  EXPECT_NE(found_of(found, "frequencies_unordered"), nullptr);
}

TEST(Doctor, WhatCouldNotBeReadIsInTheVerdict) {
  const Diagnosis found =
      diagnosed({evidence_of("llama-3.1-8b"), text_exhibit("error.log", "Traceback: boom")});
  EXPECT_TRUE(found.verdict.contains("not read: error.log")) << found.verdict;
}

TEST(Doctor, ADraftThatALineNamesIsComparedByItsLength) {
  const auto draft = read_model_bytes(
      std::as_bytes(std::span(std::string_view(
          R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
              "num_key_value_heads": 8, "num_hidden_layers": 1, "max_position_embeddings": 2048})"))),
      "draft.json");
  ASSERT_TRUE(draft);
  const Diagnosis found =
      diagnosed({evidence_of("llama-3.1-8b"), model_exhibit("draft.json", *draft),
                 text_exhibit("command",
                              "vllm serve L --max-model-len 8192 --speculative-config "
                              "'{\"method\":\"eagle3\",\"model\":\"E\"}'")});
  EXPECT_TRUE(found.verdict.starts_with("The draft is of no use beyond 2,048")) << found.verdict;
  EXPECT_EQ(found_of(found, "rope_theta"), nullptr);  // a draft rotates as it was trained
}

TEST(Doctor, AVersionWithoutAProfileIsSaid) {
  const Diagnosis found = diagnosed({evidence_of("llama-3.1-8b")}, {.engines = {"vllm@0.19.1"}});
  EXPECT_NE(found_of(found, "version_unknown"), nullptr);
}

TEST(Doctor, VersionsOfPipAreEnginesThatRunIt) {
  const auto file = read_model_bytes(
      std::as_bytes(std::span(std::string_view(
          R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
              "num_hidden_layers": 2, "max_position_embeddings": 8192,
              "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}})"))),
      "config.json");
  ASSERT_TRUE(file);
  const Diagnosis found = diagnosed({model_exhibit("config.json", *file),
                                     text_exhibit("pip", "vllm==0.19.1\ntransformers==4.57.6\n")});
  const Finding* base = found_of(found, "engine_rope_theta");
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(base->found, "10000");
}

TEST(Doctor, ALimitThatTheSettingsMakeIsNamedAfterThem) {
  const Diagnosis found = diagnosed(
      {text_exhibit("train.sh",
                    "python3 -m verl.trainer.main data.max_prompt_length=3072 "
                    "data.max_response_length=1024"),
       text_exhibit("error.log",
                    "ValueError: Prompt length of 4834 is longer than the maximum model length of "
                    "4096.")});
  const Finding* request = found_of(found, "request_too_long");
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(request->cure.contains("max_prompt_length")) << request->cure;
}

TEST(Doctor, AScalingThatSglangDoesNotServeIsToldWithTheFlag) {
  const Diagnosis found =
      diagnosed({evidence_of("qwen3-8b"),
                 text_exhibit("command",
                              "python -m sglang.launch_server --json-model-override-args "
                              "'{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,"
                              "\"original_max_position_embeddings\":32768}}'")});
  const Finding* lifted = found_of(found, "context_not_lifted");
  ASSERT_NE(lifted, nullptr);
  EXPECT_TRUE(lifted->cure.starts_with("--context-length 131072 with SGLANG_ALLOW_OVERWRITE"));
  EXPECT_EQ(found_of(found, "theta_missing"), nullptr);  // Qwen 3's class has the base itself
}

TEST(Doctor, AFlagThatAnEngineDoesNotTakeIsTheVerdict) {
  const Diagnosis found =
      diagnosed({evidence_of("qwen3-8b"),
                 text_exhibit("command", "text-generation-launcher --rope-scaling yarn")});
  EXPECT_NE(found_of(found, "flag_refused"), nullptr);
  EXPECT_TRUE(found.verdict.contains("linear or dynamic")) << found.verdict;
}

TEST(Doctor, AProgramWithoutAProfileIsAnsweredByWhatIsKnownOfIt) {
  const Diagnosis found = diagnosed(
      {evidence_of("llama-3.1-8b"),
       text_exhibit("command", "torchrun pretrain_vlm.py --rotary-base 500000 --seq-length 576")});
  const Finding* program = found_of(found, "program_unknown");
  ASSERT_NE(program, nullptr);
  EXPECT_TRUE(program->message.contains("--rotary-base"));
}

TEST(Doctor, AVideoLongerThanThoseOfTheTrainingIsNamed) {
  const auto frames = [](const char* line) { return diagnosed({text_exhibit("line", line)}); };
  for (const char* line :
       {"python generate.py --task t2v-1.3B --frame_num 201 --ckpt_dir W",
        "python3 sample_video.py --video-size 720 1280 --video-length 201",
        "python cli_demo.py --generate_type t2v --num_frames 81 --model_path THUDM/CogVideoX-5b"}) {
    const Diagnosis found = frames(line);
    ASSERT_TRUE(found_of(found, "frames_beyond")) << line;
    EXPECT_TRUE(found.verdict.contains("was trained on")) << found.verdict;
  }
  EXPECT_FALSE(found_of(frames("python generate.py --task t2v-14B --frame_num 81 --ckpt_dir W"),
                        "frames_beyond"));
  EXPECT_FALSE(
      found_of(frames("python cli_demo.py --generate_type t2v --num_frames 81 --model_path "
                      "CogVideoX1.5-5B"),
               "frames_beyond"));
}

TEST(Doctor, AlibiHasNoScalingToAdd) {
  const Diagnosis found = diagnosed({evidence_of("mpt-7b")}, {.length = 4096});
  ASSERT_TRUE(found_of(found, "beyond_context"));
  EXPECT_TRUE(found_of(found, "beyond_context")->cure.starts_with("ALiBi has no scaling"));
}

TEST(Doctor, AProgramWithoutAProfileIsAskedForNoMoreThanTheModelReaches) {
  const auto beside = [](const char* line) {
    return diagnosed({evidence_of("llama-2-7b"), text_exhibit("line", line)});
  };
  EXPECT_TRUE(found_of(beside("mlc_llm serve HF://L --overrides context_window_size=20000"),
                       "beyond_context"));
  EXPECT_FALSE(found_of(beside("mlc_llm serve HF://L --overrides context_window_size=4096"),
                        "beyond_context"));
}

TEST(Doctor, PartsOfRanksAreToldByTheSettings) {
  const Diagnosis found = diagnosed(
      {text_exhibit("c.yaml", "sequence_len: 16384\ncontext_parallel_size: 4\n"),
       text_exhibit("l.log",
                    "q_embed = (q * cos)\nRuntimeError: The size of tensor a (4096) must match "
                    "the size of tensor b (16384) at non-singleton dimension 2\n")});
  const Finding* parts = found_of(found, "parts_of_ranks");
  ASSERT_TRUE(parts);
  EXPECT_TRUE(parts->message.contains("context_parallel_size 4 of c.yaml")) << parts->message;
}

TEST(Doctor, AScalingThatNoTextNeedsIsNamed) {
  EXPECT_NE(
      found_of(diagnosed({evidence_of("qwen2.5-7b-yarn4")}, {.length = 8192}), "scaling_unneeded"),
      nullptr);
  EXPECT_EQ(
      found_of(diagnosed({evidence_of("qwen2.5-7b-yarn4")}, {.length = 65536}), "scaling_unneeded"),
      nullptr);
}

TEST(Doctor, WhatAModelfileAsksForIsComparedWithWhatRuns) {
  const Diagnosis found = diagnosed({text_exhibit("Modelfile", "FROM x\nPARAMETER num_ctx 16384\n"),
                                     text_exhibit("ps.txt",
                                                  "NAME   ID  PROCESSOR    CONTEXT    UNTIL\n"
                                                  "x      a   100% GPU     262144     now\n")});
  EXPECT_NE(found_of(found, "num_ctx_ignored"), nullptr);
}

TEST(Doctor, ALimitBelowWhatTheLineAsksForIsMemory) {
  const Diagnosis found =
      diagnosed({evidence_of("deepseek-v3"),
                 text_exhibit("command", "python -m sglang.launch_server --context-length 163840"),
                 text_exhibit("error.log",
                              "Input length (160062 tokens) exceeds the maximum allowed length "
                              "(59862 tokens).")});
  EXPECT_NE(found_of(found, "cache_memory"), nullptr);
  EXPECT_EQ(found_of(found, "request_too_long"), nullptr);
}

TEST(Doctor, ALimitThatIsThePoolOfSglangIsMemory) {
  const Diagnosis found = diagnosed(
      {evidence_of("deepseek-v3"),
       text_exhibit("error.log",
                    "[TP0] max_total_num_tokens=59868, chunked_prefill_size=8192, "
                    "context_len=163840\nInput length (160062 tokens) exceeds the maximum allowed "
                    "length (59862 tokens).")});
  EXPECT_NE(found_of(found, "cache_memory"), nullptr);
  EXPECT_EQ(found_of(found, "request_too_long"), nullptr);
}

TEST(Doctor, ALongerContextIsNoCureBeyondTheModel) {
  const Diagnosis found = diagnosed(
      {evidence_of("qwen2.5-7b-instruct"),
       text_exhibit("lms.log",
                    "Trying to keep the first 111490 tokens when context the overflows. However, "
                    "the model is loaded with context length of only 32768 tokens")});
  const Finding* fitted = found_of(found, "context_fitted");
  ASSERT_NE(fitted, nullptr);
  EXPECT_TRUE(fitted->cure.starts_with("a shorter prompt")) << fitted->cure;
}

TEST(Doctor, WhatASlotHasIsComparedWithTheLine) {
  const auto beside = [](const char* line, const char* log) {
    return diagnosed({text_exhibit("line", line), text_exhibit("log", log)});
  };
  const char* log =
      "request (30000 tokens) exceeds the available context size (24576 tokens), try increasing it";
  const Diagnosis shared = beside("llama-server -m m.gguf -c 98304 -np 4", log);
  ASSERT_TRUE(found_of(shared, "request_too_long"));
  EXPECT_TRUE(found_of(shared, "request_too_long")->cure.starts_with("-c 120832"));
  EXPECT_TRUE(found_of(beside("llama-server -m m.gguf -c 98304", log), "context_fitted"));
  EXPECT_TRUE(found_of(beside("llama-server -m m.gguf -c 24576", log), "request_too_long"));
}

TEST(Doctor, AServerThatCapsItsSlotsSaysSoInItsLog) {
  const Diagnosis found = diagnosed(
      {evidence_of("qwen3-8b"), text_exhibit("line", "llama-server -m q.gguf -c 131072"),
       text_exhibit("props",
                    R"({"default_generation_settings":{"n_ctx":40960},"total_slots":4})")});
  ASSERT_TRUE(found_of(found, "context_capped"));
  EXPECT_EQ(found_of(found, "context_capped")->found, "40,960");
}

TEST(Doctor, ALineThatServesLessThanIsAskedAboutIsNotRight) {
  const auto said = [](const char* line) -> Diagnosed {
    const Diagnosis found =
        diagnosed({evidence_of("qwen3-8b"), text_exhibit("line", line)}, {.length = 20000});
    const auto at = std::ranges::find_if(
        found.findings, [](const Diagnosed& one) { return one.finding.code == "context_shorter"; });
    return at == found.findings.end() ? Diagnosed{} : *at;
  };
  EXPECT_TRUE(
      said("llama-server -m m.gguf -c 40960 --parallel 4").finding.cure.starts_with("-c 80000"));
  EXPECT_EQ(said("vllm serve Qwen/Qwen3-8B --max-model-len 8192").finding.cure,
            "--max-model-len 20000");
  EXPECT_EQ(said("vllm serve Qwen/Qwen3-8B --max-model-len 32768").finding.code, "");
  EXPECT_EQ(said("llama-server -m m.gguf -c 40960 --parallel 4 -kvu").finding.code, "");
}

TEST(Doctor, SelfExtendIsCuredByItsOwnFlag) {
  const Diagnosis found = diagnosed(
      {evidence_of("llama-2-7b"),
       text_exhibit("line", "llama-cli -m m.gguf -c 24576 --grp-attn-n 8 --grp-attn-w 2048")});
  ASSERT_TRUE(found_of(found, "beyond_context"));
  EXPECT_TRUE(found_of(found, "beyond_context")->cure.starts_with("--grp-attn-n 16 reaches"));
}

TEST(Doctor, ADraftThatIsNotThereIsInTheVerdict) {
  const Diagnosis found = diagnosed(
      {evidence_of("llama-3.1-8b"),
       text_exhibit("line",
                    "python3 -m sglang.launch_server --model-path M --context-length 32768 "
                    "--speculative-algorithm EAGLE3 --speculative-draft-model-path D")});
  EXPECT_TRUE(found.verdict.contains("its draft")) << found.verdict;
}

TEST(Doctor, AConfigThatNamesItsTokenizerIsAModel) {
  const Exhibit one =
      text_exhibit("config.json", R"({"architectures": ["BaichuanForCausalLM"], "hidden_size": 5120,
      "num_hidden_layers": 40, "num_attention_heads": 40, "model_max_length": 4096,
      "tokenizer_class": "BaichuanTokenizer"})");
  EXPECT_EQ(one.kind, ExhibitKind::model) << one.as;
}

TEST(Doctor, AScriptThatStartsAnEngineIsItsLine) {
  const char* script =
      "#!/bin/bash\nexport VLLM_USE_V1=1\nvllm serve Qwen/Qwen3-8B \\\n  --max-model-len 131072 "
      "\\\n"
      "  --hf-overrides '{\"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 1000, "
      "\"factor\": 4, \"original_max_position_embeddings\": 32768}}'\n";
  const Diagnosis found = diagnosed({evidence_of("qwen3-8b"), text_exhibit("serve.sh", script)});
  EXPECT_EQ(found.evidence.back().kind, ExhibitKind::command) << found.evidence.back().as;
  EXPECT_TRUE(found_of(found, "rope_theta"));
  EXPECT_EQ(found_of(found, "rope_scaling")->severity, Severity::note);
}

TEST(Doctor, OnePairThatLeavesTheLadderIsNamed) {
  const Diagnosis alone = diagnosed(
      {text_exhibit("f.txt",
                    "freqs_t = tensor([1.000000, 0.226195, 0.100000, 0.031623, 0.010000, 0.003162, "
                    "0.001000, 0.000316])")});
  ASSERT_TRUE(found_of(alone, "odd_pair"));
  EXPECT_EQ(found_of(alone, "odd_pair")->pair, 1);
  const Diagnosis plain =
      diagnosed({text_exhibit("f.txt", "[1.0, 0.31623, 0.1, 0.031623, 0.01, 0.0031623, 0.001]")});
  EXPECT_FALSE(found_of(plain, "odd_pair"));
}

TEST(Doctor, FrequenciesOfAVideoAreThoseOfOneAxis) {
  const auto wan = read_config(
      R"({"_class_name": "WanTransformer3DModel", "attention_head_dim": 128,
          "num_attention_heads": 12, "num_layers": 30, "rope_max_seq_len": 1024})");
  ASSERT_TRUE(wan);
  std::vector<double> time;
  for (int r = 0; r < 22; ++r) time.push_back(std::pow(10000.0, -r / 22.0));
  const auto code_with = [&](double fifth) {
    std::string text = "# time, 321 frames\n[";
    for (std::size_t r = 0; r < time.size(); ++r)
      text += (r == 0 ? "" : ", ") + number_text(r == 5 ? fifth : time[r]);
    const Diagnosis found =
        diagnosed({model_exhibit("wan", *wan), text_exhibit("f.txt", text + "]")});
    return found.findings.empty() ? "" : found.findings.front().finding.code;
  };
  EXPECT_EQ(code_with(time[5]), "inv_freq_agrees");
  EXPECT_EQ(code_with(0.0698131700797732), "odd_pair");
}

TEST(Doctor, AScalingInBracesIsReadWhoeverIsAskedForIt) {
  std::vector<Exhibit> all = exhibits_of("qwen3-8b");
  all.push_back(text_exhibit("line",
                             "aphrodite run M --max-model-len 65536 --rope-scaling "
                             "'{\"type\":\"dynamic\",\"factor\":4.0}'"));
  const Diagnosis found = diagnosed(std::move(all));
  EXPECT_TRUE(found_of(found, "program_unknown"));
  EXPECT_FALSE(found_of(found, "wrapper_scaling"));
  EXPECT_FALSE(found_of(found, "beyond_context"));
}

TEST(Doctor, SlotsNeedNoModel) {
  EXPECT_TRUE(
      found_of(diagnosed({text_exhibit("line", "llama-server -m m.gguf -ngl 99 -np 4")}), "slots"));
  EXPECT_FALSE(
      found_of(diagnosed({text_exhibit("line", "llama-server -m m.gguf -np 4 -kvu")}), "slots"));
  // A binary that somebody renamed.
  EXPECT_EQ(text_exhibit("line", "./srvr --model m.gguf --n-gpu-layers 99 -np 4").kind,
            ExhibitKind::command);
}

TEST(Doctor, KoboldcppStretchesByItself) {
  const Diagnosis found = diagnosed(
      {text_exhibit("line", "koboldcpp m.gguf --contextsize 3048"),
       text_exhibit("log",
                    "n_ctx_per_seq (3048) > n_ctx_train (2048) -- possible training context "
                    "overflow")});
  ASSERT_TRUE(found_of(found, "beyond_context"));
  EXPECT_EQ(found_of(found, "beyond_context")->severity, Severity::note);
}

TEST(Doctor, ALinesFlagsHoldForThePresetsThatItStarts) {
  const Diagnosis found = diagnosed(
      {evidence_of("qwen3-8b"),
       text_exhibit("presets.ini", "[*]\ncache-type-k = q8_0\n[Qwen/Q]\nctx-size = 163840\n"),
       text_exhibit("line", "llama-server --host 0.0.0.0 -np 4 --models-preset presets.ini")});
  EXPECT_EQ(found_of(found, "beyond_context"), nullptr);
  ASSERT_NE(found_of(found, "slots"), nullptr);
  EXPECT_EQ(found_of(found, "slots")->severity, Severity::note);
  EXPECT_EQ(found.length, 40960);
}

TEST(Doctor, ARouterDoesNotHandItsFlagsOn) {
  const char* const child =
      "[61060] "
      "cmd_child_to_router:info:{\"id\":\"q\",\"meta\":{\"n_ctx\":4096,\"n_ctx_train\":262144}}";
  const Diagnosis found = diagnosed(
      {text_exhibit("line", "llama-server --ctx-size 120000 --parallel 3 --kv-unified -ngl 99"),
       text_exhibit("server.log", child)});
  const Finding* less = found_of(found, "context_fitted");
  ASSERT_TRUE(less);
  EXPECT_EQ(less->found, "4,096");
  EXPECT_TRUE(less->cure.contains("--models-preset")) << less->cure;
  EXPECT_EQ(std::ranges::find(found.findings, "context_fitted",
                              [](const Diagnosed& one) { return one.finding.code; })
                ->engine,
            "llama.cpp");
  // Slots share what was asked for.
  EXPECT_FALSE(found_of(diagnosed({text_exhibit("line", "llama-server -m m.gguf -c 16384 -np 4"),
                                   text_exhibit("log", "slot 0: new slot, n_ctx = 4096")}),
                        "context_fitted"));
  EXPECT_FALSE(found_of(diagnosed({text_exhibit("line", "llama-server -m m.gguf -c 4096 -np 0"),
                                   text_exhibit("log", "slot 0: new slot, n_ctx = 4096")}),
                        "context_fitted"));
}

TEST(Doctor, AClientsLengthIsOllamasWhereItHandsItOn) {
  const Exhibit one = text_exhibit("config.yaml",
                                   "models:\n  - name: Coder\n    provider: ollama\n    model: "
                                   "qwen2.5-coder:7b\n    defaultCompletionOptions:\n      "
                                   "contextLength: 131072\n");
  EXPECT_EQ(one.kind, ExhibitKind::modelfile) << one.as;
  EXPECT_EQ(one.text, "FROM qwen2.5-coder:7b\nPARAMETER num_ctx 131072\n");
  // Others tell no server.
  EXPECT_NE(text_exhibit("config.yaml",
                         "models:\n  - name: Coder\n    provider: openai\n    model: m\n    "
                         "defaultCompletionOptions:\n      contextLength: 131072\n")
                .kind,
            ExhibitKind::modelfile);
}

TEST(Doctor, ManyLinesAlikeAreAFewFindings) {
  std::string log;
  for (int n = 3000; n < 5000; ++n)
    log += "level=WARN msg=\"truncating input prompt\" limit=2048 prompt=" + std::to_string(n) +
           " keep=4 new=2048\n";
  const Diagnosis found = diagnosed({text_exhibit("ollama.log", log)});
  EXPECT_LT(found.findings.size(), 6U);
  EXPECT_TRUE(std::ranges::any_of(
      found.findings, [](const Diagnosed& one) { return one.finding.found == "4,999"; }));
}

TEST(Doctor, ATrainersSettingsMayStandInJson) {
  const Exhibit one = text_exhibit(
      "sft.json",
      R"({"model_name_or_path": "Qwen/Qwen3-8B", "cutoff_len": 65536, "stage": "sft"})");
  EXPECT_EQ(one.kind, ExhibitKind::training) << one.as;
  EXPECT_TRUE(one.text.contains("cutoff_len: 65536\n")) << one.text;
  EXPECT_EQ(
      text_exhibit("t", R"({"tokenizer_class": "Qwen2Tokenizer", "model_max_length": 131072})")
          .kind,
      ExhibitKind::command);
}

TEST(Doctor, AScalingBesideItsModelReachesAsFarAsItDoes) {
  const auto at = [](std::int64_t length) {
    std::vector<Exhibit> all = exhibits_of("qwen3-8b");
    all.push_back(text_exhibit("config.json", R"("rope_scaling": {"rope_type": "yarn",
        "factor": 4.0, "original_max_position_embeddings": 32768})"));
    return diagnosed(std::move(all), {.length = length});
  };
  EXPECT_FALSE(found_of(at(131072), "beyond_context"));
  EXPECT_TRUE(found_of(at(262144), "beyond_context"));
  // Without a trained length of its own the scaling is of the model's.
  std::vector<Exhibit> alone = exhibits_of("qwen3-8b");
  alone.push_back(
      text_exhibit("config.json", R"("rope_scaling": {"rope_type": "yarn", "factor": 2.0})"));
  EXPECT_FALSE(found_of(diagnosed(std::move(alone), {.length = 65536}), "beyond_context"));
  // Of Llama 3's keys another factor stands first.
  std::vector<Exhibit> all = exhibits_of("qwen3-8b");
  all.push_back(text_exhibit("config.json", R"("rope_scaling": {"rope_type": "llama3",
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "factor": 8.0,
      "original_max_position_embeddings": 8192})"));
  EXPECT_FALSE(found_of(diagnosed(std::move(all), {.length = 65536}), "beyond_context"));
}

TEST(Doctor, OllamaRunsWhatItCappedAndNotItsDefault) {
  const Diagnosis found = diagnosed({text_exhibit(
      "ollama.log",
      "time=2025-06-27T01:23:48.232Z level=WARN source=server.go:145 msg=\"requested context size "
      "too large for model\" num_ctx=8192 num_parallel=1 n_ctx_train=2048\n"
      "llama_context: n_ctx         = 2048\nllama_context: n_ctx_per_seq = 2048\n")});
  EXPECT_TRUE(found_of(found, "context_capped"));
  EXPECT_FALSE(found_of(found, "context_defaulted"));
}

TEST(Doctor, OllamaCapsAtTheFilesContextWhateverItsScalingReaches) {
  std::vector<Exhibit> all;
  all.push_back(model_exhibit("config.json", *read_config(R"({"model_type": "qwen3",
      "max_position_embeddings": 40960, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
      "original_max_position_embeddings": 32768}})")));
  all.push_back(text_exhibit("Modelfile", "FROM ./m\nPARAMETER num_ctx 131072\n"));
  const Diagnosis found = diagnosed(std::move(all));
  ASSERT_TRUE(found_of(found, "context_capped"));
  EXPECT_EQ(found_of(found, "context_capped")->expected, "40,960");
}

TEST(Doctor, PackedTextsShareTheStateOfLayersThatDoNotAttend) {
  const auto packed = [](const char* family) {
    return diagnosed(
        {model_exhibit("config.json",
                       *read_config(R"({"model_type": ")" + std::string(family) + R"("})")),
         text_exhibit("train.yaml", "base_model: m\nsequence_len: 4096\nsample_packing: true\n")});
  };
  EXPECT_TRUE(found_of(packed("qwen3_next"), "packing_ignored"));
  EXPECT_FALSE(found_of(packed("qwen3"), "packing_ignored"));
}

TEST(Doctor, KoboldcppMovesNoQuantisedKeys) {
  const auto by = [](const char* line) {
    return diagnosed({model_exhibit("m", *read_config(R"({"model_type": "llama"})")),
                      text_exhibit("line", line)});
  };
  EXPECT_TRUE(
      found_of(by("./koboldcpp_linux m.gguf --contextsize 2048 --quantkv 1"), "context_full"));
  EXPECT_FALSE(
      found_of(by("koboldcpp m.gguf --contextsize 2048 --quantkv 1 --noshift"), "context_full"));
}

TEST(Doctor, PrintedPositionsAreDescribed) {
  const auto of = [](const char* text) {
    const Diagnosis found = diagnosed({text_exhibit("ids", text)});
    const Finding* ids = found_of(found, "positions_printed");
    return ids ? ids->message + " | " + ids->cure : std::string();
  };
  const std::string picture =
      of("position_ids:\n tensor([[[0, 1, 2, 3, 4, 4, 4, 4, 6, 7, 8]],\n"
         "        [[0, 1, 2, 3, 4, 4, 5, 5, 6, 7, 8]],\n        [[0, 1, 2, 3, 4, 5, 4, 5, 6, 7, "
         "8]]])");
  EXPECT_TRUE(
      picture.starts_with("tokens 4–7 stand on a grid of 1×2×2 from 4 on, and text goes on "
                          "at 6"))
      << picture;
  EXPECT_TRUE(picture.contains("check-positions '0,1,2,3,4,4,4,4,6,7,8;")) << picture;
  EXPECT_TRUE(of("position_ids = [[0, 1, 2, 0, 1, 2]]").contains("token 3 2 → 0"));
  EXPECT_TRUE(of("positions tensor([[0, 1, 2, 3], [0, 1, 2, 3]])").starts_with("each row"));
  EXPECT_EQ(of("position [1.5, 2.5, 3.5, 4.5]"), "");
  EXPECT_EQ(of("position [1, 2, 3, 4] [1, 2, 3, 4, 5]"), "");
}

TEST(Doctor, DockersModelsAreRunByLlamaCpp) {
  for (const char* text : {"docker model configure --context-size 8192 ai/qwen2.5-coder",
                           "services:\n  app:\n    image: x\nmodels:\n  llm:\n    model: ai/q\n"
                           "    context_size: 8192\n"}) {
    const Exhibit one = text_exhibit("x", text);
    EXPECT_EQ(one.kind, ExhibitKind::command) << text;
    EXPECT_TRUE(one.text.contains("--ctx-size 8192")) << one.text;
  }
}

TEST(Doctor, CallsOfPythonAreTheLinesThatSayTheSame) {
  const auto line = [](const char* text) {
    const Exhibit one = text_exhibit("x.py", text);
    return one.kind == ExhibitKind::command ? one.text : "no command: " + one.as;
  };
  EXPECT_EQ(line("from vllm import LLM\nllm = LLM(model=\"Q\", max_model_len=131_072,  # long\n"
                 "  hf_overrides={'rope_parameters': {'factor': 4.0, 'on': True}})\n"),
            "vllm serve M --max-model-len 131072 --hf-overrides "
            R"('{"rope_parameters": {"factor": 4.0, "on": true}}')");
  EXPECT_EQ(line("llm = Llama(\n  model_path='x.gguf',\n  n_ctx=8192,\n  rope_freq_scale=0.5,\n)"),
            "llama-cli --ctx-size 8192 --rope-freq-scale 0.5");
  EXPECT_EQ(line("engine = sgl.Engine(model_path='Q', context_length=65536)"),
            "python -m sglang.launch_server --context-length 65536");
  // A name that ends so is another, and a traceback is a log.
  EXPECT_TRUE(line("x = MyLLM(max_model_len=4)").starts_with("no command"));
  EXPECT_TRUE(line("Traceback (most recent call last):\n  File \"a.py\", line 3\n"
                   "    llm = LLM(model='Q', max_model_len=8)\nKeyError: 'rope_theta'\n")
                  .starts_with("no command"));
  EXPECT_TRUE(
      line("llm = LLM(model=args.model, max_model_len=args.length)").starts_with("no command"));
}

TEST(Exhibit, OfACellIsTheVersionThatItPrints) {
  const Exhibit one = text_exhibit("cell",
                                   "In [1]: import transformers\n   ...: transformers.__version__\n"
                                   "Out[1]: '5.14.2'\n");
  EXPECT_EQ(one.kind, ExhibitKind::versions);
  EXPECT_EQ(one.text, "transformers@5.14.2");
}

TEST(Doctor, AnglesThatCodeFormsInSixteenBitsAreTold) {
  const Diagnosis found =
      diagnosed({evidence_of("llama-3.1-8b"),
                 text_exhibit("rope.py",
                              "class Rotary:\n  def forward(self, x, seq_len):\n"
                              "    t = torch.arange(seq_len, dtype=torch.bfloat16)\n")});
  const Finding* rounded = found_of(found, "angles_rounded");
  ASSERT_NE(rounded, nullptr);
  EXPECT_EQ(rounded->position, 256);
  EXPECT_EQ(rounded->line, 3);
}

// Messages that any program may print are not told as those of one library.
TEST(Doctor, MessagesLikeKnownOnesAreNotTakenForThem) {
  for (const char* text :
       {"TypeError: set_properties() takes 1 positional argument but 2 were given",
        "TypeError: get_properties() got an unexpected keyword argument 'seq_len'",
        "TypeError: forward() got an unexpected keyword argument 'max_seq_len'",
        "TypeError: unsupported operand type(s) for +: 'Tensor' and 'Embedding'",
        "Unexpected key(s) in state_dict: \"rope_embed.periods\"", "INFO TRUNCATION LENGTH: 81920",
        "max_position_embeddings: 0.5 is odd",
        "prompt eval: Prompt Tokens: 1500, Generated Tokens: 548",
        "  q = self.rotary_emb(value_states, position_ids)\nRuntimeError: Expected all tensors to "
        "be "
        "on the same device, but found at least two devices, cuda:1 and cuda:0!",
        "AttributeError: 'GPT2Attention' object has no attribute 'rotary_emb'"}) {
    const Diagnosis found = diagnosed({text_exhibit("log", text)});
    for (const Diagnosed& one : found.findings)
      EXPECT_TRUE(one.finding.code == "line_unknown" || one.finding.severity == Severity::note)
          << text << ": " << one.finding.code;
  }
}

TEST(Doctor, ATracebackThatQuotesCodeIsALog) {
  const Diagnosis found =
      diagnosed({evidence_of("llama-2-7b"),
                 text_exhibit("log",
                              "Traceback (most recent call last):\n"
                              "    cos, sin = self.rotary_emb(value_states, seq_len=kv_seq_len, "
                              "position_ids=position_ids)\n"
                              "AssertionError: index out of bounds: 0 <= tmp < 4096\n")});
  EXPECT_NE(found_of(found, "table_end"), nullptr) << found.verdict;
}

TEST(Doctor, CodeThatRotatesNeighboursIsTold) {
  const auto told = [](const char* model) {
    const Diagnosis found = diagnosed(
        {evidence_of(model),
         text_exhibit(
             "rope.py",
             "def apply_rotary_emb(xq, freqs_cis):\n"
             "    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))\n")});
    return found_of(found, "pairing") != nullptr;
  };
  EXPECT_TRUE(told("llama-3-8b"));
  EXPECT_FALSE(told("deepseek-v3"));  // whose weights want it so
}

TEST(Doctor, AHeadingAbovePrintedFrequenciesIsNoneOfThem) {
  const Diagnosis found = diagnosed({text_exhibit(
      "inv_freq.txt",
      "temporal inv_freq (dim 44):\ntensor([1.0000e+00, 6.5793e-01, 4.3288e-01, 2.8480e-01, "
      "1.8738e-01, 9.2703e-02, 8.1113e-02, 5.3367e-02])\n")});
  const Finding* odd = found_of(found, "odd_pair");
  ASSERT_TRUE(odd) << found.verdict;
  EXPECT_EQ(odd->pair, 5);
}

TEST(Doctor, AScalingThatIsSetOnALoadedModelDoesNothing) {
  const auto said = [](const char* code) {
    return found_of(diagnosed({evidence_of("mistral-7b-v0.3"), text_exhibit("run.py", code)}),
                    "override_unread") != nullptr;
  };
  EXPECT_TRUE(
      said("model = AutoModelForCausalLM.from_pretrained(name)\n"
           "model.config.rope_scaling = {\"rope_type\": \"yarn\", \"factor\": 4.0}\n"));
  EXPECT_FALSE(
      said("config = AutoConfig.from_pretrained(name)\n"
           "config.rope_scaling = {\"rope_type\": \"yarn\", \"factor\": 4.0}\n"
           "model = AutoModelForCausalLM.from_pretrained(name, config=config)\n"));
  EXPECT_FALSE(
      said("model = AutoModelForCausalLM.from_pretrained(name)\n"
           "print(model.config.rope_scaling)\n"));
}

TEST(Doctor, ASlotIsCappedWhereTheFileScalesByItself) {
  const Diagnosis found = diagnosed({text_exhibit(
      "server.log",
      "print_info: n_ctx_train      = 4096\nprint_info: rope scaling     = linear\n"
      "print_info: freq_scale_train = 0.25\nprint_info: n_ctx_orig_yarn  = 4096\n"
      "srv load_model: the slot context (16384) exceeds the training context of the model (4096) - "
      "capping\n")});
  const Finding* capped = found_of(found, "context_capped");
  ASSERT_TRUE(capped) << found.verdict;
  EXPECT_TRUE(capped->cure.contains("no other scaling")) << capped->cure;
}

TEST(Doctor, VllmBefore012ReadsABaseAtTheTopAlone) {
  const Diagnosis found = diagnosed(
      {text_exhibit("config.json",
                    R"({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 2,
                        "num_attention_heads": 32, "max_position_embeddings": 32768,
                        "sliding_window": null, "transformers_version": "5.1.0",
                        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}})"),
       text_exhibit("command", "docker run vllm/vllm-openai:v0.8.5 --model /ft")});
  const Finding* base = found_of(found, "transformers_beneath");
  ASSERT_TRUE(base) << found.verdict;
  EXPECT_TRUE(base->cure.contains("vLLM 0.12")) << base->cure;
}

TEST(Doctor, ABufferOfOnesWasNeverFilled) {
  const Diagnosis found =
      diagnosed({evidence_of("mistral-7b-v0.3"),
                 text_exhibit("inv_freq.txt",
                              "model.rotary_emb.inv_freq\ntensor([1., 1., 1., 1., "
                              "1., 1., 1., 1., 1., 1., 1., 1.])\n")});
  EXPECT_NE(found_of(found, "frequencies_alike"), nullptr) << found.verdict;
}

TEST(Doctor, WhetherAScalingMayBeLeftOutDependsOnWhatWasTrained) {
  const auto said = [](const char* model) {
    const Diagnosis found = diagnosed(
        {evidence_of(model),
         text_exhibit("words", "Should we strip the yarn block when our prompts are short?")});
    const Finding* one = found_of(found, "asks_longer");
    return one ? one->cure : found.verdict;
  };
  EXPECT_EQ(said("deepseek-r1"), "leave it in");
  EXPECT_EQ(said("qwen2.5-7b-yarn4"), "leave it out where no text is longer than 32,768");
}

TEST(Doctor, AQuestionAboutLayersIsAnsweredByTheLayers) {
  const Diagnosis found =
      diagnosed({evidence_of("gemma-3-4b"),
                 text_exhibit("words", "Is the missing rope scaling in layers 0-4 a bug?")});
  EXPECT_NE(found_of(found, "asks_rotation"), nullptr) << found.verdict;
}

TEST(Doctor, WhereSentenceTransformersCutIsTold) {
  const Diagnosis found =
      diagnosed({evidence_of("all-minilm-l6-v2"),
                 text_exhibit("sentence_bert_config.json",
                              "{\n  \"max_seq_length\": 256,\n  \"do_lower_case\": false\n}\n")});
  const Finding* cut = found_of(found, "prompt_truncated");
  ASSERT_NE(cut, nullptr) << found.verdict;
  EXPECT_EQ(cut->found, "256");
}

TEST(Exhibit, WordsThatSayNothingAreAskedForMore) {
  const Exhibit one = text_exhibit("command", "it only answers about the end");
  EXPECT_TRUE(one.as.starts_with("these words name nothing of position")) << one.as;
}

TEST(Doctor, WhatAPortMissesIsToldByTheModel) {
  const Diagnosis found =
      diagnosed({evidence_of("smollm3-3b"),
                 text_exhibit("words", "my port rotates q and k in all layers, what do I miss?")});
  EXPECT_TRUE(found.verdict.contains("9 of 36 layers do not rotate")) << found.verdict;
}

TEST(Doctor, TheVersionOfAnImageIsThatOfTheEngine) {
  const Diagnosis found =
      diagnosed({evidence_of("qwen3-8b"),
                 text_exhibit("command",
                              "docker run vllm/vllm-openai:v0.8.5 --model Q --hf-overrides "
                              "'{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,"
                              "\"original_max_position_embeddings\":32768}}'")});
  EXPECT_EQ(found_of(found, "theta_missing"), nullptr);
}

TEST(Doctor, AFileWithThePublishedScalingIsWhatRuns) {
  const Diagnosis found =
      diagnosed({evidence_of("qwen2.5-7b-instruct"), evidence_of("qwen2.5-7b-yarn4"),
                 text_exhibit("command", "llama-server -m Q -c 131072")});
  EXPECT_EQ(found.verdict, "Nothing wrong with position up to 131,072.");
  EXPECT_NE(found_of(found, "scaling_published"), nullptr);
}

TEST(Doctor, ATextLongerThanWhatTheLineServesIsToldSo) {
  const Diagnosis found = diagnosed(
      {evidence_of("llama-3.1-8b"), text_exhibit("command", "vllm serve M --max-model-len 16384"),
       text_exhibit("words", "the server says 500 when the prompt has 20k tokens")});
  EXPECT_TRUE(found.verdict.contains("serves 16,384 tokens, and the text has 20,000"))
      << found.verdict;
}

TEST(Doctor, APromptThatTheTrainerDidNotCutIsTold) {
  const auto beside = [](const char* settings, const char* log) {
    const Diagnosis found =
        diagnosed({text_exhibit("train", settings), text_exhibit("error.log", log)});
    const Finding* one = found_of(found, "request_too_long");
    return one ? one->message : std::string();
  };
  EXPECT_TRUE(beside("args = GRPOConfig(..., use_vllm=True, max_prompt_length=4000, "
                     "max_completion_length=3500, ...)",
                     "Input prompt (8128 tokens) is too long and exceeds limit of 6000")
                  .contains("although max_prompt_length of train is 4,000"));
  EXPECT_TRUE(beside("use_vllm: true\nmax_prompt_length: 512\nmax_completion_length: 2048\n",
                     "The decoder prompt (length 3353) is longer than the maximum model length of "
                     "2560.")
                  .contains("max_prompt_length 512 + max_completion_length 2,048"));
}

TEST(Exhibit, OfUnitsChartsAndRequestsIsTheLineThatSaysTheSame) {
  const auto line = [](const char* text) {
    const Exhibit one = text_exhibit("x", text);
    return one.kind == ExhibitKind::command ? one.text : "no command: " + one.as;
  };
  EXPECT_EQ(line("[Service]\nExecStart=/bin/llama-server -m m.gguf \\\n  -c 8192\n"
                 "Environment=\"LLAMA_ARG_N_PARALLEL=2\"\n"),
            "LLAMA_ARG_N_PARALLEL=2 /bin/llama-server -m m.gguf  -c 8192 ");
  EXPECT_EQ(line("servingEngineSpec:\n  modelSpec:\n  - name: q\n    vllmConfig:\n"
                 "      maxModelLen: 131072\n"),
            "vllm serve M --max-model-len 131072");
  EXPECT_EQ(line("model: Q\nmax-model-len: 65536\nhf-overrides: {\"a\": 1}\n"),
            R"(vllm serve M --max-model-len 65536 --hf-overrides '{"a": 1}')");
  EXPECT_EQ(line(R"({"model": "q", "prompt": "hi", "options": {"num_ctx": 16384}})"),
            "OLLAMA_CONTEXT_LENGTH=16384 ollama serve");
  EXPECT_EQ(line("model: m\nmax-model-len: 131072\nhf-overrides:\n  text_config:\n"
                 "    rope_parameters:\n      rope_type: yarn\n      factor: 2.0\n"
                 "    max_position_embeddings: 131072\n"),
            "vllm serve M --max-model-len 131072 --hf-overrides '{\"text_config\": "
            "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 2.0}, "
            "\"max_position_embeddings\": 131072}}'");
  const char* const yarn =
      "vllm serve M --max-model-len 131072 --hf-overrides "
      "'{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4.0}}'";
  EXPECT_EQ(line("model: m\nmax-model-len: 131_072\nhf-overrides:   # long\n"
                 "  rope_parameters:\n    rope_type: 'yarn'  # as the 'card'\n    factor: 4.0\n"),
            yarn);
  EXPECT_EQ(line("model: m\nmax-model-len: 131072\nhf-overrides:\n"
                 "  rope_parameters: {rope_type: yarn, factor: 4.0}\n"),
            yarn);
  EXPECT_EQ(line("model: m\nmax-model-len: 131072\nhf-overrides.rope_parameters.factor: 4.0\n"),
            "vllm serve M --max-model-len 131072 --hf-overrides.rope_parameters.factor 4.0");
  EXPECT_EQ(line("model: m\nmax-model-len: 131072\nspeculative-config:\n  model: d\n"
                 "  max_model_len: 4096\n"),
            "vllm serve M --max-model-len 131072 --speculative-config '{\"model\": \"d\", "
            "\"max_model_len\": 4096}'");
  EXPECT_EQ(line("curl http://localhost:11434/api/generate -d '{\"model\":\"l\",\"options\":"
                 "{\"num_ctx\":8192}}'"),
            "OLLAMA_CONTEXT_LENGTH=8192 ollama serve");
  EXPECT_EQ(line("[ramalama]\nctx_size = 57675\n"), "ramalama serve --ctx-size 57675");
}

// Of hostile depth: objects beyond the sixteenth stay as they are written.
TEST(Exhibit, OfYamlMayBeAsDeepAsOneLikes) {
  std::string deep = "model: m\nmax-model-len: 131072\nhf-overrides: ";
  for (int n = 0; n < 8000; ++n) deep += "{a: ";
  deep += "1" + std::string(8000, '}') + "\n";
  EXPECT_EQ(text_exhibit("x", deep).kind, ExhibitKind::command);
}

TEST(Doctor, ATowerIsNoPartOfAMerge) {
  const char* const sizes = R"("hidden_size": 1536, "num_hidden_layers": 28,
      "num_attention_heads": 12, "num_key_value_heads": 2, "rope_theta": 1000000.0,
      "max_position_embeddings": 32768)";
  const std::string plain = std::string(R"({"model_type": "qwen2", )") + sizes + "}";
  const std::string seeing = std::string(R"({"model_type": "qwen2_vl", )") + sizes +
                             R"(, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
          "vision_config": {"depth": 32, "embed_dim": 1280, "num_heads": 16}})";
  const Diagnosis found = diagnosed({text_exhibit("a.json", seeing), text_exhibit("b.json", plain),
                                     text_exhibit("words", "can the two be merged?")});
  const Finding* merge = found_of(found, "two_models");
  ASSERT_NE(merge, nullptr);
  EXPECT_EQ(merge->severity, Severity::note);
  EXPECT_TRUE(merge->message.contains("rotate alike"));
}

TEST(Doctor, FrequenciesThatNoBaseMakesWantNoModel) {
  const Diagnosis found = diagnosed({text_exhibit(
      "inv_freq.txt",
      ">>> model.model.rotary_emb.inv_freq\ntensor([ 4.5721e-41,  0.0000e+00,  4.5721e-41, "
      "0.0000e+00, -1.2806e+13,  3.0630e-41, -1.2806e+13,  3.0630e-41])\n")});
  EXPECT_NE(found_of(found, "frequencies_unordered"), nullptr);
}

TEST(Doctor, AServerOfFewTokensForgets) {
  EXPECT_TRUE(found_of(diagnosed({text_exhibit("line", "llama-server -m q.gguf -c 1024")}),
                       "context_shorter"));
  EXPECT_TRUE(found_of(
      diagnosed({evidence_of("qwen3-8b"), text_exhibit("line", "llama-server -m q.gguf -c 1024")}),
      "context_shorter"));
  EXPECT_FALSE(found_of(diagnosed({evidence_of("qwen3-8b"),
                                   text_exhibit("line", "llama-perplexity -m q.gguf -c 512")}),
                        "context_shorter"));
}

// Which model it is has no part in a flag that its engine does not read.
TEST(Diagnose, AVideosFramesAreComparedWithThoseOfTraining) {
  const Exhibit wan =
      text_exhibit("config.json",
                   R"({"_class_name": "WanTransformer3DModel", "attention_head_dim": 128,
          "num_attention_heads": 12, "num_layers": 30, "patch_size": [1, 2, 2]})");
  const auto asked = [&](const char* call) { return diagnosed({wan, text_exhibit("x.py", call)}); };
  const Diagnosis longer = asked("pipe(prompt=p, height=480, width=832, num_frames=201)");
  const Finding* found = found_of(longer, "frames_beyond");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->expected + " " + found->found, "81 201");
  EXPECT_FALSE(found_of(asked("pipe(prompt=p, num_frames=81)"), "frames_beyond"));
}

TEST(Diagnose, ABaseThatKoboldcppRaisedIsAStretch) {
  const Diagnosis found =
      diagnosed({text_exhibit("x",
                              "llm_load_print_meta: n_ctx_train      = 2048\n"
                              "llm_load_print_meta: freq_base_train  = 10000.0\n"
                              "Automatic RoPE Scaling: Using (scale:1.000, "
                              "base:26000.0).\nllama_context: n_ctx = 3072\n")});
  EXPECT_TRUE(found_of(found, "stretched_by_engine"));
  EXPECT_FALSE(found_of(found, "beyond_context"));
}

TEST(Exhibit, OfOneLineWithSettingsByNameIsNoLog) {
  const Exhibit line = text_exhibit(
      "x",
      "python generate.py --base_model=M --rope_scaling=\"{'alpha_value':4}\" --max_seq_len=8192");
  EXPECT_EQ(line.kind, ExhibitKind::command);
  EXPECT_TRUE(line.as.contains("alpha_value 4")) << line.as;
}

TEST(Exhibit, OfADockerfileIsTheLineThatItStarts) {
  const Exhibit file = text_exhibit(
      "Dockerfile",
      "FROM vllm/vllm-openai:v0.10.2\nENV VLLM_ALLOW_LONG_MAX_MODEL_LEN=1\n"
      "CMD [\"--model\", \"Qwen/Qwen3-8B\", \\\n     \"--max-model-len\", \"131072\"]\n");
  EXPECT_EQ(file.kind, ExhibitKind::command) << file.as;
  EXPECT_TRUE(file.text.contains("--model Qwen/Qwen3-8B --max-model-len 131072")) << file.text;
  EXPECT_EQ(text_exhibit("x", "FROM qwen3:8b\nPARAMETER num_ctx 8192\n").kind,
            ExhibitKind::modelfile);
}

TEST(Diagnose, WhatOllamaShowPrintsIsComparedWithItself) {
  const Diagnosis found = diagnosed({text_exhibit(
      "x", "  Model\n    context length      32768\n\n  Parameters\n    num_ctx    131072\n")});
  const Finding* beyond = found_of(found, "beyond_context");
  ASSERT_TRUE(beyond);
  EXPECT_EQ(beyond->expected + " " + beyond->found, "32,768 131,072");
  EXPECT_TRUE(beyond->cure.starts_with("PARAMETER num_ctx 32768")) << beyond->cure;
}

TEST(Diagnose, ADumpOfAGgufIsComparedWithTheModel) {
  const Diagnosis found = diagnosed(
      {evidence_of("qwen3-8b"),
       text_exhibit("dump",
                    "      9: UINT32     |        1 | qwen3.context_length = 40960\n"
                    "     14: FLOAT32    |        1 | qwen3.rope.freq_base = 10000.0\n")});
  const Finding* base = found_of(found, "rope_theta");
  ASSERT_TRUE(base);
  EXPECT_EQ(base->found, "10000");
}

TEST(Diagnose, AScalingThatDoesNotReachItsOwnLineIsToldWithoutTheModel) {
  const auto alone = [](const char* length) {
    return diagnosed({text_exhibit(
        "x", std::string("vllm serve M --hf-overrides '{\"rope_scaling\": {\"rope_type\": "
                         "\"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": "
                         "32768}}' --max-model-len ") +
                 length)});
  };
  const Diagnosis far = alone("1000000");
  const Finding* found = found_of(far, "beyond_context");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->expected + " " + found->found, "131,072 1,000,000");
  EXPECT_FALSE(found_of(alone("131072"), "beyond_context"));
}

TEST(Doctor, FlagsThatNoModelMakesRightAreToldWithoutOne) {
  const auto alone = [](const char* line) { return diagnosed({text_exhibit("line.sh", line)}); };
  EXPECT_TRUE(
      found_of(alone("text-generation-launcher --model-id M --rope-factor 4"), "flag_unread"));
  EXPECT_TRUE(found_of(alone("docker run -e ROPE_SCALING=linear -e ROPE_FACTOR=4 "
                             "ghcr.io/huggingface/text-generation-inference:latest --model-id M"),
                       "flag_unread"));
  EXPECT_TRUE(
      found_of(alone("lmdeploy serve api_server M --rope-scaling-factor 0.2"), "flag_refused"));
  const Diagnosis removed = alone(
      "vllm serve M --rope-scaling '{\"rope_type\":\"yarn\",\"factor\":4.0,"
      "\"original_max_position_embeddings\":32768}'");
  ASSERT_TRUE(found_of(removed, "flag_removed"));
  EXPECT_EQ(found_of(removed, "flag_removed")->severity, Severity::warning);
  for (const char* line :
       {"vllm serve M --max-model-len 8192", "lmdeploy serve api_server M --session-len 32000",
        "python -m sglang.launch_server --model M --context-length 65536"})
    EXPECT_TRUE(alone(line).findings.empty()) << line;
}

TEST(Doctor, LinesOfALogThatBeginWithAProgramsNameStartNothing) {
  const Diagnosis found =
      diagnosed({text_exhibit("log", "lmdeploy - ERROR - Truncate max_new_tokens to 19663")});
  EXPECT_TRUE(found_of(found, "answer_shortened"));
}

TEST(Doctor, ADumpAndWhatRunsAreTwo) {
  const std::string dump =
      "llama_model_loader: - kv   3:   llama.context_length u32     = 8192\n"
      "llama_model_loader: - kv   4:   llama.rope.freq_base f32     = 500000.000000\n";
  const auto told = [&](const char* runs) { return diagnosed({text_exhibit("log", dump + runs)}); };
  const Diagnosis other =
      told("llama_context: n_ctx = 16384\nllama_context: freq_base = 10000.0\n");
  ASSERT_TRUE(found_of(other, "rope_theta"));
  EXPECT_EQ(found_of(other, "rope_theta")->severity, Severity::error);
  EXPECT_FALSE(found_of(other, "beyond_context"));
  const Diagnosis longer =
      told("llama_context: n_ctx = 16384\nllama_context: freq_base = 500000.0\n");
  EXPECT_FALSE(found_of(longer, "rope_theta"));
  ASSERT_TRUE(found_of(longer, "beyond_context"));
  EXPECT_EQ(found_of(longer, "beyond_context")->found, "16,384");
  EXPECT_TRUE(
      told("llama_context: n_ctx = 8192\nllama_context: freq_base = 500000.0\n").findings.empty());
  EXPECT_FALSE(found_of(told("llama_context: n_ctx = 16384\nllama_context: freq_base = 500000.0\n"
                             "llama_context: freq_scale = 0.5\n"),
                        "beyond_context"));
}

TEST(Doctor, ALearnedTableIsNotStretched) {
  const Diagnosis found = diagnosed(
      {evidence_of("opt-125m"),
       text_exhibit("log",
                    "ValueError: User-specified max_model_len (8192) is greater than the derived "
                    "max_model_len (max_position_embeddings=2048 or model_max_length=None)")});
  ASSERT_TRUE(found_of(found, "context_refused"));
  EXPECT_TRUE(found_of(found, "context_refused")->cure.starts_with("ask for up to 2048"));
}

TEST(Doctor, TheFilesOwnScalingIsTrainedWith) {
  const auto beside = [](const char* yaml) {
    return diagnosed({evidence_of("qwen2.5-7b-yarn4"), text_exhibit("train.yaml", yaml)});
  };
  EXPECT_FALSE(found_of(beside("model_name_or_path: Q\nfinetuning_type: lora\ncutoff_len: 65536\n"),
                        "adapter_base_context"));
  EXPECT_TRUE(found_of(beside("model_name_or_path: Q\nfinetuning_type: lora\ncutoff_len: 200000\n"),
                       "adapter_base_context"));
}

TEST(Doctor, ATrainerOfMlxIsNoServer) {
  for (const char* line : {"mlx_lm.lora --model M --train --max-seq-length 262144",
                           "python -m mlx_lm lora --model M --train --max-seq-length 262144",
                           "python -m mlx_lm.lora --model M --train --max-seq-length 262144"}) {
    const Diagnosis found = diagnosed({evidence_of("llama-3.1-8b"), text_exhibit("command", line)});
    EXPECT_TRUE(found_of(found, "adapter_base_context")) << line;
  }
}

TEST(Doctor, ALogThatBeginsWithAnEnginesNameIsNoCommand) {
  const Exhibit log = text_exhibit("log",
                                   "llama.cpp: loading model from m.bin\n"
                                   "llama_model_load_internal: n_ctx      = 8192\n");
  EXPECT_FALSE(log.as.contains("a command line of")) << log.as;
}

TEST(Doctor, AnOverrideOverSeveralLinesIsOfACommand) {
  EXPECT_EQ(text_exhibit("command",
                         "python -m sglang.launch_server --json-model-override-args '{\n"
                         "  \"rope_scaling\": {\n    \"rope_type\": \"yarn\",\n"
                         "    \"factor\": 4.0\n  }\n}'")
                .kind,
            ExhibitKind::command);
}

TEST(Doctor, SglangSince0510ReadsByTransformers5) {
  const Exhibit model = text_exhibit(
      "config.json", R"({"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 2,
      "num_attention_heads": 4, "max_position_embeddings": 4096,
      "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}})");
  const auto with = [&](const char* engine) { return diagnosed({model}, {.engines = {engine}}); };
  EXPECT_TRUE(found_of(with("sglang@0.5.9"), "transformers_beneath"));
  EXPECT_FALSE(found_of(with("sglang@0.5.16"), "transformers_beneath"));
}

TEST(Doctor, WhatADockerfileInstallsForAProgramOfOnesOwnIsAVersion) {
  const Exhibit file = text_exhibit(
      "Dockerfile",
      "FROM nvidia/cuda:12.8.1-cudnn-devel-ubuntu22.04\n"
      "RUN pip3 install --no-cache-dir torch==2.9.1 \"transformers==5.14.1\" kernels\n"
      "COPY serve.py /app/serve.py\nCMD [\"python3\", \"/app/serve.py\", \"--model\", \"M\"]\n");
  EXPECT_EQ(file.kind, ExhibitKind::versions);
  EXPECT_EQ(file.as, "transformers@5.14.1");
  EXPECT_EQ(text_exhibit("x", "pip install 'vllm[audio]==0.11.0'\n").as, "vllm@0.11.0");
}

TEST(Doctor, WhatAnEngineMakesOfAnUnknownFamilyIsNotKnown) {
  const Exhibit model = text_exhibit(
      "config.json", R"({"model_type": "Motif", "hidden_size": 512, "num_hidden_layers": 2,
      "num_attention_heads": 4, "max_position_embeddings": 4096, "rope_theta": 500000.0})");
  const Diagnosis named = diagnosed({model}, {.engines = {"vllm"}}),
                  typed = diagnosed({model, text_exhibit("line", "vllm serve M")});
  for (const Diagnosis* found : {&named, &typed}) {
    EXPECT_TRUE(found_of(*found, "engine_not_known"));
    EXPECT_TRUE(found->verdict.contains("what vLLM makes of it is not known")) << found->verdict;
  }
}

TEST(Doctor, CuresNameTheVariablesThatAPersonHas) {
  const Diagnosis found =
      diagnosed({evidence_of("llama-2-7b"),
                 text_exhibit("docker-compose.yml",
                              "services:\n  llm:\n    image: ghcr.io/ggml-org/llama.cpp:server\n"
                              "    environment:\n      LLAMA_ARG_CTX_SIZE: 4096\n"
                              "      LLAMA_ARG_N_PARALLEL: 4\n")});
  ASSERT_TRUE(found_of(found, "slots"));
  EXPECT_TRUE(found_of(found, "slots")->cure.contains("LLAMA_ARG_CTX_SIZE=16384"));
  EXPECT_TRUE(found_of(found, "slots")->cure.contains("LLAMA_ARG_KV_UNIFIED=1"));
}

TEST(Doctor, AnswersOfOllamaHaveTheModelAndItsModelfile) {
  const auto shown = [](const char* architecture, const char* base) {
    const std::string of = architecture;
    return text_exhibit(
        "show.json",
        R"({"modelfile": "FROM /models/blob\nPARAMETER num_ctx 65536\n", "model_info": {
          "general.architecture": ")" +
            of + R"(", ")" + of + R"(.attention.head_count": 32, ")" + of +
            R"(.attention.head_count_kv": 8, ")" + of + R"(.attention.key_length": 128, ")" + of +
            R"(.block_count": 32, ")" + of + R"(.context_length": 40960, ")" + of +
            R"(.embedding_length": 4096, ")" + of + R"(.rope.freq_base": )" + base +
            R"(, "tokenizer.ggml.tokens": null}})");
  };
  const Exhibit qwen = shown("qwen3", "1000000");
  ASSERT_TRUE(qwen.model) << qwen.as;
  EXPECT_EQ(qwen.model->context, 40960);
  EXPECT_TRUE(found_of(diagnosed({qwen}), "context_capped"));
  // Llama 3.1's scaling is a tensor, which the answer does not list.
  const Diagnosis llama = diagnosed({shown("llama", "500000")});
  EXPECT_FALSE(found_of(llama, "gguf_missing_rope_freqs"));
  EXPECT_TRUE(found_of(llama, "tensors_not_listed"));
}

TEST(Doctor, ADraftHasTheLinesScalingWhereItsEngineGivesIt) {
  const auto with = [](const char* line) {
    return diagnosed(
        {evidence_of("qwen3-8b"), evidence_of("qwen3-8b"), text_exhibit("line", line)});
  };
  EXPECT_FALSE(found_of(with("llama-server -m a.gguf -md b.gguf -c 65536 -np 1 --rope-scaling yarn "
                             "--rope-scale 2 --yarn-orig-ctx 32768"),
                        "draft_length"));
  EXPECT_TRUE(found_of(with("llama-server -m a.gguf -md b.gguf -c 65536 -np 1"), "draft_length"));
}

TEST(Doctor, AServiceOfVariablesAloneIsOllamas) {
  const Diagnosis found =
      diagnosed({evidence_of("qwen3-8b"),
                 text_exhibit("override.conf",
                              "[Service]\nEnvironment=\"OLLAMA_CONTEXT_LENGTH=131072\"\n"
                              "Environment=\"OLLAMA_NUM_PARALLEL=4\"\n")});
  ASSERT_TRUE(found_of(found, "context_capped"));
  EXPECT_EQ(found_of(found, "context_capped")->found, "40,960");
}

constexpr std::string_view refused_72000 =
    "ValueError: User-specified max_model_len (72000) is greater than the derived max_model_len "
    "(max_position_embeddings=40960 or model_max_length=None)";

TEST(Doctor, CuresNameTheModelThatIsThere) {
  const Diagnosis found = diagnosed(
      {evidence_of("llama-3.1-8b"), text_exhibit("line", "vllm serve M --max-model-len 200000")});
  ASSERT_TRUE(found_of(found, "beyond_context"));
  EXPECT_TRUE(found_of(found, "beyond_context")
                  ->cure.starts_with("posenc extend llama-3.1-8b --to 200000 --engine vllm"));
}

// What the model's authors publish is typed as the engine's version takes it.
TEST(Doctor, CuresAreTheRecipeInTheEnginesWords) {
  const auto cure = [](const std::vector<std::string>& engines) {
    const auto found =
        diagnose({evidence_of("qwen3-8b"), text_exhibit("log", std::string(refused_72000))},
                 {.engines = engines});
    EXPECT_TRUE(found);
    const Finding* refused = found ? found_of(*found, "context_refused") : nullptr;
    return refused ? refused->cure : std::string();
  };
  EXPECT_TRUE(cure({}).starts_with("--hf-overrides '{\"rope_parameters\":{\"rope_type\":\"yarn\""))
      << cure({});
  // No larger factor than 72,000 tokens need.
  EXPECT_TRUE(cure({}).contains("YaRN by 3 of 32,768")) << cure({});
  EXPECT_TRUE(cure({}).contains("the model cards of Qwen 3 publish it by 4")) << cure({});
  EXPECT_TRUE(cure({"vllm@0.8.5"}).starts_with("--rope-scaling '{\"rope_type\":\"yarn\""))
      << cure({"vllm@0.8.5"});
}

// Whoever names the broken file first means the other one all the same.
TEST(Doctor, AFileThatLostItsScalingIsTheBrokenOneInEitherOrder) {
  for (const bool broken_first : {false, true}) {
    std::vector<Exhibit> two = {evidence_of("llama-3.1-8b"), evidence_of("broken-llama-3.1-8b")};
    if (broken_first) std::swap(two[0], two[1]);
    const Diagnosis found = diagnosed(std::move(two));
    const Finding* lost = found_of(found, "rope_scaling");
    ASSERT_TRUE(lost);
    EXPECT_EQ(lost->found, "none");
    EXPECT_TRUE(lost->cure.contains("as llama-3.1-8b has it")) << lost->cure;
    EXPECT_EQ(found.findings.front().where, "broken-llama-3.1-8b");
  }
}

TEST(Doctor, WhatHappenedStandsBeforeWhatMayHappen) {
  const Diagnosis found =
      diagnosed({evidence_of("broken-llama-3.1-8b"),
                 text_exhibit("error.log", "the slot context shift, n_discard = 9")});
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings.front().finding.code, "context_shifted");
}

TEST(Doctor, WithoutEvidenceItSaysWhatToGive) {
  const auto found = diagnose({});
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().message().contains("config.json"));
}

TEST(Doctor, JsonHasAMemberForEachQuestion) {
  const std::string json = to_json(diagnosed({evidence_of("broken-llama-3.1-8b")}));
  for (const char* key : {"evidence", "verdict", "findings", "code", "severity", "engine",
                          "version", "where", "what", "effect", "cure", "sure", "next"})
    EXPECT_TRUE(json.contains("\"" + std::string(key) + "\":")) << key;
}

// The position of a token that does not follow, and the line that started the server.
TEST(Diagnose, ADraftInTheLineIsWhatPositionsDoNotFollow) {
  const auto cure = [](const char* line) {
    const Diagnosis found = diagnosed(
        {text_exhibit("line", line),
         text_exhibit("log",
                      "init: the tokens have inconsistent sequence positions:\n"
                      " for M-RoPE, it is required that the position satisfies: X < Y\n")});
    const Finding* one = found_of(found, "positions_not_consecutive");
    return one ? one->cure : "";
  };
  EXPECT_TRUE(cure("llama-server -m a.gguf --mmproj p.gguf -md d.gguf").contains("the draft"));
  EXPECT_TRUE(cure("llama-server -m a.gguf --mmproj p.gguf").contains("-b and -ub"));
}

// "Y = X + 1" is asked of models that have one position a token.
TEST(Diagnose, ADraftInTheLineIsToldOfAModelOfTextsAsWell) {
  const auto message = [](const char* line) {
    const Diagnosis found = diagnosed(
        {text_exhibit("line", line),
         text_exhibit(
             "log",
             "init: the tokens have inconsistent sequence positions:\n"
             " it is required that the sequence positions remain consecutive: Y = X + 1\n")});
    const Finding* one = found_of(found, "positions_not_consecutive");
    return one ? one->message : "";
  };
  EXPECT_TRUE(message("llama-server -m a.gguf -md d.gguf").contains("the line has a draft"));
  EXPECT_TRUE(message("llama-server -m /srv/smtp/a.gguf").contains("Of two causes"));
}

TEST(Diagnose, SlotsThatShareADraftAreToldToBeOne) {
  const Diagnosis found =
      diagnosed({text_exhibit("line", "llama-server -m a.gguf --parallel 2 --spec-type mtp"),
                 text_exhibit("log",
                              "init: the tokens have inconsistent sequence positions:\n"
                              "draft: llama_decode returned -1\n")});
  const Finding* one = found_of(found, "positions_not_consecutive");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(one->cure.contains("-np 1")) << one->cure;
}

TEST(Diagnose, EachFlagThatMlxsServerRefusesIsNamed) {
  const Diagnosis found = diagnosed(
      {evidence_of("qwen3-8b"),
       text_exhibit("line", "mlx_lm.server --model m --rope-scaling yarn --ctx-size 65536")});
  std::vector<std::string> flags;
  for (const Diagnosed& one : found.findings)
    if (one.finding.code == "flag_refused") flags.push_back(one.finding.found);
  EXPECT_EQ(flags, (std::vector<std::string>{"--rope-scaling", "--ctx-size"}));
}

TEST(Diagnose, AProgramWithoutAProfileIsKnownWithEitherHyphen) {
  const Diagnosis found = diagnosed({evidence_of("qwen3-8b")}, {.engines = {"mlx-vlm"}});
  const Finding* one = found_of(found, "program_unknown");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->found, "mlx_vlm");
}

TEST(Diagnose, TheVersionOfAProgramWithoutAProfileHasKnownFaults) {
  for (const std::string_view engine : {"mlx-vlm@0.6.3", "mlx_vlm@0.6.3"}) {
    const Diagnosis found =
        diagnosed({evidence_of("gemma-3-4b")}, {.engines = {std::string(engine)}});
    EXPECT_NE(found_of(found, "version_fault"), nullptr) << engine;
    EXPECT_EQ(found_of(found, "program_unknown"), nullptr) << engine;
  }
  EXPECT_EQ(found_of(diagnosed({evidence_of("gemma-3-4b")}, {.engines = {"mlx-vlm@0.7.3"}}),
                     "version_fault"),
            nullptr);
}

TEST(Exhibit, VersionsBesideALineAreTaken) {
  for (const auto& [text, version] :
       {std::pair("vllm 0.15.1: vllm serve M --trust-remote-code", "vllm==0.15.1"),
        {"pip install vllm==0.15.1 && vllm serve M", "vllm==0.15.1"},
        {"vLLM version 0.17.1\nvllm serve M", "vllm==0.17.1"},
        {"lmdeploy 0.10.2, lmdeploy serve api_server M", "lmdeploy==0.10.2"},
        {"llama.cpp b4567: llama-server -m x.gguf -c 8192", "llama.cpp==b4567"},
        {"vllm serve M (transformers 4.57.6)", "transformers==4.57.6"}}) {
    const Exhibit line = text_exhibit("line", text);
    EXPECT_EQ(line.kind, ExhibitKind::command) << text;
    EXPECT_EQ(line.rest, std::string(version) + "\n") << text;
  }
}

// What a print of inv_freq is called beside TinyLlama's kind, whose base is 10,000.
std::string told_of_printed(const std::string& numbers) {
  const Diagnosis found =
      diagnosed({evidence_of("llama-2-7b"), text_exhibit("print", "inv_freq tensor([" + numbers)});
  return found.findings.empty() ? "" : found.findings.front().finding.code;
}

// "1.0000e+00, …" of 64 frequencies, as torch prints them.
std::string sixty_four(const std::function<double(int)>& frequency) {
  std::string numbers;
  for (int r = 0; r < 64; ++r) {
    char number[32];
    std::snprintf(number, sizeof number, "%.4e, ", frequency(r));
    numbers += number;
  }
  return numbers + "])";
}

TEST(Diagnose, PrintedFrequenciesThatRiseByARule) {
  EXPECT_EQ(told_of_printed(sixty_four([](int r) { return 3.14159265 + 6.4 * r; })),
            "frequencies_rising");
}

TEST(Diagnose, PrintedFrequenciesThatFloat16EndedAre0) {
  EXPECT_EQ(
      told_of_printed(sixty_four([](int r) { return r > 55 ? 0 : std::pow(10000, -r / 64.0); })),
      "frequencies_zero");
}

TEST(Diagnose, PrintedFrequenciesOfADynamicScalingTellTheirLength) {
  const Exhibit dynamic = text_exhibit("config.json", R"({"model_type": "llama",
      "hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 4,
      "num_hidden_layers": 2, "max_position_embeddings": 8192, "rope_theta": 10000.0,
      "rope_scaling": {"type": "dynamic", "factor": 4.0}})");
  const std::string numbers =
      sixty_four([](int r) { return std::pow(10000 * std::pow(5, 128 / 126.0), -r / 64.0); });
  const Diagnosis found =
      diagnosed({dynamic, text_exhibit("print", "inv_freq tensor([" + numbers)});
  const Finding* agrees = found_of(found, "inv_freq_agrees");
  ASSERT_TRUE(agrees);
  EXPECT_TRUE(agrees->message.contains("16,384")) << agrees->message;
}

TEST(Diagnose, PrintedFrequenciesThatWereNeverComputed) {
  std::string nans, one, rising, negative;
  for (int r = 0; r < 64; ++r) {
    const std::string f = std::to_string(std::pow(10000, -r / 64.0));
    nans += "nan, ";
    one += (r == 5 ? "nan" : f) + ", ";
    rising += std::to_string(std::pow(10000, r / 64.0)) + ", ";
    negative += "-" + f + ", ";
  }
  EXPECT_EQ(told_of_printed(nans + "])"), "not_finite");
  EXPECT_EQ(told_of_printed(one + "])"), "not_finite");
  EXPECT_EQ(told_of_printed(rising + "])"), "frequencies_reciprocal");
  EXPECT_EQ(told_of_printed(negative + "])"), "frequencies_unordered");
}

TEST(Diagnose, AnEngineThatIsOlderThanTheFamilyHasNoClass) {
  const auto of = [](const char* engine) {
    const Diagnosis found = diagnosed({evidence_of("gpt-oss-20b")}, {.engines = {engine}});
    const Finding* one = found_of(found, "class_missing");
    return one ? one->expected : "";
  };
  EXPECT_EQ(of("vllm@0.9.2"), "0.10.1 or later");
  EXPECT_EQ(of("vllm@0.11.0"), "");
  EXPECT_EQ(of("sglang@0.4.6"), "0.5.1 or later");
}

TEST(Exhibit, ServersThatStartVllmAreReadAsItsLine) {
  const Exhibit ray = text_exhibit("serve.yaml",
                                   "applications:\n- name: llms\n  args:\n    llm_configs:\n"
                                   "      - model_loading_config:\n          model_id: q\n"
                                   "        engine_kwargs:\n          max_model_len: 65536\n"
                                   "          hf_overrides: {\"rope_theta\": 1000000}\n"
                                   "        accelerator_type: A10G\n");
  EXPECT_EQ(ray.kind, ExhibitKind::command);
  EXPECT_EQ(ray.text,
            "vllm serve M --max-model-len 65536 --hf-overrides '{\"rope_theta\": 1000000}'");
  const Exhibit swift = text_exhibit(
      "line", "swift deploy --model Q --infer_backend vllm --vllm_max_model_len 131072");
  EXPECT_EQ(swift.text, "vllm serve M --max-model-len 131072");
}

TEST(Exhibit, AConfigurationThatAScriptMakesIsAModel) {
  const Exhibit made = text_exhibit("repro.py",
                                    "cfg = GPTNeoXJapaneseConfig(\n    hidden_size=32,  # small\n"
                                    "    num_attention_heads=4, num_hidden_layers=2,\n"
                                    "    rotary_pct=0.5)\n");
  ASSERT_TRUE(made.model);
  EXPECT_EQ(made.model->family, "gpt_neox_japanese");
}

TEST(Diagnose, ABaseThatTheEngineRaisedHidesNoFileThatCouldNotBeRead) {
  const Diagnosis found = diagnosed({evidence_of("llama-2-7b"),
                                     text_exhibit("line", "koboldcpp m.gguf --contextsize 8192"),
                                     text_exhibit("error.log", "Traceback: boom")});
  ASSERT_NE(found_of(found, "stretched_by_engine"), nullptr);
  EXPECT_TRUE(found.verdict.contains("not read: error.log")) << found.verdict;
}

TEST(Diagnose, TheOnlySlotSharesNothing) {
  const auto said = [](const std::string& line) {
    const Diagnosis found = diagnosed(
        {text_exhibit("line", line),
         text_exhibit("log", "send_error: the request exceeds the available context size")});
    const Finding* one = found_of(found, "request_too_long");
    return one ? one->message + one->cure : "";
  };
  EXPECT_TRUE(said("llama-server -m m.gguf \\\n -c 8192 \\\n -np 1").contains("-c 8,192"));
  EXPECT_TRUE(said("services:\n  l:\n    image: ghcr.io/ggml-org/llama.cpp:server\n    command:\n"
                   "      - -c\n      - \"8192\"\n      - --parallel\n      - \"1\"\n")
                  .contains("-c 8,192"));
  EXPECT_TRUE(said("llama-server -m m.gguf -c 8192 -np 4").contains("shared among"));
}

TEST(Diagnose, VerlsSumIsToldWithoutItsModel) {
  const Diagnosis found = diagnosed(
      {text_exhibit("run",
                    "python3 -m verl.trainer.main_ppo data.max_prompt_length=6000 "
                    "data.max_response_length=2000"),
       text_exhibit("log",
                    "AssertionError: model context length should be greater than total sequence "
                    "length")});
  const Finding* sum = found_of(found, "context_refused");
  ASSERT_TRUE(sum);
  EXPECT_TRUE(sum->message.contains("6,000 + max_response_length 2,000 = 8,000"));
  EXPECT_TRUE(sum->cure.starts_with("a smaller max_prompt_length")) << sum->cure;
}

TEST(Diagnose, ATokenizersLimitIsTheTrainersWhereItSetsOne) {
  const auto severity = [](const char* settings) {
    const Diagnosis found = diagnosed(
        {text_exhibit("settings", settings),
         text_exhibit("log",
                      "Token indices sequence length is longer than the specified maximum "
                      "sequence length for this model (5000 > 4096). Running")});
    const Finding* one = found_of(found, "tokenizer_limit");
    return one ? one->severity : Severity::error;
  };
  EXPECT_EQ(severity("deepspeed train.py --model_max_length 4096 --bf16 True"), Severity::warning);
  EXPECT_EQ(severity("deepspeed train.py --model_max_length 8192 --bf16 True"), Severity::note);
}

TEST(Diagnose, PackedSamplesSeeEachOtherWithoutFlashAttention) {
  const auto finds = [](const char* text) {
    return found_of(diagnosed({text_exhibit("x", text)}), "packing_ignored") != nullptr;
  };
  EXPECT_TRUE(finds("args = SFTConfig(max_length=4096, packing=True)"));
  EXPECT_TRUE(
      finds("m = load(M, attn_implementation=\"flash_attention_2\")\n"
            "args = SFTConfig(packing=True, packing_strategy=\"wrapped\")"));
  EXPECT_FALSE(
      finds("m = load(M, attn_implementation=\"flash_attention_2\")\n"
            "t = SFTTrainer(model=m, packing=True)"));
  EXPECT_FALSE(finds("args = SFTConfig(max_length=4096, packing=False)"));
}

TEST(Diagnose, AnAttentionIsReadHoweverPythonSetsIt) {
  const auto finds = [](const std::string& attention) {
    return found_of(
               diagnosed({text_exhibit("x", attention + "\nargs = SFTConfig(packing=True)\n")}),
               "packing_ignored") != nullptr;
  };
  EXPECT_FALSE(finds(R"(how = {"attn_implementation": "flash_attention_2"})"));
  EXPECT_FALSE(finds(R"(how['attn_implementation'] = 'flash_attention_2')"));
  EXPECT_FALSE(finds(R"(attn_implementation = "flash_attention_2")"));
  EXPECT_TRUE(finds(R"(attn_implementation = "sdpa")"));
}

TEST(Diagnose, PackingOfAYamlIsAnotherTrainers) {
  EXPECT_EQ(found_of(diagnosed({text_exhibit("x", "cutoff_len: 2048\npacking: True\n")}),
                     "packing_ignored"),
            nullptr);
}

TEST(Diagnose, LlamaFactoryTellsSamplesApartByNeatPackingAlone) {
  const auto finds = [](const std::string& more) {
    return found_of(diagnosed({text_exhibit("x",
                                            "finetuning_type: lora\ncutoff_len: 2048\n"
                                            "packing: true\n" +
                                                more)}),
                    "packing_ignored") != nullptr;
  };
  EXPECT_TRUE(finds("stage: sft\n"));
  EXPECT_FALSE(finds("stage: sft\nneat_packing: true\n"));
  EXPECT_FALSE(finds("stage: pt\n"));
}

TEST(Diagnose, APackOfTextAloneHasOneRowByRight) {
  const auto finds = [](const char* model, const std::string& more) {
    return found_of(
               diagnosed({evidence_of(model), text_exhibit("x",
                                                           "packed_sequence:\n  pack_size: 4096\n  "
                                                           "pretokenize: true\n" +
                                                               more)}),
               "packing_ignored") != nullptr;
  };
  EXPECT_TRUE(finds("qwen2.5-vl-7b", ""));
  EXPECT_FALSE(finds("qwen3-8b", ""));
  EXPECT_FALSE(finds("qwen2.5-vl-7b", "dataset:\n  post_tokenize_hook_fn: my.rows\n"));
}

TEST(Diagnose, OfMlcLlmItSaysWhereTheListsChange) {
  const auto message = [](const char* model) {
    const Diagnosis found =
        diagnosed({evidence_of(model)}, {.length = 9000, .engines = {"mlc_llm"}});
    const Finding* one = found_of(found, "short_texts");
    return one ? one->message : "";
  };
  EXPECT_TRUE(message("phi-4-mini").contains("texts of 9,000 want the long"));
  EXPECT_EQ(message("qwen3-8b"), "");
}

TEST(Exhibit, SentencesWithSettingsInThemStartNothing) {
  const auto kind = [](const char* text) { return text_exhibit("x", text).kind; };
  EXPECT_EQ(kind("OLLAMA_CONTEXT_LENGTH=65536 is set but ollama ps shows CONTEXT 32768"),
            ExhibitKind::symptom);
  EXPECT_EQ(kind("OLLAMA_CONTEXT_LENGTH=65536 ollama serve"), ExhibitKind::command);
  EXPECT_EQ(kind("mlx_lm.convert of M: Error: rope_scaling 'type' currently only supports "
                 "'linear'"),
            ExhibitKind::log);
  EXPECT_EQ(kind("mlx_lm.convert --hf-path M"), ExhibitKind::command);
}

TEST(Diagnose, PartnersOfAMergeAreComparedByTheirRotation) {
  const auto asked = [](const char* one, const char* other) {
    return diagnosed({evidence_of(one), evidence_of(other),
                      text_exhibit("words", "can I merge these two models with mergekit?")});
  };
  const Diagnosis apart = asked("qwen2.5-math-7b-instruct", "qwen2.5-coder-7b-instruct");
  EXPECT_EQ(found_of(apart, "rope_theta"), nullptr);
  ASSERT_NE(found_of(apart, "two_models"), nullptr);
  EXPECT_TRUE(apart.verdict.contains("rope_theta 10000 against 1000000")) << apart.verdict;
  const Diagnosis alike = asked("llama-3.1-8b", "llama-3.1-8b-instruct");
  EXPECT_TRUE(alike.verdict.contains("the two rotate alike")) << alike.verdict;
  EXPECT_TRUE(asked("llama-3.1-8b", "llama-3.1-70b").verdict.contains("cannot be averaged"));
  // Without the question the second is what became of the first.
  EXPECT_NE(found_of(diagnosed({evidence_of("qwen2.5-math-7b-instruct"),
                                evidence_of("qwen2.5-coder-7b-instruct")}),
                     "rope_theta"),
            nullptr);
}

TEST(Doctor, EachKeyThatNobodyReadsIsSaid) {
  const Diagnosis found = diagnosed({text_exhibit(
      "config.json", R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2,
          "num_hidden_layers": 1, "max_position_embeddings": 2048, "use_dynamic_ntk": true,
          "use_logn_attn": true})")});
  EXPECT_EQ(
      std::ranges::count_if(found.findings,
                            [](const Diagnosed& one) { return one.finding.code == "unread_key"; }),
      2);
}

TEST(Doctor, AFamilyThatIsNotCoveredIsNotAskedForAgain) {
  const Diagnosis found =
      diagnosed({text_exhibit("config.json", R"({"model_type": "zaya", "hidden_size": 64,
           "num_attention_heads": 2, "num_hidden_layers": 1})"),
                 text_exhibit("command", "vllm serve Zyphra/ZAYA1-base --max-model-len 32768")});
  EXPECT_TRUE(found.verdict.starts_with("posenc does not read config.json")) << found.verdict;
}

TEST(Doctor, ADraftThatLostItsTargetsScalingIsTold) {
  const Diagnosis found =
      diagnosed({evidence_of("llama-3.1-8b"),
                 text_exhibit("draft.json", R"({"model_type": "llama", "hidden_size": 4096,
           "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 1,
           "max_position_embeddings": 131072, "rope_theta": 500000.0, "rope_scaling": null})"),
                 text_exhibit("command",
                              "vllm serve L --max-model-len 65536 --speculative-config "
                              "'{\"method\": \"eagle3\", \"model\": \"E\"}'")});
  EXPECT_NE(found_of(found, "draft_scaling"), nullptr) << found.verdict;
  EXPECT_EQ(found_of(found, "draft_agrees"), nullptr);
}

TEST(Doctor, SelfExtendByAWidthOfTheWholeContextGainsNothing) {
  const Diagnosis found =
      diagnosed({evidence_of("phi-2"), text_exhibit("command",
                                                    "llama-cli -m phi.gguf -c 2500 -gan 2 -gaw "
                                                    "2048")});
  EXPECT_NE(found_of(found, "self_extend"), nullptr) << found.verdict;
  EXPECT_NE(found_of(found, "beyond_context"), nullptr);
}

TEST(Doctor, AFlagThatSwitchesNoTensorOffIsSaidToDoNothing) {
  const Diagnosis found =
      diagnosed({evidence_of("llama-3.1-8b"),
                 text_exhibit("command", "llama-server -m L.gguf -c 65536 --rope-scaling none")});
  EXPECT_NE(found_of(found, "flag_unread"), nullptr) << found.verdict;
}

TEST(Doctor, AxolotlTakesAScalingAmongOverridesAlone) {
  const Diagnosis found =
      diagnosed({evidence_of("llama-3-8b"),
                 text_exhibit("axolotl.yml",
                              "base_model: meta-llama/Meta-Llama-3-8B\nsequence_len: 32768\n"
                              "rope_scaling:\n  type: linear\n  factor: 4.0\n")});
  const Finding* refused = found_of(found, "flag_removed");
  ASSERT_NE(refused, nullptr) << found.verdict;
  EXPECT_EQ(found_of(found, "theta_missing"), nullptr);
}

TEST(Doctor, APromiseByVerlsOverrideIsNotSaidToBeTheFiles) {
  const Diagnosis found = diagnosed(
      {evidence_of("llama-2-7b"),
       text_exhibit("command",
                    "python3 -m verl.trainer.main_ppo data.max_prompt_length=2048 "
                    "data.max_response_length=28672 "
                    "+actor_rollout_ref.model.override_config.max_position_embeddings=32768")});
  const Finding* trained = found_of(found, "training_beyond_context");
  ASSERT_NE(trained, nullptr) << found.verdict;
  EXPECT_TRUE(trained->message.contains("32,768 by override")) << trained->message;
}

TEST(Doctor, LmdeployMergesAnOverride) {
  const Diagnosis found =
      diagnosed({evidence_of("qwen3-8b"),
                 text_exhibit("command",
                              "lmdeploy serve api_server Q --session-len 131072 --hf-overrides "
                              "'{\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, "
                              "\"original_max_position_embeddings\": 32768}}'")});
  EXPECT_EQ(found_of(found, "theta_missing"), nullptr) << found.verdict;
}

TEST(Doctor, LayersWithoutRotationThatAClassDoesNotKnowAreSaid) {
  const Diagnosis found = diagnosed({text_exhibit(
      "config.json", R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2,
          "num_hidden_layers": 4, "max_position_embeddings": 2048,
          "no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4})")});
  EXPECT_NE(found_of(found, "unread_key"), nullptr) << found.verdict;
}

TEST(Doctor, YarnWithoutAScaleIsSaidToStretchNothing) {
  const Diagnosis found =
      diagnosed({evidence_of("qwen2.5-7b"),
                 text_exhibit("command",
                              "llama-server -m Q.gguf -c 131072 --rope-scaling yarn "
                              "--yarn-orig-ctx 32768")});
  EXPECT_NE(found_of(found, "flag_unread"), nullptr) << found.verdict;
}

TEST(Doctor, TwoModelsMayBothBeRight) {
  const Diagnosis found = diagnosed({evidence_of("llama-3.1-8b"), evidence_of("llama-3.2-3b")});
  EXPECT_TRUE(found.verdict.starts_with("These are two models")) << found.verdict;
}

}  // namespace
}  // namespace posenc
