// Vision towers, one row each. Sizes are defaults of the configuration class, used only where the
// file is silent.
#include <algorithm>

#include "src/model/families/vision.h"

namespace posenc::detail {
namespace {

constexpr std::string_view resized =
    "the learned table is stretched to the picture's grid; rows are those stored";

const Tower towers[] = {
    {.types = "clip_vision_model clip chinese_clip_vision_model", .image = 224, .patch = 32},
    {.types = "siglip_vision_model siglip", .extra_rows = 0},
    {.types = "vit vit_msn"},
    {.types = "deit", .extra_rows = 2},
    {.types = "dinov2 dinov2_with_registers", .image = 224, .patch = 14, .remark = resized},
    {.types = "internvl_vision",
     .width = 1024,
     .layers = 24,
     .heads = 16,
     .image = 448,
     .patch = 14},
    {.types = "dinov3_vit",
     .kind = TowerKind::rotated,
     .axial = {.rope_theta = 100,
               .pairing = Pairing::halves,
               .order = AxisOrder::height_width,
               .normalised = true},
     .width = 384,
     .layers = 12,
     .heads = 6},
    {.types = "pixtral",
     .kind = TowerKind::rotated,
     .axial = {.rope_theta = 10000,
               .pairing = Pairing::halves,
               .order = AxisOrder::height_width,
               .frequencies = AxisFrequencies::alternating},
     .width = 1024,
     .layers = 24,
     .heads = 16,
     .image = 1024},
    {.types = "mistral-inference",  // the same tower in a params.json: neighbours, not halves
     .kind = TowerKind::rotated,
     .axial = {.rope_theta = 10000,
               .pairing = Pairing::interleaved,
               .order = AxisOrder::height_width,
               .frequencies = AxisFrequencies::alternating},
     .width = 0,  // sizes have no default there
     .layers = 0,
     .heads = 0},
    {.types = "qwen2_vl_vision qwen2_vl",
     .kind = TowerKind::rotated,
     .axial = {.rope_theta = 10000, .pairing = Pairing::halves, .order = AxisOrder::height_width},
     .width = 1280,
     .layers = 32,
     .heads = 16},
    {.types = "qwen2_5_vl_vision qwen2_5_vl qwen2_5_omni_vision_encoder",
     .kind = TowerKind::rotated,
     .axial = {.rope_theta = 10000, .pairing = Pairing::halves, .order = AxisOrder::height_width},
     .width = 1280,
     .layers = 32,
     .heads = 16,
     .patch = 14},
    {.types = "qwen3_vl_vision qwen3_vl qwen3_vl_moe_vision qwen3_vl_moe qwen3_5_vision qwen3_5 "
              "qwen3_5_moe_vision qwen3_5_moe",
     .kind = TowerKind::rotated_and_learned,
     .axial = {.rope_theta = 10000, .pairing = Pairing::halves, .order = AxisOrder::height_width},
     .width = 1152,
     .layers = 27,
     .heads = 16,
     .extra_rows = 0,
     .remark = resized},
    {.types = "gemma4_vision gemma4",
     .kind = TowerKind::rotated,
     .axial = {.rope_theta = 100,
               .pairing = Pairing::halves,
               .order = AxisOrder::width_height,
               .blocks = true},
     .width = 768,
     .layers = 16,
     .heads = 12,
     .unscaled = true,
     .remark = "the tower also adds a learned row of the column and one of the row; those two "
               "tables are not in the plan"},
    {.types = "llama4_vision_model llama4",
     .kind = TowerKind::rotated_and_learned,
     .axial = {.rope_theta = 10000,
               .pairing = Pairing::interleaved,
               .order = AxisOrder::width_height},
     .width = 768,
     .layers = 34,
     .heads = 16,
     .image = 448,
     .patch = 14,
     .remark = "the tower counts rows and columns from 1, and the class token is not rotated"},
};

}  // namespace

const Tower* find_tower(std::string_view type) {
  const auto found = std::ranges::find_if(
      towers, [&](const Tower& tower) { return contains_word(tower.types, type); });
  return found == std::end(towers) ? nullptr : found;
}

}  // namespace posenc::detail
