// What is known of a vision tower beyond its file: a row for each, as for a family.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/model/families/family.h"

namespace posenc::detail {

// What its patches know of their place.
enum class TowerKind { learned, rotated, rotated_and_learned, waves };

struct Tower {
  // model_type of vision_config, or of the model around it where vision_config has none
  std::string_view types = {};
  TowerKind kind = TowerKind::learned;
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
  std::int64_t frames = 0;  // of a video: num_frames / tubelet_size[0] grids, one after the other
  bool unscaled = false;    // q·k is not divided by √head_dim
  std::string_view remark = {};
};

const Tower* find_tower(std::string_view type);  // null: not known

}  // namespace posenc::detail
