// The tables of flags as data, and the help made of them.
#include "cli/pages/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/arguments/flags.h"
#include "cli/arguments/parse.h"
#include "cli/pages/terminal.h"
#include "posenc/schemes.h"

namespace posenc::cli {
namespace {

// "[yarn, longrope] on cos and sin": whose field it is leaves the text.
std::vector<std::string> take_schemes(std::string& about) {
  std::vector<std::string> out;
  const std::size_t end = about.find("] ");
  if (!about.starts_with('[') || end == about.npos) return out;
  for (const std::string_view name : split(std::string_view(about).substr(1, end - 1), ','))
    if (name.find_first_not_of(' ') != name.npos)
      out.emplace_back(name.substr(name.find_first_not_of(' ')));
  about.erase(0, end + 2);
  return out;
}

// CLI11 says "TEXT:{q,k}" of a choice, and names its own checks of ranges.
void take_value(FlagManual& flag, const std::string& type) {
  if (const std::size_t open = type.find('{'); open != type.npos) {
    std::string inside = type.substr(open + 1, type.find('}') - open - 1);
    std::replace(inside.begin(), inside.end(), '|', ',');
    for (const std::string_view word : split(inside, ',')) flag.choices.emplace_back(word);
    flag.value = fmt::format("{}", fmt::join(flag.choices, "|"));
    return;
  }
  constexpr std::pair<std::string_view, std::string_view> plain[] = {
      {"TOKENS", "TOKENS"}, {"INT", "N"}, {"UINT", "N"}, {"FLOAT", "X"}, {"TEXT", "TEXT"}};
  for (const auto& [known, word] : plain)
    if (type.contains(known)) {
      flag.value = word;
      return;
    }
  flag.value = type.empty() ? "VALUE" : type;
}

FlagManual flag_of(const CLI::Option& option) {
  FlagManual flag;
  flag.positional = option.get_positional();
  if (flag.positional) flag.name = option.get_name(true);
  for (const std::string& name : option.get_lnames())
    (flag.name.empty() ? flag.name : flag.aliases.emplace_back()) = "--" + name;
  flag.about = option.get_description();
  std::replace(flag.about.begin(), flag.about.end(), '\n', ' ');
  flag.schemes = take_schemes(flag.about);
  if (option.get_items_expected_max() > 0) take_value(flag, option.get_type_name());
  flag.default_value = option.get_default_str();
  if (flag.default_value == "[]" || flag.value.empty()) flag.default_value.clear();
  flag.hidden = option.get_group().empty();
  flag.group = option.get_group() == "Options" ? "" : option.get_group();
  flag.required = option.get_required();
  for (const CLI::Option* other : option.get_excludes()) flag.excludes.push_back(other->get_name());
  return flag;
}

void take_footer(Manual& manual, const std::string& footer) {
  bool examples = false;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) manual.notes.push_back(std::move(paragraph));
    paragraph.clear();
  };
  for (const std::string_view line : split(footer, '\n')) {
    if (line == "Examples:") {
      end_paragraph();
      examples = true;
    } else if (examples && line.starts_with("  posenc")) {
      manual.examples.emplace_back(line.substr(2));
    } else if (examples && !manual.examples.empty()) {
      manual.examples.back() +=
          "\n" + std::string(line.substr(std::min<std::size_t>(2, line.size())));
    } else if (line.empty()) {
      end_paragraph();
    } else {
      if (!paragraph.empty())
        paragraph += line.starts_with(' ') || line.ends_with(':') ? '\n' : ' ';
      if (paragraph.contains("\n ")) paragraph.back() = '\n';
      paragraph += line;
    }
  }
  end_paragraph();
}

constexpr std::size_t most_column = 30;
constexpr std::ptrdiff_t most_lines = 40;  // of a screen

constexpr std::string_view every_command[] = {"--help", "--help-all", "--no_color"};
constexpr std::string_view told_in_a_line[] = {geometry_group, fields_group, view_group,
                                               rare_group};

bool contains(const auto& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}
bool has_table(std::string_view group) { return !contains(told_in_a_line, group); }

// Choices that would push all others aside stand in the text.
bool tells_choices(const FlagManual& flag) {
  return !flag.choices.empty() && !flag.positional && flag.value.size() > 18;
}
bool told_already(const FlagManual& flag) {
  return std::all_of(flag.choices.begin(), flag.choices.end(),
                     [&](const auto& word) { return flag.about.find(word) != flag.about.npos; });
}

std::ptrdiff_t lines_of(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

std::string left(const FlagManual& flag) {
  if (flag.positional || flag.value.empty()) return flag.name;
  return flag.name + " " + (tells_choices(flag) ? "WORD" : flag.value);
}

std::string said(const FlagManual& flag, bool all) {
  std::string text = flag.about;
  if (all && !flag.schemes.empty())
    text = fmt::format("[{}] {}", fmt::join(flag.schemes, ", "), text);
  if (tells_choices(flag) && !told_already(flag))
    text += fmt::format(": {}", fmt::join(flag.choices, ", "));
  if (!flag.default_value.empty()) text += fmt::format(" (default: {})", flag.default_value);
  if (all && !flag.excludes.empty())
    text += fmt::format("; not with {}", fmt::join(flag.excludes, ", "));
  if (all && !flag.aliases.empty()) text += fmt::format("; also {}", fmt::join(flag.aliases, ", "));
  return text;
}

std::string lines(const std::vector<const FlagManual*>& flags, bool all) {
  std::size_t column = 0;
  for (const FlagManual* flag : flags)
    if (const std::size_t width = columns(left(*flag)); width <= most_column)
      column = std::max(column, width);
  column += 4;  // two before, two behind
  std::string out;
  for (const FlagManual* flag : flags) {
    std::string head = "  " + left(*flag);
    if (columns(head) + 2 > column) {
      out += head + "\n";
      head.clear();
    }
    out += padded(head, column) + wrapped(said(*flag, all), column, column) + "\n";
  }
  return out;
}

std::string names_alone(const std::vector<const FlagManual*>& flags) {
  std::string out;
  for (const FlagManual* flag : flags) out += (out.empty() ? "" : ", ") + flag->name;
  return out;
}

// By its name or an alias; a scaling brings RoPE's fields with it.
std::vector<std::string> named_schemes(const HelpAsked& asked) {
  std::vector<std::string> out;
  const auto take = [&out](std::string_view name) {
    if (!contains(out, name)) out.emplace_back(name);
  };
  for (const std::string& name : {asked.scheme, asked.scaling}) {
    if (name.empty()) continue;
    if (const auto scheme = make_scheme(name)) {
      take(info(*scheme).name);
    } else if (const auto scaling = make_scaling(name)) {
      take("rope");
      take(info(*scaling).name);
    } else {
      take(name);
    }
  }
  return out;
}

bool is_of(const FlagManual& flag, const std::vector<std::string>& schemes) {
  return std::find_first_of(flag.schemes.begin(), flag.schemes.end(), schemes.begin(),
                            schemes.end()) != flag.schemes.end();
}

// A group that a screen has no room for: its names, or the fields of the scheme that is named.
std::string short_group(const std::string& group, const std::vector<const FlagManual*>& flags,
                        const HelpAsked& asked) {
  if (group != fields_group)
    return fmt::format("{}: {}\n", group, wrapped(names_alone(flags), 2, columns(group) + 2));
  const std::vector<std::string> schemes = named_schemes(asked);
  std::vector<const FlagManual*> of_scheme;
  for (const FlagManual* flag : flags)
    if (is_of(*flag, schemes)) of_scheme.push_back(flag);
  const std::string hint = "posenc schemes NAME, or here --scheme NAME --help";
  if (of_scheme.empty()) return group + ": " + hint + "\n";
  return fmt::format("{}: {}\n{}", group, fmt::join(schemes, ", "), lines(of_scheme, false));
}

}  // namespace

Manual manual(std::string_view name, std::string_view about, const CLI::App& app) {
  Manual out{.name = std::string(name), .about = std::string(about)};
  for (const CLI::Option* option : app.get_options()) out.flags.push_back(flag_of(*option));
  take_footer(out, app.get_footer());
  return out;
}

std::string help_text(const Manual& manual, const HelpAsked& asked) {
  std::vector<const FlagManual*> first;  // those that must be given, and those of no group
  std::vector<std::string> groups;
  std::string usage;
  for (const bool place : {true, false})
    for (const FlagManual& flag : manual.flags)
      if (flag.positional == place && (flag.required || place)) {
        first.push_back(&flag);
        usage += " " + (flag.required ? left(flag) : "[" + left(flag) + "]");
      }
  for (const FlagManual& flag : manual.flags) {
    if (flag.hidden || flag.positional || flag.required) continue;
    if (flag.group.empty()) {
      if (asked.all || !contains(every_command, flag.name)) first.push_back(&flag);
    } else if (!contains(groups, flag.group)) {
      groups.push_back(flag.group);
    }
  }
  // Groups that are told in a line come after those with a table.
  if (!asked.all) std::stable_partition(groups.begin(), groups.end(), has_table);
  std::string out = fmt::format("posenc {}: {}\n\nUsage: posenc {}{} [flags]\n", manual.name,
                                manual.about, manual.name, usage);
  if (!first.empty()) out += "\n" + lines(first, asked.all);
  bool told_in_a_line = false;
  for (const std::string& group : groups) {
    std::vector<const FlagManual*> flags;
    for (const FlagManual& flag : manual.flags)
      if (!flag.hidden && !flag.positional && !flag.required && flag.group == group)
        flags.push_back(&flag);
    if (asked.all || has_table(group)) {
      out += "\n" + group + ":\n" + lines(flags, asked.all);
    } else {
      out += (told_in_a_line ? "" : "\n") + short_group(group, flags, asked);
      told_in_a_line = true;
    }
  }
  if (!asked.all)
    out += fmt::format("\nEvery flag and example: posenc {} --help-all\n", manual.name);
  for (const std::string& note : manual.notes) {
    const bool as_is = note.contains('\n');
    if (asked.all || as_is || note == manual.notes.front())
      out += "\n" + (as_is ? note : wrapped(note, 0, 0)) + "\n";
  }
  if (manual.examples.empty()) return out;
  out += "\nExamples:\n";
  for (const std::string& each : manual.examples) {
    std::string example = "  " + each + "\n";
    for (std::size_t at = example.find('\n'); at + 1 < example.size();
         at = example.find('\n', at + 3))
      example.insert(at + 1, "  ");
    if (!asked.all && &each != manual.examples.data() && lines_of(out + example) > most_lines)
      break;
    out += example;
  }
  return out;
}

}  // namespace posenc::cli
