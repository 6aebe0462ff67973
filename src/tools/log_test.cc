// What engines print, beside the file that they were to run.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "posenc/doctor.h"
#include "posenc/tools.h"
#include "src/tools/log_lines.h"

namespace posenc {
namespace {

std::vector<Finding> beside(const char* name, const std::string& log, std::int64_t length = 0) {
  const Expected<Model> model = read_model(name);
  EXPECT_TRUE(model);
  const auto findings = log_differences(*model, log, length);
  EXPECT_TRUE(findings) << findings.error().message();
  return findings.value_or(std::vector<Finding>{});
}

const Finding& with(const std::vector<Finding>& findings, std::string_view code) {
  static const Finding none;
  const auto at = std::ranges::find(findings, code, &Finding::code);
  EXPECT_NE(at, findings.end()) << code;
  return at == findings.end() ? none : *at;
}

const char* const llama_as_it_is =
    "print_info: n_ctx_train      = 131072\nprint_info: n_rot            = 128\n"
    "print_info: rope scaling     = linear\nprint_info: freq_base_train  = 500000.0\n"
    "print_info: freq_scale_train = 1\nprint_info: n_ctx_orig_yarn  = 131072\n";

TEST(LogDifferences, LinesThatSayWhatTheFileSaysAreNoFinding) {
  EXPECT_TRUE(beside("llama-3.1-8b", llama_as_it_is).empty());
  EXPECT_TRUE(beside("deepseek-v3",
                     "print_info: rope scaling = yarn\nprint_info: freq_base_train = 10000.0\n"
                     "print_info: freq_scale_train = 0.025\nprint_info: n_ctx_orig_yarn = 4096\n"
                     "print_info: n_head_kv = 1\nprint_info: n_rot = 64\n")
                  .empty());
}

TEST(LogDifferences, ALimitAndWhatWasAskedHaveBothNumbers) {
  const Finding total = with(
      beside("llama-2-7b",
             "This model's maximum context length is 4096 tokens. However, you requested 1024 "
             "output tokens and your prompt contains at least 3073 input tokens, for a total of at "
             "least 4097 tokens."),
      "request_too_long");
  EXPECT_EQ(total.expected + " " + total.found, "4,096 at least 4,097");
  const Finding fitted =
      with(beside("llama-2-7b", "llama_params_fit_impl: context size reduced from 131072 to 24576"),
           "context_fitted");
  EXPECT_EQ(fitted.expected + " " + fitted.found, "131,072 24,576");
}

TEST(LogDifferences, ALimitOfTheTokenizerIsNoneOfTheModel) {
  const Finding refused = with(
      beside("deepseek-v3",
             "ValueError: User-specified max_model_len (65536) is greater than the derived "
             "max_model_len (model_max_length=16384.0 or max_position_embeddings=None in model's "
             "config.json)."),
      "context_refused");
  EXPECT_EQ(refused.expected + " " + refused.found, "16,384 65,536");
  EXPECT_TRUE(refused.cure.contains("tokenizer_config.json")) << refused.cure;
}

TEST(LogDifferences, AModelThatReachesWhatWasRefusedWantsNoScaling) {
  Model command_r = *read_config(
      R"({"model_type": "cohere", "hidden_size": 8192, "max_position_embeddings": 8192,
          "model_max_length": 131072, "num_attention_heads": 64, "num_hidden_layers": 40,
          "rope_theta": 8000000.0})");
  EXPECT_EQ(command_r.context, 131072);
  const auto found = log_differences(
      command_r,
      "ValueError: User-specified max_model_len (131072) is greater than the derived max_model_len "
      "(max_position_embeddings=8192 or model_max_length=None in model's config.json).");
  ASSERT_TRUE(found);
  const Finding refused = with(*found, "context_refused");
  EXPECT_TRUE(refused.cure.contains("no scaling is wanted")) << refused.cure;
}

TEST(LogDifferences, AnEngineMayBeBuiltForMoreThanItsCheckpointSays) {
  const auto found = beside("llama-3.1-8b",
                            "[TRT-LLM] [W] max_seq_len 131072 is larger than "
                            "max_position_embeddings 8192 * rotary scaling 1, the model accuracy "
                            "might be affected");
  EXPECT_EQ(with(found, "beyond_context").found, "131,072");
}

TEST(LogDifferences, ATrainersCheckIsJudgedByTheFile) {
  const auto cure = [](const char* model, const char* file, const char* argument) {
    return with(beside(model, std::string("AssertionError: rope_theta in hf config ") + file +
                                  " is not equal to rotary_base " + argument + ", please check"),
                "rope_theta")
        .cure;
  };
  EXPECT_TRUE(cure("qwen3-8b", "1000000.0", "10000").contains("--rotary-base 1000000"));
  EXPECT_TRUE(cure("qwen3-8b", "10000.0", "1000000").contains("update the trainer"));
}

TEST(LogRead, ATrainersCheckAgainstAClassDefaultDoesNotUndoTheFlag) {
  const auto cure = [](const char* file) {
    const auto log = detail::read_log(std::string("rope_theta in hf config ") + file +
                                      " is not equal to rotary_base 500000, please check");
    return log ? with(log->remarks, "rope_theta").cure : "";
  };
  EXPECT_TRUE(cure("10000").starts_with("keep --rotary-base 500000")) << cure("10000");
  EXPECT_TRUE(cure("1000000.0").starts_with("--rotary-base 1000000")) << cure("1000000.0");
}

TEST(LogDifferences, NamesTheLineOfAnotherBase) {
  const auto found = beside(
      "llama-3.1-8b", std::string(llama_as_it_is) + "llama_context: freq_base     = 10000.0\n");
  const Finding& base = with(found, "rope_theta");
  EXPECT_EQ(base.line, 7);
  EXPECT_EQ(base.found, "10000");
  EXPECT_EQ(base.severity, Severity::error);
}

TEST(LogDifferences, AFlagsScaleCountsAboveTheFiles) {
  const auto found =
      beside("llama-2-7b",
             "print_info: freq_scale_train = 1\nother words\nllama_context: freq_scale = 0.25\n");
  EXPECT_EQ(with(found, "rope_scaling").line, 3);
  EXPECT_EQ(with(found, "rope_scaling").found, "linear factor 4");
}

TEST(LogDifferences, YarnThatTheConverterDroppedIsAScalingLost) {
  const auto found =
      beside("qwen2.5-7b-yarn4", "\x1b[32mINFO:hf-to-gguf:\x1b[0mgguf: rope scaling type = NONE\n");
  EXPECT_EQ(with(found, "rope_scaling").found, "none");
}

TEST(LogDifferences, KeysOfAGgufTellTheSame) {
  const auto found = beside(
      "llama-3.1-8b",
      "llama_model_loader: - kv  10:   llama.rope.freq_base f32              = 10000.000000\n");
  EXPECT_EQ(with(found, "rope_theta").line, 1);
}

TEST(LogDifferences, AnOverrideWithoutItsBaseIsToldOfVllm) {
  const auto found =
      beside("qwen2.5-7b-yarn4",
             "args {'hf_overrides': {'rope_parameters': {'rope_type': 'yarn', 'factor': 4.0, "
             "'original_max_position_embeddings': 32768}}}\n");
  EXPECT_EQ(with(found, "theta_missing").found, "10000");
  EXPECT_EQ(with(found, "rope_theta").line, 1);
}

TEST(LogDifferences, ArgumentsOfOldVllmAreReadToo) {
  const auto found = beside("llama-3.1-8b",
                            "args: Namespace(rope_scaling={'factor': 8.0, 'type': 'dynamic'}, "
                            "rope_theta=None, x=True)\n");
  EXPECT_TRUE(with(found, "rope_scaling").found.starts_with("dynamic factor 8"));
}

TEST(LogDifferences, ARotaryModuleTellsPairingBaseAndDimensions) {
  const auto found = beside("llama-2-7b",
                            "(rotary_emb): RotaryEmbedding(head_size=128, rotary_dim=64, "
                            "max_position_embeddings=4096, base=500000, is_neox_style=False)\n");
  EXPECT_EQ(with(found, "pairing").found, "interleaved");
  EXPECT_EQ(with(found, "rotary_dim").found, "64 of 128");
}

TEST(LogDifferences, WarningsOfTransformersAreFindings) {
  const auto found = beside(
      "llama-2-7b",
      "Unrecognized keys in `rope_scaling` for 'rope_type'='yarn': {'attn_factor'}\n"
      "This is a friendly reminder - the current text generation call will exceed the model's "
      "predefined maximum length (4096). Depending on the model\n");
  EXPECT_EQ(with(found, "unknown_key").found, "{'attn_factor'}");
  EXPECT_EQ(with(found, "beyond_context").line, 2);
}

TEST(LogDifferences, ThePublishedScalingIsNoMistake) {
  for (const char* type :
       {"15: STRING | 1 | qwen3.rope.scaling.type = 'yarn'\n",
        "  qwen3.rope.scaling.type          yarn\n", "| qwen3.rope.scaling.type | yarn |\n"}) {
    const auto found = beside("qwen3-8b", std::string(type) +
                                              "qwen3.rope.scaling.factor 4.0\n"
                                              "qwen3.rope.scaling.original_context_length 32768\n");
    EXPECT_EQ(with(found, "rope_scaling").severity, Severity::note) << type;
    EXPECT_TRUE(with(found, "rope_scaling").found.starts_with("yarn factor 4")) << type;
  }
}

TEST(LogDifferences, StartedBeyondTheContext) {
  EXPECT_EQ(with(beside("llama-2-7b", "llama_context: n_ctx = 16384\n"), "beyond_context").expected,
            "4,096");
  EXPECT_EQ(
      with(beside("qwen2.5-7b-yarn4", "x max_seq_len=65536, y\n"), "context_shorter").severity,
      Severity::note);
}

TEST(LogDifferences, ALogThatTellsNothingIsSaidToBe) {
  EXPECT_EQ(with(beside("llama-2-7b", "hello\n"), "log_unknown").severity, Severity::warning);
  EXPECT_FALSE(beside("llama-2-7b", "").empty());
}

TEST(LogDifferences, HostileLogsAreErrors) {
  const Expected<Model> model = read_model("llama-2-7b");
  ASSERT_TRUE(model);
  EXPECT_FALSE(log_differences(*model, std::string_view("a\0b", 3)));
  EXPECT_FALSE(log_differences(*model, std::string(2 << 20, 'x')));
  EXPECT_FALSE(log_differences(*model, std::string(largest_log + 1, '\n')));
  EXPECT_TRUE(log_differences(*model, "rope_scaling={" + std::string(500000, '{') + "\n"));
}

TEST(LogDifferences, WhatTheLogQuotesIsMadePrintable) {
  const auto found = beside("llama-2-7b", "Unknown RoPE type: \x1b[31m\x07\xff evil\n");
  EXPECT_EQ(with(found, "unknown_rope_type").found.find('\x07'), std::string::npos);
}

TEST(LogDifferences, LinesThatPeoplePasteMostAreKnown) {
  const std::pair<const char*, const char*> lines[] = {
      {"ValueError: `rope_scaling` must be a dictionary with with two fields, `type` and `factor`",
       "transformers_too_old"},
      {"AttributeError: 'LlamaConfig' object has no attribute 'rope_theta'",
       "transformers_mismatch"},
      {"llama_model_load: error: wrong number of tensors; expected 292, got 291", "engine_too_old"},
      {"truncating input prompt limit=4096 prompt=14053 keep=4 new=4096", "prompt_truncated"},
      {"Model context auto-fit: family=x max=262,144 fitted=4,096 reserve=3GiB", "context_fitted"},
      {"n_ctx_seq (16384) > n_ctx_train (8192) -- possible training context overflow",
       "beyond_context"},
      {"A decoder-only architecture is being used, but right-padding was detected!",
       "right_padding"},
      {"KeyError: 'rope_theta'", "key_missing"}};
  for (const auto& [line, code] : lines)
    EXPECT_EQ(with(beside("llama-2-7b", line), code).code, code) << line;
  EXPECT_EQ(with(beside("llama-2-7b", lines[4].first), "context_fitted").found, "4,096 tokens");
}

TEST(LogDifferences, NumbersOfARequestAndItsSlotAreTold) {
  const auto found = beside("llama-2-7b",
                            "error: the request exceeds the available context size, try increasing "
                            "it\n{\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":21544,"
                            "\"n_ctx\":16384}\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(with(found, "request_too_long").expected, "16,384");
  EXPECT_EQ(with(found, "request_too_long").found, "21,544");
}

TEST(LogDifferences, ATokenizersLimitIsNotTheModels) {
  const std::string line =
      "Token indices sequence length is longer than the specified maximum sequence length for this "
      "model (22128 > 16384).";
  EXPECT_EQ(with(beside("llama-3.1-8b", line), "tokenizer_limit").severity, Severity::note);
  EXPECT_EQ(with(beside("llama-2-7b", line), "beyond_context").expected, "4,096");
  const std::string table =
      "Token indices sequence length is longer than the specified maximum sequence length for this "
      "model (600 > 512).";
  EXPECT_EQ(with(beside("llama-2-7b", table), "tokenizer_limit").severity, Severity::note);
  EXPECT_EQ(with(beside("bert-base-uncased", table), "beyond_context").expected, "512");
}

TEST(LogDifferences, PositionsThatDoNotFollowHaveTheirNumbers) {
  const auto found = beside(
      "qwen3-8b",
      "init: the tokens of sequence 0 in the input batch have inconsistent sequence positions:\n"
      " - the last position stored in the memory module for sequence 0 is X = 21105\n"
      " - the tokens for sequence 0 in the input batch have a starting position of Y = 21103\n"
      " it is required that the sequence positions remain consecutive: Y = X + 1\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(with(found, "positions_not_consecutive").expected, "21,106");
  EXPECT_EQ(with(found, "positions_not_consecutive").found, "21,103");
}

TEST(LogDifferences, VllmsSecondLengthIsTheDrafts) {
  const auto found = beside("qwen3-8b",
                            "Resolved architecture: Qwen3ForCausalLM\nUsing max model len 32768\n"
                            "Resolved architecture: Qwen3MTP\nUsing max model len 40960\n");
  EXPECT_EQ(with(found, "draft_context").severity, Severity::note);
  EXPECT_EQ(with(found, "context_shorter").found, "32,768");
}

TEST(LogDifferences, AMaskThatNumbersPackedTextsIsTold) {
  EXPECT_EQ(
      with(beside("qwen2.5-vl-7b", "attention_mask = [1, 1, 2, 2, 2, 0]\n"), "packed_mask").found,
      "1 to 2");
  EXPECT_EQ(with(beside("qwen2.5-vl-7b", "attention_mask\n tensor([[1, 1, 2, 3, 3, 0]])\n"),
                 "packed_mask")
                .found,
            "1 to 3");
  for (const char* healthy :
       {"attention_mask = [1, 1, 1, 1, 0]\n", "attention_mask: [[0, 0, 1, 1]]\n",
        "attention_mask = ok\nposition_ids = [0, 0, 0, 1, 2, 3]\n", "mask [5, 9, 2, 2]\n"})
    EXPECT_FALSE(std::ranges::any_of(beside("qwen2.5-vl-7b", healthy), [](const Finding& one) {
      return one.code == "packed_mask";
    })) << healthy;
}

TEST(LogDifferences, WhatIsNotCutIsNotTold) {
  for (const char* healthy :
       {"{'completions/max_length': 180.0, 'completions/clipped_ratio': 0.05}",
        "Response(text='…', generate_token_len=120, input_token_len=9, finish_reason='stop')",
        "inputs = tokenizer(texts, max_length=512, padding=True)",
        "inputs = tokenizer(texts, truncation=True, max_length=max_length)",
        R"({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}})",
        "second_per_grid_ts = [1.0]"})
    for (const char* code :
         {"answers_clipped", "answer_cut", "texts_cut", "picture_as_text", "mrope_time_flat"})
      EXPECT_TRUE(std::ranges::none_of(beside("qwen3-8b", healthy),
                                       [&](const Finding& one) { return one.code == code; }))
          << code << ": " << healthy;
}

TEST(LogDifferences, CodeThatCutsBelowTheModelsContextIsTold) {
  const std::string code = "tok(texts,\n    truncation=True,\n    max_length=512,\n)\n";
  std::vector<Exhibit> all = exhibits_of("qwen3-8b");
  all.push_back(text_exhibit("embed.py", code));
  const auto found = diagnose(std::move(all), {})->findings;
  const auto cut = std::ranges::find_if(
      found, [](const Diagnosed& one) { return one.finding.code == "texts_cut"; });
  ASSERT_NE(cut, found.end());
  EXPECT_EQ(cut->finding.expected, "40,960");
  EXPECT_EQ(cut->finding.found, "512");
}

TEST(LogDifferences, LinesThatSayAFaultByThemselvesAreKnown) {
  const std::pair<const char*, const char*> lines[] = {
      {"ValueError: Sliding window for some but all layers is not supported. `max_window_layers` = "
       "64 is less than `num_hidden_layers` = 64.",
       "window_refused"},
      {"key qwen35.rope.dimension_sections has wrong array length; expected 4, got 3",
       "gguf_key_shape"},
      {"shape mismatch: value tensor of shape [3, 447] cannot be broadcast to indexing result of "
       "shape [3, 445]",
       "mrope_mask"},
      {"Assertion `index out of bounds: 0 <= tmp < 2048` failed.", "table_end"},
      {"The size of tensor a (1024) must match the size of tensor b (983) at non-singleton "
       "dimension 2",
       "lengths_differ"},
      {"Got [32, 32, 32, 32] but expected positional dim 64", "axes_sum"},
      {"Key 'rope_type' is not in struct", "override_refused"},
      {"ctx_shift is not supported by this context's KV cache, it will be disabled",
       "context_full"},
      {"rope.py\", line 461, in get_mrope_freqs", "mrope_section_missing"},
      {"The draft model config's max_model_len (2048) is less than the deployment's max_model_len "
       "(8192).",
       "draft_length"},
      {"maxInputLen: 8192 = min(maxSequenceLen - 1, maxNumTokens)", "prompt_limit"},
      {"KeyError: 'Missing the required key rope_scaling.long_factor'", "key_missing"},
      {"RuntimeError: input_ids size (3216) + current sequence length (0) exceeds max length "
       "(2048)",
       "request_too_long"},
      {"WARNING: The current KV cache / model configuration does not support K-shift",
       "context_full"},
      {"msg=\"requested context size too large for model\" num_ctx=8192 n_ctx_train=2048",
       "context_capped"},
      {"adjust n_ctx of the none causal attention model to the minimum value between given "
       "n_ctx(4096) and n_ctx_train(512)",
       "context_capped"},
      {"TypeError: LlamaRotaryEmbedding.__init__() got an unexpected keyword argument 'dim'",
       "transformers_mismatch"},
      {"TypeError: _compute_yarn_parameters() got an unexpected keyword argument 'base'",
       "transformers_mismatch"},
      {"TypeError: Qwen2RotaryEmbedding.__init__() missing 1 required positional argument: "
       "'config'",
       "transformers_mismatch"},
      {"ValueError: Unknown RoPE scaling type default", "transformers_mismatch"},
      {"ValueError: Unknown RoPE scaling type longrope", "scaling_unread"},
      {"IndexKernel.cu:93: Assertion `-sizes[i] <= index && index < sizes[i] && \"index out of "
       "bounds\"` failed.",
       "table_end"},
      {"llama_api_server in main.rs:576: ctx_size: 128000", "beyond_context"},
      {"E/tflite: gather_nd index out of bounds", "table_end"},
      {"update_slots: failed to find free space in the KV cache, retrying", "context_full"},
      {"Skipping 'layer.0.rotary_embeddings.inv_freq': not found or shape changed (saved (32,) → "
       "current (0,))",
       "inv_freq_stored"},
      {"prompt eval count:    32770 token(s)", "prompt_truncated"},
  };
  for (const auto& [line, code] : lines) with(beside("qwen3-8b", line), code);
}

TEST(LogDifferences, AReaderThatMissesAKeyIsToldWhereTheFileHasIt) {
  // A scaling that is none: transformers 5 makes a dictionary of every base.
  const auto none = beside("qwen3-8b", "KeyError: 'original_max_position_embeddings'");
  EXPECT_TRUE(with(none, "transformers_mismatch").cure.starts_with("the file is right"));
  const auto some = beside("qwen2.5-7b-yarn4", "KeyError: 'original_max_position_embeddings'");
  EXPECT_TRUE(with(some, "key_missing").message.contains("trained length"));
  const auto top = beside("qwen3-8b", "KeyError: 'rope_theta'");
  EXPECT_TRUE(with(top, "key_missing").message.contains("rope_theta 1000000 at its top"));
  const auto nested = read_model_bytes(std::as_bytes(std::span(std::string_view(
                                           R"({"model_type": "gemma3_text", "hidden_size": 64,
      "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 6, "rope_parameters":
      {"full_attention": {"rope_type": "default", "rope_theta": 1000000},
       "sliding_attention": {"rope_type": "default", "rope_theta": 10000}}})"))),
                                       "c.json");
  ASSERT_TRUE(nested);
  const auto found = log_differences(*nested, "KeyError: 'rope_theta'");
  ASSERT_TRUE(found);
  EXPECT_TRUE(with(*found, "key_missing").message.contains("each kind of layer"));
}

TEST(LogDifferences, ANullScalingReadAsADictionaryIsNoFaultOfTheFile) {
  with(beside("qwen3-8b",
              "    rope_parameters.update(config.rope_scaling)\n"
              "TypeError: 'NoneType' object is not iterable\n"),
       "transformers_mismatch");
  for (const Finding& other : beside("qwen3-8b",
                                     "    for x in dataset:\n"
                                     "TypeError: 'NoneType' object is not iterable\n"))
    EXPECT_NE(other.code, "transformers_mismatch");
}

TEST(LogDifferences, AMessageThatWasBrokenInTwoKeepsItsNumbers) {
  const auto found = beside("deepseek-v3",
                            "\"This model's maximum context length is 65536 tokens. However, you "
                            "requested\n\n66343 tokens (62247 in the messages, 4096 in the "
                            "completion). Please reduce\n");
  EXPECT_EQ(with(found, "request_too_long").found, "66,343");
}

TEST(LogDifferences, MessagesThatAreTooLongAloneAreToldFromALongAnswer) {
  const auto of = [](const char* parts) {
    return with(beside("deepseek-v3",
                       "This model's maximum context length is 65536 tokens. However, you "
                       "requested 87731 tokens (" +
                           std::string(parts) + "). Please reduce"),
                "request_too_long")
        .message;
  };
  EXPECT_TRUE(of("87731 in the messages, 0 in the completion").contains("the messages alone"));
  EXPECT_TRUE(of("60000 in the messages, 27731 in the completion")
                  .contains("the prompt has 60,000 tokens, and the client asks for an answer of up "
                            "to 27,731"));
}

TEST(LogDifferences, ARefusalHasTheNumbersOfItsSlot) {
  const auto found = beside("qwen3-8b",
                            "slot update_slots: new prompt, n_ctx_slot = 2048, n_keep = 0, "
                            "n_prompt_tokens = 2059\n"
                            "error: the request exceeds the available context size. try again\n");
  EXPECT_EQ(with(found, "request_too_long").expected, "2,048");
  EXPECT_EQ(with(found, "request_too_long").found, "2,059");
  EXPECT_EQ(
      with(beside("qwen3-8b", "index out of bounds: 0 <= tmp16 < 40960"), "table_end").position,
      40960);
}

TEST(LogDifferences, AnOldWordOfPhi3sScalingIsTheSame) {
  EXPECT_TRUE(with(beside("phi-3.5-mini",
                          "ValueError: `rope_scaling`'s type field must be one of ['su', 'yarn'], "
                          "got longrope"),
                   "transformers_too_old")
                  .cure.contains("the same rotation"));
}

TEST(LogDifferences, ALongAnswerIsToldInTheWordsOfEachServer) {
  const auto message = [](const char* line) {
    return with(beside("deepseek-v3", line), "request_too_long").message;
  };
  // vLLM counts a prompt no further than the answer leaves: 128,000 - 65,535 + 1.
  const std::string of_vllm = message(
      "This model's maximum context length is 128000 tokens. \nHowever, you requested 65535 output "
      "tokens and your prompt contains at \nleast 62466 input tokens, for a total of at least "
      "128001 tokens.");
  EXPECT_TRUE(of_vllm.starts_with("the client reserves 65,535 of 128,000 tokens")) << of_vllm;
  EXPECT_TRUE(of_vllm.contains("no length of the prompt")) << of_vllm;
  const std::string of_sglang = message(
      "Requested token count exceeds the model's maximum context length of 128000 tokens. You "
      "requested a total of 128001 tokens: 62466 tokens from the input messages and 65535 tokens "
      "for the completion.");
  EXPECT_TRUE(of_sglang.starts_with("the prompt has 62,466 tokens")) << of_sglang;
}

TEST(LogDifferences, PositionsOfADraftAreNotTheServersCache) {
  const auto found = beside("qwen3-8b",
                            "init: the tokens of sequence 0 have inconsistent sequence positions:\n"
                            " - the last position for sequence 0 is X = 165\n"
                            " - the tokens have a starting position of Y = 2390\n"
                            "process: llama_decode(ctx_dft) failed rc=-1 (n_tokens=46)\n");
  EXPECT_TRUE(with(found, "positions_not_consecutive").message.contains("the draft's context"));
}

TEST(LogDifferences, ADraftThatIsAheadHasGotItsTokens) {
  const auto found = beside("qwen3-8b",
                            "init: the tokens of sequence 0 have inconsistent sequence positions:\n"
                            " - the last position for sequence 0 is X = 65\n"
                            " - the tokens have a starting position of Y = 20\n"
                            "draft: llama_decode returned -1\n"
                            "srv update_slots: spec cycle (2 slots): draft=11.3ms\n");
  const Finding& draft = with(found, "positions_not_consecutive");
  EXPECT_TRUE(draft.message.contains("its cache is ahead")) << draft.message;
  EXPECT_TRUE(draft.cure.contains("-np 1")) << draft.cure;
}

TEST(LogDifferences, OfOnePositionATokenNoPictureIsACause) {
  const std::string log =
      "init: the tokens of sequence 0 have inconsistent sequence positions:\n"
      " it is required that the sequence positions remain consecutive: Y = X + 1\n";
  for (const std::string& text : {log, "slot update_slots: cached n_tokens = 39\n" + log})
    EXPECT_FALSE(
        with(beside("qwen3-8b", text), "positions_not_consecutive").message.contains("M-RoPE"))
        << text;
}

TEST(LogDifferences, APartOfAHeadThatHasAnotherShapeIsToldByItsRows) {
  const auto of = [](const char* line) {
    return beside("qwen3-8b",
                  "q_embed = torch.cat([q_embed, q_pass], dim=-1)\n" + std::string(line));
  };
  with(of("Expected size 0 but got size 1 for tensor number 1 in the list."), "position_rows");
  with(of("Expected size 2048 but got size 1024 for tensor number 1 in the list."),
       "lengths_differ");
  EXPECT_EQ(with(of("output with shape [1, 16, 1, 128] doesn't match the broadcast shape "
                    "[1, 16, 3, 128]"),
                 "lengths_differ")
                .found,
            "3");
  // No rotation stands around it.
  with(beside("qwen3-8b", "Expected size 3 but got size 1 for tensor number 1"), "log_unknown");
}

struct Sizes {
  const char *before, *numbers, *code;
};

TEST(LogDifferences, SizesThatDifferAreToldApartByWhatStandsAround) {
  const Sizes cases[] = {
      {"in apply_rope1 of comfy/ldm/flux/math.py", "a (7565) must match the size of tensor b (24)",
       "axes_exchanged"},
      {"diffusers: x.float() * cos", "a (16461) must match the size of tensor b (65613)",
       "lengths_differ"},
      // A batch of two is no number of heads.
      {"comfy/ldm/lumina/model.py", "a (32) must match the size of tensor b (2)", "axes_exchanged"},
      {"apply_rotary_pos_emb_thd_absolute", "a (20480) must match the size of tensor b (4244)",
       "packing_ignored"},
      {"", "a (212160) must match the size of tensor b (210600)", "grid_rounded"},
      {"in compute_3d_position_ids", "a (2) must match the size of tensor b (0)",
       "mrope_deltas_stale"},
      {"in apply_rotary_emb of llama4", "a (4248) must match the size of tensor b (4243)",
       "ids_not_padded"},
      // The table is of one position more: tokens were cut for the labels, and nothing was padded.
      {"q_embed = (q * cos) + rotate_half", "a (3999) must match the size of tensor b (4000)",
       "ids_cut"},
      {"self._position_ids[:, :, 0:4]", "a (56) must match the size of tensor b (20)",
       "positions_stale"},
      {"apply_rotary_emb_qwen", "a (1024) must match the size of tensor b (983)", "lengths_differ"},
      {"ulysses.py, apply_rotary_pos_emb", "a (13204) must match the size of tensor b (3301)",
       "parts_of_ranks"},
      {"q_embed = (q * cos) + rotate_half", "a (6610) must match the size of tensor b (13220)",
       "parts_of_ranks"},
      // A cache of a round length is one, and no part.
      {"q_embed = (q * cos) + rotate_half", "a (8192) must match the size of tensor b (4096)",
       "lengths_differ"},
      {"vit: embeddings + self.position_embeddings",
       "a (577) must match the size of tensor b (197)", "grid_size"},
      {"bert: embeddings += position_embeddings", "a (1024) must match the size of tensor b (512)",
       "table_end"},
      {"gpt2: inputs_embeds + position_embeds", "a (1500) must match the size of tensor b (1024)",
       "table_end"},
  };
  for (const auto& [before, numbers, code] : cases)
    with(beside("qwen3-8b", std::string(before) + "\nRuntimeError: The size of tensor " + numbers +
                                " at non-singleton dimension 1\n"),
         code);
}

TEST(LogDifferences, ARowThatIsBroadcastIsATableAndAnOddPartIsNone) {
  with(beside("qwen3-8b",
              "The expanded size of the tensor (1750) must match the existing size (512) at "
              "non-singleton dimension 1.  Target sizes: [32, 1750].  Tensor sizes: [1, 512]"),
       "table_end");
  with(beside("qwen3-8b",
              "rotary_embedding_torch.py: self.cached_freqs[:seq_len] = freqs.detach()\n"
              "RuntimeError: The expanded size of the tensor (9) must match the existing size (8) "
              "at non-singleton dimension 1.  Target sizes: [727, 9].  Tensor sizes: [727, 8]"),
       "odd_rotary_part");
  const auto learned = beside("gpt2", "Assertion `srcIndex < srcSelectDimSize` failed.");
  EXPECT_TRUE(with(learned, "table_end").cure.contains("rows come with the weights"));
}

TEST(LogDifferences, AnAssertOfTheGpuIsOfPositionsWhereTheTracebackStandsThere) {
  const char* const end = "RuntimeError: CUDA error: device-side assert triggered";
  with(beside("gpt-j-6b", std::string("    k_rot = apply_rotary_pos_emb(k_rot, sin, cos)\n") + end),
       "table_end");
  with(beside("gpt2", std::string("embeddings = words_embeddings + position_embeddings\n") + end),
       "table_end");
  for (const Finding& one : beside("gpt2", std::string("loss = F.cross_entropy(a, b)\n") + end))
    EXPECT_NE(one.code, "table_end");
}

TEST(LogDifferences, ALengthThatSglangTakesAllTheSameIsNotRefused) {
  const std::string line =
      "Target model's context_length (524288) is greater than the derived context_length (262144).";
  EXPECT_EQ(with(beside("qwen3-8b", "Warning: " + line), "beyond_context").severity,
            Severity::warning);
  EXPECT_EQ(with(beside("qwen3-8b", "ValueError: " + line), "context_refused").severity,
            Severity::error);
}

TEST(LogDifferences, AnAnswerThatWasMadeShorterIsMostlyHarmless) {
  const auto shortened = [](const char* line) -> Finding {
    return with(beside("qwen3-8b", line), "answer_shortened");
  };
  // All that is left was asked for, and one is kept back.
  const Finding harmless = shortened(
      "[TM][WARNING] total sequence length (2382 + 30386) exceeds `session_len` (32768), "
      "`max_new_tokens` is truncated to 30385");
  EXPECT_EQ(harmless.severity, Severity::note);
  EXPECT_TRUE(harmless.cure.starts_with("harmless"));
  const Finding asked = shortened(
      "total sequence length (57788 + 16000) exceeds `session_len` (69120), "
      "`request_output_len` is truncated to 11331");
  EXPECT_EQ(asked.severity, Severity::note);
  EXPECT_EQ(asked.found, "73,788");
  const Finding full = shortened(
      "total sequence length (32500 + 4096) exceeds `session_len` (32768), `max_new_tokens` is "
      "truncated to 267");
  EXPECT_EQ(full.severity, Severity::warning);
  EXPECT_TRUE(full.message.contains("leaves 268 of 32,768")) << full.message;
  shortened("lmdeploy - ERROR - Truncate max_new_tokens to 19663");
}

TEST(LogDifferences, ARequestThatTheModelReachesWasLimitedByTheServer) {
  const auto found =
      beside("llama-3.1-8b", "Input prompt (48173 tokens) is too long and exceeds limit of 32768");
  EXPECT_TRUE(with(found, "request_too_long").message.contains("the server, and not the model"));
}

TEST(LogDifferences, APromptCutByOllamaIsJudgedByItsNumbers) {
  const auto cut = [](const std::string& before, const char* numbers) {
    return beside("qwen3-8b", before + "msg=\"truncating input prompt\" " + numbers + "\n");
  };
  const auto half = cut("", "limit=8194 prompt=12000 keep=4 new=8194");
  EXPECT_TRUE(with(half, "prompt_truncated").message.contains("just half of num_ctx 16,384"));
  EXPECT_TRUE(with(half, "prompt_truncated").cure.contains("24000"));
  const auto usual = cut("", "limit=4096 prompt=4500 keep=5 new=4096");
  EXPECT_TRUE(with(usual, "prompt_truncated").message.contains("Ollama's default"));
  EXPECT_TRUE(with(usual, "prompt_truncated").cure.contains("above 4500"));
  // The server has the variable, so something stands above it.
  const auto above =
      cut("env=\"map[OLLAMA_CONTEXT_LENGTH:32768 OLLAMA_DEBUG:INFO]\"\n", "limit=4096 prompt=9000");
  EXPECT_TRUE(with(above, "context_defaulted").message.contains("stands above the variable"));
  const auto unheard = cut("export OLLAMA_CONTEXT_LENGTH=32768\n", "limit=2048 prompt=91541");
  EXPECT_TRUE(with(unheard, "context_defaulted").message.contains("the server itself has no"));
  EXPECT_TRUE(with(unheard, "context_defaulted").message.contains("91,541 tokens, more than that"));
  // All of num_ctx but the half that is kept is no other num_ctx.
  const auto whole = cut("env=\"map[OLLAMA_CONTEXT_LENGTH:65536]\"\n", "limit=32770 prompt=45210");
  EXPECT_TRUE(std::ranges::none_of(
      whole, [](const Finding& one) { return one.code == "context_defaulted"; }));
}

TEST(LogDifferences, AFitOfLmStudioBeyondTheSettingIsNoFitBelowIt) {
  const auto above =
      beside("qwen3-8b", "context target: configured=4,096 fitted=131,072 effective=131,072\n");
  EXPECT_EQ(with(above, "context_fitted").expected, "4,096");
  EXPECT_EQ(with(above, "context_fitted").found, "131,072");
  const auto below = beside("qwen3-8b",
                            "Model context auto-fit: family=x max=131,072 fitted=40,960\n"
                            "context target: configured=65,536 fitted=40,960 effective=40,960\n");
  EXPECT_EQ(with(below, "context_fitted").found, "40,960 tokens");
}

TEST(LogDifferences, SequencesThatShareAContextAreTold) {
  const auto shared = [](const char* slots, const char* each) {
    return beside("qwen3-8b",
                  std::string("llama_context: n_seq_max = ") + slots +
                      "\nllama_context: n_ctx = 65536\nllama_context: n_ctx_seq = " + each + "\n");
  };
  EXPECT_EQ(with(shared("256", "256"), "slots").severity, Severity::warning);
  EXPECT_EQ(with(shared("4", "16384"), "slots").severity, Severity::note);
  const auto unified = shared("4", "65536");
  EXPECT_TRUE(
      std::ranges::none_of(unified, [](const Finding& one) { return one.code == "slots"; }));
}

TEST(LogDifferences, SlotsThatAreCappedShareNothingAndMeetNoAngleBeyond) {
  const auto found = beside(
      "qwen3-8b",
      "llama_context: n_seq_max = 4\nllama_context: n_ctx = 131072\n"
      "llama_context: n_ctx_seq = 131072\nllama_context: kv_unified = true\n"
      "llama_context: n_ctx_seq (131072) > n_ctx_train (40960) -- possible training context "
      "overflow\n"
      "srv load_model: the slot context (131072) exceeds the training context of the model (40960) "
      "- capping\nslot load_model: id 0 | task -1 | new slot, n_ctx = 40960\n");
  EXPECT_EQ(with(found, "context_capped").found, "40,960");
  for (const char* code : {"slots", "beyond_context"})
    EXPECT_EQ(std::ranges::find(found, code, &Finding::code), found.end()) << code;
}

TEST(LogDifferences, AnswersTellWhichLimitHasEndedThem) {
  const auto answer = [](const char* system, const char* usage) {
    return beside("qwen3-8b", std::string(R"({"object":"chat.completion",)") + system +
                                  R"("choices":[{"finish_reason":"length"}],"usage":{)" + usage +
                                  "}}");
  };
  const auto ollama = answer(R"("system_fingerprint":"fp_ollama",)",
                             R"("prompt_tokens":193,"completion_tokens":3903)");
  EXPECT_TRUE(with(ollama, "answer_cut").message.contains("Ollama's context was full"));
  const auto other = answer("", R"("prompt_tokens":193,"completion_tokens":3903)");
  EXPECT_TRUE(with(other, "answer_cut").message.contains("max_tokens"));
  const auto none =
      beside("qwen3-8b", R"({"object":"chat.completion","choices":[{"finish_reason":"stop"}],)"
                         R"("usage":{"prompt_tokens":60008,"completion_tokens":0}})");
  EXPECT_EQ(with(none, "answer_empty").found, "60,008");
}

TEST(LogDifferences, OfTabbysPromptAndOfRepeatedRequestsTheNumbersAreTold) {
  const auto tabby =
      beside("qwen3-8b", "ValueError: Prompt length 5243 is greater than max_seq_len 4096");
  EXPECT_EQ(with(tabby, "request_too_long").expected, "4,096");
  EXPECT_EQ(with(tabby, "request_too_long").found, "5,243");
  const auto several = beside(
      "qwen3-8b",
      "scheduler.py:947] Input prompt (48173 tokens) is too long and exceeds limit of 32768\n"
      "scheduler.py:947] Input prompt (51022 tokens) is too long and exceeds limit of 32768\n"
      "scheduler.py:947] Input prompt (49000 tokens) is too long and exceeds limit of 32768\n");
  EXPECT_EQ(std::ranges::count(several, "request_too_long", &Finding::code), 1);
  EXPECT_EQ(with(several, "request_too_long").found, "51,022");
}

TEST(LogDifferences, ALengthThatWasMultipliedTwiceIsNamed) {
  const auto model = read_model_bytes(
      std::as_bytes(std::span(std::string_view(
          R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
              "num_hidden_layers": 2, "max_position_embeddings": 1048576, "rope_theta": 50000,
              "rope_scaling": {"rope_type": "yarn", "factor": 32,
                               "original_max_position_embeddings": 32768}})"))),
      "x");
  ASSERT_TRUE(model);
  const auto found = log_differences(*model, "Using max model len 33554432\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(with(*found, "context_multiplied").cure.substr(0, 24), "--max-model-len 1048576,");
}

TEST(LogDifferences, AMaskForFewerKeysIsNoPartOfAHead) {
  const auto found =
      beside("qwen3-8b", "Shapes (1,1,1027,1027) and (1,16,1027,2051) cannot be broadcast.\n");
  EXPECT_TRUE(with(found, "lengths_differ").message.contains("a mask for 1,027 keys meets 2,051"));
}

TEST(LogDifferences, ADefaultOfOllamaIsToldWithoutAModel) {
  const auto log = [](const char* text) { return text_exhibit("x", text); };
  const auto found = [&](const char* text, const char* code) {
    const auto all = diagnose({log(text)}, {});
    EXPECT_TRUE(all);
    return all && std::ranges::any_of(all->findings, [&](const Diagnosed& one) {
             return one.finding.code == code;
           });
  };
  const std::string table =
      "NAME   ID    PROCESSOR    CONTEXT    UNTIL\nq:8b   bdb   100% GPU     ";
  EXPECT_TRUE(found((table + "4096       Forever\n").c_str(), "context_defaulted"));
  EXPECT_FALSE(found((table + "65536      Forever\n").c_str(), "context_defaulted"));
  EXPECT_TRUE(
      found("curl localhost:11434/v1/chat/completions -d '{\"options\":{\"num_ctx\":8192}}'",
            "num_ctx_ignored"));
  EXPECT_TRUE(found("Requested tokens (590) exceed context window of 512", "request_too_long"));
  EXPECT_TRUE(found("msg=\"truncating input messages which exceed context length\" truncated=2",
                    "prompt_truncated"));
}

TEST(LogDifferences, OllamaIsAnsweredInItsOwnWords) {
  const auto found = beside("qwen3-8b",
                            "ollama._types.ResponseError: request (7912 tokens) exceeds the "
                            "available context size (4096 tokens), try increasing it");
  EXPECT_TRUE(with(found, "request_too_long").cure.contains("num_ctx"));
}

TEST(LogDifferences, WhatOllamaLoadedIsReadFromItsTable) {
  const auto found = beside("qwen3-8b",
                            "$ ollama ps\nNAME       ID    PROCESSOR    CONTEXT    UNTIL\n"
                            "qwen3:8b   bdb   100% GPU     4096       4 minutes from now\n");
  EXPECT_EQ(with(found, "context_shorter").found, "4,096");
}

TEST(LogDifferences, ALineThatATerminalBrokeIsReadWhole) {
  with(beside("qwen3-8b",
              "WARNING: The given max_seq_len (24064) is larger\nthan the cache size "
              "and will be limited to 4096 tokens."),
       "cache_smaller");
}

TEST(LogDifferences, AnErrorAboutPositionThatNobodyKnowsIsNamed) {
  const auto found = beside("qwen3-8b", "all is well\nError: rotary tables are missing a hat\n");
  EXPECT_EQ(with(found, "line_unknown").line, 2);
}

TEST(LogDifferences, SizesOfChannelsAreNoLengths) {
  with(beside("qwen3-8b",
              "The expanded size of the tensor (128) must match the existing size (64) "
              "at non-singleton dimension 3."),
       "channels_differ");
}

TEST(LogDifferences, MlxsShapesAreReadAsPytorchs) {
  const auto found = beside("qwen3-8b",
                            "ValueError: cannot broadcast shapes (1, 16, 56, 64) vs "
                            "(1, 1, 20, 64)");
  EXPECT_EQ(with(found, "lengths_differ").expected, "20");
}

TEST(LogDifferences, OllamasVariableAndItsRunnerAreCompared) {
  const auto found =
      beside("qwen3-8b",
             "msg=\"server config\" env=\"map[OLLAMA_CONTEXT_LENGTH:16384 OLLAMA_DEBUG:false]\"\n"
             "cmd=\"/usr/bin/ollama runner --model x --ctx-size 8192 --parallel 2 --port 1\"\n");
  EXPECT_EQ(with(found, "context_defaulted").expected, "16,384");
  EXPECT_EQ(with(found, "context_defaulted").found, "4,096");
}

TEST(LogDifferences, AnOverrideThatIsNoObjectIsBroken) {
  with(beside("qwen3-8b",
              "Overriding HF config with {'rope_scaling': ['{\"rope_type\":\"yarn\"', "
              "'\"factor\":4.0}']}"),
       "override_broken");
}

TEST(LogDifferences, TinySizesAreRowsOfPositions) {
  with(beside("qwen3-8b",
              "The size of tensor a (3) must match the size of tensor b (2) at "
              "non-singleton dimension 0"),
       "position_rows");
}

TEST(LogDifferences, TooManyIndicesAreToldByTheLineAbove) {
  with(beside("qwen3-8b",
              "position_ids = language_model._position_ids[:, :, : 4]\n"
              "ValueError: Too many indices for array with 2 dimensions.\n"),
       "positions_stale");
  with(beside("qwen3-8b",
              "rotary_pos_embedding.py, line 301, in forward\n"
              "IndexError: too many indices for tensor of dimension 2\n"),
       "position_rows");
}

TEST(LogDifferences, OneTokenMoreIsNoChannelAndNoGrid) {
  for (const char* line :
       {"The size of tensor a (4097) must match the size of tensor b (4096) at non-singleton "
        "dimension 3",
        "The expanded size of the tensor (2049) must match the existing size (2048) at "
        "non-singleton dimension 3."})
    EXPECT_TRUE(with(beside("qwen3-8b", line), "lengths_differ").message.contains("next token"))
        << line;
}

TEST(LogDifferences, ASlidingWindowThatSdpaHasNot) {
  with(beside("mistral-7b-v0.3",
              "Sliding Window Attention is enabled but not implemented for `sdpa`; unexpected "
              "results may be encountered."),
       "window_unread");
}

TEST(LogDifferences, TablesOfACheckpointAreNamedByWhatDiffers) {
  const auto told = [](const std::string& name, const std::string& file, const std::string& model) {
    return "size mismatch for " + name + ": copying a param with shape torch.Size([" + file +
           "]) from checkpoint, the shape in current model is torch.Size([" + model + "]).";
  };
  const auto of = [&](const std::string& line, std::string_view code) {
    return with(beside("llama-2-7b", line), code);
  };
  EXPECT_TRUE(
      of(told("vision_model.embeddings.position_embedding.weight", "577, 1024", "257, 1024"),
         "table_rows")
          .message.contains("577 (24×24 and 1) rows in the checkpoint, and 257 (16×16"));
  EXPECT_TRUE(of(told("embeddings.position_ids", "1, 514", "1, 512"), "table_rows")
                  .cure.contains("checkpoint's, 514"));
  EXPECT_TRUE(
      of(told("layers.0.attn.relative_position_bias_table", "529, 4", "169, 4"), "table_rows")
          .message.contains("windows of 12 and of 7"));
  EXPECT_EQ(of(told("pos_embed", "1, 197, 768", "1, 197, 384"), "vectors_differ").found, "384");
  const auto same = beside("llama-2-7b", told("pos_embed", "1, 197, 768", "1, 197, 768"));
  EXPECT_TRUE(std::ranges::find(same, "table_rows", &Finding::code) == same.end());
}

TEST(LogDifferences, SquaresArePicturesWhereAnEncoderSeesThem) {
  const auto code = [](const std::string& around, int a, int b) {
    const auto found =
        beside("llama-2-7b", around + "\nThe size of tensor a (" + std::to_string(a) +
                                 ") must match the size of tensor b (" + std::to_string(b) +
                                 ") at non-singleton dimension 1");
    return found.empty() ? "" : found.front().code;
  };
  EXPECT_EQ(code("LTXVGemmaEnhancePrompt", 3136, 196), "grid_size");
  EXPECT_EQ(code("siglip_vision_model", 256, 1024), "grid_size");
  EXPECT_EQ(code("", 4096, 1024), "lengths_differ");
  EXPECT_EQ(code("flux", 4096, 1024), "lengths_differ");
}

TEST(LogDifferences, ClientsKeepBooksByALengthOfTheirOwn) {
  for (const char* text : {"model_context_window = 128000\n", R"({"m": {"max_input_tokens": 128000,
        "max_output_tokens": 4096}})",
                           R"({"limit": {"output": 8192, "context": 128000}})"}) {
    const Finding found = with(beside("llama-2-7b", text), "client_context");
    EXPECT_EQ(found.found, "128,000") << text;
  }
}

TEST(LogDifferences, BesideAModelAnErrorOfATableHasItsLength) {
  EXPECT_TRUE(with(beside("llama-2-7b", "AssertionError: seq_len"), "table_end")
                  .message.contains("4,096 tokens"));
}

// What llama.cpp prints where a new token does not follow, with M-RoPE's words.
const char* const not_behind =
    "init: the tokens of sequence 0 in the input batch have inconsistent sequence positions:\n"
    " - the last position stored in the memory module for sequence 0 is X = 40\n"
    " - the tokens for sequence 0 in the input batch have a starting position of Y = 40\n"
    " for M-RoPE, it is required that the position satisfies: X < Y\n";

TEST(LogDifferences, PositionsThatDoNotFollowHaveCandidatesWhereNothingTells) {
  const auto found = beside("qwen2.5-vl-7b", not_behind);
  EXPECT_TRUE(with(found, "positions_not_consecutive").message.contains("Of three causes"));
}

TEST(LogDifferences, PositionsOfAPictureInBatchesAskForALargerBatch) {
  const std::string log =
      "decoding image batch 1/4, n_tokens_batch = 256\n"
      "decoding image batch 2/4, n_tokens_batch = 256\n";
  const Finding found =
      with(beside("qwen2.5-vl-7b", log + not_behind), "positions_not_consecutive");
  EXPECT_TRUE(found.message.contains("which 4 batches share")) << found.message;
  EXPECT_TRUE(found.cure.contains("-b 1024 -ub 1024")) << found.cure;
}

TEST(LogDifferences, PositionsBehindAWholePictureAreOfAnotherCause) {
  const auto found =
      beside("qwen2.5-vl-7b",
             std::string("decoding image batch 1/1, n_tokens_batch = 256\n") + not_behind);
  EXPECT_TRUE(with(found, "positions_not_consecutive").message.contains("Of three causes"));
}

TEST(LogDifferences, PositionsBehindAReusedCacheAreOfItsReuse) {
  const auto found = beside("qwen2.5-vl-7b",
                            std::string("slot update_slots: cached n_tokens = 39\n") + not_behind);
  EXPECT_TRUE(with(found, "positions_not_consecutive").cure.contains("--cache-reuse 0"));
}

TEST(LogDifferences, AWholeFactorStopsAnOldTransformers) {
  const auto told = [](const char* line) { return beside("llama-2-7b", line); };
  const Finding stops =
      with(told("ValueError: `rope_scaling`'s factor field must be a float > 1, got 16"),
           "transformers_too_old");
  EXPECT_EQ(stops.found, "16");
  EXPECT_TRUE(stops.cure.starts_with("write 16.0")) << stops.cure;
  EXPECT_EQ(
      with(told("`rope_scaling`'s factor field must be a float >= 1, got 16"), "factor_spelling")
          .severity,
      Severity::note);
  EXPECT_EQ(with(told("ValueError: `rope_scaling`'s factor field must be a float > 1, got 0.5"),
                 "factor_vs_lengths")
                .found,
            "0.5");
}

TEST(LogDifferences, AFactorOfOneIsNoneThatAPointMends) {
  const auto found =
      beside("llama-2-7b", "ValueError: `rope_scaling`'s factor field must be a float > 1, got 1");
  EXPECT_TRUE(with(found, "factor_vs_lengths").message.ends_with("and the file has 1"));
}

TEST(LogDifferences, ABaseThatKoboldcppRaisedIsMeant) {
  const auto found = beside("llama-2-13b",
                            "print_info: n_ctx_train      = 4096\n"
                            "Automatic RoPE Scaling: Using (scale:1.000, base:32000.0).\n"
                            "llama_new_context_with_model: n_ctx      = 8192\n"
                            "llama_new_context_with_model: freq_base  = 32000.0\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(with(found, "stretched_by_engine").found, "base 32000");
}

TEST(LogDifferences, LimitsOfAPromptAreNoneOfTheModel) {
  const auto limit = [](const char* line) {
    return with(beside("qwen3-8b", line), "prompt_limit").expected;
  };
  EXPECT_EQ(limit("The sum of prompt length (2100.0), query length (0) should not exceed "
                  "max_num_tokens (2048)"),
            "2,048");
  EXPECT_EQ(limit("Static Stateful LLM pipeline may only process prompts up to 1024 tokens. "
                  "Set the \"MAX_PROMPT_LEN\" config option to increase the limit."),
            "1,024");
  EXPECT_EQ(limit("max_length (8200) cannot be greater than model context_length (8192)"), "8,192");
}

TEST(LogDifferences, APromptAndAnAnswerOfAnthropicAreToldApart) {
  const auto found = detail::message_of(
      "1 > 0: input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->expected, "200,000");
  EXPECT_EQ(found->found, "222,000");
  EXPECT_TRUE(found->cure.contains("at most 10000")) << found->cure;
}

TEST(LogDifferences, ADictionaryThatACacheRefusesIsOfTransformers5) {
  EXPECT_TRUE(with(beside("qwen3-8b",
                          "    self.rotary_emb = get_rope(self.head_dim, rope_scaling)\n"
                          "TypeError: unhashable type: 'dict'\n"),
                   "transformers_mismatch")
                  .cure.contains("transformers<5"));
  for (const Finding& one : beside("qwen3-8b", "cache[args]\nTypeError: unhashable type: 'dict'\n"))
    EXPECT_NE(one.code, "transformers_mismatch");
}

TEST(LogDifferences, KeysOfAFileMaySayLessThanTheModelIsMadeFor) {
  for (const char* line : {"qwen3.context_length    8192", "qwen3.context_length = 8192",
                           "qwen3.context_length: 8,192"})
    EXPECT_EQ(with(beside("qwen3-8b", line), "context").found, "8,192") << line;
  EXPECT_TRUE(beside("qwen3-8b", "qwen3.context_length    40960").empty());
}

TEST(LogDifferences, AKeyOfAGgufIsToldHoweverItIsPrinted) {
  for (const char* text : {"qwen3.context_length    8192",
                           "llama_model_loader: - kv  10:    qwen3.context_length u32     = 8192",
                           "  Model\n    architecture        qwen3\n    context length      8192\n"
                           "    embedding length    4096\n    quantization        Q4_K_M\n"})
    EXPECT_TRUE(with(beside("qwen3-8b", text), "context")
                    .cure.contains("--override-kv qwen3.context_length=int:40960"))
        << text;
}

TEST(LogDifferences, AKeyOfAProgramIsNoneOfAGguf) {
  with(beside("qwen3-8b", "agent.context_length: 8192"), "log_unknown");
}

TEST(LogDifferences, LayersOfATowerAreNoneOfTheText) {
  EXPECT_TRUE(beside("qwen3-8b", "qwen3.block_count 36\nqwen3.vision.block_count 27").empty());
}

}  // namespace
}  // namespace posenc
