// Families that are no text model, those that are known not to be covered, and the models around
// text models.
#include <algorithm>

#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// clang-format off: one row a family, as dense as it can be read.
// sizes: width, layers, heads, key-value heads (0: as many), head_dim (0: width / heads).
constexpr Family other[] = {
    // --- pictures alone --------------------------------------------------------------------------
    {.types = "vit vit_msn deit dinov2 dinov2_with_registers dinov3_vit clip_vision_model "
              "siglip_vision_model pixtral internvl_vision qwen2_vl_vision qwen2_5_vl_vision "
              "qwen3_vl_vision gemma4_vision llama4_vision_model",
     .read = read_vit},

    // --- known, and known not to be covered ------------------------------------------------------
    {.types = "mamba mamba2 falcon_mamba rwkv rwkv5 rwkv6 rwkv7 xlstm", .read = read_no_attention},
    {.types = "transfo-xl xlnet funnel swin swinv2 beit encoder-decoder vision-encoder-decoder "
              "reformer",
     .read = read_not_covered},
    {.types = "inkling inkling_text inkling2 inkling2_text", .read = read_not_covered,
     .remark = "its bias by distance is a product with the query's content, which no plan says"},
    {.types = "longcat_flash", .read = read_not_covered,
     .remark = "each layer attends twice, and channels without position are scaled on their own"},
    {.types = "dots3_note dots3_note_text", .read = read_not_covered,
     .remark = "layers that slide have latent heads of another width"},
    {.types = "hunyuan_vl hunyuan_vl_text neomme neomme_text", .read = read_not_covered,
     .remark = "its position axes are dealt to channels in a way that no layout of mrope_section "
               "says"},
    {.types = "zaya", .read = read_not_covered,
     .remark = "convolutions mix tokens before they are rotated"},
    {.types = "diffusion_gemma diffusion_gemma_text", .read = read_not_covered,
     .remark = "an encoder and a decoder share layers, and the decoder's block sees both ways"},
    {.types = "intern_s1_pro", .read = read_not_covered,
     .remark = "its cos and sin are learned mixtures of frequencies (FoPE), which no plan says"},
};
// clang-format on

// A model around a text model and its towers has a type of its own, and its text part may not say
// which family it is.
struct Inner {
  std::string_view outer, inner;
  std::string_view remark = {};
};
constexpr Inner inner_types[] = {
    {"llama4", "llama4_text"},
    {"mistral_large4", "mistral_large4_text"},
    {"gemma3", "gemma3_text", picture_blocks},
    {"gemma3n", "gemma3n_text"},
    {"gemma4", "gemma4_text"},
    {"qwen3_vl", "qwen3_vl_text"},
    {"qwen3_5", "qwen3_5_text"},
    {"clip", "clip_text_model"},
    {"siglip", "siglip_text_model"},
    {"mllama", "mllama_text_model"},
    {"qwen2_5_omni", "qwen2_5_omni_text"},
    {"qwen3_omni_moe", "qwen3_omni_moe_text"},
    {"muse_glimmer", "muse_glimmer_text"},
    {"muse_spark", "muse_spark_text"},
    {"gemma4_unified", "gemma4_unified_text"},
    {"embedding_gemma2", "embedding_gemma2_text"},
    {"qwen4_exp", "qwen4_exp_text"},
    {"glm5_next", "glm5_next_text"},
    {"minimax_m3_vl", "minimax_m3_vl_text"},
    {"cosmos3_edge", "cosmos3_edge_text"},
    {"granite4_vision", "granite4_vision_text"},
    {"granite_docling", "granite_docling_text"},
    {"paligemma", "gemma",
     "the picture and the prompt see each other both ways, and what is generated is causal; "
     "positions count from 1"},
};

}  // namespace

std::span<const Family> rows_other() { return other; }

std::string_view inner_type(std::string_view outer) {
  const auto found = std::ranges::find(inner_types, outer, &Inner::outer);
  return found == std::end(inner_types) ? outer : found->inner;
}

std::string_view outer_remark(std::string_view outer) {
  const auto found = std::ranges::find(inner_types, outer, &Inner::outer);
  return found == std::end(inner_types) ? std::string_view() : found->remark;
}

}  // namespace posenc::detail
