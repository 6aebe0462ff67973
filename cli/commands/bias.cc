#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/source.h"
#include "cli/command.h"
#include "cli/pages/progress.h"
#include "posenc/apply.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// Rows of a few queries after another, which tells how far the work has come.
Expected<void> bias_in_parts(const Plan& plan, const Positions& queries, const Positions& keys,
                             const Tensor& out, Waiting& waiting) {
  constexpr std::int64_t at_once = std::int64_t{1} << 24;  // numbers
  const std::int64_t all = queries.size(),
                     step = std::max<std::int64_t>(1, at_once / (out.shape[0] * out.shape[2]));
  for (std::int64_t first = 0; first < all; first += step) {
    const std::int64_t count = std::min(step, all - first);
    Tensor rows = out;
    rows.data = static_cast<std::byte*>(out.data) +
                out.stride[1] * first * static_cast<std::int64_t>(size_of(out.dtype));
    rows.shape[1] = count;
    POSENC_CHECK(bias(plan, queries.slice(0, first, count), keys, rows));
    waiting.share(static_cast<double>(first + count) / static_cast<double>(all));
  }
  return {};
}

Run define_bias(CLI::App& app) {
  struct Options {
    std::string out, dtype = "float32";
    std::int64_t queries = 0, keys = 0;
    std::optional<Source> source;
  };
  auto options = std::make_shared<Options>();
  add_output(app, options->out,
             "Where the biases go, [head][query][key]: .npy, .safetensors (or FILE:TENSOR), .csv, "
             ".txt, or - to print them");
  app.add_option("--queries", options->queries, "Queries: the last of the keys")
      ->required()
      ->transform(above_zero())
      ->default_str("");
  app.add_option("--keys", options->keys, "Keys, at positions 0 to keys - 1")
      ->required()
      ->transform(above_zero())
      ->default_str("");
  app.add_option("--dtype", options->dtype, "In .npy bfloat16 is kept as uint16")
      ->type_name("{float32,float64,float16,bfloat16}");
  options->source.emplace(app, "bias");
  app.footer(
      "No causal mask is in it: keys ahead of a query get what the scheme says of them. Without "
      "--at\n"
      "the scheme is compiled for as many positions as there are keys.\n\n"
      "Examples:\n"
      "  posenc bias b.npy --scheme alibi --heads 12 --queries 64 --keys 64\n"
      "  posenc bias b.npy --scheme t5 --heads 8 --table relative_attention_bias.npy --queries 1 "
      "--keys 512\n"
      "  posenc bias b.npy --model bloom-176b --queries 128 --keys 2048 --dtype float64\n"
      "  posenc bias b.npy --scheme kerple --heads 4 --kernel log --p 1 --a 0.5 --queries 8 --keys "
      "8");
  return [options]() -> Expected<int> {
    POSENC_TRY(type, type_named(options->dtype));
    if (options->queries > options->keys)
      return fail("bias", "the queries are the last of the keys, so there are no more of them",
                  std::to_string(options->queries) + " of " + std::to_string(options->keys));
    Geometry of_tensor;
    of_tensor.length = options->keys;
    POSENC_TRY(plan, options->source->plan(of_tensor));
    POSENC_CHECK(check_table(plan, "bias"));
    if (!plan.bias)
      return fail("bias", "this encoding adds no bias to the logits", "",
                  "see posenc rotate and posenc add");
    const std::int64_t heads = options->source->heads();
    if (heads == 0) return fail("bias", "the number of heads must be known", "", "say --heads");
    POSENC_TRY(array, make_array(type, {heads, options->queries, options->keys}));
    POSENC_TRY(out, tensor_of(array, options->dtype, options->out));
    const Positions keys = Positions::range(0, options->keys);
    const Positions queries = Positions::range(options->keys - options->queries, options->queries);
    std::optional<Waiting> waiting(std::in_place, "bias", options->out);
    POSENC_CHECK(bias_in_parts(plan, queries, keys, out, *waiting));
    if (options->out == "-") waiting.reset();
    POSENC_CHECK(write_array(options->out, array, options->dtype));
    return 0;
  };
}

}  // namespace

extern const Command bias_command{"bias", "write what a scheme adds to attention logits",
                                  define_bias};

}  // namespace posenc::cli
