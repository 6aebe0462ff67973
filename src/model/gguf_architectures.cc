// llama.cpp's architectures, one row each: the kind of its rotation (llama_model_rope_type) and the
// family whose layers it builds. One that is not here is read by the generic rule, with a warning.
#include <algorithm>
#include <string>
#include <utility>

#include "src/model/gguf.h"

namespace posenc::detail {
namespace {

// --- rules of one architecture -------------------------------------------------------------------

// T5 has words of its own for its sizes.
constexpr GgufKey t5_keys[] = {{"embedding_length", "d_model"},
                               {"attention.head_count", "num_heads"},
                               {"attention.key_length", "d_kv"},
                               {"block_count", "num_layers"},
                               {"context_length", "n_positions"}};

void alibi(GgufTranslation& gguf) {
  gguf.put("position_embedding_type", {std::string("alibi")}, gguf.rule());
}

void divide_by_head_dim(GgufTranslation& gguf) {
  gguf.put("scale_qk_dot_by_d", {true}, gguf.rule());
}

// Granite 4's converter says by rope.scaling.finetuned whether any layer rotates.
void rope_if_finetuned(GgufTranslation& gguf) {
  const bool* on = gguf.get<bool>("rope.scaling.finetuned");
  gguf.put("position_embedding_type", {std::string(on && !*on ? "nope" : "rope")},
           gguf.path("rope.scaling.finetuned"));
}

// Gemma's logits are divided by √head_dim, those of the 27B by √(width / heads). No key says which
// it is; llama.cpp knows the 27B by its number of layers.
template <std::int64_t layers_of_largest>
void query_scale(GgufTranslation& gguf) {
  const auto width = gguf.whole("embedding_length"), heads = gguf.whole("attention.head_count"),
             key = gguf.whole("attention.key_length");
  const bool largest = gguf.layers() == layers_of_largest;
  if (width && heads && *heads > 0)
    gguf.put("query_pre_attn_scalar", {largest || !key ? *width / *heads : *key}, gguf.rule());
}

// Gemma 4: heads of full layers are as wide as key_length says, those of layers that slide as
// key_length_swa, and all of both rotates.
void two_widths(GgufTranslation& gguf) {
  const auto wide = gguf.whole("attention.key_length"),
             narrow = gguf.whole("attention.key_length_swa");
  if (!wide || !narrow) return;
  gguf.drop("head_dim v_head_dim");
  if (gguf.whole("rope.dimension_count") == wide) gguf.drop("rotary_dim");
  gguf.put("head_dim", {*narrow}, gguf.path("attention.key_length_swa"));
  gguf.put("global_head_dim", {*wide}, gguf.path("attention.key_length"));
}

// MPT has ALiBi where the file has its largest bias.
void alibi_if_biased(GgufTranslation& gguf) {
  const auto most = gguf.number("attention.max_alibi_bias");
  Json::Object attention = {{"alibi", {most.value_or(0) > 0}}};
  if (most && *most > 0) attention.push_back({"alibi_bias_max", {*most}});
  gguf.put("attn_config", {std::move(attention)}, gguf.path("attention"));
  gguf.spell("attn_config.alibi_bias_max", gguf.path("attention.max_alibi_bias"));
  gguf.spell("attn_config.alibi", gguf.path("attention.max_alibi_bias"));
}

// --- the rows ------------------------------------------------------------------------------------

constexpr Rotation none = Rotation::none;
constexpr Rotation normal = Rotation::normal;
constexpr Rotation mrope = Rotation::mrope;

// clang-format off: one row an architecture.
constexpr Architecture architectures[] = {
    // --- neighbours pair -------------------------------------------------------------------------
    {.names = "llama llama-embed deci internlm2 minicpm xverse olmo arctic deepseek "
              "bailingmoe arcee maincoder chameleon neo-bert",
     .family = "llama", .rotation = normal},
    {.names = "llada", .family = "llama", .rotation = normal, .causal = false},
    {.names = "mistral3", .family = "ministral3", .rotation = normal, .reads_betas = true},
    {.names = "granite granitemoe", .family = "granite", .rotation = normal},
    {.names = "granitehybrid", .family = "granitemoehybrid", .rotation = normal,
     .rule = rope_if_finetuned},
    {.names = "baichuan", .family = "baichuan", .rotation = normal},
    {.names = "smollm3", .family = "smollm3", .rotation = normal},
    {.names = "llama4", .family = "llama4_text", .rotation = normal, .window = 8192},
    {.names = "command-r", .family = "cohere", .rotation = normal},
    {.names = "cohere2", .family = "cohere2", .rotation = normal},
    {.names = "chatglm", .family = "glm", .rotation = normal},
    {.names = "glm4", .family = "glm4", .rotation = normal, .may_have_sections = true},
    {.names = "ernie4_5 ernie4_5-moe", .family = "ernie4_5", .rotation = normal},
    {.names = "deepseek2 mistral4", .family = "deepseek_v3", .rotation = normal},
    {.names = "deepseek32", .family = "deepseek_v32", .rotation = normal},
    {.names = "glm-dsa", .family = "glm_moe_dsa", .rotation = normal},

    // --- halves pair -----------------------------------------------------------------------------
    {.names = "qwen qwen2moe qwen3 qwen3moe stablelm orion phimoe plamo gemma starcoder2 "
              "gptneox codeshell nemotron exaone dots1 hunyuan-moe hunyuan-dense bitnet dbrx olmoe "
              "seed_oss apertus minimax-m2 bailingmoe2 falcon-h1 openelm grovemoe "
              "pangu-embedded hy_v3 jais2"},
    {.names = "glm4moe", .may_have_sections = true},
    {.names = "qwen2", .family = "qwen2"},
    {.names = "dream llada-moe rnd1", .causal = false},
    {.names = "phi2", .family = "phi"},
    {.names = "phi3", .family = "phi3"},
    {.names = "falcon", .family = "falcon"},
    {.names = "minicpm3", .family = "minicpm3"},
    {.names = "gemma2", .family = "gemma2", .window = 4096, .rule = query_scale<46>},
    {.names = "gemma3", .family = "gemma3_text", .rule = query_scale<62>},
    {.names = "gemma3n", .family = "gemma3n_text"},
    {.names = "gemma4", .family = "gemma4_text", .local_theta = 10000, .rule = two_widths},
    {.names = "gemma-embedding", .family = "gemma3_text", .causal = false},
    {.names = "gpt-oss", .family = "gpt_oss",
     .remark = "gpt-oss: the model's own YaRN does not round the ends of its ramp; no GGUF key "
               "says so, and llama.cpp rounds them"},
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
    {.names = "jina-bert-v2", .family = "bert", .rotation = none, .causal = false, .rule = alibi},
    {.names = "gpt2", .family = "gpt2", .rotation = none},
    {.names = "starcoder", .family = "gpt_bigcode", .rotation = none},
    {.names = "bloom refact", .family = "bloom", .rotation = none},
    {.names = "mpt", .family = "mpt", .rotation = none, .rule = alibi_if_biased},
    {.names = "jais", .family = "jais", .rotation = none, .rule = divide_by_head_dim},
    {.names = "t5", .family = "t5", .rotation = none, .keys = t5_keys},
    {.names = "t5encoder", .family = "t5", .rotation = none, .keys = t5_keys, .only_encoder = true},
    {.names = "jamba", .family = "jamba", .rotation = none},
    {.names = "nemotron_h nemotron_h_moe", .family = "nemotron_h", .rotation = none},

    // --- known, and not covered ------------------------------------------------------------------
    {.names = "mamba mamba2 rwkv6 rwkv6qwen2 rwkv7 arwkv7", .family = "mamba", .rotation = none},
    {.names = "grok gemma4-assistant deepseek4 kimi-linear plm smallthinker plamo2 plamo3 mimo2 "
              "step35 cogvlm wavtokenizer-dec gptj cohere2moe eagle3 granite_swa graniteswitch "
              "muse-glimmer pockettts glm5-next kimi-k3 hunyuan_vl qwen4exp dflash hrm_text laguna "
              "mellum minimax-01 exaone-moe",
     .family = "reformer", .rotation = none},
    {.names = "nanbeige", .family = "llama", .rotation = normal},
    {.names = "clip", .refused = "is a projector of pictures (mmproj), not a model"},
};
// clang-format on

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  const auto* found = std::ranges::find_if(
      architectures, [&](const Architecture& row) { return contains_word(row.names, name); });
  return found == std::end(architectures) ? nullptr : found;
}

}  // namespace posenc::detail
