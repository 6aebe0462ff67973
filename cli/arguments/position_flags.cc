// Makes the ids that flags describe.
#include "cli/arguments/position_flags.h"

#include <algorithm>
#include <utility>

#include "cli/arguments/flags.h"
#include "cli/arguments/parse.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

Expected<MadePositions> from_mask(const PositionFlags& flags) {
  POSENC_TRY(mask, integer_rows(flags.mask, "--mask"));
  std::vector<std::uint8_t> keep;
  keep.reserve(mask.values.size());
  for (const std::int64_t value : mask.values) keep.push_back(value != 0);
  POSENC_TRY(made, Positions::from_mask(keep, mask.rows, flags.cached, flags.padding));
  // Cached columns belong to no token here.
  const std::int64_t columns = std::ssize(keep) / mask.rows;
  std::vector<std::uint8_t> here;
  for (std::int64_t b = 0; b < mask.rows; ++b)
    here.insert(here.end(), keep.begin() + b * columns + flags.cached,
                keep.begin() + (b + 1) * columns);
  return MadePositions{made, {}, std::move(here)};
}

Expected<MadePositions> from_packed(const PositionFlags& flags) {
  POSENC_TRY(bounds, integer_rows(flags.packed, "--packed"));
  POSENC_TRY(made, Positions::packed(bounds.values));
  return MadePositions{.positions = made, .packed = true};
}

Expected<MadePositions> from_patches(const PositionFlags& flags) {
  POSENC_TRY(patches, grid(flags.patches, "--grid"));
  POSENC_TRY(made, patch_positions(patches.height, patches.width,
                                   std::max<std::int64_t>(flags.merge, 1), flags.frames));
  return MadePositions{made};
}

// "1x4x6" or "1,4,6;1,8,2": three numbers a grid.
Expected<std::vector<std::int64_t>> grids(const std::string& text, std::string_view where) {
  if (text.empty()) return std::vector<std::int64_t>{};
  std::string commas = text;
  if (text.find_first_not_of("0123456789x,; ") == text.npos)
    std::replace(commas.begin(), commas.end(), 'x', ',');
  POSENC_TRY(rows, integer_rows(commas, where));
  if (rows.values.size() != static_cast<std::size_t>(rows.rows) * 3)
    return fail(where, "a grid is TxHxW in patches: frames, rows, columns", text,
                "write it like 1x4x6;1x8x2");
  return rows.values;
}

Expected<MadePositions> from_ids(const PositionFlags& flags) {
  POSENC_TRY(ids, integer_rows(flags.ids, "--ids"));
  if (ids.rows != 1)
    return fail("--ids", "one sequence at a time", std::to_string(ids.rows) + " rows");
  POSENC_TRY(images, grids(flags.image_grid, "--image_grid"));
  POSENC_TRY(videos, grids(flags.video_grid, "--video_grid"));
  POSENC_TRY(seconds, numbers(flags.seconds, "--seconds_per_grid"));
  VisionTokens tokens = flags.tokens;
  if (flags.merge > 0) tokens.spatial_merge_size = flags.merge;
  POSENC_TRY(rule, vision_rule(flags.rule));
  if (flags.tokens_per_second > 0) rule.tokens_per_second = flags.tokens_per_second;
  POSENC_TRY(made, vision_positions(ids.values, images, videos, tokens, rule, seconds));
  return MadePositions{made.positions, made.delta};
}

}  // namespace

void PositionFlags::add_to(CLI::App& app) {
  app.add_option("--mask", mask, "Padding mask: 0,0,1,1;1,1,1,1 or rows.npy [batch][seq]")
      ->type_name("ROWS")
      ->group("From");
  app.add_option("--packed,--cu_seqlens", packed, "Boundaries of packed sequences: 0,3,8")
      ->type_name("BOUNDS")
      ->group("From");
  app.add_option("--ids", ids, "Token ids with images and videos, a list or ids.npy")
      ->type_name("IDS")
      ->group("From");
  app.add_option("--grid,--patches", patches, "Patches of one picture")
      ->type_name("HEIGHTxWIDTH")
      ->group("From");
  app.add_option("--cached", cached, "Mask columns already in the cache")->group("Mask");
  app.add_option("--padding", padding, "Position of padding")->group("Mask");
  const char* vision = "Images and videos";
  std::vector<std::string> names;
  for (const NamedVisionRule& each : vision_rules()) names.emplace_back(each.name);
  app.add_option("--rule", rule, "Whose rule")->check(CLI::IsMember(names))->group(vision);
  app.add_option("--image_grid", image_grid, "Frames, rows and columns of each image: 1x4x6;1x8x2")
      ->type_name("TxHxW")
      ->group(vision);
  app.add_option("--video_grid", video_grid, "The same of each video")
      ->type_name("TxHxW")
      ->group(vision);
  app.add_option("--seconds_per_grid", seconds,
                 "Seconds between frames of each video, if the rule counts them")
      ->group(vision);
  app.add_option("--tokens_per_second", tokens_per_second, "Positions a second (the rule's)")
      ->default_str("")
      ->group(vision);
  app.add_option("--image_token_id", tokens.image_token_id, "Id of image tokens")->group(vision);
  app.add_option("--video_token_id", tokens.video_token_id, "Id of video tokens")->group(vision);
  app.add_option("--audio_token_id", tokens.audio_token_id, "Id of a video's sound (none)")
      ->default_str("")
      ->group(vision);
  app.add_option("--merge,--spatial_merge_size", merge,
                 "Patches merged along each side (ids: 2, grid: 1)")
      ->default_str("")
      ->group(vision);
  app.add_option("--frames", frames, "Frames of --grid")->group(vision);
}

Expected<MadePositions> made_positions(const PositionFlags& flags, std::string_view command) {
  struct Way {
    const std::string& text;
    Expected<MadePositions> (*make)(const PositionFlags&);
  };
  const Way ways[] = {{flags.mask, from_mask},
                      {flags.packed, from_packed},
                      {flags.ids, from_ids},
                      {flags.patches, from_patches}};
  const Way* chosen = nullptr;
  for (const Way& way : ways) {
    if (way.text.empty()) continue;
    if (chosen) return fail(command, "takes one of --mask, --packed, --ids and --grid", "several");
    chosen = &way;
  }
  if (!chosen)
    return fail(command, "takes --mask, --packed, --ids or --grid", "none",
                "posenc " + std::string(command) + " --help has examples");
  return chosen->make(flags);
}

}  // namespace posenc::cli
