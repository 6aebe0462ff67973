// posenc extend: a plan for a longer context.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/arguments/parse.h"
#include "cli/command.h"
#include "cli/pages/extend_page.h"
#include "cli/pages/picture_page.h"
#include "cli/pages/terminal.h"
#include "posenc/pictures.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// Of sides, not of tokens: "4096x4096".
bool is_picture(std::string_view text) {
  return text.find_first_of("xX") != text.npos || text.contains("×");
}

// "" where nothing stands between the quotes, or none do.
std::string unquoted(std::string_view text) {
  return text.size() > 2 ? std::string(text.substr(1, text.size() - 2)) : std::string();
}

Run define_extend(CLI::App& app) {
  struct ExtendFlags {
    std::string model, engine = "transformers", to, trained;
    ExtendOptions options;
    bool json = false;
  };
  auto flags = std::make_shared<ExtendFlags>();
  app.add_option("MODEL", flags->model,
                 "A config.json, params.json or .gguf file, a .safetensors of pictures or videos, "
                 "- for standard input, a folder, or a "
                 "bundled name")
      ->type_name("MODEL")
      ->required();
  app.add_option("--to", flags->to,
                 "Tokens that are wanted (131072, 128k); of a picture or a video its pixels "
                 "(4096x4096, 161x720x1280)")
      ->type_name("LENGTH|[FRAMESx]HEIGHTxWIDTH")
      ->required();
  app.add_option("--engine", flags->engine,
                 "Whose flags or keys are wanted (vllm, llama.cpp, transformers@4, …)")
      ->type_name("ENGINE");
  app.add_option("--trained", flags->trained,
                 "What training has shown, likewise; default: as the file tells")
      ->type_name("LENGTH|[FRAMESx]HEIGHTxWIDTH");
  app.add_flag("--train", flags->options.training, "The weights will be trained at that length");
  app.add_flag("--json", flags->json)->description("All of it as JSON (docs/json.md)");
  app.footer(
      "Every scaling that applies, computed for this model: which pairs of channels meet angles "
      "that training has not\n"
      "shown, how much nearer neighbours look, what happens to logits, short texts and cached "
      "keys. "
      "One is recommended\n"
      "by a rule that is named, and written for the engine. Nothing is measured. Exit code 1: no "
      "flags lead there.\n\n"
      "Examples:\n"
      "  posenc extend llama-2-7b --to 32k\n"
      "  posenc extend qwen3/config.json --to 128k --engine vllm\n"
      "  posenc extend config.json --to 1M --train --json | jq .flags\n"
      "  posenc extend flux/transformer/config.json --to 4096x4096");
  return [flags, &app]() -> Expected<int> {
    Expected<Model> read = named_model(flags->model);
    if (is_picture(flags->to)) {
      PictureOptions options;
      POSENC_TRY(to, picture_size(flags->to));
      options.to = to;
      if (!flags->trained.empty()) {
        POSENC_TRY(trained, picture_size(flags->trained));
        options.trained = trained;
      }
      // A class that is refused is named between quotes.
      const std::string type = read ? "" : unquoted(read.error().got);
      std::optional<PicturePlan> fractions;
      if (!type.empty()) fractions = extend_fractions(type, options);
      if (!read && !fractions) return std::unexpected(read.error());
      const auto plan =
          fractions ? Expected<PicturePlan>(*std::move(fractions)) : extend_picture(*read, options);
      if (!plan) return std::unexpected(plan.error());
      write_out("{}", flags->json
                          ? to_json(*plan) + "\n"
                          : picture_page(read ? read->name : type, *plan, terminal(no_color(app))));
      return 0;
    }
    POSENC_TRY(model, std::move(read));
    flags->options.engine = flags->engine;
    POSENC_TRY(to, tokens(flags->to, "--to"));
    flags->options.to = to;
    if (!flags->trained.empty()) {
      POSENC_TRY(trained, tokens(flags->trained, "--trained"));
      flags->options.trained = trained;
    }
    POSENC_TRY(plan, extend(model, flags->options));
    if (flags->json)
      write_out("{}\n", to_json(plan));
    else
      write_out("{}", extend_page(model, plan, terminal(no_color(app))));
    const bool stays = plan.recommended == "as_is" && plan.rule != "none_fits";
    return plan.said || stays ? 0 : 1;
  };
}

}  // namespace

extern const Command extend_command{"extend", "a plan for a longer context or a larger picture",
                                    define_extend};

}  // namespace posenc::cli
