// Where each token stands: 64-bit integers [axis][batch][seq]. Text has one axis, a picture two, a
// video three. A contiguous range is stored as its first position. Other ids are shared by copies
// and slices, so that passing positions by value costs the same for any number of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/error.h"

namespace [[gnu::visibility("default")]] posenc {

// No position is beyond it, so that the sum and the distance of two fit 64 bits.
inline constexpr std::int64_t furthest_position = std::int64_t{1} << 62;

// The positions of a batch of sequences: a range, or explicit ids.
class Positions {
 public:
  // first, first + 1, ... shared by every sequence of a batch. What takes it asks that it lie
  // within ±furthest_position.
  static Positions range(std::int64_t first, std::int64_t count);

  // Explicit ids, row-major [axis][batch][seq]; batch 1 is shared by every sequence.
  // Errors: a size that is not axes·batch·seq, an id that is negative or beyond furthest_position.
  static Expected<Positions> ids(std::span<const std::int64_t> ids, std::int64_t axes = 1,
                                 std::int64_t batch = 1);

  // The same where a position may be negative, as pictures are counted from their middle
  // (Qwen-Image). Nothing that adds a table's row takes such positions.
  // Errors: a size that is not axes·batch·seq, an id beyond ±furthest_position.
  static Expected<Positions> signed_ids(std::span<const std::int64_t> ids, std::int64_t axes = 1,
                                        std::int64_t batch = 1);

  // Every cell of a grid, row by row: sizes {frames, height, width} or any others, an axis each,
  // counted from `first` (as many, or none: 0). FLUX's picture is {1, h, w}; Qwen-Image's counts
  // from {0, −⌈h/2⌉, −⌈w/2⌉}. append() puts text and further pictures behind.
  // Errors: no size, sizes below 0 or of more than 2^28 numbers in all, `first` of another count.
  static Expected<Positions> grid(std::span<const std::int64_t> sizes,
                                  std::span<const std::int64_t> first = {});

  // From a padding mask [batch][seq] (nonzero = a real token): a real token's position is the
  // number of real tokens before it, so left padding shifts nothing. `cached` mask columns belong
  // to tokens already in the cache: they are counted and not returned, so the result is
  // [batch][seq - cached]. Padding gets `padding`, and hiding it is the mask's task (Mask::keep).
  // -1 marks it for good: it stays where it is under shifted(), and reads the padding row of a
  // table with row_offset padding_idx + 1 (fairseq, RoBERTa, OPT); without such an offset it has no
  // row, an error. 0 has a vector everywhere, and shifted() moves it with the text.
  // Errors: sizes that do not match, cached outside [0, seq], padding below -1 or beyond
  // furthest_position.
  static Expected<Positions> from_mask(std::span<const std::uint8_t> mask, std::int64_t batch,
                                       std::int64_t cached = 0, std::int64_t padding = 0);

  // Packed sequences: cu_seqlens = {0, n0, n0 + n1, ...} as in FlashAttention; positions restart at
  // every boundary. One row of cu_seqlens.back() tokens; `segment` tells which sequence each is in.
  // Errors: fewer than two entries, not starting at 0, decreasing.
  static Expected<Positions> packed(std::span<const std::int64_t> cu_seqlens);
  // The same with a position for each token, as signed_ids() takes them.
  static Expected<Positions> packed(std::span<const std::int64_t> cu_seqlens,
                                    std::span<const std::int64_t> ids);

  std::int64_t axes() const { return axes_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t size() const { return seq_; }           // tokens of one sequence
  bool contiguous() const { return ids_ == nullptr; }  // a range

  // Position of token t of sequence b on an axis. One-axis positions answer for every axis asked
  // (text has t = h = w), one-sequence positions for every sequence.
  std::int64_t at(std::int64_t t, std::int64_t b = 0, std::int64_t axis = 0) const {
    return ids_ == nullptr ? first_ + t : ids_[axis * axis_step_ + b * batch_step_ + t];
  }

  // Largest position of all plus one: what length-dependent scalings mean by the current length.
  std::int64_t length() const;

  // Packed sequences only: which sequence token t belongs to; otherwise 0.
  std::int64_t segment(std::int64_t t) const { return segments_ == nullptr ? 0 : segments_[t]; }

  // Tokens [first, first + count) of one sequence, which are there. Shares their ids.
  Positions slice(std::int64_t sequence, std::int64_t first, std::int64_t count) const;

  // The tokens at these places, in this order, as a machine holds some of a text's (layout.h). They
  // stay in their sequences of a pack; a mask that compares the order of tokens (several axes) goes
  // by that of the text. Errors: a place outside [0, size()).
  Expected<Positions> select(std::span<const std::int64_t> places) const;
  // Of token t in the text that select() took it from; t itself of others.
  std::int64_t order(std::int64_t t) const { return orders_ == nullptr ? t : orders_[t]; }
  bool selected() const { return orders_ != nullptr; }

  // Puts the tokens of `more` behind these, in constant time a token on average. Copies and slices
  // made before keep their tokens. Positions of one axis answer for every axis of the others, those
  // of one sequence for every sequence.
  // Errors: axes or batches that differ and are not 1, packed sequences, places selected of several
  // axes.
  Expected<void> append(const Positions& more);

  // The same tokens moved by `offset` (cache shift, prefix). Errors: below 0, beyond
  // furthest_position.
  Expected<Positions> shifted(std::int64_t offset) const;

  bool operator==(const Positions& other) const;  // the same tokens at the same positions

 private:
  using Ids = std::shared_ptr<std::int64_t[]>;  // written only by append(), where nobody else reads
  std::span<const std::int64_t> row(std::int64_t b, std::int64_t axis) const {
    return {ids_.get() + axis * axis_step_ + b * batch_step_, static_cast<std::size_t>(seq_)};
  }
  void copy_row(std::int64_t b, std::int64_t axis, std::int64_t* to) const;
  void own(std::span<const std::int64_t> ids);  // [axis][batch][seq]
  void reserve(std::int64_t axes, std::int64_t batch, std::int64_t tokens);

  std::int64_t axes_ = 1, batch_ = 1, seq_ = 0;
  std::int64_t first_ = 0;                       // of a range
  Ids ids_;                                      // null for a range
  std::int64_t axis_step_ = 0, batch_step_ = 0;  // between rows of ids; 0: one row answers for all
  std::int64_t room_ = 0;                        // tokens that fit behind the last one of each row
  Ids segments_;                                 // [seq], packed only
  Ids orders_;                                   // [seq], selected of several axes only
};

// A picture's patches on one axis, row by row: patch (y, x) of a grid of `width` columns stands at
// y·(2·width − 1) + x, so that a distance tells by how many rows and by how many columns two
// patches differ (the schemes grid_bias, log_cpb and decomposed). A class token, if there is one,
// stands first, and farther from the patches than they from each other: its position as a query is
// not that as a key.
// Errors: sizes below 1 or of more than 2^28 patches.
struct GridPositions {
  Positions queries, keys;  // alike where there is no class token
};
Expected<GridPositions> grid_positions(std::int64_t height, std::int64_t width,
                                       bool class_token = false);

// A grid cut into windows of `window` × `window` patches, after it has been moved by `shift`
// patches up and to the left around its edges (Swin, 2103.14030). order[t]: the patch of the grid,
// counted row by row, that is token t. A window is a sequence of a pack, and where the edge of the
// grid runs through it each part is one: patches that were no neighbours do not see each other.
// Positions are those of grid_positions(window, window).
// Errors: sizes below 1, a grid that is no whole number of windows, shift outside [0, window).
struct WindowPartition {
  std::vector<std::int64_t> order = {};
  Positions positions;
};
Expected<WindowPartition> window_partition(std::int64_t height, std::int64_t width,
                                           std::int64_t window, std::int64_t shift = 0);

// Neighbourhood attention (NAT, 2204.07143; DiNAT with a dilation, 2209.15001): each patch of a grid
// sees the kernel × kernel patches around it, `dilation` apart, which at the borders are moved
// inwards so that they are as many everywhere. Keys are for Mask::keys, [patch][kernel²] of the
// grid counted row by row. Positions are those of grid_positions() on the grid that patches
// `dilation` apart make, ⌈height/dilation⌉ × ⌈width/dilation⌉, which is the geometry's of
// GridBias{.reach = kernel}. Errors: sizes below 1, an even kernel, a grid with a side below kernel
// · dilation (pad the picture first), more than 2^28 keys in
// all.
struct Neighbourhood {
  Positions positions;
  std::vector<std::int32_t> keys = {};
  std::int64_t key_count = 0;  // of one query: kernel²
};
Expected<Neighbourhood> neighbourhood(std::int64_t height, std::int64_t width, std::int64_t kernel,
                                      std::int64_t dilation = 1);

// Images, videos and sound among text: builds the three rows t, h, w of M-RoPE from token ids and
// grids. Text and sound count t = h = w; a grid of T x H x W patches, merged by
// `spatial_merge_size`, starts at the next free position `st` with (st + frame·step, st + row, st +
// column).
struct VisionTokens {
  std::int64_t image_token_id = 151655;
  std::int64_t video_token_id = 151656;
  std::int64_t audio_token_id = -1;  // of sound that a video brings along; -1: no token is such
  std::int64_t spatial_merge_size = 2;
};

// After a grid, Qwen2-VL of 2025 goes on from the largest id of all axes plus one; the current code
// goes on from st + max(H, W)/merge, which repeats positions after a long video. Both exist.
enum class GridAdvance { past_largest, past_height_width };

enum class FrameStep {
  one,        // Qwen2-VL: consecutive frames are 1 apart
  seconds,    // Qwen2.5-VL: tokens_per_second · seconds_per_grid
  per_frame,  // Qwen3-VL: every frame is an image of its own, with time-stamp text between them
  // Qwen2.5-Omni: frame · seconds_per_grid · tokens_per_second in float32, cut to an integer
  float_seconds,
  real_seconds,  // Qwen3-Omni: the same, not cut; what is no whole number is an error here
};

// How far a grid and a frame move the position, which differs between releases.
//
// Where sound lies among a video's tokens (audio_token_id, TMRoPE of 2503.20215), both count from
// the same start, and what follows goes on past the largest position of the last stretch of either.
// Two tokens open such a video and two close it; with `shared_bounds` both of a pair stand at one
// position.
struct VisionRule {
  GridAdvance advance = GridAdvance::past_height_width;
  FrameStep step = FrameStep::one;
  double tokens_per_second = 2;
  std::int64_t temporal_merge_size = 1;  // of videos
  bool shared_bounds = false;
};

// The rules by name: qwen2_vl, qwen2_vl_2025, qwen2_5_vl, qwen3_vl, ernie4_5_vl, qwen2_5_omni,
// qwen3_omni.
struct NamedVisionRule {
  std::string_view name;
  std::string_view models;  // whose rule it is, as words
  VisionRule rule;
};
std::span<const NamedVisionRule> vision_rules();

// Errors: no rule of that name.
Expected<VisionRule> vision_rule(std::string_view name);

// Positions of text with images and videos, and where the text goes on.
struct VisionPositions {
  Positions positions;     // [3][1][tokens]
  std::int64_t delta = 0;  // next text position = number of tokens so far + delta
};

// image_grid_thw, video_grid_thw: [grid][3] patches before merging. seconds_per_grid: [video],
// needed where frames are seconds apart (empty = 1 each).
// Errors: more or fewer grids than the tokens name, grids not divisible by the merge, frames
// between whole positions, overflow.
Expected<VisionPositions> vision_positions(std::span<const std::int64_t> input_ids,
                                           std::span<const std::int64_t> image_grid_thw,
                                           std::span<const std::int64_t> video_grid_thw,
                                           const VisionTokens& tokens, const VisionRule& rule,
                                           std::span<const double> seconds_per_grid = {});

// Patches of a vision tower in the order it reads them: [2][grid tokens] rows h, w. With merge m
// the patches come in m x m blocks (Qwen-VL); merge 1 is row by row.
Expected<Positions> patch_positions(std::int64_t height, std::int64_t width,
                                    std::int64_t spatial_merge_size = 1, std::int64_t frames = 1);

}  // namespace posenc
