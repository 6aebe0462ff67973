// Larger pictures for an encoder whose patches each have a learned row: the table is stretched over
// the new grid.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "src/text/number.h"
#include "src/tools/extend_table.h"

namespace posenc::detail {
namespace {

// A number among those that the file was read by; 0: it is not there, or no number ("224×224").
std::int64_t read_number(const LayerGroup& group, std::string_view field) {
  const auto at = std::ranges::find(group.provenance, field, &Provenance::field);
  return at == group.provenance.end() ? 0 : whole_number(at->value).value_or(0);
}

struct Grid {
  std::int64_t patch = 0, image = 0;  // pixels
  std::int64_t kept = 0;              // rows of class tokens and registers in front
  std::int64_t side() const { return image / patch; }
};

std::optional<Grid> learned_grid(const LayerGroup& group) {
  if (!is_tower(group.stack)) return std::nullopt;
  for (const Scheme& scheme : group.schemes) {
    const auto* learned = std::get_if<Learned>(&scheme);
    if (learned == nullptr || !learned->axis_rows.empty()) continue;
    Grid grid{.patch = read_number(group, "patch_size"), .image = read_number(group, "image_size")};
    if (grid.patch <= 0 || grid.image < grid.patch) return std::nullopt;
    grid.kept = learned->rows - grid.side() * grid.side();
    constexpr std::int64_t most_kept = 16;  // more is another grid than these sizes make
    if (grid.kept < 0 || grid.kept > most_kept) return std::nullopt;
    return grid;
  }
  return std::nullopt;
}

std::string sides(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

}  // namespace

std::optional<PicturePlan> extend_table(const Model& model, const PictureOptions& options) {
  std::optional<Grid> grid;
  for (const LayerGroup& group : model.groups)
    if (!grid) grid = learned_grid(group);
  if (!grid || options.to.frames > 1 || options.to.height < grid->patch ||
      options.to.width < grid->patch)
    return std::nullopt;
  const std::int64_t rows = options.to.height / grid->patch,
                     columns = options.to.width / grid->patch;
  PicturePlan out{.to = options.to,
                  .trained = {1, grid->image, grid->image},
                  .trained_by = "as the file's image_size says"};
  for (const auto& [name, wanted] : {std::pair{"height", rows}, {"width", columns}})
    out.axes.push_back(
        {.name = name,
         .axis = std::ssize(out.axes),
         .trained = grid->side(),
         .wanted = wanted,
         .factor = std::max(1.0, static_cast<double>(wanted) / static_cast<double>(grid->side()))});
  out.source = "2010.11929";
  out.rule = "grid";
  if (rows == grid->side() && columns == grid->side()) {
    out.recommended = "as_is";
    out.reason = "the table has a row for each of its patches";
    return out;
  }
  const bool siglip2 = model.family.starts_with("siglip2");
  out.recommended = "resample";
  out.reason = "the table has a row for each of " + sides(grid->side(), grid->side()) + " patches" +
               (grid->kept == 1  ? " and one in front for the class"
                : grid->kept > 1 ? " and " + std::to_string(grid->kept) + " in front of them"
                                 : "") +
               "; the picture has " + sides(rows, columns) +
               ", so each new row is made of the old ones near its place, once for a size";
  out.said.push_back(
      {"posenc", "posenc resample pos.npy out.npy --from " + sides(grid->side(), grid->side()) +
                     " --to " + sides(rows, columns) + " --interpolation " +
                     (siglip2 ? "bilinear --antialias" : "bicubic") +
                     (grid->kept > 0 ? " --kept_rows " + std::to_string(grid->kept) : "")});
  if (!siglip2)
    out.said.push_back({"transformers",
                        "interpolate_pos_encoding=True in the call, where the class has it (ViT, "
                        "DeiT, CLIP, SigLIP); DINOv2 does so by itself"});
  out.unknown.push_back(
      "how much the model loses by objects that are larger or smaller than in training: "
      "fine-tuning at the new size is usual");
  if (options.to.height % grid->patch != 0 || options.to.width % grid->patch != 0)
    out.unknown.push_back("what becomes of the rest of a side: " + std::to_string(grid->patch) +
                          " pixels a patch do not divide it, and most code drops it");
  return out;
}

}  // namespace posenc::detail
