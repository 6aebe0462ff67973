#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/terminal.h"
#include "posenc/explain.h"
#include "posenc/model.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// Whether a model's name or line has the word, whatever its case.
bool mentions(const BundledModel& model, std::string_view word) {
  const std::string line = std::string(model.name) + " " + std::string(model.about);
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return !std::ranges::search(line, word, same).empty() || word.empty();
}

Run define_models(CLI::App& app) {
  auto name = std::make_shared<std::string>(), search = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(), published = std::make_shared<bool>();
  app.add_option("NAME", *name, "Print this one's config.json")->type_name("MODEL");
  CLI::Option* word = app.add_option("--search", *search,
                                     "Only those whose line has this word: yarn, vision, gemma")
                          ->type_name("WORD");
  app.add_flag(
      "--published", *published,
      "Those known by their names on the hub, of which only what says of position travels");
  app.add_flag("--json", *json)
      ->description("The list as JSON: name, about, origin, source")
      ->excludes(word);
  app.footer(
      "Examples:\n"
      "  posenc models                          # list them\n"
      "  posenc models --search yarn            # those with YaRN\n"
      "  posenc models llama-3.1-8b             # its config.json\n"
      "  posenc models gemma-3-4b > config.json\n"
      "  posenc models --published --search qwen3\n"
      "  posenc models Qwen/Qwen3-32B           # of position alone\n"
      "  posenc models --json | jq -r '.[] | select(.origin == \"published\").name'");
  return [name, search, json, published, &app]() -> Expected<int> {
    if (!name->empty()) {
      POSENC_TRY(config, bundled_config(*name));
      write_out("{}{}", config, config.ends_with('\n') ? "" : "\n");
      return 0;
    }
    if (*json) {
      write_out("{}\n", models_to_json(*published ? published_models() : bundled_models()));
      return 0;
    }
    std::vector<BundledModel> models = *published ? published_models() : bundled_models();
    std::erase_if(models, [&](const BundledModel& model) { return !mentions(model, *search); });
    if (models.empty())
      return fail("--search", "no bundled model's line has the word", *search,
                  "posenc models lists them all");
    if (*published) {
      for (const BundledModel& model : models) write_out("{}\n", model.name);
      return 0;
    }
    const Terminal term = terminal(no_color(app));
    std::size_t width = 0;
    for (const BundledModel& model : models) width = std::max(width, model.name.size());
    for (const BundledModel& model : models) {
      write_out("{}  {}\n", term.bold(padded(model.name, width)),
                wrapped(model.about, width + 2, width + 2));
      const std::string origin = fmt::format("{}: {}", model.origin, model.source);
      write_out("{}\n",
                term.dim(std::string(width + 2, ' ') + wrapped(origin, width + 2, width + 2)));
    }
    return 0;
  };
}

}  // namespace

extern const Command models_command{"models", "real configurations that travel with posenc",
                                    define_models};

}  // namespace posenc::cli
