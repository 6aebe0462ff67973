// A learned table of positions that a checkpoint has in another size than the model.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "src/explain/text.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

bool is_table(std::string_view line) {
  constexpr std::array names = {"pos_embed",       "position_embedding", "positional_embedding",
                                "embed_positions", "wpe.weight",         "position_ids"};
  return std::ranges::any_of(names, [&](std::string_view name) { return line.contains(name); });
}

// Tables [2w − 1 squared, heads] of windows of w×w; 0: no square of an odd number.
double window_of(double rows) {
  const double side = std::sqrt(rows);
  return side >= 3 && side == std::floor(side) && std::fmod(side, 2) == 1 ? (side + 1) / 2 : 0;
}

std::string in_words(double rows, bool of_pictures) {
  const std::string told = grouped(std::llround(rows)), grid = of_pictures ? square_of(rows) : "";
  return grid.empty() ? told : told + " (" + grid + ")";
}

// Cosines of positions, which are made of the picture's size and are nothing that was trained.
std::optional<Finding> derived_table(std::string_view line) {
  constexpr std::array names = {"freqs_cos", "freqs_sin", "freqs_cis", "cos_cached", "sin_cached"};
  if (!line.contains("size mismatch") ||
      std::ranges::none_of(names, [&](const char* name) { return line.contains(name); }))
    return std::nullopt;
  return Finding{.code = "table_rows",
                 .severity = Severity::warning,
                 .message =
                     "the checkpoint holds cosines of positions for another size: they follow "
                     "from the size, nothing of them was trained, and the model makes its own",
                 .cure =
                     "drop these keys from the checkpoint and load with strict=False; a "
                     "pos_embed beside them was trained, and is stretched (posenc.resample)"};
}

}  // namespace

std::optional<Finding> checkpoint_table(std::string_view line) {
  if (auto derived = derived_table(line)) return derived;
  const bool of_windows = line.contains("relative_position_bias_table");
  if (!(is_table(line) || of_windows) ||
      !(line.contains("copying a param") || line.contains("size mismatch")))
    return std::nullopt;
  std::size_t at = 0;
  const std::vector<double> file = numbers_between(line, at, "Size([", ']'),
                            model = numbers_between(line, at, "Size([", ']');
  const auto too_large = [](double size) { return size > 0x1p50; };
  if (file.empty() || file.size() != model.size() || file == model ||
      std::ranges::any_of(file, too_large) || std::ranges::any_of(model, too_large))
    return std::nullopt;
  // [rows, channels], [1, rows, channels], or the numbers of the rows alone.
  const bool of_numbers = line.contains("position_ids");
  const std::size_t last = file.size() - 1;
  if (!of_numbers && last == 0) return std::nullopt;
  const std::size_t axis = of_numbers ? last : of_windows ? 0 : last - 1;
  const double rows = file[axis], made = model[axis];
  Finding out{.code = "table_rows", .severity = Severity::error};
  if (!of_numbers && file[last] != model[last]) {
    const std::string of_file = grouped(std::llround(file[last])),
                      of_model = grouped(std::llround(model[last]));
    out.code = "vectors_differ";
    out.expected = of_file;
    out.found = of_model;
    out.message = "vectors of " + of_file + " channels in the checkpoint meet a model of " +
                  of_model + ": it is another model, of another size, and position is only the " +
                  "first place where that shows";
    out.cure =
        "give the checkpoint its own config.json, or the model that the program asks for (text "
        "encoders of one name come in several sizes)";
    return out;
  }
  if (rows == made) return std::nullopt;
  out.expected = grouped(std::llround(rows));
  out.found = grouped(std::llround(made));
  if (of_windows) {
    const double wide = window_of(rows), narrow = window_of(made);
    out.message = "the checkpoint has a bias for each distance within a window, " + out.expected +
                  " of them, and the model " + out.found;
    if (wide > 0 && narrow > 0)
      out.message += ": windows of " + grouped(std::llround(wide)) + " and of " +
                     grouped(std::llround(narrow)) + " patches a side";
    out.cure = "make the model with the checkpoint's window_size, or stretch the table";
    return out;
  }
  // Texts have tables of 1,024 rows, which are 32×32 by chance.
  const bool of_pictures =
      file.size() > 2 || line.contains("pos_embed:") ||
      std::ranges::any_of(std::array{"vit", "vision", "visual", "patch", "image"},
                          [&](std::string_view word) { return line.contains(word); });
  const bool of_grid =
      of_pictures && !of_numbers && !square_of(rows).empty() && !square_of(made).empty();
  out.message = "a learned table of positions has " + in_words(rows, of_grid) +
                " rows in the checkpoint, and " + in_words(made, of_grid) + " in the model" +
                (of_grid ? ", which is made for another size of picture" : "");
  // One grid, and other tokens in front of it.
  constexpr double most_in_front = 16;
  const auto grid_of = [](double number) {
    const std::string square = square_of(number);
    return square.substr(0, square.find(' '));
  };
  if (of_grid && grid_of(rows) == grid_of(made) && std::abs(rows - made) < most_in_front) {
    out.message = "a learned table of positions has " + in_words(rows, true) +
                  " rows in the checkpoint, and " + in_words(made, true) +
                  " in the model: the same grid, with other tokens in front (class, distillation, "
                  "registers)";
    out.cure =
        "make the model with as many tokens in front as the checkpoint has (a distilled DeiT "
        "has two; timm: the name of the model, num_prefix_tokens), and stretch nothing";
    if (line.contains("vision_model.embeddings") && made == rows + 1) {
      out.message += ": SigLIP has none, and CLIP's class makes one";
      out.cure = "load it by SigLIP's class (SiglipVisionModel), and stretch nothing";
    }
    return out;
  }
  constexpr double of_longclip = 248, of_clip = 77;
  if (rows == of_longclip && made == of_clip) {
    out.message += ": this is LongCLIP, in a loader for CLIP";
    out.cure =
        "load it by a loader that reads the rows (ComfyUI: its text encoder apart, or a node "
        "for LongCLIP), or take CLIP's own checkpoint";
    return out;
  }
  out.cure = of_grid ? "load it with its own configuration (image_size of its config.json), or "
                       "stretch the table (posenc.resample in Python)"
                     : "set max_position_embeddings to the checkpoint's, " + out.expected +
                           ": the config.json is another model's, or was edited; or train new rows";
  return out;
}

}  // namespace posenc::detail
