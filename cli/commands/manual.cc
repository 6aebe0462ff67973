// The commands that installers and shells call: completion scripts and man pages.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/manual.h"
#include "cli/pages/terminal.h"
#include "cli/run.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

Run define_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app.footer(
      "make install puts them where each shell looks.\n\n"
      "Examples:\n"
      "  posenc completion bash > ~/.local/share/bash-completion/completions/posenc\n"
      "  posenc completion zsh > ~/.zfunc/_posenc\n"
      "  posenc completion fish > ~/.config/fish/completions/posenc.fish");
  return [shell]() -> Expected<int> {
    write_out("{}", completion(*shell, all_manuals()));
    return 0;
  };
}

Expected<int> write_pages(const std::filesystem::path& folder, std::span<const Manual> list) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto write = [&folder](const std::string& name, const std::string& text) {
    return write_whole((folder / (name + ".1")).string(), {text});
  };
  POSENC_CHECK(write("posenc", man_page(list)));
  for (const Manual& manual : list) POSENC_CHECK(write(page_name(manual), man_page(manual)));
  return 0;
}

Run define_man(CLI::App& app) {
  struct Options {
    std::vector<std::string> command;
    std::string folder;
  };
  auto options = std::make_shared<Options>();
  app.add_option("COMMAND", options->command,
                 "Whose page, such as rotate or plot heatmap; posenc's without");
  app.add_option("--into", options->folder,
                 "Write every page into this folder, as posenc-rotate.1");
  app.footer(
      "Examples:\n"
      "  posenc man rotate > posenc-rotate.1 && man ./posenc-rotate.1\n"
      "  posenc man --into ~/.local/share/man/man1");
  return [options]() -> Expected<int> {
    const std::vector<Manual> list = all_manuals();
    if (!options->folder.empty()) return write_pages(options->folder, list);
    std::string name;
    for (const std::string& word : options->command) name += (name.empty() ? "" : " ") + word;
    if (name.empty()) {
      write_out("{}", man_page(list));
      return 0;
    }
    for (const Manual& manual : list)
      if (manual.name == name) {
        write_out("{}", man_page(manual));
        return 0;
      }
    return fail("man", "there is no such command", name, "posenc --help lists them");
  };
}

}  // namespace

extern const Command completion_command{"completion", "completion for bash, zsh or fish",
                                        define_completion};
extern const Command man_command{"man", "a command's page for man", define_man};

}  // namespace posenc::cli
