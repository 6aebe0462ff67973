#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/terminal.h"
#include "posenc/model.h"

namespace posenc::cli {
namespace {

Run define_models(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "Print this one's config.json");
  app.footer(
      "Examples:\n"
      "  posenc models                          list them\n"
      "  posenc models llama-3.1-8b             its config.json\n"
      "  posenc models gemma-3-4b > config.json");
  return [name, &app]() -> Expected<int> {
    if (!name->empty()) {
      const Expected<std::string_view> config = bundled_config(*name);
      if (!config) return std::unexpected(config.error());
      fmt::print("{}{}", *config, config->ends_with('\n') ? "" : "\n");
      return 0;
    }
    const Terminal term = terminal(no_color(app));
    std::size_t width = 0;
    for (const BundledModel& model : bundled_models()) width = std::max(width, model.name.size());
    for (const BundledModel& model : bundled_models())
      fmt::print("{}  {}\n", term.bold(padded(model.name, width)), model.about);
    return 0;
  };
}

}  // namespace

extern const Command models_command{"models", "real configurations that travel with posenc",
                                    define_models};

}  // namespace posenc::cli
