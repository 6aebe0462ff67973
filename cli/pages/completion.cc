// Completion for bash, zsh and fish: scripts that hold every command, flag and choice, and call
// nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/pages/manual.h"
#include "posenc/content.h"
#include "posenc/model.h"
#include "posenc/schemes.h"

namespace posenc::cli {
namespace {

using Words = std::vector<std::string>;

Words names_of(std::initializer_list<std::span<const SchemeInfo>> lists) {
  Words out;
  for (const auto& list : lists)
    for (const SchemeInfo& info : list) out.emplace_back(info.name);
  return out;
}

// What may stand for a value; nothing where it is a file, a number or a text of the user's own.
Words words_of(const FlagManual& flag) {
  if (!flag.choices.empty()) return flag.choices;
  if (flag.value == "MODEL") {
    Words out;
    for (const BundledModel& model : bundled_models()) out.emplace_back(model.name);
    return out;
  }
  if (flag.value == "SCALING") return names_of({all_scalings()});
  if (flag.value == "SCHEME") return names_of({all_schemes(), all_content_schemes()});
  if (flag.value == "ENCODING")
    return names_of({all_schemes(), all_scalings(), all_content_schemes()});
  return {};
}

// A file may stand there, beside the words.
bool takes_file(const FlagManual& flag) {
  return flag.choices.empty() && flag.value != "SCALING" && flag.value != "SCHEME" &&
         flag.value != "ENCODING";
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string quoted_list(const Words& words) {
  return shell_quoted(fmt::format("{}", fmt::join(words, " ")));
}

std::vector<const FlagManual*> shown(const Manual& manual, bool positional) {
  std::vector<const FlagManual*> out;
  for (const FlagManual& flag : manual.flags)
    if (!flag.hidden && flag.positional == positional) out.push_back(&flag);
  return out;
}

std::vector<const Manual*> below(std::span<const Manual> list, std::string_view command) {
  std::vector<const Manual*> out;
  for (const Manual& manual : list) {
    const std::size_t space = manual.name.find(' ');
    const std::string_view above =
        space == manual.name.npos ? "" : std::string_view(manual.name).substr(0, space);
    if (above == command) out.push_back(&manual);
  }
  return out;
}

std::string last_word(const Manual& manual) {
  return manual.name.substr(manual.name.rfind(' ') + 1);
}

Words last_words(const std::vector<const Manual*>& list) {
  Words out;
  for (const Manual* manual : list) out.push_back(last_word(*manual));
  return out;
}

std::string bash(std::span<const Manual> list) {
  std::string out =
      "# bash completion for posenc; `posenc completion bash` prints it.\n"
      "_posenc() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} first=2 words=\n"
      "  local command=${COMP_WORDS[1]}\n"
      "  # bash makes words of their own of = and what stands around it.\n"
      "  if [[ $cur == = ]]; then cur=\n"
      "  elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  [[ $prev == --* ]] && { prev=${prev:2}; prev=--${prev//-/_}; }\n"
      "  [[ $cur == --?* ]] && { cur=${cur:2}; cur=--${cur//-/_}; }\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then command=; first=1\n";
  for (const Manual* manual : below(list, ""))
    if (const auto kinds = below(list, manual->name); !kinds.empty())
      out += fmt::format(
          "  elif [[ $command == {0} ]] && ((COMP_CWORD == 2)); then words='{1}'\n"
          "  elif [[ $command == {0} ]]; then command=\"{0} ${{COMP_WORDS[2]}}\"; first=3\n",
          manual->name, fmt::join(last_words(kinds), " "));
  out += fmt::format("  fi\n  case $command in\n    '') words='{} --help --version' ;;\n",
                     fmt::join(last_words(below(list, "")), " "));
  for (const Manual& manual : list) {
    out += "    " + shell_quoted(manual.name) + ")\n      case $prev in\n";
    Words free, names;
    for (const FlagManual* flag : shown(manual, false)) {
      names.push_back(flag->name);
      if (flag->value.empty()) continue;
      const Words words = words_of(*flag);
      if (words.empty())
        free.push_back(flag->name);
      else
        out += fmt::format("        {}) words={} ;;\n", flag->name, quoted_list(words));
    }
    if (!free.empty()) out += fmt::format("        {}) return ;;\n", fmt::join(free, "|"));
    out += fmt::format("        *) if [[ $cur == -* ]]; then words={}\n", quoted_list(names));
    const auto places = shown(manual, true);
    if (!places.empty() && !words_of(*places[0]).empty())
      out += fmt::format("          elif ((COMP_CWORD == first)); then words={}\n",
                         quoted_list(words_of(*places[0])));
    out += "          fi ;;\n      esac ;;\n";
  }
  return out +
         "  esac\n"
         "  [[ $words ]] && mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "}\n"
         "complete -o bashdefault -o default -F _posenc posenc\n";
}

// In a specification of _arguments brackets and colons mean something.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_value(const FlagManual& flag) {
  const Words words = words_of(flag);
  std::string action = words.empty() ? "_files" : fmt::format("({})", fmt::join(words, " "));
  if (!words.empty() && takes_file(flag))
    action = fmt::format("_posenc_or_file {}", fmt::join(words, " "));
  return ":" + zsh_text(flag.positional ? flag.name : flag.value) + ":" + action;
}

std::string zsh_menu(const std::vector<const Manual*>& list) {
  std::string out;
  for (const Manual* manual : list)
    out += " " + shell_quoted(last_word(*manual) + ":" + zsh_text(manual->about));
  return out;
}

std::string zsh(std::span<const Manual> list) {
  std::string out =
      "#compdef posenc\n"
      "# zsh completion for posenc; `posenc completion zsh` prints it.\n"
      "_posenc_or_file() { compadd -- \"$@\"; _files }\n"
      "_posenc() {\n"
      "  local -a menu\n"
      "  if ((CURRENT == 2)); then\n"
      "    menu=(" +
      zsh_menu(below(list, "")) +
      ")\n"
      "    _describe command menu\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words; ((CURRENT--))\n";
  for (const Manual* manual : below(list, ""))
    if (const auto kinds = below(list, manual->name); !kinds.empty())
      out += "  if [[ $command == " + manual->name +
             " ]]; then\n    if ((CURRENT == 2)); then\n      menu=(" + zsh_menu(kinds) +
             ")\n      _describe kind menu\n      return\n    fi\n"
             "    command=\"$command $words[2]\"\n    shift words; ((CURRENT--))\n  fi\n";
  out += "  case $command in\n";
  for (const Manual& manual : list) {
    out += "    (" + shell_quoted(manual.name) + ") _arguments";
    for (const FlagManual* flag : shown(manual, false))
      out += " \\\n      " + shell_quoted(flag->name + (flag->value.empty() ? "" : "=") + "[" +
                                          zsh_text(flag->about) + "]" +
                                          (flag->value.empty() ? "" : zsh_value(*flag)));
    for (const FlagManual* flag : shown(manual, true))
      out += " \\\n      " + shell_quoted((flag->name.ends_with("...") ? "*"
                                           : flag->required            ? ""
                                                                       : ":") +
                                          zsh_value(*flag));
    out += " ;;\n";
  }
  return out +
         "  esac\n}\n"
         "if [[ $funcstack[1] == _posenc ]]; then _posenc \"$@\"; else compdef _posenc posenc; "
         "fi\n";
}

std::string fish(std::span<const Manual> list) {
  std::string out = "# fish completion for posenc; `posenc completion fish` prints it.\n";
  const auto entry = [](const std::string& condition, const std::string& rest,
                        std::string_view about) {
    return fmt::format("complete -c posenc -n {} {} -d {}\n", shell_quoted(condition), rest,
                       shell_quoted(about));
  };
  for (const Manual& manual : list) {
    const std::size_t space = manual.name.find(' ');
    const bool is_kind = space != manual.name.npos;
    const std::string above = manual.name.substr(0, is_kind ? space : 0);
    std::string kinds;
    for (const Manual* kind : below(list, is_kind ? above : manual.name))
      kinds += " " + last_word(*kind);
    out += entry(is_kind ? "__fish_seen_subcommand_from " + above +
                               "; and not __fish_seen_subcommand_from" + kinds
                         : "__fish_use_subcommand",
                 "-f -a " + last_word(manual), manual.about);
    std::string here = "__fish_seen_subcommand_from " + last_word(manual);
    if (is_kind) here = "__fish_seen_subcommand_from " + above + "; and " + here;
    if (!is_kind && !kinds.empty()) here += "; and not __fish_seen_subcommand_from" + kinds;
    for (const FlagManual* flag : shown(manual, false)) {
      std::string rest = "-l " + flag->name.substr(2);
      const Words words = words_of(*flag);
      if (!flag->value.empty()) rest += takes_file(*flag) ? " -r" : " -x";
      if (!words.empty()) rest += " -a " + quoted_list(words);
      out += entry(here, rest, flag->about);
    }
    const auto places = shown(manual, true);
    if (!places.empty() && !words_of(*places[0]).empty())
      out += entry(here,
                   (takes_file(*places[0]) ? "-a " : "-f -a ") + quoted_list(words_of(*places[0])),
                   places[0]->about);
  }
  return out;
}

}  // namespace

std::string completion(std::string_view shell, std::span<const Manual> list) {
  return shell == "bash"   ? bash(list)
         : shell == "zsh"  ? zsh(list)
         : shell == "fish" ? fish(list)
                           : "";
}

}  // namespace posenc::cli
