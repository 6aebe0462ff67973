// What a command's flags say of themselves, once for the help, the man pages and the completion of
// three shells.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace posenc::cli {

struct FlagManual {
  std::string name;                  // "--head_dim", or IN where its place names it
  std::vector<std::string> aliases;  // accepted, and not shown by the help
  std::string value;                 // "N", "FILE"; "" of a switch
  std::vector<std::string> choices;  // of the value, where there are few
  std::string about, default_value, group;
  std::vector<std::string> schemes;   // whose field it is
  std::vector<std::string> excludes;  // flags that do not go with it
  bool required = false, positional = false, hidden = false;
};

struct Manual {
  std::string name, about;  // "plot heatmap"
  std::vector<FlagManual> flags;
  std::vector<std::string> notes;     // paragraphs; one that begins with spaces keeps its lines
  std::vector<std::string> examples;  // an example may have more lines than one
};

Manual manual(std::string_view name, std::string_view about, const CLI::App& app);

// Flags of groups with these names are listed by name alone, unless everything is asked for.
inline constexpr std::string_view geometry_group = "Geometry",
                                  fields_group = "Fields of the scheme", view_group = "View",
                                  rare_group = "More";

// A screen, or all; of a scheme's fields those of `scheme` and `scaling`, where they are named.
struct HelpAsked {
  bool all = false;
  std::string scheme, scaling;
};
std::string help_text(const Manual& manual, const HelpAsked& asked);

// A page for man(1). `list`: every command, for the page of posenc itself.
std::string man_page(const Manual& manual);
std::string man_page(std::span<const Manual> list);
// The page's name: "posenc-plot-heatmap".
std::string page_name(const Manual& manual);

// The completion of a shell: bash, zsh or fish; "" for any other.
std::string completion(std::string_view shell, std::span<const Manual> list);

}  // namespace posenc::cli
