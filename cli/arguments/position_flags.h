// Which position ids a sequence has, as a command line says it: a mask, packed sequences, pictures
// among text.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/positions.h"

namespace posenc::cli {

struct PositionFlags {
  std::string mask, packed, ids, patches, rule = "qwen2_vl", image_grid, video_grid, seconds;
  std::int64_t cached = 0, padding = 0;
  VisionTokens tokens;
  double tokens_per_second = 0;        // 0: the rule's
  std::int64_t merge = 0, frames = 1;  // merge 0: 2 for --ids, 1 for --patches

  void add_to(CLI::App& app);
  bool any() const { return !(mask.empty() && packed.empty() && ids.empty() && patches.empty()); }
};

struct MadePositions {
  Positions positions;
  std::optional<std::int64_t> delta = {};  // of pictures
  std::vector<std::uint8_t> keep = {};  // of a mask, the columns that are not cached: [batch][seq]
  bool packed = false;
};
// Errors begin with the command's name: none of --mask, --packed, --ids and --grid, or several.
Expected<MadePositions> made_positions(const PositionFlags& flags, std::string_view command);

}  // namespace posenc::cli
