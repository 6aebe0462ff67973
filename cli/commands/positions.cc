#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/command.h"
#include "posenc/positions.h"

namespace posenc::cli {
namespace {

struct PositionFlags {
  std::string out, mask, packed, ids, patches, rule = "qwen2_vl", image_grid, video_grid, seconds;
  std::int64_t cached = 0, padding = 0;
  VisionTokens tokens;
  double tokens_per_second = 2;
  std::int64_t merge = 0, frames = 1;  // merge 0: 2 for --ids, 1 for --patches
  bool json = false;
};

struct Made {
  Positions positions;
  std::optional<std::int64_t> delta;
};

Expected<Made> from_mask(const PositionFlags& options) {
  const Expected<IntegerRows> mask = integer_rows(options.mask, "--mask");
  if (!mask) return std::unexpected(mask.error());
  std::vector<std::uint8_t> keep;
  for (const std::int64_t value : mask->values) keep.push_back(value != 0);
  Expected<Positions> made =
      Positions::from_mask(keep, mask->rows, options.cached, options.padding);
  if (!made) return std::unexpected(made.error());
  return Made{*made, {}};
}

Expected<Made> from_packed(const PositionFlags& options) {
  const Expected<IntegerRows> bounds = integer_rows(options.packed, "--packed");
  if (!bounds) return std::unexpected(bounds.error());
  Expected<Positions> made = Positions::packed(bounds->values);
  if (!made) return std::unexpected(made.error());
  return Made{*made, {}};
}

Expected<Made> from_patches(const PositionFlags& options) {
  const Expected<Grid> patches = grid(options.patches, "--grid");
  if (!patches) return std::unexpected(patches.error());
  Expected<Positions> made = patch_positions(
      patches->height, patches->width, std::max<std::int64_t>(options.merge, 1), options.frames);
  if (!made) return std::unexpected(made.error());
  return Made{*made, {}};
}

VisionRule rule_named(const PositionFlags& options) {
  VisionRule rule;
  rule.tokens_per_second = options.tokens_per_second;
  if (options.rule == "qwen2_vl_2025") rule.advance = GridAdvance::past_largest;
  if (options.rule == "qwen2_5_vl") rule.step = FrameStep::seconds;
  if (options.rule == "qwen3_vl") rule.step = FrameStep::per_frame;
  return rule;
}

// "1x4x6" or "1,4,6;1,8,2": three numbers a grid.
Expected<std::vector<std::int64_t>> grids(const std::string& text, std::string_view where) {
  if (text.empty()) return std::vector<std::int64_t>{};
  std::string commas = text;
  if (text.find_first_not_of("0123456789x,; ") == text.npos)
    std::replace(commas.begin(), commas.end(), 'x', ',');
  const Expected<IntegerRows> rows = integer_rows(commas, where);
  if (!rows) return std::unexpected(rows.error());
  if (rows->values.size() != static_cast<std::size_t>(rows->rows) * 3)
    return fail(where, "a grid is FRAMESxHEIGHTxWIDTH in patches", text,
                "write it like 1x4x6;1x8x2");
  return rows->values;
}

Expected<Made> from_ids(const PositionFlags& options) {
  const Expected<IntegerRows> ids = integer_rows(options.ids, "--ids");
  if (!ids) return std::unexpected(ids.error());
  if (ids->rows != 1)
    return fail("--ids", "one sequence at a time", std::to_string(ids->rows) + " rows");
  const auto images = grids(options.image_grid, "--image_grid");
  if (!images) return std::unexpected(images.error());
  const auto videos = grids(options.video_grid, "--video_grid");
  if (!videos) return std::unexpected(videos.error());
  const Expected<std::vector<double>> seconds = numbers(options.seconds, "--seconds_per_grid");
  if (!seconds) return std::unexpected(seconds.error());
  VisionTokens tokens = options.tokens;
  if (options.merge > 0) tokens.spatial_merge_size = options.merge;
  const Expected<VisionPositions> made =
      vision_positions(ids->values, *images, *videos, tokens, rule_named(options), *seconds);
  if (!made) return std::unexpected(made.error());
  return Made{made->positions, made->delta};
}

std::vector<std::int64_t> row(const Positions& positions, std::int64_t axis, std::int64_t batch) {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(positions.size()));
  for (std::int64_t t = 0; t < positions.size(); t++) out.push_back(positions.at(t, batch, axis));
  return out;
}

// {"positions":[axis][batch][seq]}, always three deep; segments of packed sequences, delta of vision.
void print_json(const Made& made, bool segments) {
  std::string text;
  for (std::int64_t axis = 0; axis < made.positions.axes(); axis++) {
    text += axis ? ",[" : "[";
    for (std::int64_t b = 0; b < made.positions.batch(); b++)
      text += fmt::format("{}[{}]", b ? "," : "", fmt::join(row(made.positions, axis, b), ","));
    text += "]";
  }
  fmt::print("{{\"positions\":[{}]", text);
  if (segments) {
    std::vector<std::int64_t> of;
    of.reserve(static_cast<std::size_t>(made.positions.size()));
    for (std::int64_t t = 0; t < made.positions.size(); t++)
      of.push_back(made.positions.segment(t));
    fmt::print(",\"segments\":[{}]", fmt::join(of, ","));
  }
  if (made.delta) fmt::print(",\"delta\":{}", *made.delta);
  fmt::print("}}\n");
}

void print_text(const Made& made) {
  const Positions& positions = made.positions;
  constexpr const char* names[] = {"t", "h", "w"};
  for (std::int64_t axis = 0; axis < positions.axes(); axis++)
    for (std::int64_t b = 0; b < positions.batch(); b++)
      fmt::print("{}{}\n",
                 positions.axes() == 1
                     ? ""
                     : std::string(names[positions.axes() == 2 ? axis + 1 : axis]) + "  ",
                 fmt::join(row(positions, axis, b), " "));
  if (made.delta)
    fmt::print("the next token stands at (tokens so far) {} {}\n", *made.delta < 0 ? "-" : "+",
               std::abs(*made.delta));
}

// Shaped so that --positions reads it back: [seq], [axis][seq] or [axis][batch][seq].
Expected<void> write(const Positions& positions, const std::string& path) {
  std::vector<std::int64_t> shape{positions.size()};
  if (positions.batch() > 1) shape.insert(shape.begin(), positions.batch());
  if (positions.axes() > 1 || positions.batch() > 1) shape.insert(shape.begin(), positions.axes());
  Expected<Array> array = make_array(NpyType::i64, std::move(shape));
  if (!array) return std::unexpected(array.error());
  std::byte* to = array->data.data();
  for (std::int64_t axis = 0; axis < positions.axes(); axis++)
    for (std::int64_t b = 0; b < positions.batch(); b++)
      for (const std::int64_t id : row(positions, axis, b)) {
        std::memcpy(to, &id, sizeof id);
        to += sizeof id;
      }
  return write_npy(path, *array);
}

Run define_positions(CLI::App& app) {
  auto options = std::make_shared<PositionFlags>();
  app.add_option("OUT", options->out, "Write int64 ids there, .npy, instead of printing them");
  app.add_option("--mask", options->mask, "Padding mask: 0,0,1,1;1,1,1,1 or rows.npy [batch][seq]")
      ->type_name("ROWS")
      ->group("From");
  app.add_option("--packed,--cu_seqlens", options->packed, "Boundaries of packed sequences: 0,3,8")
      ->type_name("BOUNDS")
      ->group("From");
  app.add_option("--ids", options->ids, "Token ids with images and videos, a list or ids.npy")
      ->type_name("IDS")
      ->group("From");
  app.add_option("--grid,--patches", options->patches, "Patches of one picture")
      ->type_name("HEIGHTxWIDTH")
      ->group("From");
  app.add_option("--cached", options->cached, "Mask columns already in the cache")->group("Mask");
  app.add_option("--padding", options->padding, "Position of padding")->group("Mask");
  const char* vision = "Images and videos";
  app.add_option("--rule", options->rule, "Whose rule")
      ->check(CLI::IsMember({"qwen2_vl", "qwen2_vl_2025", "qwen2_5_vl", "qwen3_vl"}))
      ->group(vision);
  app.add_option("--image_grid", options->image_grid, "Of each image; several: 1x4x6;1x8x2")
      ->type_name("FRAMESxHEIGHTxWIDTH")
      ->group(vision);
  app.add_option("--video_grid", options->video_grid, "Of each video")
      ->type_name("FRAMESxHEIGHTxWIDTH")
      ->group(vision);
  app.add_option("--seconds_per_grid", options->seconds, "qwen2_5_vl: seconds of each video's step")
      ->group(vision);
  app.add_option("--tokens_per_second", options->tokens_per_second, "qwen2_5_vl")->group(vision);
  app.add_option("--image_token_id", options->tokens.image_token_id, "Id of image tokens")
      ->group(vision);
  app.add_option("--video_token_id", options->tokens.video_token_id, "Id of video tokens")
      ->group(vision);
  app.add_option("--merge,--spatial_merge_size", options->merge,
                 "Patches merged along each side (ids: 2, grid: 1)")
      ->default_str("")
      ->group(vision);
  app.add_option("--frames", options->frames, "Frames of --grid")->group(vision);
  app.add_flag("--json", options->json)->description("{\"positions\":[axis][batch][seq],...}");
  app.footer(
      "qwen2_vl_2025 is Qwen2-VL's rule as it was until 2025: after a video longer than it is wide "
      "the\n"
      "text goes on past the last frame.\n\n"
      "Examples:\n"
      "  posenc positions --mask '0,0,1,1;1,1,1,1'\n"
      "  posenc positions --packed 0,3,8 --json\n"
      "  posenc positions ids.npy --ids tokens.npy --image_grid 1x4x6 --rule qwen2_5_vl\n"
      "  posenc positions --grid 4x6 --merge 2");
  return [options]() -> Expected<int> {
    struct Way {
      const std::string& text;
      Expected<Made> (*make)(const PositionFlags&);
    };
    const Way ways[] = {{options->mask, from_mask},
                        {options->packed, from_packed},
                        {options->ids, from_ids},
                        {options->patches, from_patches}};
    const Way* chosen = nullptr;
    for (const Way& way : ways) {
      if (way.text.empty()) continue;
      if (chosen)
        return fail("positions", "takes one of --mask, --packed, --ids and --grid", "several");
      chosen = &way;
    }
    if (!chosen)
      return fail("positions", "takes --mask, --packed, --ids or --grid", "none",
                  "posenc positions --help has examples");
    const Expected<Made> made = chosen->make(*options);
    if (!made) return std::unexpected(made.error());
    if (!options->out.empty()) {
      if (Expected<void> written = write(made->positions, options->out); !written)
        return std::unexpected(written.error());
    }
    if (options->json) {
      print_json(*made, chosen->make == from_packed);
    } else if (options->out.empty()) {
      print_text(*made);
    }
    return 0;
  };
}

}  // namespace

extern const Command positions_command{
    "positions", "position ids from masks, packed sequences, images and videos", define_positions};

}  // namespace posenc::cli
