// What main.cc knows of a command: its name, its line in the list, and what it defines.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <CLI/CLI.hpp>

#include "posenc/error.h"

namespace posenc::cli {

// Runs after the flags are read. 0: good; 1: something wrong was found. An error exits with 2.
using Run = std::function<Expected<int>()>;

// Adds a command's flags and examples to its app. Flags are spelled with underscores; dashes in what
// the user types become underscores before parsing.
using Define = Run (*)(CLI::App& app);

struct Command {
  std::string_view name, about;
  Define define;
  std::span<const Command> (*kinds)() = nullptr;  // commands below it: `posenc plot heatmap`
};

Run define_add(CLI::App& app);
Run define_attend(CLI::App& app);
Run define_bench(CLI::App& app);
Run define_bias(CLI::App& app);
Run define_buckets(CLI::App& app);
Run define_explain(CLI::App& app);
Run define_link(CLI::App& app);
Run define_models(CLI::App& app);
Run define_plot(CLI::App& app);
Run define_positions(CLI::App& app);
Run define_precision(CLI::App& app);
Run define_rotate(CLI::App& app);
Run define_schemes(CLI::App& app);
Run define_serve(CLI::App& app);
Run define_slopes(CLI::App& app);
Run define_table(CLI::App& app);
Run define_verify(CLI::App& app);

std::span<const Command> plot_kinds();

// A check of a flag: a whole number above 0. CLI11's own tells the range in 300 digits.
CLI::Validator above_zero();

// Whether --no_color was given; main.cc adds the flag to every command.
bool no_color(const CLI::App& app);

}  // namespace posenc::cli
