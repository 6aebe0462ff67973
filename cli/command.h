// A command: its name, its line in the list, and what it defines. It lives in a file of its name,
// and run.cc lists it.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "posenc/error.h"

namespace CLI {
class App;
}

namespace posenc::cli {

// Runs after the flags are read. 0: good; 1: something wrong was found. An error exits with 2.
using Run = std::function<Expected<int>()>;

// Adds a command's flags and examples to its app. Flags are spelled with underscores; dashes in
// what the user types become underscores before parsing.
using Define = Run (*)(CLI::App& app);

struct Command {
  std::string_view name, about;
  Define define;
  std::span<const Command> (*kinds)() = nullptr;  // commands below it: `posenc plot heatmap`
  bool takes_lines = false;  // a quoted argument of several words is no flag: "-m vllm … --port 1"
};

}  // namespace posenc::cli
