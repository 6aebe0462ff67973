// Families with multi-head latent attention: a part of each head rotates, its last channels.
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// clang-format off: one row a family, as dense as it can be read.
// sizes: width, layers, heads, key-value heads (0: as many), head_dim (0: width / heads).
constexpr Family latent[] = {
    {.types = "deepseek_v2", .context = 2048, .sizes = {4096, 32, 32}, .pairing = interleaved,
     .pairing_key = interleave_keys, .theta = 10000, .mla = {128, 64, 512}, .scale_logits = true},
    {.types = "deepseek_v3 kimi_k2", .context = 4096, .sizes = {7168, 61, 128, 128},
     .pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000, .mla = {128, 64, 512},
     .scale_logits = true},
    {.types = "deepseek_v32", .context = 160 * K, .sizes = {7168, 61, 128, 128},
     .pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000, .mla = {128, 64, 512},
     .scale_logits = true,
     .remark = "deepseek_v32: the indexer that picks tokens rotates on its own, pairing halves"},
    {.types = "glm4_moe_lite", .context = 202752, .sizes = {2048, 47, 20, 20},
     .pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000, .mla = {192, 64, 512},
     .scale_logits = true},
    {.types = "youtu", .context = 128 * K, .sizes = {2048, 32, 16, 16}, .pairing = interleaved,
     .pairing_key = interleave_keys, .theta = 10000, .mla = {128, 64, 512}, .scale_logits = true},
    {.types = "mistral4", .context = 1024 * K, .sizes = {4096, 36, 32, 32}, .pairing = interleaved,
     .pairing_key = interleave_keys,
     .parameters = R"({"rope_type": "yarn", "rope_theta": 10000, "factor": 128,
                       "original_max_position_embeddings": 8192, "beta_fast": 32, "beta_slow": 1,
                       "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1})",
     .mla = {64, 64, 256}, .scale_logits = true},
    {.types = "minicpm3", .context = 32 * K, .sizes = {2560, 62, 40, 40}, .pairing = halves,
     .theta = 10000, .mla = {64, 32, 256}, .scale_logits = true},
};
// clang-format on

}  // namespace

std::span<const Family> rows_latent() { return latent; }

}  // namespace posenc::detail
