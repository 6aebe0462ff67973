#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/arguments/source.h"
#include "cli/command.h"
#include "cli/pages/progress.h"
#include "posenc/apply.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

Run define_table(CLI::App& app) {
  struct Options {
    std::string out, positions, dtype = "float32";
    std::optional<Source> source;
  };
  auto options = std::make_shared<Options>();
  add_output(app, options->out,
             "Where the vectors go, [positions][width]: .npy, .safetensors (or FILE:TENSOR), .csv, "
             ".txt, or - to print them");
  app.add_option("--positions", options->positions,
                 "0:100 (100 not included), 5, 0,2,4, 14x14 (patches), or ids.npy [seq] or "
                 "[axis][seq]; of floats: "
                 "real positions")
      ->type_name("IDS")
      ->required();
  app.add_option("--dtype", options->dtype, "In .npy bfloat16 is kept as uint16")
      ->type_name("{float32,float64,float16,bfloat16}");
  options->source.emplace(app, "table");
  app.footer(
      "The vectors are what is added to the embeddings; an embedding scale has no part in them.\n\n"
      "Examples:\n"
      "  posenc table pe.npy --scheme sinusoidal --width 512 --positions 0:100\n"
      "  posenc table pe.npy --scheme sinusoidal --width 384 --layout concatenated --spacing ends "
      "\\\n"
      "         --positions 0:1500 --dtype float64\n"
      "  posenc table - --scheme sinusoidal --width 8 --positions 0:4\n"
      "  posenc table pe.npy --model whisper-tiny --stack encoder --positions 0:1500\n"
      "  posenc table pe.npy --scheme sinusoidal --axes_dim 128,128 --width 256 \\\n"
      "         --positions 14x14");
  return [options]() -> Expected<int> {
    POSENC_TRY(type, type_named(options->dtype));
    POSENC_TRY(real, real_positions(options->positions));
    POSENC_TRY(where,
               real ? Positions::range(0, real->at.shape[2]) : positions(options->positions));
    POSENC_TRY(plan, options->source->plan({}));
    POSENC_CHECK(check_table(plan, "table"));
    const std::int64_t width = options->source->width();
    if (width == 0) return fail("table", "the width must be known", "", "say --width");
    POSENC_TRY(array, make_array(type, {where.batch() * where.size(), width}));
    POSENC_TRY(rows, tensor_of(array, options->dtype, options->out));
    Tensor batched = rows.with_rank(3);
    batched.shape[0] = where.batch();
    batched.shape[1] = where.size();
    batched.stride[0] = where.size() * width;
    std::optional<Waiting> waiting(std::in_place, "table", options->out);
    POSENC_CHECK(real ? position_vectors(plan, real->at, batched)
                      : position_vectors(plan, where, batched));
    if (options->out == "-") waiting.reset();
    POSENC_CHECK(write_array(options->out, array, options->dtype));
    return 0;
  };
}

}  // namespace

extern const Command table_command{"table", "write a table of position vectors", define_table};

}  // namespace posenc::cli
