// M-RoPE's positions (Qwen2-VL, 2409.12191): text counts on all three axes together; a grid of
// T x H x W merged patches that starts at the free position st stands at
//   (st + step(frame), st + row, st + column)
// and text goes on behind it. Published code disagrees on where (GridAdvance), on the step of a
// video's frames (FrameStep), and on the tokens that open and close a video with its sound.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "posenc/positions.h"
#include "src/core/saturating.h"
#include "src/core/try.h"

namespace posenc {
namespace {

constexpr std::string_view where = "vision positions";

struct Grid {
  std::int64_t frames = 0, height = 0, width = 0;  // tokens, after merging
  std::int64_t tokens = 0;
  FrameStep kind = FrameStep::one;
  double seconds = 1, rate = 1;  // positions between two frames are their product

  // Where a frame stands, from the first. The models of sound multiply in float32, in this order.
  double time(std::int64_t frame) const {
    if (kind == FrameStep::float_seconds || kind == FrameStep::real_seconds)
      return static_cast<float>(frame) * static_cast<float>(seconds) * static_cast<float>(rate);
    return static_cast<double>(frame) * (rate * seconds);
  }
  std::int64_t at(std::int64_t frame) const {
    return static_cast<std::int64_t>(std::floor(time(frame)));
  }
};

bool in_seconds(FrameStep step) { return step != FrameStep::one && step != FrameStep::per_frame; }

std::string text(std::span<const std::int64_t> thw) {
  return std::to_string(thw[0]) + " x " + std::to_string(thw[1]) + " x " + std::to_string(thw[2]);
}

struct Merge {
  std::int64_t frames = 1, patches = 1;
};

Expected<Grid> merged_grid(std::string_view kind, std::span<const std::int64_t> thw, Merge merge) {
  const std::string name = std::string(kind) + " grid";
  if (std::ranges::any_of(thw, [](std::int64_t extent) { return extent < 1; })) {
    return fail(where, name + " must have at least one patch along each axis", text(thw),
                "check grid_thw");
  }
  if (thw[1] % merge.patches != 0 || thw[2] % merge.patches != 0) {
    return fail(where,
                name + " must be divisible by spatial_merge_size " + std::to_string(merge.patches),
                text(thw), "pad the picture to whole merged patches");
  }
  if (thw[0] % merge.frames != 0) {
    return fail(where,
                name + " must be divisible by temporal_merge_size " + std::to_string(merge.frames),
                text(thw), "repeat the last frame");
  }
  Grid grid{.frames = thw[0] / merge.frames,
            .height = thw[1] / merge.patches,
            .width = thw[2] / merge.patches};
  grid.tokens = detail::product(detail::product(grid.height, grid.width), grid.frames);
  if (grid.tokens == detail::saturated) {
    return fail(where, name + " must have fewer than 2^63 tokens", text(thw), "check grid_thw");
  }
  return grid;
}

// The grids of one kind in the order of their tokens. A video split into frames gives one for each.
Expected<std::vector<Grid>> merged_grids(std::string_view kind, std::span<const std::int64_t> thw,
                                         Merge merge, bool split, std::size_t most) {
  if (thw.size() % 3 != 0) {
    return fail(where, std::string(kind) + "_grid_thw must have three numbers a grid",
                std::to_string(thw.size()), "pass [grid][3]");
  }
  std::vector<Grid> grids;
  for (; !thw.empty(); thw = thw.subspan(3)) {
    POSENC_TRY(grid, merged_grid(kind, thw.first(3), merge));
    std::int64_t copies = 1;
    if (split) {
      copies = std::exchange(grid.frames, 1);
      grid.tokens /= copies;
    }
    // A frame takes at least one token, so there cannot be more of them than there are tokens.
    if (static_cast<std::uint64_t>(copies) > most - std::min(most, grids.size())) {
      return fail(where, std::string(kind) + "_grid_thw names more grids than there are tokens",
                  text(thw.first(3)), "check grid_thw against the tokens");
    }
    grids.insert(grids.end(), static_cast<std::size_t>(copies), grid);
  }
  return grids;
}

Expected<void> set_steps(std::vector<Grid>& videos, std::span<const double> seconds_per_grid,
                         const VisionRule& rule) {
  if (!in_seconds(rule.step)) return {};
  if (!seconds_per_grid.empty() && seconds_per_grid.size() != videos.size()) {
    return fail(where,
                "seconds_per_grid must have a number for each of " + std::to_string(videos.size()) +
                    " videos",
                std::to_string(seconds_per_grid.size()), "leave it out for one second each");
  }
  for (std::size_t v = 0; v < videos.size(); ++v) {
    Grid& video = videos[v];
    video.kind = rule.step;
    video.rate = rule.tokens_per_second;
    if (!seconds_per_grid.empty()) video.seconds = seconds_per_grid[v];
    const double last = video.time(video.frames - 1);
    if (!(video.rate * video.seconds >= 0 &&
          last < static_cast<double>(furthest_position))) {  // a NaN fails too
      return fail(where, "tokens_per_second times seconds_per_grid must be a usable number",
                  "video " + std::to_string(v), "check both");
    }
  }
  return {};
}

// Deals positions to tokens, from the first to the last.
class Dealer {
 public:
  Dealer(std::span<const std::int64_t> input_ids, const VisionTokens& tokens,
         const VisionRule& rule, std::span<const Grid> images, std::span<const Grid> videos)
      : input_ids_(input_ids),
        tokens_(tokens),
        rule_(rule),
        images_{.name = "image", .grids = images},
        videos_{.name = "video", .grids = videos},
        ids_(3 * input_ids.size()) {}

  Expected<std::vector<std::int64_t>> all() {
    while (token_ < input_ids_.size()) {
      if (const std::size_t end = end_of_video_with_sound(); end > token_) {
        POSENC_CHECK(video_with_sound(end));
      } else if (is(tokens_.image_token_id)) {
        POSENC_CHECK(grid(images_));
      } else if (is(tokens_.video_token_id)) {
        POSENC_CHECK(grid(videos_));
      } else {
        put(next_, next_, next_);
        ++next_;
      }
    }
    if (!images_.grids.empty() || !videos_.grids.empty()) {
      return fail(where, "every grid must have its tokens",
                  std::to_string(images_.grids.size()) + " image and " +
                      std::to_string(videos_.grids.size()) + " video grids without",
                  "check input_ids for truncation");
    }
    return std::move(ids_);
  }

 private:
  struct Kind {
    std::string_view name;
    std::span<const Grid> grids = {};  // those that no token has had yet
    std::size_t taken = 0;
  };

  bool is(std::int64_t id) const { return input_ids_[token_] == id; }

  // Places the next token. Gives the largest of the three.
  std::int64_t put(std::int64_t time, std::int64_t row, std::int64_t column) {
    const std::size_t count = input_ids_.size();
    ids_[token_] = time;
    ids_[count + token_] = row;
    ids_[2 * count + token_] = column;
    ++token_;
    return std::max({time, row, column});
  }
  std::int64_t put(const Grid& grid, std::int64_t patch, std::int64_t start) {
    return put(start + grid.at(patch / (grid.height * grid.width)),
               start + patch / grid.width % grid.height, start + patch % grid.width);
  }

  // The next grid, which has so many tokens in sight.
  Expected<Grid> take(Kind& kind, std::int64_t tokens) {
    const std::string name(kind.name);
    if (kind.grids.empty()) {
      return fail(
          where, name + " tokens must not outnumber their grids",
          "token " + std::to_string(token_) + " after " + std::to_string(kind.taken) + " grids",
          "pass a grid for every run of them");
    }
    const Grid& grid = kind.grids.front();
    if (grid.tokens > tokens) {
      return fail(where,
                  name + " grid must have as many tokens as its merged patches, " +
                      std::to_string(grid.tokens),
                  std::to_string(tokens) + " from token " + std::to_string(token_),
                  "check grid_thw and spatial_merge_size");
    }
    if (next_ > furthest_position - grid.at(grid.frames - 1)) {
      return fail(where, "positions must stay below 2^62",
                  "more at token " + std::to_string(token_),
                  "check tokens_per_second and seconds_per_grid");
    }
    if (grid.kind == FrameStep::real_seconds) {
      for (std::int64_t f = 0; f < grid.frames; ++f) {
        if (grid.time(f) == std::floor(grid.time(f))) continue;
        return fail(where, "frames must stand at whole positions",
                    "frame " + std::to_string(f) + " at " + std::to_string(grid.time(f)),
                    "this model takes such positions as they are: hand angles of real positions to "
                    "rotate_by, or change the frame rate");
      }
    }
    kind.grids = kind.grids.subspan(1);
    ++kind.taken;
    return grid;
  }

  Expected<void> grid(Kind& kind) {
    const std::int64_t id = input_ids_[token_];
    std::size_t end = token_;
    while (end < input_ids_.size() && input_ids_[end] == id) ++end;
    POSENC_TRY(grid, take(kind, static_cast<std::int64_t>(end - token_)));
    std::int64_t last = next_;
    for (std::int64_t i = 0; i < grid.tokens; ++i) last = std::max(last, put(grid, i, next_));
    next_ = rule_.advance == GridAdvance::past_largest ? last + 1
                                                       : next_ + std::max(grid.height, grid.width);
    return {};
  }

  // Behind the last of a stretch of video and sound tokens that has both; 0 where none begins here.
  std::size_t end_of_video_with_sound() const {
    if (tokens_.audio_token_id < 0) return 0;
    bool sound = false, video = false;
    std::size_t end = token_;
    for (; end < input_ids_.size(); ++end) {
      const bool heard = input_ids_[end] == tokens_.audio_token_id;
      if (!heard && input_ids_[end] != tokens_.video_token_id) break;
      (heard ? sound : video) = true;
    }
    return sound && video ? end : 0;
  }

  Expected<void> video_with_sound(std::size_t end) {
    if (token_ < 2 || end + 2 > input_ids_.size()) {
      return fail(where, "two tokens must open a video with its sound, and two close it",
                  "tokens " + std::to_string(token_) + " to " + std::to_string(end) + " of " +
                      std::to_string(input_ids_.size()),
                  "check input_ids for truncation");
    }
    const auto patches =
        std::ranges::count(input_ids_.subspan(token_, end - token_), tokens_.video_token_id);
    POSENC_TRY(video, take(videos_, patches));
    if (video.tokens != patches) {
      return fail(
          where,
          "a video with its sound must be one grid of " + std::to_string(video.tokens) + " tokens",
          std::to_string(patches), "check grid_thw and spatial_merge_size");
    }
    if (rule_.shared_bounds) {
      token_ -= 2;
      next_ -= 2;
      put_pair();
    }
    std::int64_t patch = 0, sound = next_, last = 0;
    const std::int64_t start = next_;
    while (token_ < end) {
      const bool heard = is(tokens_.audio_token_id);
      const bool changes = input_ids_[token_] != input_ids_[token_ - 1];
      const std::int64_t largest = heard ? put(sound, sound, sound) : put(video, patch, start);
      ++(heard ? sound : patch);
      last = changes ? largest : std::max(last, largest);
    }
    next_ = last + 1;
    if (rule_.shared_bounds) put_pair();
    return {};
  }

  // Two tokens at one place.
  void put_pair() {
    put(next_, next_, next_);
    put(next_, next_, next_);
    ++next_;
  }

  std::span<const std::int64_t> input_ids_;
  const VisionTokens& tokens_;
  const VisionRule& rule_;
  Kind images_, videos_;
  std::vector<std::int64_t> ids_;  // [axis][token]
  std::size_t token_ = 0;          // the next to be dealt with
  std::int64_t next_ = 0;          // the next free position
};

constexpr NamedVisionRule rules[] = {
    {"qwen2_vl", "Qwen2-VL, PaddleOCR-VL", {}},
    {"qwen2_vl_2025", "Qwen2-VL as it was until 2025", {.advance = GridAdvance::past_largest}},
    {"qwen2_5_vl", "Qwen2.5-VL", {.step = FrameStep::seconds}},
    {"qwen3_vl",
     "Qwen3-VL, Qwen3.5, Qwen4, GLM-4V to GLM-4.6V, GLM-OCR, Cosmos 3, Cohere Compass",
     {.step = FrameStep::per_frame}},
    {"ernie4_5_vl", "Ernie 4.5 VL", {.temporal_merge_size = 2}},
    {"qwen2_5_omni",
     "Qwen2.5-Omni",
     {.advance = GridAdvance::past_largest,
      .step = FrameStep::float_seconds,
      .tokens_per_second = 25,
      .shared_bounds = true}},
    {"qwen3_omni",
     "Qwen3-Omni",
     {.advance = GridAdvance::past_largest,
      .step = FrameStep::real_seconds,
      .tokens_per_second = 13}},
};

}  // namespace

std::span<const NamedVisionRule> vision_rules() { return rules; }

Expected<VisionRule> vision_rule(std::string_view name) {
  std::string names;
  for (const NamedVisionRule& each : rules) {
    if (each.name == name) return each.rule;
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  return fail(where, "the rule must be one of " + names, std::string(name),
              "pass the family's, or set VisionRule's fields");
}

Expected<VisionPositions> vision_positions(std::span<const std::int64_t> input_ids,
                                           std::span<const std::int64_t> image_grid_thw,
                                           std::span<const std::int64_t> video_grid_thw,
                                           const VisionTokens& tokens, const VisionRule& rule,
                                           std::span<const double> seconds_per_grid) {
  const std::int64_t merge = tokens.spatial_merge_size;
  if (merge < 1 || rule.temporal_merge_size < 1) {
    return fail(where, "spatial_merge_size and temporal_merge_size must be at least 1",
                std::to_string(merge) + " and " + std::to_string(rule.temporal_merge_size),
                "Qwen-VL has 2 and 1");
  }
  POSENC_TRY(images,
             merged_grids("image", image_grid_thw, {.patches = merge}, false, input_ids.size()));
  POSENC_TRY(videos, merged_grids("video", video_grid_thw,
                                  {.frames = rule.temporal_merge_size, .patches = merge},
                                  rule.step == FrameStep::per_frame, input_ids.size()));
  POSENC_CHECK(set_steps(videos, seconds_per_grid, rule));
  POSENC_TRY(ids, Dealer(input_ids, tokens, rule, images, videos).all());
  POSENC_TRY(positions, Positions::ids(ids, 3));
  const std::int64_t delta = positions.length() - static_cast<std::int64_t>(input_ids.size());
  return VisionPositions{.positions = std::move(positions), .delta = delta};
}

}  // namespace posenc
