// What is known of a vision tower beyond its file: a row for each, as for a family.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/model/families/family.h"

namespace posenc::detail {

// What its patches know of their place.
enum class TowerKind { learned, rotated, rotated_and_learned };

struct Tower {
  // model_type of vision_config, or of the model around it where vision_config has none
  std::string_view types = {};
  TowerKind kind = TowerKind::learned;
  Axial axial = {};
  std::int64_t width = 768, layers = 12, heads = 12, image = 224, patch = 16;  // class defaults
  std::int64_t extra_rows = 1;  // class and distillation tokens
  bool unscaled = false;        // q·k is not divided by √head_dim
  std::string_view remark = {};
};

const Tower* find_tower(std::string_view type);  // null: not known

}  // namespace posenc::detail
