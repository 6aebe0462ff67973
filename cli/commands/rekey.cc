// posenc rekey: cached keys from one rotation and place to another.
#include <algorithm>
#include <cstdint>
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
#include "posenc/rekey.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct RekeyOptions {
  std::string in, out, from, to, to_model, dtype;
  std::int64_t layer = -1;
  bool values = false;
  std::optional<Source> source;
};

// The plan that the keys shall have: another model's layer, or the one they have.
Expected<Plan> target(const RekeyOptions& options, const Plan& plan) {
  if (options.to_model.empty()) return plan;
  POSENC_TRY(model, read_model(options.to_model));
  const std::optional<std::int64_t> layer =
      options.layer < 0 ? std::nullopt : std::optional(options.layer);
  POSENC_TRY(group, chosen_group(model, "", layer, {"rekey", options.to_model}));
  return compile(group);
}

Run define_rekey(CLI::App& app) {
  auto options = std::make_shared<RekeyOptions>();
  app.add_option("IN", options->in,
                 "Keys as they are cached, [head][seq][dim] or [batch][head][seq][dim]: .npy, "
                 "FILE:TENSOR of a .safetensors file, or -")
      ->required();
  add_output(app, options->out,
             "Where the moved keys go: .npy, .safetensors (or FILE:TENSOR), or -");
  app.add_option("--from", options->from, "Where the keys stand rotated: 0:512, 0,1,2 or ids.npy")
      ->type_name("IDS")
      ->required();
  app.add_option("--to", options->to, "Where they shall stand")->type_name("IDS")->required();
  app.add_option("--to_model", options->to_model,
                 "A model whose rotation they shall have (the same)")
      ->type_name("MODEL");
  app.add_option("--to_layer", options->layer, "Its layer")->default_str("");
  app.add_flag("--values", options->values, "IN are values, of a plan that rotates them");
  app.add_option("--dtype", options->dtype, "bfloat16: IN is a .npy of uint16 holding bfloat16")
      ->type_name("TYPE");
  options->source.emplace(app, "rekey");
  app.footer(
      "Keys that a plan rotated at --from become keys rotated at --to, as if they had been "
      "rotated\n"
      "there: once by the difference of the angles, and rounded once. posenc explain MODEL "
      "--reuse\n"
      "says whether a model's keys may be moved.\n\n"
      "Examples:\n"
      "  posenc rekey k.npy moved.npy --model llama-3.1-8b --from 100:612 --to 0:512\n"
      "  posenc rekey k.npy moved.npy --model deepseek-v3 --from 0:64 --to ids.npy\n"
      "  posenc rekey k.npy far.npy --model ./short --to-model ./long --from 0:512 --to 0:512\n"
      "  posenc rekey dump.safetensors:k out.safetensors:k --scheme rope --from 0:64 --to 64:128");
  return [options]() -> Expected<int> {
    std::optional<Waiting> waiting(std::in_place, "rekey", options->in);
    POSENC_TRY(array, read_array(options->in));
    POSENC_TRY(whole, tensor_of(array, options->dtype, options->in));
    if (whole.rank < 2)
      return fail("rekey", "the tensor must have 2, 3 or 4 axes", std::to_string(whole.rank),
                  "give [head][seq][dim]");
    const Tensor keys = whole.with_rank(4);
    POSENC_TRY(from, positions(options->from));
    POSENC_TRY(to, positions(options->to));
    POSENC_TRY(plan, options->source->plan({.kv_heads = keys.shape[1], .head_dim = keys.shape[3]}));
    POSENC_TRY(other, target(*options, plan));
    POSENC_CHECK(
        rekey({&plan, from}, {&other, to}, keys, keys, options->values ? Side::value : Side::key));
    if (options->out == "-") waiting.reset();
    POSENC_CHECK(write_array(options->out, array, options->dtype));
    return 0;
  };
}

}  // namespace

extern const Command rekey_command{
    "rekey", "cached keys moved to other positions, or to another rotation", define_rekey};

}  // namespace posenc::cli
