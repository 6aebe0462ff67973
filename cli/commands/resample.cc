#include <memory>
#include <string>
#include <utility>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/command.h"
#include "posenc/resample.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// out += the table of a file, of the same shape.
Expected<void> add_table(const std::string& file, const std::string& dtype, const Tensor& out) {
  POSENC_TRY(array, read_array(file));
  POSENC_TRY(table, tensor_of(array, dtype, file));
  const std::int64_t rows = out.shape[0], width = out.shape[1];
  if (table.rank != 2 || table.shape[0] != rows || table.shape[1] != width)
    return fail("--onto " + file,
                "must be [" + std::to_string(rows) + ", " + std::to_string(width) + "]",
                shape_text(table), "give a table that was made for --to");
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < width; ++c)
      out.set(out.offset(r, c), out.get(out.offset(r, c)) + table.get(table.offset(r, c)));
  return {};
}

Run define_resample(CLI::App& app) {
  struct Options {
    std::string in, out, from, to, interpolation = "bilinear", onto, dtype;
    Resampling how;
  };
  auto options = std::make_shared<Options>();
  app.add_option("IN", options->in, "Learned table [rows][width]: .npy, FILE:TENSOR or -")
      ->required();
  add_output(app, options->out,
             "Where the new table goes: .npy, .safetensors, .csv, .txt, or - to print it");
  app.add_option("--from", options->from, "Patches of the table, like 27x27")
      ->type_name("GRID")
      ->required();
  app.add_option("--to", options->to, "Patches of the picture, like 16x40")
      ->type_name("GRID")
      ->required();
  app.add_option("--interpolation", options->interpolation,
                 "bilinear (4 patches), bicubic (16) or repeated (1, the grid again and again)")
      ->check(CLI::IsMember({"bilinear", "bicubic", "repeated"}));
  app.add_flag("--align_corners", options->how.align_corners,
               "Corner patches stay corner patches; else corners of the picture do");
  app.add_flag("--antialias", options->how.antialias, "Every patch counts where a side shrinks");
  app.add_flag("--zeros_outside", options->how.zeros_outside,
               "Zeros beyond the edge; else the edge's patches");
  app.add_option("--merge", options->how.spatial_merge_size,
                 "New patches in blocks of so many a side (Qwen-VL: 2)");
  app.add_option("--kept_rows", options->how.kept_rows, "Class tokens in front, copied");
  app.add_option("--offset", options->how.offset,
                 "Added to the new sides in the step between patches (DINOv2's own code: 0.1)");
  app.add_option("--onto", options->onto, "Table that the new one is added to, of the same shape")
      ->type_name("TABLE");
  app.add_option("--dtype", options->dtype, "bfloat16: IN is uint16 holding bfloat16")
      ->type_name("TYPE");
  app.footer(
      "Which of these a family of vision towers needs is in docs/learned.md.\n\n"
      "Examples:\n"
      "  posenc resample pos.npy out.npy --from 48x48 --to 16x40 --align_corners --merge 2\n"
      "  posenc resample pos.npy out.npy --from 37x37 --to 16x16 --interpolation bicubic \\\n"
      "         --kept_rows 1\n"
      "  posenc resample dinov2.npy out.npy --from 37x37 --to 16x22 --interpolation bicubic \\\n"
      "         --kept_rows 1 --offset 0.1\n"
      "  posenc resample pos.npy out.npy --from 16x16 --to 12x20 --antialias\n"
      "  posenc resample window.npy out.npy --from 8x8 --to 256x256 --interpolation repeated \\\n"
      "         --onto stretched.npy");
  return [options]() -> Expected<int> {
    POSENC_TRY(array, read_array(options->in));
    POSENC_TRY(table, tensor_of(array, options->dtype, options->in));
    if (table.rank != 2)
      return fail(options->in, "must be [rows][width]", std::to_string(table.rank) + " axes");
    POSENC_TRY(from, grid(options->from, "--from"));
    POSENC_TRY(to, grid(options->to, "--to"));
    Resampling how = options->how;
    how.interpolation = *find_interpolation(options->interpolation);  // one of those asked for
    constexpr std::int64_t most = std::int64_t{1} << 28;
    if (how.kept_rows < 0 || how.kept_rows > most)
      return fail("--kept_rows", "must be 0 to 2^28", std::to_string(how.kept_rows));
    if (to.height > most / to.width)
      return fail("--to", "must have at most 2^28 patches", options->to, "give rows and columns");
    POSENC_TRY(made,
               make_array(array.type, {how.kept_rows + to.height * to.width, table.shape[1]}));
    POSENC_TRY(out, tensor_of(made, options->dtype, options->out));
    POSENC_CHECK(resample_grid(table, {from.height, from.width}, {to.height, to.width}, how, out));
    if (!options->onto.empty()) POSENC_CHECK(add_table(options->onto, options->dtype, out));
    POSENC_CHECK(write_array(options->out, made, options->dtype));
    return 0;
  };
}

}  // namespace

extern const Command resample_command{
    "resample", "a learned table of a picture's grid for a grid of another size", define_resample};

}  // namespace posenc::cli
