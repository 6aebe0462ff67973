// posenc identify: which convention an engine rotated by, from tensors that it showed.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/command.h"
#include "cli/pages/terminal.h"
#include "posenc/identify.h"

namespace posenc::cli {
namespace {

// How to make the dump that `--repeated` wants, in the words of some engines.
struct Recipe {
  const char *engine, *text;
};
constexpr Recipe recipes[] = {
    {"transformers",
     "# One ordinary token 512 times, no beginning-of-text token; layer 0's keys.\n"
     "import numpy as np, torch\n"
     "ids = torch.full((1, 512), tokenizer.encode(' the', add_special_tokens=False)[0])\n"
     "cache = model(ids.to(model.device), use_cache=True).past_key_values\n"
     "keys = cache.layers[0].keys[0]            # [head][seq][dim]; transformers 4: "
     "cache[0][0][0]\n"
     "np.save('k.npy', keys.float().cpu().numpy())\n"
     "# posenc identify --after k.npy --repeated\n"},
    {"mlx-lm",
     "# One ordinary token 512 times, no beginning-of-text token; layer 0's keys.\n"
     "import mlx.core as mx, numpy as np\n"
     "from mlx_lm.models.cache import make_prompt_cache\n"
     "cache = make_prompt_cache(model)\n"
     "model(mx.full((1, 512), tokenizer.encode(' the', add_special_tokens=False)[0]), "
     "cache=cache)\n"
     "np.save('k.npy', np.array(cache[0].state[0][0, :, :512].astype(mx.float32)))\n"
     "# posenc identify --after k.npy --repeated\n"},
    {"any",
     "Let the engine read one ordinary token 512 times, without a beginning-of-text token, and "
     "save layer\n"
     "0's keys as they enter the products, [head][seq][dim], as .npy:\n\n"
     "  posenc identify --after k.npy --repeated\n\n"
     "Better still, save queries or keys of any text before and after rotation:\n\n"
     "  posenc identify --before q.npy --after q_rotated.npy --positions 0:512\n"},
};

Expected<int> print_recipe(const std::string& engine) {
  std::string known;
  for (const Recipe& recipe : recipes) {
    if (engine == recipe.engine) {
      fmt::print("{}", recipe.text);
      return 0;
    }
    known += (known.empty() ? "" : ", ") + std::string(recipe.engine);
  }
  return fail("--how", "an engine whose words are known", engine, "one of: " + known);
}

std::string fit_text(const FrequencyFit& fit) {
  std::string text = fmt::format("base {}", number_text(fit.base));
  if (std::holds_alternative<Unscaled>(fit.scaling)) return text + ", no scaling";
  text += fmt::format(", scaling {}", info(fit.scaling).name);
  for (const FieldSetting& setting : settings(fit.scaling)) {
    if (const auto* x = std::get_if<double>(&setting.value))
      text += fmt::format(" {} {}", setting.name, number_text(*x));
    if (const auto* i = std::get_if<std::int64_t>(&setting.value))
      text += fmt::format(" {} {}", setting.name, *i);
  }
  return text;
}

std::string page(const Identified& found, const Terminal& term) {
  std::string out = term.bold(name(found.verdict)) + "\n";
  const auto line = [&](std::string_view label, const std::string& text) {
    out += "  " + term.blue(padded(label, 12)) + wrapped(text, 14, 14) + "\n";
  };
  if (found.verdict == Rotated::rotation) {
    const bool halves = found.pairing == Pairing::halves;
    line("pairing",
         fmt::format("{}: channels ({}, {}), ({}, {}), …", name(found.pairing), found.first_dim,
                     found.first_dim + (halves ? found.rotary_dim / 2 : 1),
                     found.first_dim + (halves ? 1 : 2),
                     found.first_dim + (halves ? found.rotary_dim / 2 + 1 : 3)));
    line("channels", fmt::format("{} from {} on", found.rotary_dim, found.first_dim));
    if (found.frequencies) line("frequencies", fit_text(*found.frequencies));
    if (found.runner_up)
      line("next best",
           fmt::format("{}; off by {:.2g} times what the dump resolves, the first by {:.2g}",
                       fit_text(*found.runner_up), found.runner_up->misfit,
                       found.frequencies->misfit));
    if (found.amplitude) line("amplitude", fmt::format("×{:.6g}", *found.amplitude));
    if (found.offset && *found.offset != 0)
      line("offset",
           fmt::format("{:+}: positions are counted from there; harmless unless keys of another "
                       "count are cached beside them",
                       *found.offset));
    if (found.sign < 0) line("sign", "rotated backwards");
  }
  if (found.verdict != Rotated::no_rotation && found.residual > 0)
    line("residual", fmt::format("{:.1e} of what changed", found.residual));
  for (const std::string& sentence : found.cannot_tell) line("not seen", sentence);
  return out;
}

Run define_identify(CLI::App& app) {
  struct Options {
    std::string after, before, positions, dtype, how;
    bool repeated = false, json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--after", options->after,
                 "Queries or keys as they enter the products, .npy [head][seq][dim]")
      ->type_name("FILE");
  app.add_option("--before", options->before, "The same before rotation")->type_name("FILE");
  app.add_option("--positions", options->positions,
                 "Of the tokens: 0:64 (64 not included), or ids.npy; default: from 0 on")
      ->type_name("IDS");
  app.add_flag("--repeated", options->repeated,
               "Every token is the same one, so --after alone is enough");
  app.add_option("--dtype", options->dtype, "bfloat16: files are uint16 holding bfloat16")
      ->type_name("TYPE");
  app.add_option("--how", options->how,
                 "Print how to make the dump with an engine: transformers, mlx-lm, any")
      ->type_name("ENGINE");
  app.add_flag("--json", options->json)->description("All of it as JSON (docs/json.md)");
  app.footer(
      "Names pairing, rotated channels, base, scaling, amplitude, offset and direction, with the "
      "runner-up,\n"
      "and says what the dump does not show. Exit code 1: no rotation, none of two channels, or it "
      "cannot tell.\n\n"
      "Examples:\n"
      "  posenc identify --how transformers\n"
      "  posenc identify --after k.npy --repeated\n"
      "  posenc identify --before q.npy --after q_rotated.npy --positions 0:512 --json");
  return [options, &app]() -> Expected<int> {
    if (!options->how.empty()) return print_recipe(options->how);
    if (options->after.empty())
      return fail("--after", "is required", "",
                  "posenc identify --how any tells how to make the file");
    if (!options->before.empty() && options->repeated)
      return fail("--repeated", "stands in for --before", "", "drop one of the flags");
    RotationDump dump{.repeated = options->repeated};
    std::optional<Array> arrays[2];
    const std::pair<const std::string*, Tensor*> files[] = {{&options->after, &dump.after},
                                                            {&options->before, &dump.before}};
    for (std::size_t i = 0; i < 2; ++i) {
      if (files[i].first->empty()) continue;
      Expected<Array> array = read_npy(*files[i].first);
      if (!array) return std::unexpected(array.error());
      arrays[i] = std::move(*array);
      const Expected<Tensor> tensor = tensor_of(*arrays[i], options->dtype, *files[i].first);
      if (!tensor) return std::unexpected(tensor.error());
      *files[i].second = *tensor;
    }
    const std::int64_t tokens =
        dump.after.rank >= 2 ? dump.after.shape[static_cast<std::size_t>(dump.after.rank - 2)] : 0;
    const Expected<Positions> at = options->positions.empty()
                                       ? Expected<Positions>(Positions::range(0, tokens))
                                       : positions(options->positions);
    if (!at) return std::unexpected(at.error());
    dump.positions = *at;
    const Expected<Identified> found = identify(dump);
    if (!found) return std::unexpected(found.error());
    if (options->json)
      fmt::print("{}\n", to_json(*found));
    else
      fmt::print("{}", page(*found, terminal(no_color(app))));
    return found->verdict == Rotated::rotation ? 0 : 1;
  };
}

}  // namespace

extern const Command identify_command{
    "identify", "which convention an engine rotated by, from dumped tensors", define_identify};

}  // namespace posenc::cli
