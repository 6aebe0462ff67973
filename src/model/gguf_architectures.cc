// llama.cpp's architectures, one row each: the kind of its rotation (llama_model_rope_type) and the
// family whose layers it builds. One that is not here is read by the generic rule, with a warning.
#include <algorithm>

#include "src/model/gguf.h"

namespace posenc::detail {
namespace {

constexpr Rotation none = Rotation::none;
constexpr Rotation normal = Rotation::normal;
constexpr Rotation mrope = Rotation::mrope;

// clang-format off: one row an architecture.
constexpr Architecture architectures[] = {
    // --- neighbours pair -------------------------------------------------------------------------
    {.names = "llama llama-embed deci internlm2 minicpm xverse olmo arctic deepseek "
              "bailingmoe arcee maincoder chameleon neo-bert", .family = "llama", .rotation = normal},
    {.names = "llada", .family = "llama", .rotation = normal, .causal = false},
    {.names = "mistral3", .family = "ministral3", .rotation = normal},
    {.names = "granite granitemoe", .family = "granite", .rotation = normal},
    {.names = "granitehybrid", .family = "granitemoehybrid", .rotation = normal},
    {.names = "baichuan", .family = "baichuan", .rotation = normal},
    {.names = "smollm3", .family = "smollm3", .rotation = normal},
    {.names = "llama4", .family = "llama4_text", .rotation = normal, .window = 8192},
    {.names = "command-r", .family = "cohere", .rotation = normal},
    {.names = "cohere2", .family = "cohere2", .rotation = normal},
    {.names = "chatglm", .family = "glm", .rotation = normal},
    {.names = "glm4", .family = "glm4", .rotation = normal},
    {.names = "ernie4_5 ernie4_5-moe", .family = "ernie4_5", .rotation = normal},
    {.names = "deepseek2 mistral4", .family = "deepseek_v3", .rotation = normal},

    // --- halves pair -----------------------------------------------------------------------------
    {.names = "qwen qwen2moe qwen3 qwen3moe stablelm orion phimoe plamo gemma starcoder2 "
              "gptneox codeshell nemotron exaone dots1 hunyuan-moe hunyuan-dense bitnet dbrx olmoe "
              "seed_oss apertus minimax-m2 bailingmoe2 glm4moe falcon-h1 openelm grovemoe "
              "pangu-embedded"},
    {.names = "qwen2", .family = "qwen2"},
    {.names = "dream llada-moe rnd1", .causal = false},
    {.names = "phi2", .family = "phi"},
    {.names = "phi3", .family = "phi3"},
    {.names = "falcon", .family = "falcon"},
    {.names = "minicpm3", .family = "minicpm3"},
    {.names = "gemma2", .family = "gemma2", .window = 4096},
    {.names = "gemma3", .family = "gemma3_text"},
    {.names = "gemma-embedding", .family = "gemma3_text", .causal = false},
    {.names = "gpt-oss", .family = "gpt_oss",
     .remark = "gpt-oss: the model's own YaRN does not round the ends of its ramp; no GGUF key says "
               "so, and llama.cpp rounds them"},
    {.names = "olmo2", .family = "olmo3", .may_slide = true},
    {.names = "exaone4", .family = "exaone4", .may_slide = true},
    {.names = "afmoe", .family = "afmoe"},
    {.names = "lfm2 lfm2moe", .family = "lfm2"},
    {.names = "qwen3next", .family = "qwen3_next"},
    {.names = "modern-bert", .family = "modernbert", .causal = false},
    {.names = "nomic-bert nomic-bert-moe jina-bert-v3 eurobert", .family = "eurobert",
     .causal = false},

    // --- several position axes -------------------------------------------------------------------
    {.names = "qwen2vl", .family = "qwen2_vl_text", .rotation = mrope},
    {.names = "paddleocr", .family = "qwen2_vl_text", .rotation = mrope},
    {.names = "qwen3vl qwen3vlmoe", .family = "qwen3_vl_text", .rotation = mrope},
    {.names = "qwen35 qwen35moe", .family = "qwen3_5_text", .rotation = mrope},

    // --- no rotation -----------------------------------------------------------------------------
    {.names = "bert", .family = "bert", .rotation = none, .causal = false},
    {.names = "jina-bert-v2", .family = "bert", .rotation = none, .causal = false},
    {.names = "gpt2", .family = "gpt2", .rotation = none},
    {.names = "starcoder", .family = "gpt_bigcode", .rotation = none},
    {.names = "bloom refact", .family = "bloom", .rotation = none},
    {.names = "mpt", .family = "mpt", .rotation = none},
    {.names = "jais", .family = "jais", .rotation = none},
    {.names = "t5 t5encoder", .family = "t5", .rotation = none},
    {.names = "jamba", .family = "jamba", .rotation = none},
    {.names = "nemotron_h nemotron_h_moe", .family = "nemotron_h", .rotation = none},

    // --- known, and not covered ------------------------------------------------------------------
    {.names = "mamba mamba2 rwkv6 rwkv6qwen2 rwkv7 arwkv7", .family = "mamba", .rotation = none},
    {.names = "grok gemma3n gemma4 gemma4-assistant deepseek32 deepseek4 glm-dsa kimi-linear plm "
              "smallthinker plamo2 plamo3 mimo2 step35 cogvlm wavtokenizer-dec gptj",
     .family = "kimi_linear", .rotation = none},
};
// clang-format on

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  const auto* found = std::ranges::find_if(
      architectures, [&](const Architecture& row) { return lists(row.names, name); });
  return found == std::end(architectures) ? nullptr : found;
}

}  // namespace posenc::detail
