// posenc lab dump: a layer's queries and keys of a real model, before and after they are rotated.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/commands/lab.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// [head][token][channel], whatever the view's strides.
Expected<Array> array_of(const Tensor& x) {
  POSENC_TRY(array, make_array(NpyType::f32, {x.shape[1], x.shape[2], x.shape[3]}));
  auto* out = reinterpret_cast<float*>(array.data.data());
  for (std::int64_t head = 0; head < x.shape[1]; ++head)
    for (std::int64_t t = 0; t < x.shape[2]; ++t)
      for (std::int64_t c = 0; c < x.shape[3]; ++c)
        *out++ = static_cast<float>(x.get(x.offset(0, head, t, c)));
  return std::move(array);
}

struct DumpFlags {
  std::int64_t layer = 0, tokens = 512;
  std::string before, after;
  bool queries = false;
};

// Writes the files that are asked for, of that shape.
Expected<void> dump(const lab::Glimpse& seen, const DumpFlags& flags,
                    std::vector<std::int64_t>& shape) {
  const Tensor& x = flags.queries ? seen.q : seen.k;
  POSENC_TRY(array, array_of(x));
  shape = array.shape;
  if (!flags.before.empty()) POSENC_CHECK(write_array(flags.before, array));
  if (flags.after.empty()) return {};
  const Tensor view = Tensor::dense(reinterpret_cast<float*>(array.data.data()),
                                    {1, x.shape[1], x.shape[2], x.shape[3]});
  const Side side = flags.queries ? Side::query : Side::key;
  POSENC_CHECK(rotate(seen.plan, view, seen.positions, side, view));
  return write_array(flags.after, array);
}

Run define_dump(CLI::App& app) {
  auto real = std::make_shared<RealModelFlags>();
  auto flags = std::make_shared<DumpFlags>();
  add_real_model(app, real);
  app.add_option("--layer", flags->layer, "Which layer, from 0")->check(CLI::NonNegativeNumber);
  app.add_option("--tokens", flags->tokens, "Tokens of the text to run")->transform(token_count());
  app.add_option("--before", flags->before,
                 "Vectors as their projection gives them: .npy, .safetensors, .csv or .txt")
      ->type_name("FILE");
  app.add_option("--after", flags->after, "The same, rotated")
      ->check(array_file())
      ->type_name("FILE");
  app.add_flag("--queries", flags->queries, "Queries instead of keys");
  app.footer(
      "[head][token][channel] in float32, in the order of channels that the GGUF has. What `posenc "
      "identify` takes, and "
      "what\n"
      "another engine's dump of the same layer may be compared with.\n\n"
      "Examples:\n"
      "  posenc lab dump smollm2.gguf book.txt --layer 3 --before k.npy --after k_rotated.npy\n"
      "  posenc identify --before k.npy --after k_rotated.npy");
  return [real, flags]() -> Expected<int> {
    if (flags->before.empty() && flags->after.empty())
      return fail("lab dump", "needs a file to write", "neither",
                  "name one: --before k.npy, --after k_rotated.npy");
    POSENC_TRY(model, real_model(*real));
    const auto layers = std::ssize(model.llama.layers());
    if (flags->layer >= layers)
      return fail("--layer", "must be one of the model's", std::to_string(flags->layer),
                  fmt::format("it has 0 to {}", layers - 1));
    model.tokens.resize(
        static_cast<std::size_t>(std::min<std::int64_t>(flags->tokens, std::ssize(model.tokens))));
    POSENC_TRY(passage,
               lab::Passage::begin(model.llama, [](const LayerGroup& group, std::int64_t length) {
                 return compile(group, length);
               }));
    std::vector<std::int64_t> shape;
    POSENC_CHECK(passage.read(model.tokens, [&](const lab::Glimpse& seen) -> Expected<void> {
      return seen.layer == flags->layer ? dump(seen, *flags, shape) : Expected<void>{};
    }));
    if (real->json)
      write_out("{{\"layer\":{},\"shape\":[{}]}}\n", flags->layer, fmt::join(shape, ","));
    else
      write_out("{} of layer {}: {}\n", flags->queries ? "queries" : "keys", flags->layer,
                fmt::join(shape, " × "));
    return 0;
  };
}

}  // namespace

extern const Command lab_dump{"dump", "a layer's queries or keys, before and after their rotation",
                              define_dump};

}  // namespace posenc::cli
