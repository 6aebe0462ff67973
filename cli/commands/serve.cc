#include <memory>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/playground/server.h"

namespace posenc::cli {
namespace {

Run define_serve(CLI::App& app) {
  auto serving = std::make_shared<Serving>();
  CLI::Option* port =
      app.add_option(
             "--port", serving->port,
             "Port to listen on; 0: any free one. Where 8137 is taken and no port is named, "
             "the next free one")
          ->check(CLI::Range(0, 65535));
  app.add_option("--host", serving->host,
                 "Address to listen on; any but the default shows the playground to others");
  app.add_option("--docs", serving->docs,
                 "Site of the documentation, shown below /docs/ (default: build/docs-site beside "
                 "the build, or the installed one)")
      ->type_name("FOLDER");
  app.add_flag("--open", serving->open)->description("Open it in a browser (xdg-open)");
  app.footer(
      "Serves the playground from the command itself, to this machine alone, until Ctrl-C.\n"
      "Nothing leaves the machine: files dropped on a panel are read in the browser.\n"
      "Examples:\n"
      "  posenc serve\n"
      "  posenc serve --open --port 0\n"
      "  posenc serve --docs build/docs-site");
  return [serving, port]() -> Expected<int> {
    serving->exact = port->count() > 0;
    return serve(*serving);
  };
}

}  // namespace

extern const Command serve_command{"serve", "the playground in a browser, from this file alone",
                                   define_serve};

}  // namespace posenc::cli
