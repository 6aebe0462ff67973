#include "cli/command.h"

namespace posenc::cli {

bool no_color(const CLI::App& app) { return app.count("--no_color") > 0; }

}  // namespace posenc::cli
