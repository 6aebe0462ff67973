// One kind of picture: a file here that turns its flags into a Figure, and a word in
// cli/commands/plot.cc's list.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "cli/figures/draw/figure.h"
#include "posenc/error.h"

namespace CLI {
class App;
}

namespace posenc::cli {

// Runs after the flags are read.
using Drawing = std::function<Expected<Figure>()>;

struct Kind {
  std::string_view name, about;      // about: one sentence
  Drawing (*define)(CLI::App& app);  // adds the kind's own flags
  std::span<const std::string_view>
      examples;                 // what follows `posenc plot KIND`; the gallery draws them
  std::string_view alias = {};  // another name it answers to
};

}  // namespace posenc::cli
