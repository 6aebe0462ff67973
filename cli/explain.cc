#include "posenc/explain.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/terminal.h"

namespace posenc::cli {

Run define_explain(CLI::App& app) {
  struct Options {
    std::string model;
    Ask ask;
    bool pairs = false, csv = false, strict = false, json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->model,
                 "A config.json, params.json or .gguf file, the model's folder, or a bundled name "
                 "(posenc models)")
      ->required();
  app.add_option("--at", options->ask.at,
                 "Explain for positions 0 to LENGTH-1; default: the model as constructed")
      ->check(above_zero())
      ->default_str("");
  app.add_option("--layer", options->ask.layer, "Only what holds for this layer");
  app.add_flag("--pairs", options->pairs, "The whole table of pairs");
  CLI::Option* csv_flag = app.add_flag("--csv", options->csv)->description("The pairs as CSV");
  app.add_flag("--json", options->json)
      ->description("All of it as JSON (docs/json.md)")
      ->excludes(csv_flag);
  app.add_flag("--strict", options->strict)->description("Exit with 1 if there are warnings");
  app.footer(
      "Examples:\n"
      "  posenc explain llama-3.1-8b\n"
      "  posenc explain ./my-model --at 131072 --strict\n"
      "  posenc explain llama-3.1-8b-Q4_K_M.gguf\n"
      "  posenc explain gemma-3-4b --layer 5 --pairs\n"
      "  posenc explain deepseek-v3 --json | jq '.groups[0].plan.logits'");
  return [options, &app]() -> Expected<int> {
    Expected<Model> model = read_model(options->model);
    if (!model) return std::unexpected(model.error());
    const Expected<Explanation> explanation = explain(std::move(*model), options->ask);
    if (!explanation) return std::unexpected(explanation.error());
    if (options->json) {
      fmt::print("{}\n", to_json(*explanation));
    } else if (options->csv) {
      fmt::print("{}", csv(*explanation));
    } else {
      fmt::print("{}", page(*explanation, options->pairs, terminal(no_color(app))));
    }
    return options->strict && !explanation->warnings.empty() ? 1 : 0;
  };
}

}  // namespace posenc::cli
