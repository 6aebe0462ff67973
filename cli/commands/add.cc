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

Run define_add(CLI::App& app) {
  struct Options {
    std::string in, out, positions, dtype;
    std::optional<Source> source;
  };
  auto options = std::make_shared<Options>();
  app.add_option("IN", options->in,
                 "Token embeddings [seq][width] or [batch][seq][width]: .npy, FILE:TENSOR or -")
      ->required();
  add_output(app, options->out,
             "Where the sum goes: .npy, .safetensors, .csv, .txt, or - to print it");
  app.add_option("--positions", options->positions,
                 "0:512 (512 not included), 5, 0,2,4, 14x14 (patches), or ids.npy [seq] or "
                 "[axis][seq]; of floats: "
                 "real positions")
      ->type_name("IDS")
      ->required();
  app.add_option("--dtype", options->dtype, "bfloat16: IN is a .npy of uint16 holding bfloat16")
      ->type_name("TYPE");
  options->source.emplace(app, "add");
  app.footer(
      "Where the scheme asks for it, embeddings are multiplied by the square root of their width\n"
      "before the sum.\n\n"
      "Examples:\n"
      "  posenc add x.npy out.npy --scheme sinusoidal --positions 0:512\n"
      "  posenc add x.npy out.npy --scheme sinusoidal --layout concatenated --spacing ends \\\n"
      "         --positions 0:512\n"
      "  posenc add x.npy out.npy --scheme learned --table wpe.npy --positions 0:512\n"
      "  posenc add x.npy out.npy --model opt-125m --table wpe.npy --positions 0:512\n"
      "  posenc add x.npy out.npy --model path/to/folder --positions 0:512\n"
      "  posenc add x.npy out.npy --scheme learned --table model.safetensors:wpe.weight \\\n"
      "         --positions 0:512");
  return [options]() -> Expected<int> {
    std::optional<Waiting> waiting(std::in_place, "add", options->in);
    POSENC_TRY(array, read_array(options->in));
    POSENC_TRY(x, tensor_of(array, options->dtype, options->in));
    if (x.rank < 2 || x.rank > 3)
      return fail(options->in, "must be [seq][width] or [batch][seq][width]",
                  std::to_string(x.rank) + " axes", "reshape it");
    POSENC_TRY(real, real_positions(options->positions));
    POSENC_TRY(where, real ? Positions::range(0, 0) : positions(options->positions));
    Geometry of_tensor;
    of_tensor.width = x.shape[static_cast<std::size_t>(x.rank - 1)];
    POSENC_TRY(plan, options->source->plan(of_tensor));
    POSENC_CHECK(check_table(plan, "add"));
    const Tensor batched = x.with_rank(3);
    POSENC_CHECK(real ? add(plan, batched, real->at, batched) : add(plan, batched, where, batched));
    if (options->out == "-") waiting.reset();
    POSENC_CHECK(write_array(options->out, array, options->dtype));
    return 0;
  };
}

}  // namespace

extern const Command add_command{"add", "add position vectors to token embeddings", define_add};

}  // namespace posenc::cli
