// M-RoPE's positions (Qwen2-VL, 2409.12191): text counts on all three axes together; a grid of
// T x H x W merged patches that starts at the free position st stands at
//   (st + step(frame), st + row, st + column)
// and text goes on behind it. Published code disagrees on where (GridAdvance) and on the step of a
// video's frames (FrameStep).
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "posenc/positions.h"
#include "src/core/saturating.h"

namespace posenc {
namespace {

constexpr std::string_view where = "vision positions";

struct Grid {
  std::int64_t frames = 0, height = 0, width = 0;  // tokens, after merging
  std::int64_t tokens = 0;
  double step = 1;  // positions between two frames
  std::int64_t at(std::int64_t frame) const {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(frame) * step));
  }
};

std::string text(std::span<const std::int64_t> thw) {
  return std::to_string(thw[0]) + " x " + std::to_string(thw[1]) + " x " + std::to_string(thw[2]);
}

Expected<Grid> merged_grid(std::string_view kind, std::span<const std::int64_t> thw,
                           std::int64_t merge) {
  const std::string name = std::string(kind) + " grid";
  if (std::ranges::any_of(thw, [](std::int64_t extent) { return extent < 1; })) {
    return fail(where, name + " must have at least one patch along each axis", text(thw),
                "check grid_thw");
  }
  if (thw[1] % merge != 0 || thw[2] % merge != 0) {
    return fail(where, name + " must be divisible by spatial_merge_size " + std::to_string(merge),
                text(thw), "pad the picture to whole merged patches");
  }
  Grid grid{.frames = thw[0], .height = thw[1] / merge, .width = thw[2] / merge};
  grid.tokens = detail::product(detail::product(grid.height, grid.width), grid.frames);
  if (grid.tokens == detail::saturated) {
    return fail(where, name + " must have fewer than 2^63 tokens", text(thw), "check grid_thw");
  }
  return grid;
}

// The grids of one kind in the order of their tokens. A video split into frames gives one for each.
Expected<std::vector<Grid>> merged_grids(std::string_view kind, std::span<const std::int64_t> thw,
                                         std::int64_t merge, bool split, std::size_t most) {
  if (thw.size() % 3 != 0) {
    return fail(where, std::string(kind) + "_grid_thw must have three numbers a grid",
                std::to_string(thw.size()), "pass [grid][3]");
  }
  std::vector<Grid> grids;
  for (; !thw.empty(); thw = thw.subspan(3)) {
    auto grid = merged_grid(kind, thw.first(3), merge);
    if (!grid) return std::unexpected(grid.error());
    std::int64_t copies = 1;
    if (split) {
      copies = std::exchange(grid->frames, 1);
      grid->tokens /= copies;
    }
    // A frame takes at least one token, so there cannot be more of them than there are tokens.
    if (static_cast<std::uint64_t>(copies) > most - std::min(most, grids.size())) {
      return fail(where, std::string(kind) + "_grid_thw names more grids than there are tokens",
                  text(thw.first(3)), "check grid_thw against the tokens");
    }
    grids.insert(grids.end(), static_cast<std::size_t>(copies), *grid);
  }
  return grids;
}

Expected<void> set_steps(std::vector<Grid>& videos, std::span<const double> seconds_per_grid,
                         const VisionRule& rule) {
  if (rule.step != FrameStep::seconds) return {};
  if (!seconds_per_grid.empty() && seconds_per_grid.size() != videos.size()) {
    return fail(where,
                "seconds_per_grid must have a number for each of " + std::to_string(videos.size()) +
                    " videos",
                std::to_string(seconds_per_grid.size()), "leave it out for one second each");
  }
  for (std::size_t v = 0; v < videos.size(); ++v) {
    videos[v].step = rule.tokens_per_second * (seconds_per_grid.empty() ? 1 : seconds_per_grid[v]);
    const double last = static_cast<double>(videos[v].frames - 1) * videos[v].step;
    if (!(videos[v].step >= 0 &&
          last < static_cast<double>(furthest_position))) {  // a NaN fails too
      return fail(where, "tokens_per_second times seconds_per_grid must be a usable number",
                  "video " + std::to_string(v), "check both");
    }
  }
  return {};
}

}  // namespace

Expected<VisionPositions> vision_positions(std::span<const std::int64_t> input_ids,
                                           std::span<const std::int64_t> image_grid_thw,
                                           std::span<const std::int64_t> video_grid_thw,
                                           const VisionTokens& tokens, const VisionRule& rule,
                                           std::span<const double> seconds_per_grid) {
  if (tokens.spatial_merge_size < 1) {
    return fail(where, "spatial_merge_size must be at least 1",
                std::to_string(tokens.spatial_merge_size), "Qwen-VL has 2");
  }
  const auto images =
      merged_grids("image", image_grid_thw, tokens.spatial_merge_size, false, input_ids.size());
  if (!images) return std::unexpected(images.error());
  auto videos = merged_grids("video", video_grid_thw, tokens.spatial_merge_size,
                             rule.step == FrameStep::per_frame, input_ids.size());
  if (!videos) return std::unexpected(videos.error());
  if (auto ok = set_steps(*videos, seconds_per_grid, rule); !ok) return std::unexpected(ok.error());

  const std::size_t count = input_ids.size();
  std::vector<std::int64_t> ids(3 * count);
  std::size_t t = 0, next_image = 0, next_video = 0;
  std::int64_t next = 0;  // the next free position
  while (t < count) {
    const std::int64_t token = input_ids[t];
    const bool is_image = token == tokens.image_token_id, is_video = token == tokens.video_token_id;
    if (!is_image && !is_video) {
      ids[t] = ids[count + t] = ids[2 * count + t] = next++;
      ++t;
      continue;
    }
    const std::string_view kind = is_image ? "image" : "video";
    const std::vector<Grid>& grids = is_image ? *images : *videos;
    std::size_t& next_grid = is_image ? next_image : next_video;
    if (next_grid == grids.size()) {
      return fail(where, std::string(kind) + " tokens must not outnumber their grids",
                  "token " + std::to_string(t) + " after " + std::to_string(next_grid) + " grids",
                  "pass a grid for every run of them");
    }
    const Grid& grid = grids[next_grid++];
    std::size_t run = t;
    while (run < count && input_ids[run] == token) ++run;
    if (grid.tokens > static_cast<std::int64_t>(run - t)) {
      return fail(where,
                  std::string(kind) + " grid must have as many tokens as its merged patches, " +
                      std::to_string(grid.tokens),
                  std::to_string(run - t) + " from token " + std::to_string(t),
                  "check grid_thw and spatial_merge_size");
    }
    if (next > furthest_position - grid.at(grid.frames - 1)) {
      return fail(where, "positions must stay below 2^62", "more at token " + std::to_string(t),
                  "check tokens_per_second and seconds_per_grid");
    }
    std::int64_t last = next;
    for (std::int64_t i = 0; i < grid.tokens; ++i, ++t) {
      ids[t] = next + grid.at(i / (grid.height * grid.width));
      ids[count + t] = next + i / grid.width % grid.height;
      ids[2 * count + t] = next + i % grid.width;
      last = std::max({last, ids[t], ids[count + t], ids[2 * count + t]});
    }
    next = rule.advance == GridAdvance::past_largest ? last + 1
                                                     : next + std::max(grid.height, grid.width);
  }
  if (next_image != images->size() || next_video != videos->size()) {
    return fail(where, "every grid must have its tokens",
                std::to_string(images->size() - next_image) + " image and " +
                    std::to_string(videos->size() - next_video) + " video grids without",
                "check input_ids for truncation");
  }
  auto positions = Positions::ids(ids, 3);
  if (!positions) return std::unexpected(positions.error());
  const std::int64_t delta = positions->length() - static_cast<std::int64_t>(count);
  return VisionPositions{.positions = std::move(*positions), .delta = delta};
}

}  // namespace posenc
