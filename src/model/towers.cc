// Vision towers: what a picture's patches know of their place. Positions are patch indices, one
// axis for a learned table, two (height, width) for a rotation.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/model/family.h"

namespace posenc::detail {
namespace {

enum class Kind { learned, rotated, rotated_and_learned };

struct Tower {
  std::string_view
      types;  // of vision_config, or of the model around it where vision_config has none
  Kind kind = Kind::learned;
  Axial axial = {};
  std::int64_t width = 768, layers = 12, heads = 12, image = 224, patch = 16;  // class defaults
  std::int64_t extra_rows = 1;  // class and distillation tokens
  bool unscaled = false;        // q·k is not divided by √head_dim
  std::string_view remark = {};
};

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
     .kind = Kind::rotated,
     .axial = {.rope_theta = 100,
               .pairing = Pairing::halves,
               .order = AxisOrder::height_width,
               .normalised = true},
     .width = 384,
     .layers = 12,
     .heads = 6},
    {.types = "pixtral",
     .kind = Kind::rotated,
     .axial = {.rope_theta = 10000,
               .pairing = Pairing::halves,
               .order = AxisOrder::height_width,
               .frequencies = AxisFrequencies::alternating},
     .width = 1024,
     .layers = 24,
     .heads = 16,
     .image = 1024},
    {.types = "mistral-inference",  // the same tower in a params.json: neighbours, not halves
     .kind = Kind::rotated,
     .axial = {.rope_theta = 10000,
               .pairing = Pairing::interleaved,
               .order = AxisOrder::height_width,
               .frequencies = AxisFrequencies::alternating},
     .width = 0,  // sizes have no default there
     .layers = 0,
     .heads = 0},
    {.types = "qwen2_vl_vision qwen2_vl",
     .kind = Kind::rotated,
     .axial = {.rope_theta = 10000, .pairing = Pairing::halves, .order = AxisOrder::height_width},
     .width = 1280,
     .layers = 32,
     .heads = 16},
    {.types = "qwen2_5_vl_vision qwen2_5_vl qwen2_5_omni_vision_encoder",
     .kind = Kind::rotated,
     .axial = {.rope_theta = 10000, .pairing = Pairing::halves, .order = AxisOrder::height_width},
     .width = 1280,
     .layers = 32,
     .heads = 16,
     .patch = 14},
    {.types = "qwen3_vl_vision qwen3_vl qwen3_vl_moe_vision qwen3_vl_moe qwen3_5_vision qwen3_5 "
              "qwen3_5_moe_vision qwen3_5_moe",
     .kind = Kind::rotated_and_learned,
     .axial = {.rope_theta = 10000, .pairing = Pairing::halves, .order = AxisOrder::height_width},
     .width = 1152,
     .layers = 27,
     .heads = 16,
     .extra_rows = 0,
     .remark = resized},
    {.types = "gemma4_vision gemma4",
     .kind = Kind::rotated,
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
     .kind = Kind::rotated_and_learned,
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

const Tower* find_tower(std::string_view type) {
  const auto found =
      std::ranges::find_if(towers, [&](const Tower& tower) { return lists(tower.types, type); });
  return found == std::end(towers) ? nullptr : found;
}

// Rows of the table: as the file counts them, else the patches of the picture and the extra tokens.
std::int64_t table_rows(const Section& vision, const Tower& tower, Notes& notes) {
  const Range range{.least = 1, .most = static_cast<double>(most_width)};
  if (const auto said = vision.integer("num_position_embeddings", range)) {
    note(notes, "rows", std::to_string(said->value), Origin::file, said->key);
    return said->value;
  }
  const auto size = [&](std::string_view key, std::int64_t fallback) {
    const Json* json = vision.raw(key);
    const auto* pair =
        json ? json->get<Json::Array>() : nullptr;  // [height, width], equal in practice
    if (pair && !pair->empty() && (*pair)[0].get<std::int64_t>()) {
      return std::clamp<std::int64_t>(*(*pair)[0].get<std::int64_t>(), 1, most_head_dim);
    }
    return vision.size(notes, key, key, fallback, most_head_dim);
  };
  const std::int64_t image = size("image_size", tower.image),
                     patch = size("patch_size", tower.patch);
  if (vision.reading.error) return 1;
  if (patch > image) {
    vision.reading.refuse(vision.where("patch_size"),
                          "must not exceed image_size " + std::to_string(image),
                          std::to_string(patch), "correct the file");
    return 1;
  }
  const std::int64_t side = image / patch;
  note(notes, "rows", std::to_string(side * side + tower.extra_rows), Origin::derived,
       "(" + std::to_string(image) + "/" + std::to_string(patch) + ")² + " +
           std::to_string(tower.extra_rows));
  return side * side + tower.extra_rows;
}

// Qwen2.5-VL attends within squares of the picture, but for a few layers.
void split_windows(const Section& vision, LayerGroup group, Model& model) {
  const Range side_range{.least = 1, .most = static_cast<double>(most_head_dim)};
  const auto window = vision.integer("window_size", side_range);
  const auto full = vision.integers("fullatt_block_indexes", not_negative);
  if (!window || vision.reading.error) {
    model.groups.push_back(std::move(group));
    return;
  }
  const auto patch = vision.integer("patch_size", side_range);
  const std::vector<std::int64_t> whole =
      full ? full->value : std::vector<std::int64_t>{7, 15, 23, 31};
  const auto is_full = [&](std::int64_t layer) {
    return std::ranges::find(whole, layer) != whole.end();
  };
  LayerGroup windowed = group;
  std::erase_if(windowed.layers, is_full);
  std::erase_if(group.layers, [&](std::int64_t layer) { return !is_full(layer); });
  const std::int64_t side = std::max<std::int64_t>(window->value / (patch ? patch->value : 14), 1);
  windowed.window = side * side;
  windowed.label = "windows of " + std::to_string(side) + " × " + std::to_string(side) + " patches";
  group.label = "full attention";
  note(windowed.provenance, "window", std::to_string(side * side), Origin::derived,
       "(" + window->key + " " + std::to_string(window->value) + " / patch_size)²");
  if (!windowed.layers.empty()) model.groups.push_back(std::move(windowed));
  if (!group.layers.empty()) model.groups.push_back(std::move(group));
}

}  // namespace

void read_tower(const Section& vision, std::string_view outer_type) {
  Reading& reading = vision.reading;
  const auto said = vision.word("model_type");
  const Tower* tower = said ? find_tower(said->value) : nullptr;
  if (!tower && (!said || said->value == outer_type)) tower = find_tower(outer_type);
  if (!tower) {
    reading.warn("vision_not_explained", "the vision tower" +
                                             (said ? " '" + said->value + "'" : std::string()) +
                                             " is not covered; only the text model is explained");
    return;
  }
  const std::string outer =
      std::exchange(reading.family, said ? said->value : std::string(outer_type));
  Notes notes;
  Shape shape;
  const bool embed_dim =
      vision.has("embed_dim");  // Qwen2-VL: hidden_size is the text model's there
  shape.width = vision.size(notes, "width", embed_dim ? "embed_dim" : "hidden_size", tower->width,
                            most_width);
  shape.layers = vision.size(notes, "layers", "num_hidden_layers depth num_layers", tower->layers,
                             most_layers);
  shape.heads = shape.kv_heads = vision.size(
      notes, "heads", "num_heads num_attention_heads attention_heads", tower->heads, most_heads);
  const auto head_dim =
      vision.integer("head_dim", Range{.least = 1, .most = static_cast<double>(most_head_dim)});
  shape.head_dim =
      head_dim ? head_dim->value : head_dim_of(vision, notes, shape.width, shape.heads);
  if (head_dim)
    note(notes, "head_dim", std::to_string(shape.head_dim), Origin::file, head_dim->key);

  LayerGroup group = uniform_group(Stack::vision, shape, false, std::move(notes));
  if (tower->unscaled) {
    group.logits.multiplier = std::sqrt(static_cast<double>(shape.head_dim));
    group.logits_note = "q·k is not divided by √head_dim";
  }
  if (tower->kind != Kind::learned) {
    Axial axial = tower->axial;
    const auto theta = vision.section("rope_parameters").number("rope_theta", above_one);
    const auto beside = vision.number("rope_theta", above_one);
    const auto& found = theta ? theta : beside;
    if (found) axial.rope_theta = found->value;
    note(group.provenance, "rope_theta", number_text(axial.rope_theta),
         found ? Origin::file : Origin::family, found ? found->key : "rule of " + reading.family);
    note(group.provenance, "pairing", name(axial.pairing), Origin::family,
         "rule of " + reading.family);
    if (axial.normalised) {
      const std::int64_t side =
          vision.size(group.provenance, "image_size", "image_size", tower->image, most_head_dim) /
          std::max<std::int64_t>(vision.size(group.provenance, "patch_size", "patch_size",
                                             tower->patch, most_head_dim),
                                 1);
      group.geometry.grid_height = group.geometry.grid_width = side;
    }
    group.schemes.push_back(axial);
  }
  if (tower->kind != Kind::rotated) {
    group.schemes.push_back(Learned{.rows = table_rows(vision, *tower, group.provenance)});
  }
  if (!tower->remark.empty())
    reading.warn("tower_remark", std::string(reading.family) + ": " + std::string(tower->remark));
  reading.family = outer;
  if (!reading.error) split_windows(vision, std::move(group), reading.model);
}

void read_vit(const Section& config, const Family& family) {
  (void)family;
  const auto type = config.word("model_type");
  read_tower(config, type ? type->value : std::string());
}

}  // namespace posenc::detail
