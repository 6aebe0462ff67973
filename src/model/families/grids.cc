// Towers whose attention knows rows and columns by distance: stages of windows (Swin), of
// neighbourhoods (DiNAT), a class token before a grid (BEiT), vectors by rows and by columns in
// windows and out of them (SAM). Stages whose windows know no distance stand here too (Hiera).
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "src/model/families/vision.h"

namespace posenc::detail {
namespace {

constexpr std::int64_t most_side = 4096;

std::string by(std::int64_t height, std::int64_t width) {
  return std::to_string(height) + " × " + std::to_string(width);
}

// `otherwise` where the file has no list of its own.
std::vector<std::int64_t> numbers_of_stages(const Section& vision, std::string_view names,
                                            std::string_view otherwise, ProvenanceList& notes) {
  const Range range{.least = 1, .most = static_cast<double>(most_heads)};
  const auto said = vision.integers(names, range);
  const std::vector<std::int64_t> numbers = said ? said->value : numbers_in(otherwise);
  std::string list;
  for (const std::int64_t number : numbers)
    list += (list.empty() ? "" : ", ") + std::to_string(number);
  const std::string_view name = split(names).front();
  note(notes, name, list, said ? Origin::file : Origin::family,
       said ? said->key : "default of " + vision.reading.family);
  return numbers;
}

struct Patches {
  std::int64_t height = 0, width = 0;
};

Patches patches_of(const Section& vision, const Tower& tower, ProvenanceList& notes) {
  const auto image = sides(vision, tower.image_key, tower.image, notes),
             patch = sides(vision, tower.patch_key, tower.patch, notes);
  if (vision.reading.error) return {1, 1};
  const Patches grid{image[0] / patch[0], image[1] / patch[1]};
  if (grid.height < 1 || grid.width < 1 || grid.height > most_side || grid.width > most_side) {
    vision.reading.refuse(
        vision.where(tower.patch_key),
        "must cut the picture into 1 to " + std::to_string(most_side) + " patches each way",
        by(grid.height, grid.width), "correct the file");
    return {1, 1};
  }
  note(notes, "grid", by(grid.height, grid.width), Origin::derived,
       std::to_string(image[0]) + "/" + std::to_string(patch[0]) + " and " +
           std::to_string(image[1]) + "/" + std::to_string(patch[1]));
  return grid;
}

bool said_or(const Section& vision, std::string_view names, bool otherwise, ProvenanceList& notes) {
  return vision.flag_or(notes, split(names).front(), names, otherwise);
}

void add_remark(const Section& vision, const Tower& tower) {
  if (!tower.remark.empty())
    vision.reading.warn("tower_remark", vision.reading.family + ": " + std::string(tower.remark));
}

LayerGroup group_of(const Section& vision, const Tower& tower, ProvenanceList notes) {
  ModelDims dims;
  dims.width = vision.size(notes, "width", "hidden_size", tower.width, most_width);
  dims.layers = vision.size(notes, "layers", "num_hidden_layers", tower.layers, most_layers);
  dims.heads = dims.kv_heads =
      vision.size(notes, "heads", "num_attention_heads", tower.heads, most_heads);
  dims.head_dim = head_dim_of(vision, notes, dims.width, dims.heads);
  return uniform_group(Stack::vision, dims, false, std::move(notes));
}

// The layers of a stage, behind `first` others, to which they are added. Errors: too many of them, a
// width that the heads do not divide.
LayerGroup stage_of(const Section& vision, ProvenanceList notes, std::int64_t width,
                    std::int64_t layers, std::int64_t heads, std::int64_t& first) {
  if (layers > most_layers - first) {
    vision.reading.refuse(
        vision.where(vision.has("blocks_per_stage") ? "blocks_per_stage" : "depths"),
        "must be " + std::to_string(most_layers) + " layers or fewer",
        std::to_string(first + layers), "correct the file");
    return {};
  }
  ModelDims dims{.width = width, .layers = layers, .heads = heads, .kv_heads = heads};
  dims.head_dim = head_dim_of(vision, notes, dims.width, dims.heads);
  LayerGroup group = uniform_group(Stack::vision, dims, false, std::move(notes));
  for (std::int64_t& layer : group.layers) layer += first;
  first += layers;
  return group;
}

}  // namespace

// Each stage has half of the rows and columns of the one before, and twice the channels, where they
// merge. Its windows are as large as window_size or as the stage, and every second layer's are
// moved by half of that where there is more than one.
void read_stages(const Section& vision, const Tower& tower) {
  ProvenanceList notes;
  const std::int64_t width =
      vision.size(notes, "width", "embed_dim patch_embeds_hidden_size", tower.width, most_width);
  const auto depths = numbers_of_stages(vision, "depths", tower.depths, notes),
             heads = numbers_of_stages(vision, "num_heads num_attention_heads", tower.stage_heads,
                                       notes);
  const std::int64_t window =
      vision.size(notes, "window_size", "window_size", tower.window, most_side);
  const Patches whole = patches_of(vision, tower, notes);
  const bool absolute = said_or(vision, "use_absolute_embeddings", false, notes);
  std::vector<std::int64_t> trained(depths.size(), 0);
  if (tower.kind == TowerKind::log_cpb && vision.has("pretrained_window_sizes")) {
    const auto list = vision.integers("pretrained_window_sizes", not_negative);
    if (list) trained = list->value;
  }
  if (vision.reading.error) return;
  if (heads.size() != depths.size() || trained.size() != depths.size() || depths.size() > 16) {
    vision.reading.refuse(vision.where("depths"),
                          "must have a stage for each of num_heads, at most 16",
                          std::to_string(depths.size()), "correct the file");
    return;
  }
  std::int64_t first = 0;
  for (std::size_t s = 0; s < depths.size(); ++s) {
    const std::int64_t scale = tower.merges ? std::int64_t{1} << s : 1;
    const Patches stage{std::max<std::int64_t>(whole.height / scale, 1),
                        std::max<std::int64_t>(whole.width / scale, 1)};
    const std::int64_t side = std::min({window, stage.height, stage.width});
    LayerGroup group = stage_of(vision, notes, width * scale, depths[s], heads[s], first);
    if (vision.reading.error) return;
    const bool moved = std::min(stage.height, stage.width) > side;
    group.label = "stage " + std::to_string(s + 1) + ": windows of " + by(side, side) + " patches" +
                  (moved ? ", moved by " + std::to_string(window / 2) + " in every second layer"
                         : std::string());
    group.geometry.grid_height = group.geometry.grid_width = side;
    note(group.provenance, "window", by(side, side), Origin::derived,
         side < window ? "the stage, which is smaller than window_size" : "window_size");
    if (tower.kind == TowerKind::log_cpb) {
      group.schemes = {LogCpb{.pretrained_height = trained[s], .pretrained_width = trained[s]}};
      group.logits_note = "q·k are cosines times a learned number of each head";
    } else {
      group.schemes = {GridBias{}};
    }
    if (absolute && s == 0) group.schemes.push_back(Learned{.rows = whole.height * whole.width});
    vision.reading.model.groups.push_back(std::move(group));
  }
  add_remark(vision, tower);
}

// Stages of several widths, each of fewer patches than the one before: their attention knows no
// distance, and what there is of places is a table for each stage, or convolutions alone.
void read_narrowing(const Section& vision, const Tower& tower) {
  ProvenanceList notes;
  const auto depths = numbers_of_stages(vision, "depths depth", tower.depths, notes),
             widths =
                 numbers_of_stages(vision, "hidden_sizes embed_dim", tower.stage_widths, notes);
  // One number of heads stands for all stages.
  const Json* const said = vision.raw("num_attention_heads");
  const auto heads =
      said && said->get<std::int64_t>()
          ? std::vector(depths.size(),
                        vision.size(notes, "heads", "num_attention_heads", tower.heads, most_heads))
          : numbers_of_stages(vision, "num_attention_heads num_heads", tower.stage_heads, notes);
  if (vision.reading.error) return;
  if (depths.size() > 16 || widths.size() != depths.size() || heads.size() != depths.size()) {
    vision.reading.refuse(vision.where("hidden_sizes"),
                          "must have a width and heads for each stage, at most 16",
                          std::to_string(depths.size()), "correct the file");
    return;
  }
  const bool tables = tower.kind == TowerKind::learned;
  std::vector<std::int64_t> patches(depths.size(), 1);
  std::int64_t first = 0, side = 0;
  if (tables) {
    patches = numbers_of_stages(vision, tower.patch_key, "4 2 2 2", notes);
    side = vision.size(notes, "image_size", "image_size", tower.image, most_side);
    if (patches.size() != depths.size() && !vision.reading.error)
      vision.reading.refuse(vision.where(tower.patch_key), "must have a number for each stage",
                            std::to_string(patches.size()), "correct the file");
    if (vision.reading.error) return;
  }
  for (std::size_t s = 0; s < depths.size(); ++s) {
    LayerGroup group = stage_of(vision, notes, widths[s], depths[s], heads[s], first);
    if (vision.reading.error) return;
    group.label = "stage " + std::to_string(s + 1);
    if (tables) {
      side = std::max<std::int64_t>(side / patches[s], 1);
      const bool last = s + 1 == depths.size();
      group.schemes = {Learned{.rows = side * side + last}};
    } else {
      group.schemes = {NoPe{}};
      group.carried = "convolutions over neighbours, before and between the layers";
    }
    vision.reading.model.groups.push_back(std::move(group));
  }
  add_remark(vision, tower);
}

namespace {

// What LeViT does behind a stage: ["Subsample", channels of a query, heads, …, stride], as its
// class makes it of the file where the file has none.
struct Shrink {
  std::int64_t key_dim = 0, heads = 0, stride = 2;
};

Shrink shrink_behind(const Section& vision, std::size_t stage, std::int64_t key_dim,
                     std::int64_t width) {
  const Json* const all = vision.raw("down_ops");
  const auto* const list = all != nullptr ? all->get<Json::Array>() : nullptr;
  if (list == nullptr || stage >= list->size()) return {key_dim, width / key_dim};
  const auto* const op = (*list)[stage].get<Json::Array>();
  const auto at = [&](std::size_t place) {
    const auto* const number = (*op)[place].get<std::int64_t>();
    return number != nullptr ? *number : 0;
  };
  const Shrink found = op != nullptr && op->size() == 6 ? Shrink{at(1), at(2), at(5)} : Shrink{};
  const bool fits = found.key_dim >= 1 && found.key_dim <= most_head_dim && found.heads >= 1 &&
                    found.heads <= most_heads && found.stride >= 1 && found.stride <= most_side;
  if (!fits && !vision.reading.error)
    vision.reading.refuse(vision.where("down_ops"),
                          "must have channels, heads and a stride of each step", all->text(),
                          "correct the file");
  return found;
}

}  // namespace

// Stages of grids: each layer has a bias by rows and columns without their signs, and behind a
// stage one stands in which every second patch asks all of them, so that its positions are a stride
// apart.
void read_shrinking(const Section& vision, const Tower& tower) {
  ProvenanceList notes;
  const auto widths = numbers_of_stages(vision, "hidden_sizes", "128 256 384", notes),
             depths = numbers_of_stages(vision, "depths", tower.depths, notes),
             heads = numbers_of_stages(vision, "num_attention_heads", tower.stage_heads, notes),
             key_dims = numbers_of_stages(vision, "key_dim", "16 16 16", notes);
  const Patches whole = patches_of(vision, tower, notes);
  if (vision.reading.error) return;
  const std::size_t stages = depths.size();
  if (stages < 1 || stages > 16 || widths.size() != stages || heads.size() != stages ||
      key_dims.size() != stages || whole.height != whole.width) {
    vision.reading.refuse(vision.where("depths"),
                          "must have a stage for each of hidden_sizes, num_attention_heads and "
                          "key_dim, at most 16, of square pictures",
                          std::to_string(stages), "correct the file");
    return;
  }
  std::int64_t first = 0, side = whole.height;
  const auto add = [&](std::int64_t layers, std::int64_t width, std::int64_t key_dim,
                       std::int64_t of_heads, const std::string& label) {
    if (layers > most_layers - first) {
      vision.reading.refuse(vision.where("depths"),
                            "must be " + std::to_string(most_layers) + " layers or fewer",
                            std::to_string(first + layers), "correct the file");
      return;
    }
    ModelDims dims{.width = width, .layers = layers, .heads = of_heads, .kv_heads = of_heads};
    dims.head_dim = key_dim;
    LayerGroup group = uniform_group(Stack::vision, dims, false, notes);
    for (std::int64_t& layer : group.layers) layer += first;
    first += layers;
    group.label = label;
    group.geometry.grid_height = group.geometry.grid_width = side;
    group.schemes = {GridBias{.absolute = true}};
    vision.reading.model.groups.push_back(std::move(group));
  };
  for (std::size_t s = 0; s < stages && !vision.reading.error; ++s) {
    const std::string name = "stage " + std::to_string(s + 1);
    add(depths[s], widths[s], key_dims[s], heads[s], name + ": " + by(side, side) + " patches");
    if (s + 1 == stages || vision.reading.error) break;
    const Shrink next = shrink_behind(vision, s, key_dims[0], widths[s]);
    if (vision.reading.error) return;
    const std::int64_t left = (side - 1) / next.stride + 1;
    add(1, widths[s + 1], next.key_dim, next.heads,
        "behind " + name + ": " + by(left, left) + " patches, one in " +
            std::to_string(next.stride) + " each way, see " + by(side, side));
    side = left;
  }
  add_remark(vision, tower);
}

namespace {

// What one layer of Hiera attends within, on the grid that its stage's keys have.
struct PooledBlock {
  std::int64_t window = 0;  // patches a side; 0: the whole picture
  bool pools = false;       // each query is the largest of a square of them
  bool operator==(const PooledBlock&) const = default;
};

struct PooledStage {
  std::int64_t width = 0, heads = 0;
  std::vector<PooledBlock> blocks = {};
};

// Layers of a stage that attend alike are a group. `grid` is that of the stage's first keys; behind
// a layer that pools, it is smaller by `stride`.
void add_pooled_stages(const Section& vision, const ProvenanceList& notes,
                       const std::vector<PooledStage>& stages, Patches grid, std::int64_t stride) {
  std::int64_t first = 0;
  const Learned table{.rows = grid.height * grid.width};
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto& blocks = stages[s].blocks;
    LayerGroup stage =
        stage_of(vision, notes, stages[s].width, std::ssize(blocks), stages[s].heads, first);
    if (vision.reading.error) return;
    if (s == 0) {
      stage.schemes = {table};
    } else {
      stage.schemes = {NoPe{}};
      stage.carried = "the table that was added before stage 1";
    }
    const std::int64_t start = stage.layers.front();
    std::vector<PooledBlock> kinds;
    for (const PooledBlock& block : blocks)
      if (std::ranges::find(kinds, block) == kinds.end()) kinds.push_back(block);
    for (const PooledBlock& kind : kinds) {
      LayerGroup group = stage;
      std::erase_if(group.layers, [&](std::int64_t layer) {
        return blocks[static_cast<std::size_t>(layer - start)] != kind;
      });
      const Patches seen = kind.window > 0 ? Patches{kind.window, kind.window} : grid;
      group.geometry.grid_height = seen.height;
      group.geometry.grid_width = seen.width;
      group.label = "stage " + std::to_string(s + 1) + ": " +
                    (kind.window > 0 ? "windows of " + by(seen.height, seen.width) + " patches"
                                     : "the whole picture, " + by(seen.height, seen.width)) +
                    (kind.pools ? ", whose queries are the largest of " + by(stride, stride) : "");
      if (kind.pools)
        grid = {std::max<std::int64_t>(grid.height / stride, 1),
                std::max<std::int64_t>(grid.width / stride, 1)};
      vision.reading.model.groups.push_back(std::move(group));
    }
  }
}

bool fits_width(const Section& vision, double channels) {
  if (channels <= static_cast<double>(most_width)) return true;
  vision.reading.refuse(vision.where("embed_dim"),
                        "must leave at most " + std::to_string(most_width) + " channels",
                        number_text(channels), "correct the file");
  return false;
}

bool one_of_each_stage(const Section& vision, std::string_view key, std::size_t stages,
                       std::initializer_list<std::size_t> others) {
  if (vision.reading.error) return false;
  if (stages >= 1 && stages <= 16 &&
      std::ranges::all_of(others, [&](std::size_t other) { return other == stages; }))
    return true;
  vision.reading.refuse(vision.where(key), "must have a number for each stage, at most 16",
                        std::to_string(stages), "correct the file");
  return false;
}

}  // namespace

// Hiera (2306.00989) as SAM 2 has it: tables of the whole picture and of a window are summed and
// added once. Layers attend within windows, or to the whole picture where the file lists them; the
// first of a stage asks with fewer queries, within the windows of the stage before.
void read_hiera(const Section& vision, const Tower& tower) {
  ProvenanceList notes;
  const auto depths = numbers_of_stages(vision, "blocks_per_stage", tower.depths, notes),
             widths = numbers_of_stages(vision, "embed_dim_per_stage", tower.stage_widths, notes),
             heads = numbers_of_stages(vision, "num_attention_heads_per_stage", tower.stage_heads,
                                       notes),
             windows = numbers_of_stages(vision, "window_size_per_stage", "8 4 14 7", notes);
  const Patches grid = patches_of(vision, tower, notes);
  const auto background = sides(vision, "window_positional_embedding_background_size", 7, notes);
  const std::int64_t stride = sides(vision, "query_stride", 2, notes).front();
  const auto pooling = vision.integer("num_query_pool_stages", not_negative);
  const auto whole = vision.integers("global_attention_blocks", not_negative);
  if (!one_of_each_stage(vision, "blocks_per_stage", depths.size(),
                         {widths.size(), heads.size(), windows.size()}))
    return;
  note(notes, "table",
       by(background[0], background[1]) + " stretched, and " + by(windows[0], windows[0]) +
           " repeated, summed",
       Origin::derived, "window_positional_embedding_background_size, window_size_per_stage");
  const std::vector<std::int64_t> pictures =
      whole ? whole->value : std::vector<std::int64_t>{5, 7, 9};
  std::vector<PooledStage> stages;
  stages.reserve(depths.size());
  std::int64_t layer = 0;
  for (std::size_t s = 0; s < depths.size(); ++s) {
    PooledStage stage{.width = widths[s], .heads = heads[s]};
    const bool pools = s > 0 && static_cast<std::int64_t>(s) <= (pooling ? pooling->value : 3);
    for (std::int64_t i = 0; i < std::min(depths[s], most_layers + 1); ++i, ++layer) {
      const bool sees_all = std::ranges::find(pictures, layer) != pictures.end();
      const std::int64_t window = i == 0 && s > 0 ? windows[s - 1] : windows[s];
      stage.blocks.push_back({.window = sees_all ? 0 : window, .pools = pools && i == 0});
    }
    stages.push_back(std::move(stage));
  }
  add_pooled_stages(vision, notes, stages, grid, stride);
  add_remark(vision, tower);
}

// Hiera alone (2306.00989): mask units take the place of windows, and shrink with the stages.
void read_mask_units(const Section& vision, const Tower& tower) {
  ProvenanceList notes;
  const auto depths = numbers_of_stages(vision, "depths", tower.depths, notes),
             heads = numbers_of_stages(vision, "num_heads", tower.stage_heads, notes);
  const std::int64_t width = vision.size(notes, "width", "embed_dim", tower.width, most_width);
  const auto factor = vision.number("embed_dim_multiplier", Range{.least = 1, .most = 1e6});
  const Patches grid = patches_of(vision, tower, notes);
  const std::int64_t unit = sides(vision, "masked_unit_size", tower.window, notes).front(),
                     stride = sides(vision, "query_stride", 2, notes).front();
  const auto pooling = vision.integer("num_query_pool", not_negative);
  const auto flags = vision.integers("masked_unit_attention", Range{.least = 0, .most = 1});
  const std::vector<std::int64_t> within =
      flags ? flags->value : std::vector<std::int64_t>{1, 1, 0, 0};
  if (!one_of_each_stage(vision, "depths", depths.size(), {heads.size(), within.size()})) return;
  std::vector<PooledStage> stages;
  stages.reserve(depths.size());
  double channels = static_cast<double>(width);
  std::int64_t side = unit;
  for (std::size_t s = 0; s < depths.size(); ++s) {
    if (!fits_width(vision, channels)) return;
    PooledStage stage{.width = static_cast<std::int64_t>(channels), .heads = heads[s]};
    const bool pools = s > 0 && static_cast<std::int64_t>(s) <= (pooling ? pooling->value : 3);
    // A layer that pools has the keys of the stage before, and their units.
    const std::int64_t before = side;
    if (s > 0) side = std::max<std::int64_t>(side / stride, 1);
    for (std::int64_t i = 0; i < std::min(depths[s], most_layers + 1); ++i) {
      const bool first = s > 0 && i == 0, pool = pools && i == 0;
      const bool bounded = within[s] != 0 || (first && within[s - 1] != 0);
      stage.blocks.push_back({.window = !bounded ? 0 : pool ? before : side, .pools = pool});
    }
    channels *= factor ? factor->value : 2.0;
    stages.push_back(std::move(stage));
  }
  add_pooled_stages(vision, notes, stages, grid, stride);
  add_remark(vision, tower);
}

namespace {

// How far apart the patches of a neighbourhood stand, layer by layer of a stage.
std::vector<std::int64_t> dilations_of(const Section& vision, std::size_t stage,
                                       std::int64_t layers) {
  // The class' own, whatever the depths are.
  constexpr std::array<std::string_view, 4> usual = {"1 8 1", "1 4 1 4", "1 2 1 2 1 2",
                                                     "1 1 1 1 1"};
  const Json* const said = vision.raw("dilations");
  std::vector<std::int64_t> apart;
  if (said == nullptr) {
    apart = stage < usual.size() ? numbers_in(usual[stage]) : std::vector<std::int64_t>{};
  } else if (const auto* lists = said->get<Json::Array>(); lists && stage < lists->size()) {
    const auto* const list = (*lists)[stage].get<Json::Array>();
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const auto* const number = (*list)[i].get<std::int64_t>();
      if (number == nullptr || *number < 1 || *number > most_side) break;
      apart.push_back(*number);
    }
  }
  if (std::ssize(apart) < layers) {
    vision.reading.refuse(vision.where("dilations"),
                          "must have a number for each layer, 1 to " + std::to_string(most_side),
                          said != nullptr ? said->text() : "the class' own", "correct the file");
    return {};
  }
  apart.resize(static_cast<std::size_t>(layers));
  return apart;
}

}  // namespace

// Each query sees kernel_size patches each way around it, `dilation` apart, in every layer by a
// number of its own; at the borders they are moved inwards (2204.07143, 2209.15001).
void read_neighbourhoods(const Section& vision, const Tower& tower) {
  ProvenanceList notes;
  const std::int64_t width = vision.size(notes, "width", "embed_dim", tower.width, most_width);
  const auto depths = numbers_of_stages(vision, "depths", tower.depths, notes),
             heads = numbers_of_stages(vision, "num_heads", tower.stage_heads, notes);
  const std::int64_t kernel =
      vision.size(notes, "kernel_size", "kernel_size", tower.window, most_side);
  Patches grid = patches_of(vision, tower, notes);
  if (!one_of_each_stage(vision, "depths", depths.size(), {heads.size()})) return;
  if (kernel % 2 == 0) {
    vision.reading.refuse(vision.where("kernel_size"), "must be odd", std::to_string(kernel),
                          "a patch is the middle of its neighbourhood");
    return;
  }
  std::int64_t first = 0;
  for (std::size_t s = 0; s < depths.size(); ++s) {
    const double channels = std::ldexp(static_cast<double>(width), static_cast<int>(s));
    if (!fits_width(vision, channels)) return;
    const std::vector<std::int64_t> apart = dilations_of(vision, s, depths[s]);
    if (vision.reading.error) return;
    LayerGroup stage =
        stage_of(vision, notes, static_cast<std::int64_t>(channels), depths[s], heads[s], first);
    if (vision.reading.error) return;
    std::vector<std::int64_t> kinds = apart;
    std::ranges::sort(kinds);
    kinds.erase(std::ranges::unique(kinds).begin(), kinds.end());
    for (const std::int64_t dilation : kinds) {
      LayerGroup group = stage;
      std::erase_if(group.layers, [&](std::int64_t layer) {
        return apart[static_cast<std::size_t>(layer - stage.layers.front())] != dilation;
      });
      // A picture smaller than a neighbourhood is padded to its size.
      const auto shared = [&](std::int64_t side) {
        return std::max(kernel, (side - 1) / dilation + 1);
      };
      group.geometry.grid_height = shared(grid.height);
      group.geometry.grid_width = shared(grid.width);
      group.schemes = {GridBias{.reach = kernel}};
      note(group.provenance, "dilation", std::to_string(dilation),
           vision.has("dilations") ? Origin::file : Origin::family,
           vision.has("dilations") ? "dilations" : "default of " + vision.reading.family);
      group.label = "stage " + std::to_string(s + 1) + ": neighbourhoods of " + by(kernel, kernel) +
                    " patches" + (dilation > 1 ? ", " + std::to_string(dilation) + " apart" : "");
      vision.reading.model.groups.push_back(std::move(group));
    }
    grid = {(grid.height - 1) / 2 + 1, (grid.width - 1) / 2 + 1};
  }
  add_remark(vision, tower);
}

void read_class_and_grid(const Section& vision, const Tower& tower) {
  LayerGroup group = group_of(vision, tower, {});
  ProvenanceList& notes = group.provenance;
  const Patches grid = patches_of(vision, tower, notes);
  const bool shared = said_or(vision, "use_shared_relative_position_bias", false, notes),
             own = said_or(vision, "use_relative_position_bias", false, notes),
             absolute = said_or(vision, "use_absolute_position_embeddings", false, notes);
  if (vision.reading.error) return;
  group.geometry.grid_height = grid.height;
  group.geometry.grid_width = grid.width;
  if (shared || own) {
    group.schemes.push_back(GridBias{.class_token = true});
    note(notes, "table", own ? "one for each layer" : "one for all layers", Origin::derived,
         own ? "use_relative_position_bias" : "use_shared_relative_position_bias");
  }
  if (absolute) group.schemes.push_back(Learned{.rows = grid.height * grid.width + 1});
  if (group.schemes.empty()) group.schemes = {NoPe{}};
  vision.reading.model.groups.push_back(std::move(group));
  add_remark(vision, tower);
}

// The layers that attend to the whole picture are listed, or those that do not.
void read_windows(const Section& vision, const Tower& tower) {
  LayerGroup group = group_of(vision, tower, {});
  ProvenanceList& notes = group.provenance;
  const Patches grid = patches_of(vision, tower, notes);
  const bool relative = said_or(vision, "use_rel_pos use_relative_position_embeddings",
                                tower.relative, notes),
             absolute =
                 said_or(vision, "use_abs_pos use_absolute_position_embeddings", true, notes);
  const auto side = vision.integer("window_size", Range{.least = 0, .most = most_side});
  const auto whole = vision.integers("global_attn_indexes", not_negative),
             within = vision.integers("window_block_indices", not_negative);
  const std::int64_t window = side ? side->value : tower.window;
  if (vision.reading.error) return;
  if (relative) group.schemes.push_back(Decomposed{});
  if (absolute) {
    // ViTDet's table is of the picture in pretraining, and keeps the row of its class token.
    Tower table = tower;
    if (tower.pretrain_image > 0)
      table.image_key = "pretrain_image_size", table.image = tower.pretrain_image;
    group.schemes.push_back(Learned{.rows = table_rows(vision, table, notes)});
  }
  const bool rotated = tower.kind == TowerKind::rotated_windows;
  if (rotated) group.schemes.push_back(axial_of(vision, tower, notes));
  if (group.schemes.empty()) group.schemes = {NoPe{}};
  const auto listed = [](const auto& list, std::int64_t layer) {
    return list && std::ranges::find(list->value, layer) != list->value.end();
  };
  const auto windowed = [&](std::int64_t layer) {
    if (window == 0) return false;
    if (whole || !within) {
      if (whole) return !listed(whole, layer);
      return !tower.full_layers.empty() && !contains_word(tower.full_layers, std::to_string(layer));
    }
    return listed(within, layer);
  };
  group.geometry.grid_height = grid.height;
  group.geometry.grid_width = grid.width;
  LayerGroup small = group;
  std::erase_if(small.layers, [&](std::int64_t layer) { return !windowed(layer); });
  std::erase_if(group.layers, windowed);
  small.geometry.grid_height = small.geometry.grid_width = window;
  small.label = "windows of " + by(window, window) + " patches";
  note(small.provenance, "window", by(window, window), side ? Origin::file : Origin::family,
       side ? side->key : "default of " + vision.reading.family);
  if (!small.layers.empty()) group.label = "the whole picture";
  if (rotated && !small.layers.empty()) {
    // Patches of the picture stand as near as if it were one window.
    const double scale = static_cast<double>(window) / static_cast<double>(grid.width);
    std::get<Axial>(group.schemes.back()).position_scale = {scale};
    note(group.provenance, "position_scale", number_text(scale), Origin::derived,
         std::to_string(window) + "/" + std::to_string(grid.width) + ", window and grid");
  }
  std::vector<LayerGroup>& groups = vision.reading.model.groups;
  if (!vision.reading.error && !small.layers.empty()) groups.push_back(std::move(small));
  if (!vision.reading.error && !group.layers.empty()) groups.push_back(std::move(group));
  add_remark(vision, tower);
}

}  // namespace posenc::detail
