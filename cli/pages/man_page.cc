// Manuals as pages for man(1), in ASCII: roff has names for all other characters.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "cli/pages/manual.h"

namespace posenc::cli {
namespace {

// The code point at `at`, which moves behind it.
std::uint32_t code_point(std::string_view utf8, std::size_t& at) {
  const auto byte = static_cast<unsigned char>(utf8[at++]);
  if (byte < 0x80) return byte;
  std::uint32_t out = byte & (byte >= 0xF0 ? 0x07u : byte >= 0xE0 ? 0x0Fu : 0x1Fu);
  while (at < utf8.size() && (static_cast<unsigned char>(utf8[at]) & 0xC0) == 0x80)
    out = out << 6 | (static_cast<unsigned char>(utf8[at++]) & 0x3Fu);
  return out;
}

std::string escaped(std::string_view text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t point = code_point(text, at);
    if (point == '\\') {
      out += "\\e";
    } else if (point == '-') {
      out += "\\-";
    } else if (point == '|') {
      out += "|\\:";  // a list of words may be broken here
    } else if (point == '^' || point == '~' || point == '`' || point == '\'' || point == '"') {
      out += point == '^'   ? "\\(ha"
             : point == '~' ? "\\(ti"
             : point == '`' ? "\\(ga"
             : point == '"' ? "\\(dq"
                            : "\\(aq";
    } else if (point == '\n') {
      out += "\n";
      if (at < text.size() && (text[at] == '.' || text[at] == '\'')) out += "\\&";
    } else if (point < 0x80) {
      out += static_cast<char>(point);
    } else {
      out += fmt::format("\\[u{:04X}]", point);
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string head(std::string_view name, std::string_view about) {
  std::string title(name);
  std::transform(title.begin(), title.end(), title.begin(), [](char c) {
    return 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return fmt::format(".TH {} 1 \"\" \"posenc {}\" \"posenc\"\n.SH NAME\n{} \\- {}\n",
                     escaped(title), POSENC_VERSION, escaped(name), escaped(about));
}

std::string flag_text(const FlagManual& flag) {
  std::string out = ".TP\n" + bold(flag.name);
  if (!flag.positional && !flag.value.empty()) out += " " + italic(flag.value);
  std::string about = flag.about.empty() ? "See the scheme." : flag.about;
  if (!flag.schemes.empty()) {
    std::string of;
    for (const std::string& scheme : flag.schemes) of += (of.empty() ? "" : ", ") + scheme;
    about = "Of " + of + ": " + about;
  }
  if (!flag.default_value.empty()) about += " (default: " + flag.default_value + ")";
  const auto add = [&about](const char* words, const std::vector<std::string>& names) {
    for (const std::string& name : names) about += (&name == names.data() ? words : ", ") + name;
  };
  add("; not with ", flag.excludes);
  add("; also ", flag.aliases);
  return out + "\n" + escaped(about) + "\n";
}

constexpr std::string_view exit_codes =
    ".SH EXIT STATUS\n0: good. 1: something wrong was found. 2: bad input, which standard error "
    "names.\n";

}  // namespace

std::string page_name(const Manual& manual) {
  std::string out = "posenc-" + manual.name;
  std::replace(out.begin(), out.end(), ' ', '-');
  return out;
}

std::string man_page(const Manual& manual) {
  std::string out =
      head(page_name(manual), manual.about) + ".SH SYNOPSIS\n" + bold("posenc " + manual.name);
  for (const FlagManual& flag : manual.flags) {
    if (!flag.positional && !flag.required) continue;
    const std::string text =
        flag.positional ? italic(flag.name) : bold(flag.name) + " " + italic(flag.value);
    out += flag.required ? " " + text : " [" + text + "]";
  }
  out += " [" + italic("flags") + "]\n";
  if (!manual.notes.empty()) out += ".SH DESCRIPTION\n";
  for (const std::string& note : manual.notes) {
    if (&note != manual.notes.data()) out += ".PP\n";
    const bool as_is = note.contains('\n');
    out += (as_is ? ".nf\n" : "") + escaped(note) + (as_is ? "\n.fi\n" : "\n");
  }
  std::vector<std::string> groups{""};
  for (const FlagManual& flag : manual.flags)
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end())
      groups.push_back(flag.group);
  out += ".SH OPTIONS\nDashes and underscores in flags are the same.\n";
  for (const std::string& group : groups) {
    if (!group.empty()) out += ".SS " + escaped(group) + "\n";
    for (const bool first : {true, false})  // those that must be given
      for (const FlagManual& flag : manual.flags)
        if (!flag.hidden && flag.group == group && (flag.positional || flag.required) == first)
          out += flag_text(flag);
  }
  out += exit_codes;
  if (!manual.examples.empty()) out += ".SH EXAMPLES\n.EX\n";
  for (const std::string& example : manual.examples) out += escaped(example) + "\n";
  if (!manual.examples.empty()) out += ".EE\n";
  return out + ".SH SEE ALSO\n.BR posenc (1)\n";
}

std::string man_page(std::span<const Manual> list) {
  std::string out = head("posenc", "positional encodings for transformers") + ".SH SYNOPSIS\n" +
                    bold("posenc") + " " + italic("command") + " [" + italic("flags") +
                    "]\n.SH COMMANDS\n";
  for (const Manual& manual : list)
    out += fmt::format(".TP\n.BR {} (1)\n{}.\n", escaped(page_name(manual)), escaped(manual.about));
  return out + std::string(exit_codes) +
         ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nNo colours.\n.TP\n.B COLUMNS\n"
         "The width of a page, from 60 to 120; otherwise the terminal\\(aqs.\n";
}

}  // namespace posenc::cli
