// The table of commands, the help above them, and what every command does alike: flags, errors,
// exit codes.
#include "cli/run.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>
#include <fmt/format.h>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/manual.h"
#include "cli/pages/terminal.h"
#include "cli/system/system.h"
#include "src/core/try.h"

namespace posenc::cli {

// Each in a file of its name.
extern const Command add_command, attend_command, bench_command, bias_command, buckets_command,
    check_positions_command, completion_command, conform_command, diff_command, doctor_command,
    emit_command, explain_command, extend_command, identify_command, lab_command, link_command,
    lint_command, man_command, models_command, plot_command, positions_command, precision_command,
    probe_command, rekey_command, resample_command, rotate_command, schemes_command, serve_command,
    slopes_command, table_command, translate_command, verify_command;

namespace {

// In the order of posenc --help.
const Command commands[] = {
    doctor_command,  probe_command,     explain_command,         diff_command,
    lint_command,    translate_command, extend_command,          identify_command,
    models_command,  schemes_command,   rotate_command,          rekey_command,
    add_command,     table_command,     resample_command,        bias_command,
    attend_command,  emit_command,      precision_command,       slopes_command,
    buckets_command, positions_command, check_positions_command, conform_command,
    verify_command,  lab_command,       bench_command,           serve_command,
    link_command,    plot_command};
// For installers and shells; the list leaves them out.
const Command unlisted[] = {completion_command, man_command};

int report(const std::string& text) {
  write_error("posenc: {}\n", text);
  return 2;
}
int report(const Error& error) { return report(error.message()); }

std::string help() {
  const Terminal term = terminal(false);
  std::string text = term.bold("posenc") + ": positional encodings for transformers\n\n" +
                     "Usage: posenc COMMAND [flags]\n\n";
  for (const Command& command : commands)
    text += fmt::format("  {}  {}\n", term.blue(padded(command.name, 10)), command.about);
  return text +
         "\n`posenc COMMAND --help` shows a command's flags and examples on a screen, --help-all "
         "every one.\n"
         "Dashes and underscores in flags are the same: --head-dim is --head_dim.\n"
         "Exit codes: 0 good, 1 something wrong was found, 2 bad input.\n"
         "`posenc completion bash|zsh|fish` and `posenc man` print what `make install` "
         "installs.\n\n"
         "  posenc explain llama-3.1-8b\n"
         "  posenc explain ./my-model/config.json --at 131072 --json\n";
}

// A flag's name with underscores; its value and all else as they are.
std::string with_underscores(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const auto end =
      argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size()));
  std::replace(argument.begin() + 2, end, '-', '_');
  return argument;
}

Error unknown_argument(const CLI::App& app, const std::string& name, const std::string& argument) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& flag : option->get_lnames()) flags.push_back("--" + flag);
  const std::vector<std::string_view> known(flags.begin(), flags.end());
  const std::string near(argument.starts_with("-") ? nearest(argument, known) : "");
  return {name, argument.starts_with("-") ? "no such flag" : "one argument too many", argument,
          near.empty() ? "see posenc " + name + " --help" : "did you mean " + near + "?"};
}

Error unknown(const std::string& name, std::string_view rule, std::span<const Command> list,
              const std::string& cure) {
  std::vector<std::string_view> known;
  for (const Command& command : list) known.push_back(command.name);
  const std::string near(nearest(name.substr(name.rfind(' ') + 1), known));
  return {name, std::string(rule), "", near.empty() ? cure : "did you mean " + near + "?"};
}

// The command named first among the arguments, which loses its name; null if there is none.
const Command* take(std::span<const Command> list, std::vector<std::string>& arguments) {
  for (const Command& command : list)
    if (!arguments.empty() && command.name == arguments.front()) {
      arguments.erase(arguments.begin());
      return &command;
    }
  return nullptr;
}

// The flags of every command, and then its own.
Run define(const Command& command, CLI::App& app) {
  app.allow_extras();
  app.option_defaults()->always_capture_default();
  app.set_help_flag("-h,--help", "The flags that one needs, and examples");
  app.set_help_all_flag("--help-all,--help_all", "Every flag and example");
  app.add_flag("--no_color")->description("No colours; so does the environment's NO_COLOR");
  return command.define(app);
}

int print_help(const Command& command, const std::string& name, const CLI::App& app, bool all) {
  HelpAsked asked{.all = all};
  const auto given = [&app](const char* flag) -> std::string {
    const CLI::Option* option = app.get_option_no_throw(flag);
    return option && option->count() > 0 ? option->results().back() : "";
  };
  asked.scheme = given("--scheme");
  asked.scaling = given("--rope_type");
  write_out("{}", help_text(manual(name, command.about, app), asked));
  return 0;
}

// Reads the arguments into the app's flags; a help that was asked for is thrown, as CLI11 has it.
Expected<void> parse(CLI::App& app, const std::string& name, std::vector<std::string> arguments) {
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    throw;
  } catch (const CLI::CallForAllHelp&) {
    throw;
  } catch (const CLI::ParseError& error) {
    // A misspelt flag also leaves something required out; the spelling is the thing to say.
    if (const std::vector<std::string> extra = app.remaining(); !extra.empty())
      return std::unexpected(unknown_argument(app, name, extra.front()));
    return std::unexpected(Error{name, error.what(), "", "see posenc " + name + " --help"});
  }
  std::vector<std::string> extra = app.remaining();
  if (!extra.empty() && extra.front() == "--") extra.erase(extra.begin());  // CLI11 keeps it
  if (!extra.empty()) return std::unexpected(unknown_argument(app, name, extra.front()));
  return {};
}

int run(const Command& command, const std::string& name, std::vector<std::string> arguments) {
  CLI::App app;
  const Run act = define(command, app);
  // A blank before it, and what is parsed sees no dash.
  if (command.takes_lines)
    for (std::string& argument : arguments)
      if (argument.starts_with('-') && argument.find_first_of(" \n") != argument.npos)
        argument.insert(0, 1, ' ');
  try {
    const Expected<void> good = parse(app, name, std::move(arguments));
    if (!good) return report(good.error());
  } catch (const CLI::CallForHelp&) {
    return print_help(command, name, app, false);
  } catch (const CLI::CallForAllHelp&) {
    return print_help(command, name, app, true);
  }
  const Expected<int> code = act();
  return code ? *code : report(code.error());
}

// A command, or the kind of one, and its name as a whole; what names it is taken from the
// arguments.
struct Named {
  const Command* command;
  std::string name;
};
Expected<Named> named(std::vector<std::string>& arguments) {
  std::string name = arguments.front();
  const Command* command = take(commands, arguments);
  if (!command) command = take(unlisted, arguments);
  if (!command)
    return std::unexpected(unknown(name, "no such command", commands, "posenc --help lists them"));
  if (command->kinds && !arguments.empty() && !arguments.front().starts_with("-")) {
    const std::span<const Command> kinds = command->kinds();
    const std::string kind = arguments.front();
    command = take(kinds, arguments);
    if (!command)
      return std::unexpected(
          unknown(name + " " + kind, "no such kind", kinds, "posenc " + name + " lists them"));
    name += " " + kind;
  }
  // What stands behind -- is another program's.
  std::transform(arguments.begin(), std::ranges::find(arguments, "--"), arguments.begin(),
                 with_underscores);
  return Named{command, std::move(name)};
}

int run(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    write_error("{}", help());
    return 2;
  }
  std::string name = arguments.front();
  if (name == "--version" || name == "-V" || name == "version") {
    write_out("posenc {}\n", POSENC_VERSION);
    return 0;
  }
  if (name == "help" && arguments.size() > 1) {
    arguments.erase(arguments.begin());
    name = arguments.front();
    arguments.emplace_back("--help");
  }
  if (name == "--help" || name == "-h" || name == "help") {
    write_out("{}", help());
    return 0;
  }
  const Expected<Named> called = named(arguments);
  if (!called) return report(called.error());
  return run(*called->command, called->name, std::move(arguments));
}

Manual manual_of(const Command& command, const std::string& name) {
  CLI::App app;
  const Run act = define(command, app);
  return manual(name, command.about, app);
}

}  // namespace

std::vector<Manual> all_manuals() {
  std::vector<Manual> out;
  for (const Command& command : commands) {
    const std::string name(command.name);
    out.push_back(manual_of(command, name));
    if (!command.kinds) continue;
    for (const Command& kind : command.kinds())
      out.push_back(manual_of(kind, name + " " + std::string(kind.name)));
  }
  return out;
}

Expected<void> parsed(std::vector<std::string> arguments) {
  if (arguments.empty()) return fail("posenc", "must be told a command");
  POSENC_TRY(called, named(arguments));
  CLI::App app;
  const Run act = define(*called.command, app);
  try {
    return parse(app, called.name, std::move(arguments));
  } catch (const CLI::ParseError&) {
    return {};  // a help
  }
}

int run_program(std::vector<std::string> arguments) {
  int code = 2;
  try {
    begin();
    code = run(std::move(arguments));
  } catch (const std::bad_alloc&) {
    return report("memory: must hold all of it; ask for fewer positions");
  } catch (const std::exception& error) {
    return report(error.what());
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return report("standard output: cannot be written");
  return code;
}

}  // namespace posenc::cli
