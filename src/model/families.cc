// The families: one row each. A number here is the configuration class's documented default, used
// only where the file is silent, and the explanation says so. What only a model's code knows (its
// pairing, which end of a head turns) is here too. A family we are not sure of is left out: it is
// read by the generic rule, with a warning.
#include <algorithm>

#include "src/model/family.h"

namespace posenc::detail {
namespace {

constexpr Pairing halves = Pairing::halves;
constexpr Pairing interleaved = Pairing::interleaved;
constexpr std::int64_t K = 1024;

// clang-format off: one row a family, as dense as it can be read.
// sizes: width, layers, heads, key-value heads (0: as many), head_dim (0: width / heads).
constexpr Family families[] = {
    // --- rotate halves, all layers alike ---------------------------------------------------------
    {.types = "llama llama2 code_llama llava llava_next vipllava idefics3 smolvlm", .theta = 10000,
     .context = 2048, .sizes = {4096, 32, 32}},
    {.types = "mistral ministral mistral3 llava_mistral", .theta = 10000, .context = 128 * K,
     .sizes = {4096, 32, 32, 8}, .window = 4096, .alternate = Alternate::all_slide},
    {.types = "ministral3", .context = 256 * K, .sizes = {4096, 34, 32, 8, 128},
     .alternate = Alternate::all_slide},
    {.types = "mixtral", .theta = 1e6, .context = 128 * K, .sizes = {4096, 32, 32, 8},
     .alternate = Alternate::all_slide},
    {.types = "phi", .theta = 10000, .context = 2048, .sizes = {2048, 24, 32}, .partial = 0.5},
    {.types = "phi-msft mixformer-sequential", .theta = 10000, .context = 2048},
    {.types = "phi3 phi3_v phi4_multimodal phi4mm", .theta = 10000, .context = 4096,
     .sizes = {3072, 32, 32}, .alternate = Alternate::all_slide},
    {.types = "phimoe", .theta = 1e6, .context = 128 * K, .sizes = {4096, 32, 32, 8},
     .alternate = Alternate::all_slide},
    {.types = "gemma paligemma", .theta = 10000, .context = 8192, .sizes = {3072, 28, 16, 16, 256}},
    {.types = "gpt_neox", .theta = 10000, .context = 2048, .sizes = {6144, 44, 64},
     .partial = 0.25},
    {.types = "gpt_neox_japanese", .theta = 10000, .context = 2048, .sizes = {2560, 32, 32}},
    {.types = "dbrx", .read = read_dbrx, .theta = 10000, .context = 2048, .sizes = {2048, 24, 16, 1}},
    {.types = "falcon RefinedWeb RefinedWebModel", .read = read_falcon, .theta = 10000,
     .context = 2048, .sizes = {4544, 32, 71}},
    {.types = "stablelm stablelm_epoch", .theta = 10000, .context = 4096,
     .sizes = {2560, 32, 32, 32}, .partial = 0.25},
    {.types = "starcoder2", .theta = 10000, .context = 4096, .sizes = {3072, 30, 24, 2},
     .alternate = Alternate::all_slide},
    {.types = "persimmon fuyu", .theta = 25000, .context = 16 * K, .sizes = {4096, 36, 64},
     .partial = 0.5},
    {.types = "nemotron", .theta = 10000, .context = 4096, .sizes = {6144, 32, 48}, .partial = 0.5},
    {.types = "olmo olmo2", .theta = 10000, .context = 2048, .sizes = {4096, 32, 32}},
    {.types = "olmoe", .theta = 10000, .context = 4096, .sizes = {2048, 16, 16}},
    {.types = "flex_olmo", .theta = 500000, .context = 4096, .sizes = {4096, 32, 32}},
    {.types = "mllama mllama_text_model", .theta = 500000, .context = 128 * K,
     .sizes = {4096, 40, 32, 8}},
    {.types = "apertus", .theta = 12e6, .context = 64 * K, .sizes = {4096, 32, 32}},
    {.types = "arcee", .theta = 10000, .context = 4096, .sizes = {2560, 32, 32}},
    {.types = "aria_text", .theta = 10000, .context = 2048, .sizes = {4096, 32, 32}},
    {.types = "bitnet", .theta = 500000, .context = 2048, .sizes = {2560, 30, 20, 5}},
    {.types = "seed_oss", .theta = 10000, .context = 512 * K, .sizes = {4096, 64, 80, 8, 128}},
    {.types = "minimax_m2", .theta = 5e6, .context = 192 * K, .sizes = {3072, 62, 48, 8, 128}},
    {.types = "glm4_moe", .theta = 10000, .context = 128 * K, .sizes = {4096, 46, 96, 8},
     .partial = 0.5},
    {.types = "emu3_text_model", .theta = 1e6, .context = 9216, .sizes = {4096, 32, 32, 8}},
    {.types = "hunyuan_v1_dense hunyuan_v1_moe hunyuan", .theta = 10000, .context = 2048,
     .sizes = {4096, 32, 32}, .alpha = true},
    {.types = "internlm2 internlm3 internlm", .theta = 10000, .context = 2048},
    {.types = "deepseek orion minicpm exaone aquila xverse Yi", .theta = 10000},
    {.types = "qwen", .theta = 10000, .context = 8192,
     .remark =
         "qwen: beyond seq_length its own code stretches the base (use_dynamic_ntk) and the logits "
         "(use_logn_attn); the plan is that of lengths up to seq_length"},
    {.types = "baichuan", .read = read_baichuan, .theta = 10000, .context = 4096},
    {.types = "granite granitemoe granitemoeshared", .theta = 10000, .context = 2048,
     .sizes = {4096, 32, 32}, .scale = LogitScale::attention_multiplier},

    // --- rotate halves, layers alternate ---------------------------------------------------------
    {.types = "qwen2 internvl", .theta = 10000, .context = 32 * K, .sizes = {4096, 32, 32, 32},
     .window = 4096, .alternate = Alternate::past_layer, .every = 28},
    {.types = "qwen2_moe", .theta = 10000, .context = 32 * K, .sizes = {2048, 24, 16, 16},
     .window = 4096, .alternate = Alternate::past_layer, .every = 28},
    {.types = "qwen3", .theta = 10000, .context = 32 * K, .sizes = {4096, 32, 32, 32, 128},
     .window = 4096, .alternate = Alternate::past_layer, .every = 28},
    {.types = "qwen3_moe", .theta = 10000, .context = 32 * K, .sizes = {2048, 24, 32, 4},
     .window = 4096, .alternate = Alternate::past_layer},
    {.types = "dots1", .theta = 10000, .context = 2048, .sizes = {4608, 62, 32, 32}, .window = 4096,
     .alternate = Alternate::past_layer, .every = 62},
    {.types = "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text", .theta = 1e6, .context = 32 * K,
     .sizes = {8192, 80, 64, 8}, .window = 4096, .alternate = Alternate::past_layer, .every = 80,
     .sections = "16 24 24"},
    {.types = "qwen2_5_omni_text", .theta = 1e6, .context = 32 * K, .sizes = {3584, 28, 28, 4},
     .window = 32 * K, .alternate = Alternate::past_layer, .every = 28, .sections = "16 24 24"},
    {.types = "qwen3_vl qwen3_vl_text", .context = 128000, .sizes = {4096, 32, 32, 32, 128},
     .sections = "24 20 20", .sections_interleaved = true},
    {.types = "qwen3_vl_moe qwen3_vl_moe_text", .context = 128000, .sizes = {2048, 24, 16, 16},
     .sections = "24 20 20", .sections_interleaved = true},
    {.types = "qwen3_omni_moe_text", .theta = 1e6, .context = 32 * K, .sizes = {2048, 28, 28, 4},
     .sections = "24 20 20", .sections_interleaved = true},
    {.types = "qwen3_next", .theta = 10000, .context = 32 * K, .sizes = {2048, 48, 16, 2, 256},
     .partial = 0.25, .alternate = Alternate::every_last, .every = 4, .other = "linear_attention"},
    {.types = "qwen3_5 qwen3_5_text", .theta = 10000, .context = 32 * K,
     .sizes = {4096, 32, 16, 4, 256}, .partial = 0.25, .alternate = Alternate::every_last,
     .every = 4, .other = "linear_attention", .sections = "11 11 10", .sections_interleaved = true},
    {.types = "qwen3_5_moe qwen3_5_moe_text", .theta = 10000, .context = 32 * K,
     .sizes = {2048, 40, 16, 2, 256}, .partial = 0.25, .alternate = Alternate::every_last,
     .every = 4, .other = "linear_attention", .sections = "11 11 10", .sections_interleaved = true},
    {.types = "glm4v_moe glm4v_moe_text Glm4vMoe_text", .theta = 10000, .context = 64 * K,
     .sizes = {4096, 46, 96, 8}, .partial = 0.5, .sections = "8 12 12"},
    {.types = "gemma2 vaultgemma", .theta = 10000, .context = 8192, .sizes = {2304, 26, 8, 4, 256},
     .window = 4096, .alternate = Alternate::every_last, .every = 2,
     .scale = LogitScale::query_pre_attn},
    {.types = "gemma3 gemma3_text", .theta = 1e6, .local_theta = 10000, .context = 128 * K,
     .sizes = {2304, 26, 8, 4, 256}, .window = 4096, .alternate = Alternate::every_last, .every = 6,
     .local = LocalRope::own_theta, .scale = LogitScale::query_pre_attn},
    {.types = "gemma3n gemma3n_text", .theta = 1e6, .local_theta = 10000, .context = 32 * K,
     .sizes = {2048, 35, 8, 2, 256}, .window = 512, .alternate = Alternate::every_last, .every = 5,
     .local = LocalRope::own_theta, .scale = LogitScale::one},
    {.types = "gemma4 gemma4_text", .context = 128 * K, .sizes = {2304, 30, 8, 4, 256},
     .window = 512, .alternate = Alternate::every_last, .every = 6, .scale = LogitScale::one},
    {.types = "gpt_oss", .theta = 150000, .context = 128 * K, .sizes = {2880, 36, 64, 8, 64},
     .window = 128, .alternate = Alternate::every_last, .every = 2},
    {.types = "olmo3", .context = 2048, .sizes = {4096, 32, 32}, .window = 4096,
     .alternate = Alternate::every_last, .every = 4, .local = LocalRope::unscaled},
    {.types = "cwm", .theta = 1e6, .context = 128 * K, .sizes = {6144, 64, 48, 8, 128},
     .window = 8192, .alternate = Alternate::every_first, .every = 4},
    {.types = "exaone4 exaone_moe", .theta = 10000, .context = 2048, .sizes = {4096, 32, 32, 32},
     .window = 4096, .alternate = Alternate::every_last, .every = 4, .nope = NoPeLayers::full},
    {.types = "afmoe", .theta = 10000, .context = 16 * K, .sizes = {2048, 32, 16, 0, 128},
     .window = 1024, .alternate = Alternate::every_last, .every = 4, .nope = NoPeLayers::full},
    {.types = "smollm3", .theta = 2e6, .context = 32 * K, .sizes = {2048, 36, 16, 4}, .every = 4,
     .nope = NoPeLayers::listed},
    {.types = "granitemoehybrid", .theta = 10000, .context = 2048, .sizes = {4096, 32, 32},
     .other = "mamba", .scale = LogitScale::attention_multiplier},
    {.types = "lfm2 lfm2_moe", .theta = 1e6, .context = 128000, .sizes = {2560, 32, 32, 8},
     .other = "conv"},
    {.types = "falcon_h1", .context = 8192, .sizes = {4096, 32, 32, 8}},
    {.types = "bamba", .theta = 10000, .context = 256 * K, .sizes = {4096, 32, 32, 8},
     .partial = 0.5, .other = "mamba"},
    {.types = "jamba", .context = 256 * K, .sizes = {4096, 32, 32, 8},
     .alternate = Alternate::at_offset, .every = 8, .other = "mamba", .nope = NoPeLayers::all},
    {.types = "nemotron_h", .context = 4096, .sizes = {4096, 0, 32, 8, 128},
     .other = "mamba or mlp", .nope = NoPeLayers::all},
    {.types = "modernbert", .theta = 160000, .local_theta = 10000, .context = 8192,
     .sizes = {768, 22, 12}, .window = 128, .alternate = Alternate::every_first, .every = 3,
     .local = LocalRope::own_theta, .causal = false},
    {.types = "modernbert-decoder", .theta = 160000, .local_theta = 10000, .context = 8192,
     .sizes = {768, 22, 12}, .window = 64, .alternate = Alternate::every_first, .every = 3,
     .local = LocalRope::own_theta},
    {.types = "eurobert", .context = 8192, .sizes = {768, 12, 12}, .causal = false},
    {.types = "nomic_bert", .theta = 1000, .context = 2048, .sizes = {768, 12, 12},
     .causal = false},

    // --- rotate interleaved ----------------------------------------------------------------------
    {.types = "gptj", .pairing = interleaved, .theta = 10000, .context = 2048,
     .sizes = {4096, 28, 16}},
    {.types = "codegen", .pairing = interleaved, .theta = 10000, .context = 2048,
     .sizes = {4096, 28, 16}},
    {.types = "cohere", .pairing = interleaved, .context = 8192, .sizes = {8192, 40, 64}},
    {.types = "cohere2 aya_vision cohere2_vision", .pairing = interleaved, .theta = 10000,
     .context = 8192, .sizes = {8192, 40, 64}, .window = 4096, .alternate = Alternate::every_last,
     .every = 4, .nope = NoPeLayers::full},
    {.types = "cohere2_moe", .pairing = interleaved, .theta = 10000, .context = 8192,
     .sizes = {8192, 40, 64, 0, 128}, .window = 4096, .alternate = Alternate::every_last,
     .every = 4, .nope = NoPeLayers::full},
    {.types = "glm glm4", .pairing = interleaved, .theta = 10000, .context = 128 * K,
     .sizes = {4096, 40, 32, 2, 128}, .partial = 0.5},
    {.types = "glm4v glm4v_text", .pairing = interleaved, .theta = 10000, .context = 32 * K,
     .sizes = {4096, 40, 32, 2}, .sections = "8 12 12"},
    {.types = "glm_ocr glm_ocr_text", .pairing = interleaved, .context = 128 * K,
     .sizes = {1024, 16, 16, 8}, .sections = "8 12 12"},
    {.types = "chatglm", .pairing = interleaved, .theta = 10000},
    {.types = "ernie4_5", .pairing = interleaved, .theta = 500000, .context = 128 * K,
     .sizes = {1024, 18, 16, 2, 128}},
    {.types = "ernie4_5_moe", .pairing = interleaved, .theta = 500000, .context = 128 * K,
     .sizes = {2560, 28, 20, 4}},
    {.types = "helium", .pairing = interleaved, .theta = 100000, .context = 4096,
     .sizes = {2560, 24, 20, 20, 128}},
    {.types = "llama4 llama4_text", .pairing = interleaved, .theta = 500000, .context = 128 * K,
     .sizes = {5120, 48, 40, 8, 128}, .window = 8192, .every = 4, .other = "chunked_attention",
     .nope = NoPeLayers::listed},
    {.types = "roformer", .pairing = interleaved, .theta = 10000, .context = 1536,
     .sizes = {768, 12, 12}, .causal = false,
     .remark =
         "roformer: rotary_value, where true, turns the values too and does not turn the output "
         "back"},

    // --- multi-head latent attention -------------------------------------------------------------
    {.types = "deepseek_v2", .pairing = interleaved, .theta = 10000, .context = 2048,
     .sizes = {4096, 32, 32}, .latent = {128, 64, 512}, .scale_logits = true},
    {.types = "deepseek_v3 kimi_k2", .pairing = interleaved, .theta = 10000, .context = 4096,
     .sizes = {7168, 61, 128, 128}, .latent = {128, 64, 512}, .scale_logits = true},
    {.types = "deepseek_v32", .pairing = interleaved, .theta = 10000, .context = 160 * K,
     .sizes = {7168, 61, 128, 128}, .latent = {128, 64, 512}, .scale_logits = true,
     .remark = "deepseek_v32: the indexer that picks tokens rotates on its own, pairing halves"},
    {.types = "glm4_moe_lite", .pairing = interleaved, .theta = 10000, .context = 202752,
     .sizes = {2048, 47, 20, 20}, .latent = {192, 64, 512}, .scale_logits = true},
    {.types = "youtu", .pairing = interleaved, .theta = 10000, .context = 128 * K,
     .sizes = {2048, 32, 16, 16}, .latent = {128, 64, 512}, .scale_logits = true},
    {.types = "mistral4", .pairing = interleaved, .context = 1024 * K, .sizes = {4096, 36, 32, 32},
     .latent = {64, 64, 256}, .scale_logits = true},
    {.types = "minicpm3", .pairing = halves, .theta = 10000, .context = 32 * K,
     .sizes = {2560, 62, 40, 40}, .latent = {64, 32, 256}, .scale_logits = true},

    // --- vectors added to the embedding ----------------------------------------------------------
    {.types = "gpt2 imagegpt", .read = read_learned, .context = 1024, .sizes = {768, 12, 12}},
    {.types = "openai-gpt", .read = read_learned, .context = 512, .sizes = {768, 12, 12}},
    {.types = "gpt_bigcode", .read = read_learned, .context = 1024, .sizes = {768, 12, 12, 1}},
    {.types = "gpt_neo", .read = read_gpt_neo, .context = 2048, .sizes = {2048, 24, 16}},
    {.types = "opt", .read = read_learned, .context = 2048, .sizes = {768, 12, 12}, .row_offset = 2,
     .rows_beyond = true},
    {.types = "biogpt", .read = read_learned, .context = 1024, .sizes = {1024, 24, 16},
     .row_offset = 2, .rows_beyond = true, .scale_embedding = true},
    {.types = "clip clip_text_model", .read = read_learned, .context = 77, .sizes = {512, 12, 8}},
    {.types = "siglip siglip_text_model", .read = read_learned, .context = 64,
     .sizes = {768, 12, 12}, .causal = false},
    {.types = "bert ernie visual_bert roc_bert splinter squeezebert mobilebert",
     .read = read_learned, .context = 512, .sizes = {768, 12, 12}, .causal = false},
    {.types = "megatron-bert bert-generation", .read = read_learned, .context = 512,
     .sizes = {1024, 24, 16}, .causal = false},
    {.types = "big_bird", .read = read_learned, .context = 4096, .sizes = {768, 12, 12},
     .causal = false},
    {.types = "electra convbert", .read = read_learned, .context = 512, .sizes = {256, 12, 4},
     .causal = false, .table_width = "embedding_size"},
    {.types = "albert", .read = read_learned, .context = 512, .sizes = {4096, 12, 64},
     .causal = false, .table_width = "embedding_size"},
    {.types = "distilbert", .read = read_waves, .context = 512, .sizes = {768, 6, 12},
     .causal = false},
    {.types =
         "roberta xlm-roberta camembert roberta-prelayernorm data2vec-text xmod longformer ibert",
     .read = read_learned, .context = 512, .sizes = {768, 12, 12}, .causal = false,
     .row_offset = 2},
    {.types = "xlm-roberta-xl", .read = read_learned, .context = 514, .sizes = {2560, 36, 32},
     .causal = false, .row_offset = 2},
    {.types = "mpnet", .read = read_mpnet, .context = 512, .sizes = {768, 12, 12}, .causal = false,
     .row_offset = 2},
    {.types = "esm", .read = read_esm, .context = 1026, .sizes = {768, 12, 12}, .causal = false,
     .row_offset = 2},
    {.types = "xlm", .read = read_waves, .context = 512, .sizes = {2048, 12, 16}, .causal = false},
    {.types = "ctrl", .read = read_waves, .context = 256, .sizes = {1280, 48, 16},
     .scale_embedding = true},
    {.types = "xglm", .read = read_waves, .context = 2048, .sizes = {1024, 24, 16},
     .scale_embedding = true},

    // --- biases and vectors by distance ----------------------------------------------------------
    {.types = "bloom", .read = read_bloom, .sizes = {64, 2, 8}},
    {.types = "mpt", .read = read_mpt, .context = 2048, .sizes = {2048, 24, 16}},
    {.types = "jais", .read = read_jais, .context = 1024, .sizes = {768, 12, 12}},
    {.types = "deberta", .read = read_deberta, .context = 512, .sizes = {768, 12, 12},
     .causal = false},
    {.types = "deberta-v2", .read = read_deberta, .context = 512, .sizes = {1536, 24, 24},
     .causal = false},
    {.types = "t5 mt5 umt5", .read = read_t5, .sizes = {512, 6, 8, 0, 64}},
    {.types = "switch_transformers", .read = read_t5, .sizes = {768, 12, 12, 0, 64}},
    {.types = "longt5", .read = read_t5, .sizes = {512, 6, 8, 0, 64},
     .remark =
         "longt5: the encoder attends to a neighbourhood of local_radius and, as tglobal, to "
         "summaries of blocks with a bias of their own"},

    // --- encoder and decoder with added vectors --------------------------------------------------
    {.types = "bart mbart plbart mvp", .read = read_bart, .context = 1024, .sizes = {1024, 12, 16},
     .row_offset = 2},
    {.types = "led", .read = read_bart, .context = 1024, .sizes = {1024, 12, 16}},
    {.types = "blenderbot", .read = read_bart, .context = 128, .sizes = {2560, 0, 32}},
    {.types = "blenderbot-small", .read = read_bart, .context = 512, .sizes = {512, 8, 16}},
    {.types = "bigbird_pegasus", .read = read_bart, .context = 4096, .sizes = {1024, 16, 16},
     .scale_embedding = true},
    {.types = "marian", .read = read_marian, .context = 1024, .sizes = {1024, 12, 16}},
    {.types = "pegasus", .read = read_marian, .context = 1024, .sizes = {1024, 12, 16}},
    {.types = "m2m_100 nllb-moe", .read = read_m2m, .context = 1024, .sizes = {1024, 12, 16},
     .scale_embedding = true},
    {.types = "whisper", .read = read_whisper, .context = 448, .sizes = {384, 4, 6}},

    // --- pictures alone --------------------------------------------------------------------------
    {.types =
         "vit vit_msn deit dinov2 dinov2_with_registers dinov3_vit clip_vision_model "
         "siglip_vision_model pixtral internvl_vision qwen2_vl_vision qwen2_5_vl_vision "
         "qwen3_vl_vision gemma4_vision llama4_vision_model", .read = read_vit},

    // --- known, and known not to be covered ------------------------------------------------------
    {.types = "mamba mamba2 falcon_mamba rwkv rwkv5 rwkv6 rwkv7 xlstm", .read = read_no_attention},
    {.types =
         "transfo-xl xlnet funnel swin swinv2 beit kimi_linear minimax deepseek_v4 longcat_flash "
         "ernie4_5_vl_moe ernie4_5_vl_moe_text encoder-decoder vision-encoder-decoder zamba zamba2 "
         "recurrent_gemma reformer",
     .read = read_not_covered},
};
// clang-format on

constexpr Family unknown{.types = ""};

struct Inner {
  std::string_view outer, inner;
};
constexpr Inner inner_types[] = {
    {"llama4", "llama4_text"},
    {"gemma3", "gemma3_text"},
    {"gemma3n", "gemma3n_text"},
    {"gemma4", "gemma4_text"},
    {"qwen3_vl", "qwen3_vl_text"},
    {"qwen3_5", "qwen3_5_text"},
    {"clip", "clip_text_model"},
    {"siglip", "siglip_text_model"},
    {"mllama", "mllama_text_model"},
    {"qwen2_5_omni", "qwen2_5_omni_text"},
    {"qwen3_omni_moe", "qwen3_omni_moe_text"},
};

}  // namespace

const Family* find_family(std::string_view model_type) {
  const auto found =
      std::ranges::find_if(families, [&](const Family& f) { return lists(f.types, model_type); });
  return found == std::end(families) ? nullptr : found;
}

const Family& unknown_family() { return unknown; }

std::string_view inner_type(std::string_view outer) {
  const auto found = std::ranges::find(inner_types, outer, &Inner::outer);
  return found == std::end(inner_types) ? outer : found->inner;
}

void read_no_attention(const Section& config, const Family&) {
  config.reading.refuse(
      config.where("model_type"), "has no attention, and so no positional encoding",
      "'" + config.reading.family + "'", "its recurrence carries the order of tokens");
}

void read_not_covered(const Section& config, const Family&) {
  config.reading.refuse(config.where("model_type"), "is known and not covered",
                        "'" + config.reading.family + "'",
                        "its positions are not one of the schemes");
}

}  // namespace posenc::detail
