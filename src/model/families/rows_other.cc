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
    {.types = "transfo-xl xlnet funnel swin swinv2 beit kimi_linear minimax deepseek_v4 "
              "longcat_flash ernie4_5_vl_moe ernie4_5_vl_moe_text encoder-decoder "
              "vision-encoder-decoder zamba zamba2 recurrent_gemma reformer",
     .read = read_not_covered},
};
// clang-format on

// A model around a text model and its towers has a type of its own, and its text part may not say
// which family it is.
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

std::span<const Family> rows_other() { return other; }

std::string_view inner_type(std::string_view outer) {
  const auto found = std::ranges::find(inner_types, outer, &Inner::outer);
  return found == std::end(inner_types) ? outer : found->inner;
}

}  // namespace posenc::detail
