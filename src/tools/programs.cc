#include "src/tools/programs.h"

#include <algorithm>

namespace posenc::detail {
namespace {

constexpr std::string_view file_alone =
    "give the model's file, and the line of the engine that serves what was made";

constexpr std::string_view code_for_each_model =
    "it has code of its own for each model: compare which base, scaling, pairing and window that "
    "reads with posenc explain FILE, and its tensors with posenc identify";
constexpr std::string_view shares_memory =
    "--max-seq-len shares out memory; positions are what the file says";
constexpr std::string_view within_its_cache =
    "--cache_lens must cover prompt and answer: a longer text ends with tensors whose sizes do not "
    "match, and a shorter one that fails ran out of memory";
constexpr std::string_view of_videos =
    "frames and sides within those of its training are safe: posenc explain reads its "
    "transformer/config.json";
constexpr std::string_view of_mlc =
    "it runs what mlc-chat-config.json says of context_window_size: give the config.json of the "
    "original model and the length";
constexpr std::string_view of_lorax =
    "a fork of TGI (--engine tgi), which takes --max-total-tokens up to max_position_embeddings of "
    "the config.json: older ones do not count ROPE_FACTOR in, so raise it there as well";
constexpr std::string_view embedder =
    "it takes prompts up to the file's max_position_embeddings, less what a table keeps in front; "
    "--auto-truncate cuts longer ones";

constexpr Program programs[] = {
    {.word = "vllm", .engine = "vllm", .is_package = true},
    {.word = "vllm-openai", .engine = "vllm"},
    {.word = "vllm-serve", .engine = "vllm"},  // trl vllm-serve
    {.word = "sglang", .engine = "sglang", .is_package = true},
    {.word = "llama.cpp", .engine = "llama.cpp", .is_package = true},
    {.word = "llama-server", .engine = "llama.cpp"},
    {.word = "llama-cli", .engine = "llama.cpp"},
    {.word = "llama-completion", .engine = "llama.cpp"},
    {.word = "llama-mtmd-cli", .engine = "llama.cpp"},
    {.word = "llama-perplexity", .engine = "llama.cpp"},
    {.word = "llama-embedding", .engine = "llama.cpp"},
    {.word = "llama-parallel", .engine = "llama.cpp"},
    {.word = "llama-passkey", .engine = "llama.cpp"},
    {.word = "llama-imatrix", .engine = "llama.cpp"},
    {.word = "llama-bench", .engine = "llama.cpp"},
    {.word = "llama-speculative", .engine = "llama.cpp"},
    {.word = "llama-run", .engine = "llama.cpp"},
    {.word = "llama-eval-callback", .engine = "llama.cpp"},
    {.word = "llama-box", .engine = "llama.cpp"},
    {.word = "llamafile", .engine = "llama.cpp"},
    {.word = "llama-api-server.wasm", .engine = "llama.cpp"},  // LlamaEdge
    {.word = "ramalama", .engine = "llama.cpp", .is_package = true},
    {.word = "lmdeploy", .engine = "lmdeploy", .is_package = true},
    {.word = "onnxruntime-genai", .engine = "onnxruntime-genai"},
    {.word = "trtllm-serve", .engine = "tensorrt-llm"},
    {.word = "trtllm-build", .engine = "tensorrt-llm"},
    {.word = "trtllm-bench", .engine = "tensorrt-llm"},
    {.word = "trtllm-eval", .engine = "tensorrt-llm"},
    {.word = "text-generation-launcher", .engine = "tgi"},
    {.word = "text-generation-inference", .engine = "tgi"},
    {.word = "lightllm", .engine = "lightllm", .is_package = true},
    {.word = "deepspeed-mii", .engine = "deepspeed"},
    {.word = "pretrain_gpt.py", .engine = "megatron-core"},
    {.word = "train_gpt.py", .engine = "megatron-core"},
    {.word = "mlx_lm", .engine = "mlx-lm", .is_package = true},
    {.word = "ollama", .engine = "ollama", .is_package = true},
    // llama.cpp inside, with words of their own.
    {.word = "lms", .engine = "llama.cpp", .flags = "lms", .is_package = true},
    {.word = "koboldcpp", .engine = "llama.cpp", .flags = "koboldcpp"},
    {.word = "tabbyapi", .engine = "exllamav3", .flags = "tabbyapi"},
    {.word = "llama_cpp", .engine = "llama.cpp", .flags = "llama_cpp"},

    {.word = "ktransformers", .title = "KTransformers", .advice = within_its_cache},
    {.word = "ktransformers.local_chat",
     .title = "KTransformers",
     .advice = "--max_new_tokens and --cache_lens must cover prompt and answer"},
    {.word = "main.py",  // ktransformers/server/main.py
     .title = "KTransformers",
     .advice = within_its_cache,
     .beside = "--cache_lens"},
    {.word = "mlx_vlm",
     .title = "mlx-vlm",
     .advice = "layers of plain text are read as by mlx-lm (--engine mlx-lm), three axes are not",
     .is_package = true},
    {.word = "generate.py", .title = "Wan", .advice = of_videos, .beside = "--task"},
    {.word = "sample_video.py",
     .title = "HunyuanVideo",
     .advice = of_videos,
     .beside = "--video-length"},
    {.word = "cli_demo.py", .title = "CogVideoX", .advice = of_videos, .beside = "--generate_type"},
    {.word = "convert_checkpoint.py",
     .title = "TensorRT-LLM's converter",
     .advice =
         "since May 2024 it reads rope_scaling and rope_theta of the model's own config.json, and "
         "has no --rotary_base and --rotary_scaling, which overruled the file before: compare them "
         "with it (posenc doctor config.json ENGINE/config.json shows what an engine was built "
         "with)",
     .beside = "--rotary_scaling"},
    {.word = "convert_hf_to_gguf.py",
     .title = "llama.cpp's converter",
     .advice = "it makes a GGUF and runs nothing: posenc diff config.json FILE.gguf says what it "
               "lost, and its log is evidence too"},
    {.word = "mlc_llm", .title = "MLC LLM", .advice = of_mlc, .is_package = true},
    {.word = "web-llm", .title = "WebLLM", .advice = of_mlc, .is_package = true},
    {.word = "webllm", .title = "WebLLM", .advice = of_mlc, .is_package = true},
    {.word = "mlc", .title = "MLC LLM", .advice = of_mlc, .is_package = true},
    {.word = "vmlx",
     .title = "vmlx",
     .advice = "text layers are read as by mlx-lm: --engine mlx-lm"},
    {.word = "xinference",
     .title = "Xinference",
     .advice = "it hands flags on to an engine: give the engine's own log, which says what arrived",
     .engine_flag = "--model-engine"},
    {.word = "optimum-cli",
     .title = "Optimum",
     .advice = "export executorch is for one length (--max_seq_len), and takes prompts up to the "
               "sliding window; export openvino of LongRoPE (Phi 3, 4) kept the short list at any "
               "length before optimum-intel#1504: stay within original_max_position_embeddings, or "
               "update and export again"},
    {.word = "pretrain_vlm.py",
     .title = "Megatron-LM's pretrain_vlm.py",
     .advice = "it does not hand --rotary-base on: the base is 10000 whatever the flag says, so a "
               "model with another base is trained with the wrong rotation"},
    {.word = "candle", .title = "Candle", .advice = code_for_each_model},
    {.word = "burn", .title = "Burn", .advice = code_for_each_model},
    {.word = "tinygrad", .title = "tinygrad", .advice = code_for_each_model},
    {.word = "ncnn", .title = "ncnn", .advice = code_for_each_model},
    {.word = "openvino",
     .title = "OpenVINO",
     .advice = "give what it prints, and the model's config.json",
     .is_package = true},
    {.word = "aphrodite",
     .title = "Aphrodite",
     .advice = "a fork of vLLM, with its older flags: --engine vllm reads the file as it does",
     .is_package = true},
    {.word = "mistralrs-server", .title = "mistral.rs", .advice = shares_memory},
    {.word = "mistralrs", .title = "mistral.rs", .advice = shares_memory, .is_package = true},
    {.word = "candle-vllm", .title = "candle-vllm", .advice = "give the model's file"},
    {.word = "lorax", .title = "LoRAX", .advice = of_lorax},
    {.word = "lorax-launcher", .title = "LoRAX", .advice = of_lorax},
    {.word = "text-embeddings-router", .title = "Text Embeddings Inference", .advice = embedder},
    {.word = "text-embeddings-inference", .title = "Text Embeddings Inference", .advice = embedder},
    {.word = "infinity_emb",
     .title = "Infinity",
     .advice = "it cuts prompts at the tokenizer's model_max_length"},
    {.word = "server.py",
     .title = "text-generation-webui",
     .advice = "its loader decides: --ctx-size, --rope-freq-base as of llama-server; max_seq_len, "
               "alpha_value as of ExLlama (posenc doctor reads a config.yml of tabbyAPI)",
     .beside = "--loader",
     .engine_flag = "--loader"},
    {.word = "dynamo",
     .title = "NVIDIA Dynamo",
     .advice = "it hands flags on: give the line as that of vllm serve or sglang.launch_server",
     .is_package = true},
    {.word = "fastchat",
     .title = "FastChat",
     .advice = "its positions are those of transformers (--engine transformers); "
               "rope_condense_ratio, where a config.json has it, is read by it alone"},

    {.word = "gpt-fast",
     .title = "gpt-fast",
     .advice =
         "its ModelArgs has rope_base 10000 where its table of models or params says no other: "
         "compare it with rope_theta of the file",
     .is_package = true},
    {.word = "llama-cpp-python",
     .title = "llama-cpp-python",
     .advice = "llama.cpp within: --engine llama.cpp; n_ctx is 512 unless Llama(…) is told more",
     .is_package = true},
    {.word = "langchain",
     .title = "LangChain",
     .advice = "n_ctx is of LlamaCpp(…), num_ctx of ChatOllama(…): what runs it decides",
     .is_package = true},
    {.word = "text-generation-webui",
     .title = "text-generation-webui",
     .advice = "its loader decides: --ctx-size as of llama-server; max_seq_len, alpha_value and "
               "compress_pos_emb as of ExLlama",
     .is_package = true},
    {.word = "textgen",
     .title = "text-generation-webui",
     .advice = "its loader decides: --ctx-size as of llama-server; max_seq_len as of ExLlama",
     .is_package = true},
    {.word = "jan",
     .title = "Jan",
     .advice = "llama.cpp within: --engine llama.cpp; the context is a setting of the model there",
     .is_package = true},
    {.word = "omlx",
     .title = "oMLX",
     .advice = "mlx-lm within: --engine mlx-lm",
     .is_package = true},
    {.word = "executorch",
     .title = "ExecuTorch",
     .advice = "its lengths are fixed when the model is exported (--max_seq_len)"},
    {.word = "react-native-executorch",
     .title = "ExecuTorch",
     .advice = "its lengths are fixed when the model is exported (--max_seq_len)"},
    {.word = "optimum-executorch",
     .title = "ExecuTorch",
     .advice = "its lengths are fixed when the model is exported (--max_seq_len), and are no more "
               "than the window of a model whose layers slide"},
    {.word = "gpt4all",
     .title = "GPT4All",
     .advice = "2,048 tokens unless the model's settings say more",
     .is_package = true},
    {.word = "unsloth",
     .title = "Unsloth",
     .advice = "give the script or the settings of the training, whose max_seq_length counts",
     .trains = true,
     .is_package = true},

    {.word = "swift",
     .title = "ms-swift",
     .advice = file_alone,
     .trains = true,
     .is_package = true},
    {.word = "mlx_lm.lora", .title = "mlx-lm", .advice = file_alone, .trains = true},
    {.word = "llamafactory-cli", .title = "LLaMA-Factory", .advice = file_alone, .trains = true},
    {.word = "axolotl",
     .title = "axolotl",
     .advice = "give the YAML of the training",
     .trains = true,
     .is_package = true},
    {.word = "trl", .title = "TRL", .advice = file_alone, .trains = true, .is_package = true},
    {.word = "tune",
     .title = "torchtune",
     .advice = file_alone,
     .trains = true,
     .is_package = true},
    {.word = "openrlhf", .title = "OpenRLHF", .advice = file_alone, .trains = true},
    {.word = "verl", .title = "verl", .advice = file_alone, .trains = true},
    {.word = "skyrl_train", .title = "SkyRL", .advice = file_alone, .trains = true},
    {.word = "skyrl", .title = "SkyRL", .advice = file_alone, .trains = true},
};

// The word of a path, an image or a module of Python.
std::string_view core_of(std::string_view word, bool is_module) {
  word = word.substr(word.find_last_of('/') + 1);
  word = word.substr(0, word.find_first_of(":@"));
  if (word.ends_with(".exe")) word.remove_suffix(4);
  // A model and its server in one file.
  constexpr std::string_view in_one = ".llamafile";
  if (word.ends_with(in_one)) return word.substr(word.size() - in_one.size() + 1);
  if (word == "mlx_lm.lora") return word;
  // Its builds have names of their own: koboldcpp-linux-x64, koboldcpp_rocm, koboldcpp.py.
  if (word.starts_with("koboldcpp")) return word.substr(0, std::string_view("koboldcpp").size());
  if (is_module) return word.substr(0, word.find('.'));
  // mlx_lm.server is a program's name.
  if (word.starts_with("mlx_")) return word.substr(0, word.find('.'));
  return word;
}

bool is_subcommand(std::string_view word) {
  constexpr std::string_view known[] = {
      "serve",      "bench",    "chat",          "complete", "run-batch", "run",
      "create",     "load",     "show",          "server",   "infer",     "sft",
      "pt",         "rlhf",     "deploy",        "export",   "app",       "sample",
      "train",      "api",      "eval",          "webchat",  "grpo",      "dpo",
      "ps",         "generate", "launch_server", "evaluate", "lite",      "api_server",
      "preprocess", "runner"};
  return std::ranges::find(known, word) != std::end(known);
}

}  // namespace

std::string_view program_without_profile(std::string_view name) {
  const auto alike = [](char a, char b) {
    return a == b || (a == '-' && b == '_') || (a == '_' && b == '-');
  };
  const auto* const program = std::ranges::find_if(
      programs, [&](const Program& one) { return std::ranges::equal(one.word, name, alike); });
  return program != std::end(programs) && program->engine.empty() ? program->word : "";
}

bool is_trainer(std::string_view word) {
  return std::ranges::any_of(programs,
                             [&](const Program& one) { return one.word == word && one.trains; });
}

std::string_view engine_within(std::string_view word) {
  const auto* const program = std::ranges::find_if(programs, [&](const Program& one) {
    return one.word == word && one.beside.empty() && !one.engine.empty();
  });
  return program == std::end(programs) ? "" : program->engine;
}

std::optional<StartedProgram> started_program(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i], before = i > 0 ? std::string_view(words[i - 1]) : "";
    if (word.ends_with(':')) continue;  // "llama.cpp: loading model …" is a log
    const bool is_module = before == "-m" || word.starts_with("vllm.entrypoints.") ||
                           word.starts_with("sglang.launch_");
    std::string_view core = core_of(word, is_module);
    if (core == "mlx_lm" && i + 1 < words.size() && words[i + 1] == "lora") core = "mlx_lm.lora";
    const auto* const program = std::ranges::find(programs, core, &Program::word);
    if (core == "trl" && i + 1 < words.size() && words[i + 1] == "vllm-serve") continue;
    if (program == std::end(programs)) continue;
    const std::string_view flag = program->beside;
    if (!flag.empty() && std::ranges::find(words, flag) == words.end()) continue;
    if (is_module) return StartedProgram{program, i + 1};
    const bool is_plain = core.size() >= word.size();
    const bool is_value = is_plain && before.starts_with("--") && before != "--entrypoint" &&
                          before != "--rm" && before != "--";
    if (is_value) continue;
    const std::string_view next = i + 1 < words.size() ? std::string_view(words[i + 1]) : "";
    const bool is_flag = next.starts_with('-') && next != "-";  // "lmdeploy - ERROR - …" is a log
    if (word.ends_with(".llamafile") && !is_flag) continue;     // chmod +x M.llamafile
    if (program->is_package && is_plain && !is_flag && !is_subcommand(next)) continue;
    return StartedProgram{program, i + 1};
  }
  return std::nullopt;
}

}  // namespace posenc::detail
