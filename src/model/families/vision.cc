// Vision towers: what a picture's patches know of their place. Positions are patch indices, one
// axis for a learned table, two (height, width) for a rotation.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/model/families/vision.h"

namespace posenc::detail {
namespace {

// Rows of the table: as the file counts them, else the patches of the picture and the extra tokens.
std::int64_t table_rows(const Section& vision, const Tower& tower, ProvenanceList& notes) {
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
  ProvenanceList notes;
  ModelDims dims;
  const bool embed_dim =
      vision.has("embed_dim");  // Qwen2-VL: hidden_size is the text model's there
  dims.width = vision.size(notes, "width", embed_dim ? "embed_dim" : "hidden_size", tower->width,
                           most_width);
  dims.layers = vision.size(notes, "layers", "num_hidden_layers depth num_layers", tower->layers,
                            most_layers);
  dims.heads = dims.kv_heads = vision.size(
      notes, "heads", "num_heads num_attention_heads attention_heads", tower->heads, most_heads);
  const auto head_dim =
      vision.integer("head_dim", Range{.least = 1, .most = static_cast<double>(most_head_dim)});
  dims.head_dim = head_dim ? head_dim->value : head_dim_of(vision, notes, dims.width, dims.heads);
  if (head_dim) note(notes, "head_dim", std::to_string(dims.head_dim), Origin::file, head_dim->key);

  LayerGroup group = uniform_group(Stack::vision, dims, false, std::move(notes));
  if (tower->unscaled) {
    group.logits.multiplier = std::sqrt(static_cast<double>(dims.head_dim));
    group.logits_note = "q·k is not divided by √head_dim";
  }
  if (tower->kind != TowerKind::learned) {
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
  if (tower->kind != TowerKind::rotated) {
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
