// posenc extend: a plan for a longer context.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/pages/extend_page.h"
#include "cli/pages/terminal.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

Run define_extend(CLI::App& app) {
  struct ExtendFlags {
    std::string model, engine = "transformers";
    ExtendOptions options;
    bool json = false;
  };
  auto flags = std::make_shared<ExtendFlags>();
  app.add_option("MODEL", flags->model,
                 "A config.json, params.json or .gguf file, - for standard input, a folder, or a "
                 "bundled name")
      ->type_name("MODEL")
      ->required();
  app.add_option("--to", flags->options.to, "Tokens that are wanted (131072, 128k)")
      ->transform(token_count())
      ->type_name("LENGTH")
      ->default_str("")
      ->required();
  app.add_option("--engine", flags->engine,
                 "Whose flags or keys are wanted (vllm, llama.cpp, transformers@4, …)")
      ->type_name("ENGINE");
  app.add_option("--trained", flags->options.trained,
                 "Tokens that training has shown; default: as the file tells")
      ->transform(token_count())
      ->type_name("LENGTH")
      ->default_str("");
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
      "  posenc extend config.json --to 1M --train --json | jq .flags");
  return [flags, &app]() -> Expected<int> {
    POSENC_TRY(model, named_model(flags->model));
    flags->options.engine = flags->engine;
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

extern const Command extend_command{"extend", "a plan for a longer context", define_extend};

}  // namespace posenc::cli
