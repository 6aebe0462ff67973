// posenc emit: a plan as the text of a kernel in another language.
#include "posenc/emit.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/arguments/source.h"
#include "cli/command.h"
#include "cli/pages/json_text.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

std::string names_of_targets() {
  std::string text;
  for (const EmitTarget& each : emit_targets())
    text += (text.empty() ? "" : ", ") + std::string(each.name);
  return text;
}
std::string list_of_targets() {
  std::string text;
  for (const EmitTarget& each : emit_targets())
    text += fmt::format("\n  {:<11}{}", each.name, each.title);
  return text;
}

Run define_emit(CLI::App& app) {
  struct Options {
    std::string target, out;
    bool json = false;
    std::optional<Source> source;
  };
  auto options = std::make_shared<Options>();
  options->source.emplace(app, "emit");
  options->source->take_model_alone(app);
  app.add_option("--to", options->target, "The language: " + names_of_targets())
      ->type_name("TARGET")
      ->required();
  app.add_option("--out", options->out, "Where the text goes; default: standard output")
      ->type_name("FILE");
  app.add_flag("--json", options->json)
      ->description("{\"target\", \"title\", \"text\"}, on standard output");
  app.footer(
      "Targets:" + list_of_targets() +
      "\n\n"
      "The text has the plan's numbers in it, and its own test; who reads it needs nothing of\n"
      "posenc. All targets give the same bits, off by at most 6e-8 at any position of 64 bits\n"
      "(docs/emit.md). What a target cannot say is refused.\n\n"
      "Examples:\n"
      "  posenc emit llama-3.1-8b --to triton --out rope.py\n"
      "  posenc emit qwen2.5-7b-yarn4 --at 128k --to cuda --out rope.cu\n"
      "  posenc emit --scheme rope --head_dim 64 --pairing interleaved --to wgsl\n"
      "  posenc emit --scheme alibi --heads 12 --to score_mod --out alibi.py\n"
      "  posenc emit gemma-3-4b --layer 5 --to c --out rope.c");
  return [options]() -> Expected<int> {
    POSENC_TRY(plan, options->source->plan({}));
    const EmitOptions asked{.head_dim = options->source->head_dim(),
                            .heads = options->source->heads(),
                            .title = options->source->title(),
                            .source = options->source->published()};
    POSENC_TRY(text, emit(plan, options->target, asked));
    if (!options->out.empty()) POSENC_CHECK(write_whole(options->out, {text}));
    if (options->json)
      write_out("{{\"target\":{},\"title\":{},\"text\":{}}}\n", json_string(options->target),
                json_string(asked.title), json_string(text));
    else if (options->out.empty())
      write_out("{}", text);
    return 0;
  };
}

}  // namespace

extern const Command emit_command{"emit", "a rotation or a bias as a kernel in another language",
                                  define_emit};

}  // namespace posenc::cli
