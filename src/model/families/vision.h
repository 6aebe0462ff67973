// What is known of a vision tower beyond its file: a row for each, as for a family.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/model/families/family.h"

namespace posenc::detail {

// What its patches know of their place.
enum class TowerKind {
  learned,
  rotated,
  rotated_and_learned,
  waves,
  grid_bias,
  log_cpb,
  decomposed,
  rotated_windows,
  bare  // nothing: convolutions before and between them do
};

struct Tower;

// Reads a tower whose layers differ in size, or meet by rows and columns: adds its groups.
using TowerReader = void(const Section& vision, const Tower& tower);
TowerReader read_stages;          // Swin: grids.cc
TowerReader read_class_and_grid;  // BEiT
TowerReader read_shrinking;       // LeViT
TowerReader read_narrowing;       // SegFormer, PVT: stages that know no distance
TowerReader read_hiera;           // SAM 2
TowerReader read_mask_units;      // Hiera
TowerReader read_neighbourhoods;  // DiNAT
TowerReader read_windows;         // SAM, SAM 3

struct Tower {
  // model_type of vision_config, or of the model around it where vision_config has none
  std::string_view types = {};
  TowerKind kind = TowerKind::learned;
  TowerReader* read = nullptr;  // null: all layers alike
  Axial axial = {};
  bool thirds = false;  // time, row and column take a third of the head each, in whole pairs
  std::int64_t width = 768, layers = 12, heads = 12, image = 224, patch = 16;  // class defaults
  std::int64_t extra_rows = 1;  // class and distillation tokens
  // The table's rows are those of a picture's patches: of these keys, the second of which may be
  // missing (one row for each pixel of a grid). Where a class counts the rows itself, this many by
  // the default of a key.
  std::string_view image_key = "image_size", patch_key = "patch_size";
  std::int64_t rows = 0;
  std::string_view rows_key = "num_position_embeddings";
  bool by_axis =
      false;  // a row of the patch's row and one of its column are added, of so many each
  bool by_axis_waves = false;  // sinusoids of the column, then of the row
  std::int64_t frames = 0;  // of a video: num_frames / tubelet_size[0] grids, one after the other
  bool unscaled = false;    // q·k is not divided by √head_dim
  // Of stages and windows: the defaults of depths, num_heads and hidden_sizes, whether a stage
  // merges the patches of the one before, the default of window_size, of global_attn_indexes and of
  // use_rel_pos.
  std::string_view depths = {}, stage_heads = {}, stage_widths = {};
  bool merges = true;
  std::int64_t window = 0;
  std::string_view full_layers = {};
  bool relative = true;
  std::int64_t pretrain_image = 0;  // default of pretrain_image_size, whose picture the table is of
  std::string_view remark = {};
};

const Tower* find_tower(std::string_view type);  // null: not known

// --- what readers of towers share: vision.cc -----------------------------------------------------

// A length of one side or of both, [height, width]; a tubelet has its frames in front.
std::vector<std::int64_t> sides(const Section& vision, std::string_view key, std::int64_t fallback,
                                ProvenanceList& notes);

// The tower's rotation by rows and columns, with the file's base.
Axial axial_of(const Section& vision, const Tower& tower, ProvenanceList& notes);

// Rows of the table: as the file counts them, else the patches of the picture and the extra tokens.
std::int64_t table_rows(const Section& vision, const Tower& tower, ProvenanceList& notes);

}  // namespace posenc::detail
