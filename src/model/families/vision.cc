// Vision towers: what a picture's patches know of their place. Positions are patch indices, one
// axis for a learned table, two (height, width) for a rotation.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/model/families/vision.h"

namespace posenc::detail {
std::vector<std::int64_t> sides(const Section& vision, std::string_view key, std::int64_t fallback,
                                ProvenanceList& notes) {
  if (key.empty()) return {1, 1};
  const Json* json = vision.raw(key);
  if (json && json->get<Json::Array>()) {
    const auto list =
        vision.integers(key, Range{.least = 1, .most = static_cast<double>(most_head_dim)});
    if (list && list->value.size() >= 2) return {list->value.end() - 2, list->value.end()};
    if (list && list->value.size() == 1) return {list->value[0], list->value[0]};
    return {1, 1};
  }
  const std::int64_t one = vision.size(notes, key, key, fallback, most_head_dim);
  return {one, one};
}

namespace {

// How many grids of patches a video has, one after the other in its table.
std::int64_t grids_of(const Section& vision, const Tower& tower) {
  if (tower.frames == 0) return 1;
  const Range range{.least = 1, .most = static_cast<double>(most_head_dim)};
  const auto frames = vision.integer("num_frames", range);
  const Json* tubelet = vision.raw("tubelet_size");
  const auto* list = tubelet ? tubelet->get<Json::Array>() : nullptr;
  const auto* first = list && !list->empty() ? list->front().get<std::int64_t>() : nullptr;
  return (frames ? frames->value : tower.frames) /
         std::clamp<std::int64_t>(first ? *first : 2, 1, most_head_dim);
}

}  // namespace

Axial axial_of(const Section& vision, const Tower& tower, ProvenanceList& notes) {
  Axial axial = tower.axial;
  const auto theta = vision.section("rope_parameters").number("rope_theta", above_one);
  const auto beside = vision.number("rope_theta", above_one);
  const auto& found = theta ? theta : beside;
  if (found) axial.rope_theta = found->value;
  const std::string rule = "rule of " + vision.reading.family;
  note(notes, "rope_theta", number_text(axial.rope_theta), found ? Origin::file : Origin::family,
       found ? found->key : rule);
  note(notes, "pairing", name(axial.pairing), Origin::family, rule);
  return axial;
}

std::int64_t table_rows(const Section& vision, const Tower& tower, ProvenanceList& notes) {
  const Range range{.least = 1, .most = static_cast<double>(most_width)};
  if (tower.rows > 0) return vision.size(notes, "rows", tower.rows_key, tower.rows, most_width);
  if (const auto said = vision.integer(tower.rows_key, range)) {
    note(notes, "rows", std::to_string(said->value), Origin::file, said->key);
    return said->value;
  }
  const auto image = sides(vision, tower.image_key, tower.image, notes),
             patch = sides(vision, tower.patch_key, tower.patch, notes);
  if (vision.reading.error) return 1;
  if (patch[0] > image[0] || patch[1] > image[1]) {
    vision.reading.refuse(
        vision.where(tower.patch_key),
        "must not exceed " + std::string(tower.image_key) + " " + std::to_string(image[0]),
        std::to_string(patch[0]), "correct the file");
    return 1;
  }
  const std::int64_t high = image[0] / patch[0], wide = image[1] / patch[1],
                     grids = grids_of(vision, tower), rows = high * wide * grids + tower.extra_rows;
  const std::string one = std::to_string(image[0]) + "/" + std::to_string(patch[0]);
  note(notes, "rows", std::to_string(rows), Origin::derived,
       (high == wide ? "(" + one + ")²"
                     : one + " · " + std::to_string(image[1]) + "/" + std::to_string(patch[1])) +
           (grids > 1 ? " · " + std::to_string(grids) + " frames" : std::string()) + " + " +
           std::to_string(tower.extra_rows));
  return rows;
}

namespace {

// Some layers attend within squares of `side` patches, the others to the whole picture.
void add_windowed(LayerGroup group, const std::vector<std::int64_t>& windowed, std::int64_t side,
                  std::string_view detail, Model& model) {
  const auto is_windowed = [&](std::int64_t layer) {
    return std::ranges::find(windowed, layer) != windowed.end();
  };
  LayerGroup within = group;
  std::erase_if(within.layers, [&](std::int64_t layer) { return !is_windowed(layer); });
  std::erase_if(group.layers, is_windowed);
  within.window = side * side;
  within.label = "windows of " + std::to_string(side) + " × " + std::to_string(side) + " patches";
  group.label = "full attention";
  note(within.provenance, "window", std::to_string(side * side), Origin::derived, detail);
  if (!within.layers.empty()) model.groups.push_back(std::move(within));
  if (!group.layers.empty()) model.groups.push_back(std::move(group));
}

// Muse lists its layers, and a window is as wide as the learned table; some of LFM3's convolve.
void add_listed(const Section& vision, LayerGroup group, const std::vector<std::string>& types,
                Model& model) {
  std::vector<std::int64_t> windowed;
  LayerGroup other = group;
  std::erase_if(other.layers, [&](std::int64_t layer) {
    return !types[static_cast<std::size_t>(layer)].starts_with("conv");
  });
  std::erase_if(group.layers, [&](std::int64_t layer) {
    return types[static_cast<std::size_t>(layer)].starts_with("conv");
  });
  if (!other.layers.empty()) {
    set_mixer(Mixer::convolution, "convolution", other);
    group.label = "full attention";
    model.groups.push_back(std::move(other));
  }
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] == "window_attention") windowed.push_back(static_cast<std::int64_t>(i));
  if (windowed.empty()) {
    model.groups.push_back(std::move(group));
    return;
  }
  const auto side = vision.integer("pos_emb_height",
                                   Range{.least = 1, .most = static_cast<double>(most_head_dim)});
  add_windowed(std::move(group), windowed, side ? side->value : 32, "pos_emb_height²", model);
}

// Qwen2.5-VL attends within squares of the picture, but for a few layers.
void split_windows(const Section& vision, LayerGroup group, Model& model) {
  const Range side_range{.least = 1, .most = static_cast<double>(most_head_dim)};
  const auto types = vision.words("layer_types");
  if (types && types->value.size() == group.layers.size())
    return add_listed(vision, std::move(group), types->value, model);
  const auto window = vision.integer("window_size", side_range);
  const auto full = vision.integers("fullatt_block_indexes", not_negative);
  if (!window || vision.reading.error) {
    model.groups.push_back(std::move(group));
    return;
  }
  const auto patch = vision.integer("patch_size", side_range);
  const std::vector<std::int64_t> whole =
      full ? full->value : std::vector<std::int64_t>{7, 15, 23, 31};
  std::vector<std::int64_t> windowed = group.layers;
  std::erase_if(windowed,
                [&](std::int64_t layer) { return std::ranges::find(whole, layer) != whole.end(); });
  const std::int64_t side = std::max<std::int64_t>(window->value / (patch ? patch->value : 14), 1);
  add_windowed(std::move(group), windowed, side,
               "(" + window->key + " " + std::to_string(window->value) + " / patch_size)²", model);
}

}  // namespace

void read_tower(const Section& vision, std::string_view outer_type) {
  Reading& reading = vision.reading;
  const auto said = vision.word("model_type");
  const Tower* tower = said ? find_tower(said->value) : nullptr;
  if (!tower && (!said || said->value == outer_type)) tower = find_tower(outer_type);
  if (const Section backbone = vision.section("backbone_config"); !tower && backbone)
    return read_tower(backbone, {});
  if (!tower) {
    const Family* family = said ? find_family(said->value) : nullptr;
    const std::string why =
        family && !family->remark.empty() ? ": " + std::string(family->remark) : "";
    reading.warn("vision_not_explained",
                 "the vision tower" + (said ? " '" + said->value + "'" : std::string()) +
                     " is not covered" + why + "; only the text model is explained");
    return;
  }
  const std::string outer =
      std::exchange(reading.family, said ? said->value : std::string(outer_type));
  if (tower->read) {
    tower->read(vision, *tower);
    reading.family = outer;
    return;
  }
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
  const bool rotated =
      tower->kind == TowerKind::rotated || tower->kind == TowerKind::rotated_and_learned;
  if (tower->kind == TowerKind::waves) {
    Sinusoidal waves;
    if (tower->by_axis_waves) {
      waves = {.layout = WaveLayout::concatenated,
               .axes_dim = {dims.width / 2, dims.width / 2},
               .axis_order = {1, 0}};
      note(group.provenance, "axis_order", "column, row", Origin::family,
           "rule of " + reading.family);
    }
    group.schemes.push_back(waves);
  }
  if (rotated) {
    Axial axial = axial_of(vision, *tower, group.provenance);
    if (axial.normalised) {
      const std::int64_t side =
          vision.size(group.provenance, "image_size", "image_size", tower->image, most_head_dim) /
          std::max<std::int64_t>(vision.size(group.provenance, "patch_size", "patch_size",
                                             tower->patch, most_head_dim),
                                 1);
      group.geometry.grid_height = group.geometry.grid_width = side;
    }
    if (tower->thirds) {
      axial.axes_dim.assign(3, dims.head_dim / 3 / 2 * 2);
      note(group.provenance, "axes_dim", std::to_string(axial.axes_dim[0]) + " of each",
           Origin::derived, "2 · ⌊⌊head_dim/3⌋/2⌋");
    }
    group.schemes.push_back(axial);
  }
  if (tower->kind == TowerKind::learned || tower->kind == TowerKind::rotated_and_learned) {
    Learned learned{.rows = table_rows(vision, *tower, group.provenance)};
    if (tower->by_axis) {
      learned.axis_rows = {learned.rows, learned.rows};
      learned.rows *= 2;
    }
    group.schemes.push_back(std::move(learned));
  }
  if (!tower->remark.empty())
    reading.warn("tower_remark", std::string(reading.family) + ": " + std::string(tower->remark));
  reading.family = outer;
  if (!reading.error) split_windows(vision, std::move(group), reading.model);
}

void read_vision_alone(const Section& config, const Family& family) {
  const Section vision = config.section("vision_config");
  if (!vision) {
    config.reading.refuse(config.where("vision_config"), "is missing", {},
                          "give the whole config.json, or that of the tower");
    return;
  }
  read_tower(vision, {});
  if (!family.remark.empty()) config.reading.warn("family_remark", family.remark);
}

void read_vit(const Section& config, const Family& family) {
  (void)family;
  const auto type = config.word("model_type");
  read_tower(config, type ? type->value : std::string());
}

}  // namespace posenc::detail
